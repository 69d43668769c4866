//! Writes the C header that kernels include.

use std::fmt::Write as _;

use kr_types::TILE_BYTES;

use crate::layout::{EXTENT_INCONGRUENT, EXTENT_PINNED};
use crate::{digest, stream};

/// A structure of [`layout`](crate::layout).
pub(crate) struct Struct {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static [&'static str],
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) fields: &'static [Field],
}

/// One of its fields.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// As Rust writes it: `u32`, `u64`, or `Pair`.
    pub(crate) ty: &'static str,
    pub(crate) doc: &'static [&'static str],
    pub(crate) offset: usize,
}

const OPENING: &str = "\
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
";

/// The whole header.
pub(crate) fn render(structs: &[Struct]) -> String {
    let mut out = String::from(OPENING);
    let mut constants = |doc: &str, lines: &[(&str, String)]| {
        out += &format!("\n// {doc}\n");
        for (name, value) in lines {
            out += &format!("#define KR_{name} {value}\n");
        }
    };
    let wide = |value: u64| format!("{value:#x}ull");
    constants(
        "Bytes of a full tile; the least that a piece of a tile is split into.",
        &[
            ("TILE_BYTES", format!("{TILE_BYTES}")),
            ("MIN_PIECE_BYTES", format!("{}", stream::MIN_PIECE_BYTES)),
        ],
    );
    constants(
        "Bits of ExtentEntry.flags.",
        &[
            ("EXTENT_PINNED", format!("{EXTENT_PINNED:#x}u")),
            ("EXTENT_INCONGRUENT", format!("{EXTENT_INCONGRUENT:#x}u")),
        ],
    );
    constants(
        "The digest: t_i = fin(word_i ^ fin(seed + (i + 1) * KR_DIGEST_STEP)), where fin xors with\n\
         // itself shifted right by 30, multiplies, by 27, multiplies, by 31.",
        &[
            ("DIGEST_STEP", wide(digest::STEP)),
            ("DIGEST_FIRST_FACTOR", wide(digest::FACTORS[0])),
            ("DIGEST_SECOND_FACTOR", wide(digest::FACTORS[1])),
        ],
    );
    for shared in structs {
        write_struct(&mut out, shared).expect("writing to a string does not fail");
    }
    out += "\n#undef KR_ASSERT\n";
    out
}

fn write_struct(out: &mut String, shared: &Struct) -> std::fmt::Result {
    writeln!(out)?;
    for line in shared.doc {
        writeln!(out, "//{line}")?;
    }
    let name = shared.name;
    // Only what exceeds the alignment of a 64-bit number has to be said.
    let align = match shared.align {
        0..=8 => String::new(),
        align => format!("__attribute__((aligned({align}))) "),
    };
    writeln!(out, "typedef struct {align}Kr{name} {{")?;
    for field in shared.fields {
        for line in field.doc {
            writeln!(out, "    //{line}")?;
        }
        let (ty, array) = c_type(field.ty);
        writeln!(out, "    {ty} {}{array};", field.name)?;
    }
    writeln!(out, "}} Kr{name};")?;
    let size = shared.size;
    writeln!(out, "KR_ASSERT(sizeof(Kr{name}) == {size}, \"size\");")?;
    for Field {
        name: f, offset, ..
    } in shared.fields
    {
        writeln!(
            out,
            "KR_ASSERT(__builtin_offsetof(Kr{name}, {f}) == {offset}, \"offset\");"
        )?;
    }
    Ok(())
}

/// The C type, and what follows the field's name.
fn c_type(rust: &str) -> (&'static str, &'static str) {
    match rust {
        "u32" => ("__UINT32_TYPE__", ""),
        "u64" => ("__UINT64_TYPE__", ""),
        "Pair" => ("__UINT64_TYPE__", "[2]"),
        other => unreachable!("`{other}` has no C type here"),
    }
}
