//! The engine on the host's processors, over the host device, through its public API.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod cases;
mod faults;
mod laws;
mod rig;
