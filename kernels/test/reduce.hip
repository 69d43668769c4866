// Float reduction with square root and division, in a fixed order.
#include "gpu.h"

enum { GROUP = 256 };

extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(GROUP, GROUP)))
void reduce(float *to, const float *from, u32 n) {
    __shared__ float sums[GROUP];
    u32 lane = lane_in_group();
    float sum = 0;
    for (u32 i = item(); i < n; i += grid_size()) sum += __builtin_sqrtf(from[i]) / (1.0f + from[i]);
    sums[lane] = sum;
    for (u32 step = GROUP / 2; step > 0; step /= 2) {
        barrier();
        if (lane < step) sums[lane] += sums[lane + step];
    }
    if (lane == 0) to[group()] = sums[0];
}
