// A 64-bit digest per tile: splitmix64 of each word and its place, summed over the workgroup.
#include "gpu.h"

enum { TILE_WORDS = 2048, GROUP = 256 };

static __device__ inline u64 mix(u64 z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ul;
    z = (z ^ z >> 27) * 0x94d049bb133111ebul;
    return z ^ z >> 31;
}

extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(GROUP, GROUP)))
void digest(u64 *digests, const u64 *words) {
    __shared__ u64 sums[GROUP];
    u32 lane = lane_in_group();
    const u64 *tile = words + (u64)group() * TILE_WORDS;
    u64 sum = 0;
    for (u32 i = lane; i < TILE_WORDS; i += GROUP) sum += mix(tile[i] + (i + 1) * 0x9e3779b97f4a7c15ul);
    sums[lane] = sum;
    for (u32 step = GROUP / 2; step > 0; step /= 2) {
        barrier();
        if (lane < step) sums[lane] += sums[lane + step];
    }
    if (lane == 0) digests[group()] = sums[0];
}
