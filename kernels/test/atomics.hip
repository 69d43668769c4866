// Counts through atomics: an add, a maximum, a 64-bit add and a loop of compare-and-swap.
#include "gpu.h"

extern "C" __global__ void atomics(u32 *cells, u64 *wide, const u32 *from, u32 n) {
    u32 i = item();
    if (i >= n) return;
    u32 value = from[i];
    __hip_atomic_fetch_add(&cells[0], value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    __hip_atomic_fetch_max(&cells[1], value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    __hip_atomic_fetch_add(wide, (u64)value << 20, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    u32 old = __hip_atomic_load(&cells[2], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    while (!__hip_atomic_compare_exchange_weak(&cells[2], &old, old * 3 + 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                               __HIP_MEMORY_SCOPE_AGENT)) {
    }
    // A histogram of the low bits; the result of each add says how many came before.
    u32 before = __hip_atomic_fetch_add(&cells[8 + (value & 7)], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    __hip_atomic_fetch_xor(&cells[3], before, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
