//! Kernel replay on AMD GPUs, through the HSA runtime.
