// A private array indexed by data, which can only live in scratch memory.
#include "gpu.h"

enum { SIZE = 192 };

extern "C" __global__ void scratch(u32 *to, const u32 *from, u32 n) {
    u32 i = item();
    if (i >= n) return;
    u32 table[SIZE];
#pragma nounroll
    for (u32 k = 0; k < SIZE; k++) table[k] = k * i + 7;
#pragma nounroll
    for (u32 k = 0; k < SIZE; k++) table[(from[i] + k * k) % SIZE] ^= from[i] >> (k & 15);
    u8 *bytes = (u8 *)table;
#pragma nounroll
    for (u32 k = 0; k < SIZE; k++) bytes[(from[i] * k) % (4 * SIZE)] += k;
    u32 sum = 0;
#pragma nounroll
    for (u32 k = 0; k < SIZE; k++) sum = sum * 31 + table[(k + from[i]) % SIZE];
    to[i] = sum;
}
