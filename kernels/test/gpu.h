// What the test kernels need of a HIP compiler, without its vendor's headers.
//
// Sizes and ids are 32 bits: no test grid is larger.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long u64;
typedef u32 u32x4 __attribute__((ext_vector_type(4)));

static __device__ inline u32 lane_in_group() { return __builtin_amdgcn_workitem_id_x(); }
static __device__ inline u32 group() { return __builtin_amdgcn_workgroup_id_x(); }
static __device__ inline u32 group_size() { return __builtin_amdgcn_workgroup_size_x(); }
static __device__ inline u32 item() { return group() * group_size() + lane_in_group(); }
static __device__ inline u32 grid_size() { return __builtin_amdgcn_grid_size_x(); }

// Workgroup barrier; group memory written before it is seen after it.
static __device__ inline void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
