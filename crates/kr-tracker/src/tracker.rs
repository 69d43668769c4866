//! The tracker: the inventory and the agents' gates behind one handle.
//!
//! # Locks
//!
//! Three kinds, and no thread ever holds two of them: the map of gates, a gate's line, the
//! inventory. So there is no order to get wrong. Each is held for a few steps; nothing blocks, no
//! user code runs and no free token is dropped under any of them. The agent lock, held for as long
//! as a window is open, is a state in a gate's line and not a mutex.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use kr_types::{AgentId, DeviceAddr, InventoryGeneration, MemoryClass, Region};

use crate::gate::{Gate, Side};
use crate::inside::{self, Place};
use crate::inventory::{Footprint, Freed, Inventory, RecordError, Release};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex};
use crate::window::{Hold, Window};

/// Limits of a [`Tracker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrackerConfig {
    /// How many bytes one window may keep from being freed before
    /// [`Window::parked_over_bound`] says so. Frees beyond it are parked all the same.
    pub parked_bound_bytes: u64,
}

impl TrackerConfig {
    /// This configuration with another bound on parked bytes.
    #[must_use]
    pub const fn with_parked_bound_bytes(mut self, bytes: u64) -> Self {
        self.parked_bound_bytes = bytes;
        self
    }
}

impl Default for TrackerConfig {
    /// 1 GiB may be parked.
    fn default() -> Self {
        Self {
            parked_bound_bytes: 1 << 30,
        }
    }
}

/// Knows what device memory exists, who owns it, and who may enter an agent.
///
/// `F` is what a backend needs in order to really free an allocation; the tracker keeps it and
/// hands it back, and never looks into it. See the [crate] for how the parts work together.
pub struct Tracker<F> {
    id: u64,
    config: TrackerConfig,
    enabled: AtomicBool,
    claimed: Arc<AtomicBool>,
    gates: Mutex<BTreeMap<AgentId, Arc<Gate>>>,
    inventory: Mutex<Inventory<F>>,
}

impl<F> Tracker<F> {
    /// A tracker that records from the start; nothing was allocated before.
    pub fn new(config: TrackerConfig) -> Self {
        Self::with(config, true)
    }

    /// A tracker that is off: [`record`](Self::record) and [`free`](Self::free) cost one relaxed
    /// load and leave no trace, until [`enable`](Self::enable).
    pub fn disabled(config: TrackerConfig) -> Self {
        Self::with(config, false)
    }

    fn with(config: TrackerConfig, enabled: bool) -> Self {
        // Not of `crate::sync`: a number that is only compared for equality needs no model.
        static NEXT_ID: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        Self {
            // Relaxed: the addition is atomic, and nothing else is read on the strength of it.
            id: NEXT_ID.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            config,
            enabled: AtomicBool::new(enabled),
            claimed: Arc::new(AtomicBool::new(false)),
            gates: Mutex::new(BTreeMap::new()),
            inventory: Mutex::new(Inventory::new()),
        }
    }

    /// Switches a [`disabled`](Self::disabled) tracker on, for good.
    ///
    /// Memory that was allocated before is unknown, so every agent counts as
    /// [untracked](Footprint::untracked) from then on. Without effect on a tracker that is on.
    pub fn enable(&self) {
        let mut inventory = self.inventory.lock();
        if !self.is_enabled() {
            inventory.mark_late();
            // Relaxed: who sees `true` goes on to take the inventory lock, and since the store is
            // made under that lock it finds the mark.
            self.enabled.store(true, Ordering::Relaxed);
        }
    }

    /// Whether allocations are recorded: one relaxed load.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        // Relaxed: the flag only ever rises, and guards nothing that is read without the lock.
        self.enabled.load(Ordering::Relaxed)
    }

    /// Makes the caller the one subscriber of replay, until the claim is dropped.
    ///
    /// # Errors
    ///
    /// [`AlreadyClaimed`] while someone else has it.
    pub fn claim(&self) -> Result<Claim, AlreadyClaimed> {
        // Acquire pairs with the release in `Claim::drop`: what the subscriber before did with the
        // tracker happens before what the next one does. Relaxed on failure: nothing is read then.
        match self
            .claimed
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
        {
            Ok(_) => Ok(Claim {
                claimed: self.claimed.clone(),
            }),
            Err(_) => Err(AlreadyClaimed),
        }
    }

    /// Notes an allocation, after it succeeded. `None` while the tracker is off.
    ///
    /// Never waits for a window, and never becomes part of one that has made its list already.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if the range cannot be; then the agent has untracked memory.
    #[inline]
    pub fn record(
        &self,
        agent: AgentId,
        base: DeviceAddr,
        len_bytes: u64,
        class: MemoryClass,
    ) -> Result<Option<Region>, RecordError> {
        if !self.is_enabled() {
            return Ok(None);
        }
        self.record_enabled(agent, base, len_bytes, class)
    }

    /// Takes the allocation at `base` out of the inventory, *before* it is really freed, and says
    /// what to do with `token`. Never waits for a window.
    ///
    /// The other order would leave memory in the inventory that is already gone, and a window could
    /// write to it.
    #[inline]
    pub fn free(&self, base: DeviceAddr, token: F) -> Freed<F> {
        if !self.is_enabled() {
            return Freed::Unknown(token);
        }
        self.free_enabled(base, token)
    }

    // Out of line, so that callers inline no more than the look at the switch.

    #[inline(never)]
    fn record_enabled(
        &self,
        agent: AgentId,
        base: DeviceAddr,
        len_bytes: u64,
        class: MemoryClass,
    ) -> Result<Option<Region>, RecordError> {
        self.inventory
            .lock()
            .record(agent, base, len_bytes, class)
            .map(Some)
    }

    #[inline(never)]
    fn free_enabled(&self, base: DeviceAddr, token: F) -> Freed<F> {
        self.inventory.lock().free(base, token)
    }

    /// How much a window on `agent` would have to save, and whether it would miss something.
    pub fn footprint(&self, agent: AgentId) -> Footprint {
        self.inventory.lock().footprint(agent)
    }

    /// A number that rises with every allocation and free on `agent`: as long as it is the same,
    /// nothing was recorded, freed or put back.
    pub fn inventory_generation(&self, agent: AgentId) -> InventoryGeneration {
        self.inventory.lock().generation(agent)
    }

    /// The live region that contains `addr`, of whatever agent and class.
    pub fn region_at(&self, addr: DeviceAddr) -> Option<Region> {
        self.inventory.lock().region_at(addr)
    }

    /// Whether exactly this allocation exists: base, length, generation, agent and class.
    ///
    /// The answer may be out of date when it arrives; only a window's hold lasts
    /// ([`Window::holds`]).
    pub fn is_live(&self, region: &Region) -> bool {
        self.inventory.lock().is_live(region)
    }

    /// Parked frees of windows that were dropped without having been closed, to be run by the
    /// caller. The next [`Window::close`] would return them as well.
    pub fn take_orphans(&self) -> Vec<F> {
        self.inventory.lock().take_orphans()
    }

    /// Enters `agent` to put a dispatch on one of its queues. Waits while a window is open there or
    /// stands before us in line; see [first come, first served](crate#who-may-enter).
    ///
    /// If this thread has a window on `agent` itself, it does not wait: the window counts as
    /// re-entered from then on ([`Window::is_reentered`]), and the guard says so.
    pub fn enter_dispatch(&self, agent: AgentId) -> DispatchGuard {
        self.dispatch(agent, |gate| gate.enter(Side::Dispatch, None))
            .expect("without a deadline one gets in")
    }

    /// [`enter_dispatch`](Self::enter_dispatch) for threads that may be inside a window of their own
    /// on *another* agent, as callbacks are. Two of those could wait for each other's agent forever,
    /// so such a thread waits for `limit` at the most and then enters all the same. If a window is
    /// open there, that one counts as [re-entered](Window::is_reentered), and the guard says so
    /// ([`DispatchGuard::beside_window`]); no other window opens before the guard is dropped.
    pub fn enter_dispatch_nested(&self, agent: AgentId, limit: Duration) -> DispatchGuard {
        if !inside::in_any_window() {
            return self.enter_dispatch(agent);
        }
        // A limit beyond the clock's range is none.
        let deadline = Instant::now().checked_add(limit);
        let mut beside_window = false;
        let mut guard = self
            .dispatch(agent, |gate| {
                if !gate.enter(Side::Dispatch, deadline) {
                    beside_window = gate.intrude();
                }
                true
            })
            .expect("one gets in one way or the other");
        guard.beside_window = beside_window;
        guard
    }

    /// [`enter_dispatch`](Self::enter_dispatch) for threads that must never wait: `None` where that
    /// would.
    pub fn try_enter_dispatch(&self, agent: AgentId) -> Option<DispatchGuard> {
        self.dispatch(agent, Gate::try_enter_dispatch)
    }

    fn dispatch(&self, agent: AgentId, enter: impl FnOnce(&Gate) -> bool) -> Option<DispatchGuard> {
        let place = self.place(agent);
        let gate = match inside::side(place) {
            Some(Side::Window) => {
                inside::mark_reentered(place);
                None
            }
            Some(Side::Dispatch) => {
                let gate = self.gate(agent);
                gate.enter_dispatch_again();
                Some(gate)
            }
            None => {
                let gate = self.gate(agent);
                if !enter(&gate) {
                    return None;
                }
                Some(gate)
            }
        };
        if gate.is_some() {
            inside::push(place, Side::Dispatch);
        }
        Some(DispatchGuard {
            gate,
            place,
            beside_window: false,
            this_thread: PhantomData,
        })
    }

    /// Opens a window on `agent`: waits until everyone inside has left and all who came before had
    /// their turn, for `limit` at most.
    ///
    /// # Errors
    ///
    /// [`OpenError`]; nothing is open then, and those behind us in line go on.
    pub fn open_window(&self, agent: AgentId, limit: Duration) -> Result<Window<'_, F>, OpenError> {
        let place = self.place(agent);
        if inside::side(place).is_some() {
            inside::mark_reentered(place);
            return Err(OpenError::Reentrant { agent });
        }
        let gate = self.gate(agent);
        let start = Instant::now();
        // A limit beyond the clock's range is none.
        if !gate.enter(Side::Window, start.checked_add(limit)) {
            return Err(OpenError::Busy {
                agent,
                waited: start.elapsed(),
            });
        }
        // Asked inside: who was there before us may have left its capture behind.
        if self.inventory.lock().has_capture(agent) {
            gate.leave(Side::Window);
            return Err(OpenError::Held { agent });
        }
        inside::push(place, Side::Window);
        Ok(Window::new(self, gate, place))
    }

    /// Ends the hold of an abandoned window and returns the tokens of the frees that were parked,
    /// as [`Window::close`] does.
    #[must_use = "these frees were reported to the application as done"]
    pub fn release(&self, hold: Hold) -> Vec<F> {
        let mut inventory = self.inventory.lock();
        inventory.end_capture(hold.agent);
        inventory.take_orphans()
    }

    pub(crate) fn config(&self) -> TrackerConfig {
        self.config
    }

    /// Runs `look` on the inventory, under its lock.
    pub(crate) fn with_inventory<T>(&self, look: impl FnOnce(&mut Inventory<F>) -> T) -> T {
        look(&mut self.inventory.lock())
    }

    pub(crate) fn gate(&self, agent: AgentId) -> Arc<Gate> {
        self.gates
            .lock()
            .entry(agent)
            .or_insert_with(|| Arc::new(Gate::new()))
            .clone()
    }

    fn place(&self, agent: AgentId) -> Place {
        Place {
            tracker: self.id,
            agent,
        }
    }
}

impl<F> fmt::Debug for Tracker<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracker")
            .field("config", &self.config)
            .field("enabled", &self.is_enabled())
            .finish_non_exhaustive()
    }
}

impl<F> Release<F> {
    /// The allocation that is being freed.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The token, for a real free that cannot fail.
    pub fn into_token(self) -> F {
        self.token
    }

    /// Really frees the memory; if that fails, the allocation is back in the inventory of `tracker`
    /// as it was, generation included.
    ///
    /// If `real_free` panics, nobody knows whether the memory exists: it stays out of the inventory
    /// and its agent has untracked memory from then on.
    ///
    /// # Errors
    ///
    /// What `real_free` returned.
    pub fn run<T, E>(
        self,
        tracker: &Tracker<F>,
        real_free: impl FnOnce(F) -> Result<T, E>,
    ) -> Result<T, E> {
        /// Dropped while unwinding only.
        struct Unsure<'a, F>(&'a Tracker<F>, AgentId);

        impl<F> Drop for Unsure<'_, F> {
            fn drop(&mut self) {
                self.0
                    .with_inventory(|inventory| inventory.mark_untracked(self.1));
            }
        }

        let unsure = Unsure(tracker, self.region.agent());
        let outcome = real_free(self.token);
        std::mem::forget(unsure);
        if outcome.is_err() {
            tracker.with_inventory(|inventory| inventory.put_back(self.region));
        }
        outcome
    }
}

/// Proof that a dispatch is inside its agent: no window opens there until it is dropped.
#[must_use = "the agent is left when the guard is dropped"]
pub struct DispatchGuard {
    /// `None` if this thread's window already keeps others out.
    gate: Option<Arc<Gate>>,
    place: Place,
    beside_window: bool,
    /// The thread's stack has an entry for us, so we stay on it.
    this_thread: PhantomData<*const ()>,
}

impl DispatchGuard {
    /// The agent that was entered.
    pub fn agent(&self) -> AgentId {
        self.place.agent
    }

    /// Whether this thread has a window open on the agent. The guard then rests on that window and
    /// means nothing once it is closed.
    pub fn reentrant(&self) -> bool {
        self.gate.is_none()
    }

    /// Whether another thread's window was open on the agent when this dispatch entered, its
    /// [limit](Tracker::enter_dispatch_nested) having passed.
    pub fn beside_window(&self) -> bool {
        self.beside_window
    }
}

impl Drop for DispatchGuard {
    fn drop(&mut self) {
        if let Some(gate) = &self.gate {
            inside::pop(self.place);
            gate.leave(Side::Dispatch);
        }
    }
}

impl fmt::Debug for DispatchGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DispatchGuard")
            .field("agent", &self.place.agent)
            .field("reentrant", &self.reentrant())
            .finish()
    }
}

/// Why a window could not be opened. Nothing has changed, and nothing waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// This thread is inside the agent already, so it would wait for itself. If it is so by a
    /// window, that one counts as [re-entered](Window::is_reentered) now.
    #[error("this thread is inside {agent} already, with a window or a dispatch of its own")]
    Reentrant {
        /// The agent asked for.
        agent: AgentId,
    },
    /// Memory of the agent is still in use on behalf of a window that was
    /// [abandoned](Window::abandon).
    #[error("memory of {agent} is still held for an earlier window")]
    Held {
        /// The agent asked for.
        agent: AgentId,
    },
    /// Others were inside, or before us in line, until the limit had passed.
    #[error("waited {waited:?} for others to leave {agent}")]
    Busy {
        /// The agent asked for.
        agent: AgentId,
        /// For how long we waited.
        waited: Duration,
    },
}

/// The right to be the one subscriber of replay; see [`Tracker::claim`].
#[derive(Debug)]
#[must_use = "the claim is given up when it is dropped"]
pub struct Claim {
    claimed: Arc<AtomicBool>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Release pairs with the acquire in `Tracker::claim`.
        self.claimed.store(false, Ordering::Release);
    }
}

/// Someone else is the subscriber of replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("replay has a subscriber already; it must drop its claim first")]
pub struct AlreadyClaimed;
