// Structures and constants that the host and the kernels share.
//
// Generated from crates/kr-blit/src/layout.rs; do not edit. To make it anew:
//     cargo run -p kr-blit --example header > kernels/kr_blit.h
#pragma once

#ifdef __cplusplus
#define KR_ASSERT static_assert
#else
#define KR_ASSERT _Static_assert
#endif

// Bytes of a full tile; the least that a piece of a tile is split into.
#define KR_TILE_BYTES 16384
#define KR_MIN_PIECE_BYTES 4096

// Bits of ExtentEntry.flags.
#define KR_EXTENT_PINNED 0x1u
#define KR_EXTENT_INCONGRUENT 0x2u

// The digest: t_i = fin(word_i ^ fin(seed + (i + 1) * KR_DIGEST_STEP)), where fin xors with
// itself shifted right by 30, multiplies, by 27, multiplies, by 31.
#define KR_DIGEST_STEP 0x9e3779b97f4a7c15ull
#define KR_DIGEST_FIRST_FACTOR 0xbf58476d1ce4e5b9ull
#define KR_DIGEST_SECOND_FACTOR 0x94d049bb133111ebull

// One placed piece of one region. It starts and ends at a tile border of its region, or at the
// region's end.
typedef struct KrExtentEntry {
    // Address of its first byte in the application's memory.
    __UINT64_TYPE__ live;
    // Address of the first byte of its saved copy.
    __UINT64_TYPE__ saved;
    // Length of either side in bytes; never 0.
    __UINT64_TYPE__ len;
    // Index of its first tile in the work stream.
    __UINT64_TYPE__ first_tile;
    // Index of its region among the regions of the stream.
    __UINT32_TYPE__ region;
    // `EXTENT_*` bits.
    __UINT32_TYPE__ flags;
} KrExtentEntry;
KR_ASSERT(sizeof(KrExtentEntry) == 40, "size");
KR_ASSERT(__builtin_offsetof(KrExtentEntry, live) == 0, "offset");
KR_ASSERT(__builtin_offsetof(KrExtentEntry, saved) == 8, "offset");
KR_ASSERT(__builtin_offsetof(KrExtentEntry, len) == 16, "offset");
KR_ASSERT(__builtin_offsetof(KrExtentEntry, first_tile) == 24, "offset");
KR_ASSERT(__builtin_offsetof(KrExtentEntry, region) == 32, "offset");
KR_ASSERT(__builtin_offsetof(KrExtentEntry, flags) == 36, "offset");

// One tile of the work stream.
typedef struct KrTileEntry {
    // Index of its extent.
    __UINT32_TYPE__ extent;
    // Index of the tile within the extent: it starts `index * TILE_BYTES` bytes in.
    __UINT32_TYPE__ index;
} KrTileEntry;
KR_ASSERT(sizeof(KrTileEntry) == 8, "size");
KR_ASSERT(__builtin_offsetof(KrTileEntry, extent) == 0, "offset");
KR_ASSERT(__builtin_offsetof(KrTileEntry, index) == 4, "offset");

// The 128-bit digest of a tile; `sum` alone is the 64-bit digest. Digests of pieces add up,
// each half modulo 2^64.
typedef struct KrDigest128 {
    // Sum of the terms `t_i`.
    __UINT64_TYPE__ sum;
    // Sum of `(2 i + 1) t_i`.
    __UINT64_TYPE__ weighted;
} KrDigest128;
KR_ASSERT(sizeof(KrDigest128) == 16, "size");
KR_ASSERT(__builtin_offsetof(KrDigest128, sum) == 0, "offset");
KR_ASSERT(__builtin_offsetof(KrDigest128, weighted) == 8, "offset");

// What one operation did. One line, so that the host reads it at once over the link.
typedef struct __attribute__((aligned(64))) KrCounters {
    // Tiles looked at.
    __UINT64_TYPE__ tiles;
    // Tiles found changed.
    __UINT64_TYPE__ changed;
    // Tiles found changed that were not on the list of changed tiles.
    __UINT64_TYPE__ unlisted_changed;
    // Sum of the lengths of the tiles that were copied.
    __UINT64_TYPE__ bytes_copied;
    // Bytes hashed.
    __UINT64_TYPE__ bytes_hashed;
    // 0, or a number that says what went wrong.
    __UINT64_TYPE__ error;
    // Zero.
    __UINT64_TYPE__ reserved[2];
} KrCounters;
KR_ASSERT(sizeof(KrCounters) == 64, "size");
KR_ASSERT(__builtin_offsetof(KrCounters, tiles) == 0, "offset");
KR_ASSERT(__builtin_offsetof(KrCounters, changed) == 8, "offset");
KR_ASSERT(__builtin_offsetof(KrCounters, unlisted_changed) == 16, "offset");
KR_ASSERT(__builtin_offsetof(KrCounters, bytes_copied) == 24, "offset");
KR_ASSERT(__builtin_offsetof(KrCounters, bytes_hashed) == 32, "offset");
KR_ASSERT(__builtin_offsetof(KrCounters, error) == 40, "offset");
KR_ASSERT(__builtin_offsetof(KrCounters, reserved) == 48, "offset");

#undef KR_ASSERT
