// Variables of the module, which no argument points to; one holds the address of the other.
#include "gpu.h"

__device__ u32 counter = 41;
__device__ u32 *volatile where = &counter;

extern "C" __global__ void count(u32 *seen) {
    if (lane_in_group() == 0) {
        u32 *cell = where;
        seen[group()] = __hip_atomic_fetch_add(cell, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    }
}
