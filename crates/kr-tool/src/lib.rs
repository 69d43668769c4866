//! The tool that the HSA runtime loads into a profiled process.
