//! The profiler's command line.
