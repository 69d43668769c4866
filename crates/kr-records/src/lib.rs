//! The record stream of a run: appended by the profiled process, read back even after a crash.
