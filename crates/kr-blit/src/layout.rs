//! Structures that the host and the kernels share, byte for byte.
//!
//! Each is declared once, below, with the offset of every field. From this one declaration come the
//! Rust structure, assertions of its size and offsets, and its text in the C header that kernels
//! include ([`c_header`]), which asserts the same.
//!
//! Invariants
//! - No structure has padding, and none holds a pointer: addresses are 64-bit numbers.
//! - Everything is little-endian, as every GPU that this workspace knows is.
//!
//! Not here: how a list of extents becomes these structures ([`Stream`](crate::Stream)).

use crate::header;

/// Declares structures as `offset => field: type`, and lists them for the header.
macro_rules! shared {
    ($(
        $(#[doc = $doc:literal])*
        $(#[repr(align($align:literal))])?
        struct $name:ident: $size:literal {
            $( $(#[doc = $fdoc:literal])* $offset:literal => $field:ident: $ty:tt, )+
        }
    )+) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            #[repr(C $(, align($align))?)]
            pub struct $name {
                $( $(#[doc = $fdoc])* pub $field: $ty, )+
            }

            const _: () = assert!(size_of::<$name>() == $size, "size");
            $(
                const _: () = assert!(
                    core::mem::offset_of!($name, $field) == $offset,
                    "offset"
                );
            )+
        )+

        /// The structures as the header describes them.
        pub(crate) const STRUCTS: &[header::Struct] = &[$(
            header::Struct {
                name: stringify!($name),
                doc: &[$($doc),*],
                size: $size,
                align: align_of::<$name>(),
                fields: &[$(
                    header::Field {
                        name: stringify!($field),
                        ty: stringify!($ty),
                        doc: &[$($fdoc),*],
                        offset: $offset,
                    },
                )+],
            },
        )+];
    };
}

shared! {
    /// One placed piece of one region. It starts and ends at a tile border of its region, or at the
    /// region's end.
    struct ExtentEntry: 40 {
        /// Address of its first byte in the application's memory.
        0 => live: u64,
        /// Address of the first byte of its saved copy.
        8 => saved: u64,
        /// Length of either side in bytes; never 0.
        16 => len: u64,
        /// Index of its first tile in the work stream.
        24 => first_tile: u64,
        /// Index of its region among the regions of the stream.
        32 => region: u32,
        /// `EXTENT_*` bits.
        36 => flags: u32,
    }

    /// One tile of the work stream.
    struct TileEntry: 8 {
        /// Index of its extent.
        0 => extent: u32,
        /// Index of the tile within the extent: it starts `index * TILE_BYTES` bytes in.
        4 => index: u32,
    }

    /// The 128-bit digest of a tile; `sum` alone is the 64-bit digest. Digests of pieces add up,
    /// each half modulo 2^64.
    struct Digest128: 16 {
        /// Sum of the terms `t_i`.
        0 => sum: u64,
        /// Sum of `(2 i + 1) t_i`.
        8 => weighted: u64,
    }

    /// What one operation did. One line, so that the host reads it at once over the link.
    #[repr(align(64))]
    struct Counters: 64 {
        /// Tiles looked at.
        0 => tiles: u64,
        /// Tiles found changed.
        8 => changed: u64,
        /// Tiles found changed that were not on the list of changed tiles.
        16 => unlisted_changed: u64,
        /// Sum of the lengths of the tiles that were copied.
        24 => bytes_copied: u64,
        /// Bytes hashed.
        32 => bytes_hashed: u64,
        /// 0, or a number that says what went wrong.
        40 => error: u64,
        /// Zero.
        48 => reserved: Pair,
    }
}

/// Two words of padding up to a line.
type Pair = [u64; 2];

/// The saved side is in pinned host memory and not in the agent's own.
pub const EXTENT_PINNED: u32 = 1 << 0;
/// Live and saved side differ in their address modulo 16, so that items of 16 bytes are aligned on
/// one side at most.
pub const EXTENT_INCONGRUENT: u32 = 1 << 1;

/// The C header for kernels, as `kernels/kr_blit.h` holds it.
///
/// `cargo run -p kr-blit --example header` prints it.
pub fn c_header() -> String {
    header::render(STRUCTS)
}
