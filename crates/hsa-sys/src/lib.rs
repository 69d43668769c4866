//! Raw bindings to the HSA runtime and to AMD's extensions of it (ROCr).
//!
//! HSA is the interface below HIP and OpenCL on AMD GPUs: agents, signals, queues of packets,
//! memory pools, code objects. This crate declares it as C has it, for programs that use the
//! runtime and for tools that the runtime loads. It has no link-time dependency: it builds, and its
//! layouts are checked, where no runtime is installed.
//!
//! | To | use |
//! |---|---|
//! | call the runtime from a program | [`Library`]: opens it and looks functions up |
//! | be a tool inside another program | [`ApiTables`]: reads and replaces functions in its tables |
//! | write packets | [`hsa_kernel_dispatch_packet_t`] and its kin, [`packet_header`] |
//! | name a function or its type | [`function`] |
//!
//! `examples/saxpy.rs` is a whole program: it finds an agent, loads a kernel, runs it and checks the result.
//!
//! Names are C's. Enumerations are integers with named constants, whose names lack the prefix that
//! C needs: `HSA_STATUS_SUCCESS` is [`hsa_status_t::SUCCESS`]; any other number is a value too.
//!
//! # What is covered
//!
//! | Header | of ROCr 5.2 | later |
//! |---|---|---|
//! | `hsa.h` | all | named where known |
//! | `hsa_ext_amd.h` | all | functions up to slot 82 of AMD's table, and what they need |
//! | `hsa_api_trace.h` | all | two more tables: not covered (tools, sampling) |
//! | `hsa_ext_image.h`, `hsa_ext_finalize.h` | all, without the prefilled function tables | not covered |
//! | `hsa_ven_amd_loader.h`, `hsa_ven_amd_aqlprofile.h` | all | counters of the second interface of aqlprofile |
//! | `amd_hsa_signal.h`, `amd_hsa_queue.h`, `amd_hsa_kernel_code.h` | all | the kernel descriptor since code object version 3 |
//! | `amd_hsa_elf.h` | processors and features | newer processors |
//! | `Brig.h` | not covered | |
//!
//! ROCr 5.2 is the oldest interface that is supported. What came later says so; functions carry
//! their release ([`function::Info::since`]). Only 64-bit little-endian hosts are supported.
//!
//! # Features
//!
//! - `loading` (default): [`Library`]. Tools can do without.
//!
//! # Safety
//!
//! Calling the runtime is unsafe; [`function`] says what is asked of callers. Structures here are
//! plain data: making one is safe, handing it to the runtime or to hardware is what needs care.

#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    reason = "the names are C's, so that documentation and code of others can be searched for them"
)]
#![cfg_attr(
    not(feature = "loading"),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "`Library` is there with the feature only"
    )
)]

#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
compile_error!("hsa-sys supports 64-bit little-endian hosts only, as AMD's runtime does");

#[macro_use]
mod macros;

mod amd;
mod aql;
mod aqlprofile;
mod bits;
mod elf;
mod finalize;
pub mod function;
mod hsa;
mod image;
mod internal;
mod kernel;
#[cfg(feature = "loading")]
mod library;
mod loader;
#[doc(hidden)]
pub mod reflect;
mod table;

pub use amd::*;
pub use aql::*;
pub use aqlprofile::*;
pub use bits::BitField;
pub use elf::*;
pub use finalize::*;
pub use function::{Function, MissingFunction};
pub use hsa::*;
pub use image::*;
pub use internal::*;
pub use kernel::*;
#[cfg(feature = "loading")]
pub use library::{AQLPROFILE_NAMES, Library, OpenError, RUNTIME_NAMES};
pub use loader::*;
pub use table::{
    AmdExtLayout, ApiTableVersion, ApiTables, HsaApiTable, OnLoad, OnUnload, SavedTables,
    TableError,
};

// The types of callbacks belong to the types; only functions are in `function`.
pub use function::callback::*;
