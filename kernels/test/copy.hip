// Copies 16 bytes per work-item, several times until the grid has covered all.
#include "gpu.h"

extern "C" __global__ void copy16(u32x4 *to, const u32x4 *from, u32 n) {
    for (u32 i = item(); i < n; i += grid_size()) to[i] = from[i];
}
