//! Fakes for the seams of `kr-replay`, and a rig that puts an engine between them.
//!
//! [`ScriptedTarget`], [`ScriptedBlit`] and [`ScriptedObserver`] do what a script says, call by call,
//! and write what they were asked to do into one [`Log`], so that a test sees the order across all
//! three. [`FakeClock`] is moved by scripted waits alone. [`Rig`] adds an application whose kernel
//! changes every byte of its memory on every run, so that a run too many, a run too few and a byte
//! that was not put back all show, and checks what every dispatch owes to both sides.
//!
//! Invariants
//! - Nothing here waits for real time, and without a script every call succeeds.
//! - A target notes every call that breaks the protocol of [`ReplayTarget`](kr_replay::ReplayTarget)
//!   as a violation instead of panicking, since it is also called while a thread unwinds.
//!
//! Not here: what a certain script must end in. That is in `tests/` of `kr-replay`.

mod blit;
mod check;
mod clock;
mod log;
mod memory;
mod observer;
mod rig;
mod script;
mod target;
mod tool_memory;

pub use blit::{BlitCall, BlitStep, ScriptedBlit};
pub use check::Refusal;
pub use clock::FakeClock;
pub use log::{Event, Log};
pub use memory::{AppMemory, Contents};
pub use observer::{Callback, Finished, Reaction, ScriptedObserver};
pub use rig::Rig;
pub use script::Action;
pub use target::{Call, FakeQueue, Launch, Measured, ScriptedTarget, Step};
pub use tool_memory::ToolMemory;
