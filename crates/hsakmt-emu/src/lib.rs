//! A stand-in for `libhsakmt.so.1`, the library between AMD's HSA runtime (ROCr) and the kernel driver.
//!
//! An unmodified ROCr that finds this library instead of the real one runs on agents that do not exist: emulated
//! gfx90a, whose kernels are interpreted instruction by instruction by `amdgpu-emu`. No GPU, no driver and no
//! privileges are needed. It is made for tests of programs that use HSA, and nothing it shows is a result about
//! hardware.
//!
//! ```text
//! program ─ libhsa-runtime64.so.1 (ROCr, unmodified)
//!               │ hsaKmt*                       exports: C in, errors out
//!               ├─ topology, config             what the machine says it is
//!               ├─ space ─ pages ─ heap ─ host  memory, and who reaches it; managed
//!               ├─ events                       how agents wake the host
//!               └─ queue: aql, sdma, blit, pm4  packets ─ view ─ amdgpu_emu::Emulator ─ trace
//! ```
//!
//! Invariants
//! - Queues, engines and kernels touch memory through `view`, which checks every access against the page tables.
//! - No panic leaves the library, and no thread of a queue dies unheard.
//! - Unsafe code is in `exports` (pointers from C), `host` (mappings and raw accesses), `view` and `queue::doorbell`
//!   (which meet the contract of `host`), nowhere else.
//!
//! Not here: instructions, which are `amdgpu-emu`'s; time, which only passes; functions that ROCr 5.2.3 does not
//! import.
#![deny(unsafe_code)]

mod abi;
mod agent;
mod config;
mod driver;
mod error;
mod events;
#[allow(unsafe_code, reason = "follows pointers from C, and has names for C")]
mod exports;
mod heap;
#[allow(unsafe_code, reason = "maps memory and accesses it")]
mod host;
mod log;
mod managed;
mod pages;
mod queue;
mod space;
mod topology;
mod trace;
#[allow(unsafe_code, reason = "meets the contract of `host`")]
mod view;
