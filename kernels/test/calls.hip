// Calls: a function that is not inlined, gets a generic pointer to a private array and calls itself.
#include "gpu.h"

static __device__ __attribute__((noinline)) u32 walk(u32 *steps, u32 at, u32 depth) {
    steps[at & 7] += depth;
    if (depth == 0) return steps[0] ^ at;
    u32 below = walk(steps, at * 5 + depth, depth - 1);
    return below * 3 + steps[(at + depth) & 7];
}

extern "C" __global__ void calls(u32 *to, const u32 *from, u32 n) {
    u32 i = item();
    if (i >= n) return;
    u32 steps[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    to[i] = walk(steps, from[i], from[i] % 6);
}
