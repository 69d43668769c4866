// Inclusive prefix sums of each workgroup's part, through group memory.
#include "gpu.h"

enum { GROUP = 256 };

extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(GROUP, GROUP)))
void scan(u32 *to, const u32 *from) {
    __shared__ u32 sums[2][GROUP];
    u32 lane = lane_in_group(), side = 0;
    sums[0][lane] = from[item()];
    for (u32 step = 1; step < GROUP; step *= 2) {
        barrier();
        u32 sum = sums[side][lane];
        if (lane >= step) sum += sums[side][lane - step];
        sums[side ^ 1][lane] = sum;
        side ^= 1;
    }
    barrier();
    to[item()] = sums[side][lane];
}
