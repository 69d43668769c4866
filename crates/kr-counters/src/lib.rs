//! Counters: what they mean, what fits in one pass, and how they are read.
