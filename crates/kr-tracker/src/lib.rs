//! What device memory exists, who owns it, and who may enter an agent.
//!
//! A profiler that replays a dispatch saves an agent's memory, runs the dispatch several times and
//! puts the memory back in between. Meanwhile the application goes on allocating, freeing and
//! dispatching on other threads. The [`Tracker`] keeps the two apart:
//!
//! - backends report allocations ([`record`](Tracker::record)) and frees ([`free`](Tracker::free));
//! - dispatches enter their agent beside each other ([`enter_dispatch`](Tracker::enter_dispatch)),
//!   a replay enters it alone ([`open_window`](Tracker::open_window));
//! - a [`Window`] lists the memory to save and *holds* it ([`Window::capture_list`]).
//!
//! # Frees and windows
//!
//! Memory in a window's capture may be written by a restore at any time until the window closes. A
//! free of it is therefore *parked*: the application is told that it succeeded, the region leaves
//! the inventory at once, but the memory and its address stay taken until [`Window::close`] returns
//! the free's token and the caller has run it. Allocating and freeing never wait for a window, and
//! a restore needs no lock. An address that is handed out again is another allocation: its
//! [`Generation`](kr_types::Generation) differs, and no window mistakes it for what it saved.
//!
//! Nothing is missed silently. Memory that the tracker cannot know makes its agent
//! [untracked](Footprint::untracked), and replay declines there.
//!
//! # Who may enter
//!
//! First come, first served: who has to wait stands in one line per agent, and dispatches next to
//! each other in it enter together. So a dispatch waits only for windows that were asked for before
//! it, a window only for dispatches and windows before it, and neither can be starved. Every window
//! brings a limit for its own wait. A thread never waits for itself: inside its own window or
//! dispatch it is let through or refused at once, and the window knows
//! ([`Window::is_reentered`]).
//!
//! # Invariants
//!
//! - No memory that a window holds is really freed before the window leaves; no free is lost or run
//!   twice, even if the window is dropped by a panic. If its use may outlive the window, the hold
//!   does too ([`Window::abandon`]).
//! - A window and anyone else are never inside one agent together.
//! - No lock of the tracker is held while anything blocks or foreign code runs.
//! - Off, recording and freeing cost one relaxed load each.
//!
//! Not here: what a window does with the memory, which memory a backend reports, and any wait for
//! an agent's work.
//!
//! # Example
//!
//! ```
//! use std::convert::Infallible;
//! use std::time::Duration;
//!
//! use kr_tracker::{Freed, Tracker, TrackerConfig};
//! use kr_types::{AgentId, DeviceAddr, MemoryClass};
//!
//! let agent = AgentId(1);
//! let tracker = Tracker::new(TrackerConfig::default());
//! tracker.record(agent, DeviceAddr(0x1000), 256, MemoryClass::Vram)?;
//! tracker.record(agent, DeviceAddr(0x2000), 64, MemoryClass::Vram)?;
//!
//! // Nothing holds the memory: its free goes ahead, and is undone if the runtime refuses it.
//! let Freed::Release(release) = tracker.free(DeviceAddr(0x2000), "free 0x2000") else {
//!     unreachable!("no window is open")
//! };
//! release.run(&tracker, |_token| Ok::<_, Infallible>(()))?;
//!
//! // A window holds the rest, so a free in between is parked.
//! let mut window = tracker.open_window(agent, Duration::from_secs(1))?;
//! let saved = window.capture_list().regions;
//! assert!(matches!(tracker.free(DeviceAddr(0x1000), "free 0x1000"), Freed::Parked));
//! assert!(!tracker.is_live(&saved[0]), "gone for the application");
//! assert!(window.holds(&saved[0]), "yet safe to restore");
//!
//! for token in window.close() {
//!     assert_eq!(token, "free 0x1000");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod gate;
mod inside;
mod inventory;
mod sync;
mod tracker;
mod window;

#[cfg(test)]
mod tests;

pub use inventory::{CaptureList, Footprint, Freed, RecordError, Release};
pub use tracker::{AlreadyClaimed, Claim, DispatchGuard, OpenError, Tracker, TrackerConfig};
pub use window::{Hold, Window};
