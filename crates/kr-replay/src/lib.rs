//! Kernel replay: run one GPU dispatch several times on identical memory.
//!
//! Hardware has few counter registers, so a profiler that wants many counters of one kernel runs it
//! several times with the same inputs. An [`Engine`] does that in place: it saves the device memory
//! that the kernel can touch, runs pass 0, puts back what changed, runs pass 1, and so on. The
//! application sees exactly one run.
//!
//! Who plugs in what:
//!
//! | seam | implemented by | says |
//! |---|---|---|
//! | [`ReplayTarget`] | a backend, once per launch that it intercepts | how to hold the queue, run one pass, leave |
//! | [`Observer`] | a profiler | which dispatches, how many passes, what to do with the records |
//! | [`kr_device::Device`], [`kr_blit::BlitEngine`] | a backend | how memory is saved and put back |
//! | [`kr_policy::RestorePolicy`] | optional | in which mode it is put back |
//!
//! [`host`] is a complete backend in host memory: applications written for it are profiled without
//! a GPU. It is what this example, the tests and the demo use.
//!
//! What always holds
//! - The application's completion signal is decremented once per dispatch that ends, whatever goes
//!   wrong here: a [`ReplayTarget`] is consumed by [`leave`](ReplayTarget::leave), and a guard calls
//!   it on every path.
//! - One [`DispatchId`](kr_types::DispatchId) for CONFIG, all passes, all records and a declined run.
//! - Records leave only after the verdict: until then the engine keeps what
//!   [`Observer::pass_exit`] returned.
//! - N passes are N executions, and nothing of the engine runs during one.
//! - Every wait of a window is bounded; a dispatch waits for the windows before it. Every decline has
//!   a [`Reason`](kr_types::Reason) and is counted.
//! - With replay off a dispatch costs one relaxed load.
//!
//! Not here: HSA, CUDA, counters, files, the environment.
//!
//! # Example: a profiler in one screen
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use kr_replay::host::{HostCounters, HostKernel, HostRuntime, KernelLaunch};
//! use kr_replay::{Dispatch, Observer, PassContext, PassPlan, PassRecord, WindowReport};
//! use kr_types::{AgentId, DeviceAddr, DispatchId, Outcome};
//!
//! /// Three passes of every dispatch, one row of counters each.
//! #[derive(Default)]
//! struct Profiler { rows: Mutex<Vec<(DispatchId, u32, u64)>> }
//!
//! impl Observer for Profiler {
//!     type UserData = ();
//!     type Measured = HostCounters;
//!     type Record = u64;
//!
//!     fn configure(&self, _: DispatchId, _: &Dispatch, _: &mut ()) -> PassPlan {
//!         PassPlan::Exactly(3)
//!     }
//!     fn pass_exit(&self, _: &PassContext<'_>, _: &mut (), measured: HostCounters) -> u64 {
//!         measured.operations
//!     }
//!     fn finish(&self, report: &WindowReport, _: (), records: Vec<PassRecord<u64>>) {
//!         let rows = records.into_iter().map(|r| (report.id, r.pass.0, r.record));
//!         self.rows.lock().unwrap().extend(rows);
//!     }
//! }
//!
//! // The application: an in-place kernel on device memory. It knows nothing of the profiler.
//! let runtime = HostRuntime::new(AgentId(0));
//! let profiler = Arc::new(Profiler::default());
//! runtime.attach(runtime.engine(profiler.clone()).build()?);
//!
//! let x = runtime.alloc(4)?;
//! x.write(&[20u32])?;
//! let increment = HostKernel::new("increment", |ctx| {
//!     let addr = DeviceAddr(ctx.args::<u64>()?);
//!     let v = ctx.load::<u32>(addr, 1)?;
//!     ctx.add_operations(1);
//!     ctx.store(addr, &[v[0] + 1])
//! });
//! let queue = runtime.queue();
//! queue.launch(&KernelLaunch::new(&increment, &x.addr().0)).wait()?;
//!
//! assert_eq!(x.read::<u32>()?, [21], "the application sees one run");
//! assert_eq!(profiler.rows.lock().unwrap().len(), 3, "the profiler sees three");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod config;
mod dispatch;
mod engine;
mod guard;
pub mod host;
mod inside;
mod memory;
mod observer;
mod report;
mod target;
mod tiers;
mod window;

pub use clock::{Clock, SystemClock};
pub use config::Limits;
pub use dispatch::Dispatch;
pub use engine::{BuildError, Engine, EngineBuilder, ParkedFree};
pub use kr_storage::Retain;
pub use observer::{Observer, PassContext, PassPlan, PassRecord};
pub use report::{EngineStats, PassStats, WindowReport, WindowStats};
pub use target::{Leave, ReplayTarget, TargetError};
