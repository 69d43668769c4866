//! Kernel replay on NVIDIA GPUs, through the CUDA driver API.
