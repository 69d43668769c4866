//! The engine: what outlives a window, and the gate in front of it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use kr_blit::{BlitEngine, FullCopy};
use kr_device::Device;
use kr_policy::{Fixed, RestorePolicy};
use kr_storage::Retain;
use kr_tracker::{AlreadyClaimed, Claim, Tracker};
use kr_types::{
    AgentId, ByTier, DispatchId, KernelId, Outcome, QueueId, Reason, RestoreMode, Tier,
};
use parking_lot::Mutex;

use crate::guard::{OfTool, guarded};
use crate::memory::{AgentMemory, Memory};
use crate::report::Counts;
use crate::target::{Leave, ReplayTarget};
use crate::tiers::Tiers;
use crate::window::{Held, Window};
use crate::{Clock, Dispatch, EngineStats, Limits, Observer, SystemClock};

/// A free that was put off because a window held the memory: what really frees it. The engine runs
/// it once, when the window has left, outside every lock.
pub type ParkedFree = Box<dyn FnOnce() + Send>;

/// Why an engine was not built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Another engine uses the same tracker. Two would restore over each other.
    #[error("another engine already replays on these agents; drop it first")]
    Claimed(#[from] AlreadyClaimed),
    /// Two devices are for the same agent.
    #[error("{0} was given to the builder twice")]
    AgentTwice(AgentId),
}

/// Makes an agent's memory once budgets and retention are known.
type MakeMemory = Box<dyn FnOnce(ByTier<u64>, Retain) -> Arc<dyn AgentMemory>>;

/// Builds an [`Engine`].
pub struct EngineBuilder<O> {
    tracker: Arc<Tracker<ParkedFree>>,
    observer: O,
    agents: Vec<(AgentId, MakeMemory)>,
    limits: Limits,
    budget_bytes: u64,
    tier_bytes: ByTier<u64>,
    retain: Retain,
    policy: Arc<dyn RestorePolicy>,
    clock: Arc<dyn Clock>,
    restore: bool,
}

impl<O: Observer> EngineBuilder<O> {
    fn new(tracker: Arc<Tracker<ParkedFree>>, observer: O) -> Self {
        Self {
            tracker,
            observer,
            agents: Vec::new(),
            limits: Limits::default(),
            budget_bytes: u64::MAX,
            tier_bytes: ByTier::uniform(u64::MAX),
            retain: Retain::default(),
            policy: Arc::new(Fixed(RestoreMode::Full)),
            clock: Arc::new(SystemClock),
            restore: true,
        }
    }

    /// Adds an agent whose memory is saved and restored by plain copies.
    ///
    /// # Safety
    ///
    /// As for [`blit_engine`](Self::blit_engine).
    #[must_use]
    pub unsafe fn device<D: Device + Clone>(self, device: D) -> Self {
        // A seed that differs from process to process.
        let seed = RandomState::new().hash_one(device.agent());
        let blit = FullCopy::new(device.clone(), seed);
        // SAFETY: the caller's promise, handed on.
        unsafe { self.blit_engine(device, blit) }
    }

    /// Adds an agent whose memory is saved and restored by `blit`, with blocks from `device`.
    ///
    /// # Safety
    ///
    /// The engine copies from and to device memory on the word of others. The caller promises that
    /// - every region that the tracker lists for this agent is memory that `device` can read and
    ///   write, from [`Tracker::record`] until its free was given out by the tracker;
    /// - while a target of this agent is between [`reach`](ReplayTarget::reach) and
    ///   [`leave`](ReplayTarget::leave) with no pass running, nothing else writes that memory, or
    ///   the device defines such races.
    #[must_use]
    pub unsafe fn blit_engine<D: Device, B: BlitEngine>(mut self, device: D, blit: B) -> Self {
        let agent = device.agent();
        let make: MakeMemory = Box::new(move |tier_bytes, retain| {
            Arc::new(Memory::new(Tiers::new(device, tier_bytes, retain), blit))
        });
        self.agents.push((agent, make));
        self
    }

    /// How long the steps of a window may take.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The most memory that one window may take to save what it must, in bytes. A dispatch that
    /// needs more is declined with `budget`; exactly as much is admitted. Default: no limit but
    /// what the device gives.
    #[must_use]
    pub fn budget_bytes(mut self, bytes: u64) -> Self {
        self.budget_bytes = bytes;
        self
    }

    /// The most memory of one kind that a window may take, in bytes. What does not fit spills into the
    /// next tier, a region also in part; what fits nowhere is declined with `plan-failed`. Default:
    /// what the device gives.
    #[must_use]
    pub fn tier_bytes(mut self, tier: Tier, bytes: u64) -> Self {
        *self.tier_bytes.get_mut(tier) = bytes;
        self
    }

    /// What becomes of the memory for saved bytes when a window ends. Default: it is kept for the
    /// next one, since allocating it can take longer than the window. A backend calls
    /// [`Engine::release_retained`] when an allocation of the application finds no room.
    #[must_use]
    pub fn retain(mut self, retain: Retain) -> Self {
        self.retain = retain;
        self
    }

    /// How restore modes are chosen. Default: always full. A mode that an agent's engine does not
    /// support counts as full.
    #[must_use]
    pub fn policy(mut self, policy: impl RestorePolicy) -> Self {
        self.policy = Arc::new(policy);
        self
    }

    /// Another clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Never puts memory back, so that later passes start from what earlier ones left. Wrong on
    /// purpose: the negative control of anything that claims to test replay.
    #[must_use]
    pub fn without_restore(mut self) -> Self {
        self.restore = false;
        self
    }

    /// Claims the tracker and makes the engine.
    ///
    /// # Errors
    ///
    /// [`BuildError`]; nothing is claimed.
    pub fn build(self) -> Result<Engine<O>, BuildError> {
        let mut agents = HashMap::new();
        for (agent, make) in self.agents {
            let memory = make(self.tier_bytes, self.retain);
            if agents.insert(agent, memory).is_some() {
                return Err(BuildError::AgentTwice(agent));
            }
        }
        Ok(Engine {
            claim: self.tracker.claim()?,
            switch: Switch(AtomicUsize::new(Switch::ON)),
            next_id: AtomicU64::new(1),
            tracker: self.tracker,
            observer: self.observer,
            agents,
            limits: self.limits,
            budget_bytes: self.budget_bytes,
            policy: self.policy,
            clock: self.clock,
            restore: self.restore,
            counts: Counts::default(),
            refused_kernels: Mutex::default(),
            stuck_queues: Mutex::default(),
        })
    }
}

impl<O> fmt::Debug for EngineBuilder<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents: Vec<_> = self.agents.iter().map(|(agent, _)| agent).collect();
        f.debug_struct("EngineBuilder")
            .field("agents", &agents)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Replays dispatches for one profiler.
///
/// A backend calls [`dispatch`](Self::dispatch) for every launch that it intercepts, on the thread
/// that made it. Any number of threads may do so at once.
pub struct Engine<O> {
    /// The rest is touched only behind it.
    switch: Switch,
    next_id: AtomicU64,
    pub(crate) tracker: Arc<Tracker<ParkedFree>>,
    pub(crate) observer: O,
    pub(crate) agents: HashMap<AgentId, Arc<dyn AgentMemory>>,
    pub(crate) limits: Limits,
    pub(crate) budget_bytes: u64,
    pub(crate) policy: Arc<dyn RestorePolicy>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) restore: bool,
    pub(crate) counts: Counts,
    /// Kernels that are declined from now on, with the reason.
    pub(crate) refused_kernels: Mutex<HashMap<KernelId, Reason>>,
    /// Queues that are declined until they are idle, with the reason.
    pub(crate) stuck_queues: Mutex<HashMap<QueueId, Reason>>,
    #[allow(
        dead_code,
        reason = "held for its drop, which lets the next engine claim the tracker"
    )]
    claim: Claim,
}

impl<O: Observer> Engine<O> {
    /// Starts an engine over `tracker` for `observer`. Agents are added to the builder.
    pub fn builder(tracker: Arc<Tracker<ParkedFree>>, observer: O) -> EngineBuilder<O> {
        EngineBuilder::new(tracker, observer)
    }

    /// Sees one launch through: replays it, or passes it on. Returns when the passes have run, or
    /// as soon as the launch was passed on.
    ///
    /// With replay off this is one relaxed load and [`Leave::Forward`].
    #[inline]
    pub fn dispatch<T>(&self, dispatch: &Dispatch, target: T) -> Outcome
    where
        T: ReplayTarget<Measured = O::Measured>,
    {
        if self.switch.is_quiet() {
            target.leave(Leave::Forward);
            return Outcome::Untargeted;
        }
        self.dispatch_seen(dispatch, Held::new(target))
    }

    #[inline(never)]
    fn dispatch_seen<T>(&self, dispatch: &Dispatch, held: Held<T>) -> Outcome
    where
        T: ReplayTarget<Measured = O::Measured>,
    {
        let passage = self.switch.enter();
        if !passage.is_on {
            self.forward(dispatch.agent, held);
            return Outcome::Untargeted;
        }
        let make = || OfTool::new(O::UserData::default());
        let asked = guarded(|| self.observer.wants(dispatch).then(make));
        let user = match asked {
            Ok(Some(user)) => user,
            Ok(None) => {
                self.forward(dispatch.agent, held);
                self.counts.add(Outcome::Untargeted, None);
                return Outcome::Untargeted;
            }
            Err(panic) => {
                self.forward(dispatch.agent, held);
                let reason = Reason::ToolPanicked;
                self.counts.add(Outcome::Declined, Some(reason));
                let kernel = &*dispatch.kernel_name;
                tracing::warn!(kernel, %reason, panic, "dispatch declined: `wants` panicked");
                return Outcome::Declined;
            }
        };
        // Relaxed: only uniqueness matters.
        let id = DispatchId(self.next_id.fetch_add(1, Relaxed));
        Window::new(self, id, dispatch, user, held).run()
    }

    /// Passes a launch on, beside other dispatches and not into a window.
    pub(crate) fn forward<T: ReplayTarget>(&self, agent: AgentId, held: Held<T>) {
        let beside = self
            .tracker
            .enter_dispatch_nested(agent, self.limits.agent());
        if beside.beside_window() {
            let agent = agent.0;
            tracing::error!(
                agent,
                "launched from a callback into an agent that stayed busy"
            );
        }
        held.leave();
    }

    /// Ends a window's hold on the agent and its memory, and runs the frees that it put off. If work
    /// on that memory has not been seen to end, the memory stays held until it is.
    pub(crate) fn close(&self, window: kr_tracker::Window<'_, ParkedFree>) {
        let memory = self.agents.get(&window.agent());
        if let Some(memory) = memory {
            memory.age();
        }
        match memory.filter(|memory| memory.is_quarantined()) {
            None => carry_out(window.close()),
            Some(memory) => {
                let (tracker, hold) = (self.tracker.clone(), window.abandon());
                memory.when_quiet(Box::new(move || carry_out(tracker.release(hold))));
            }
        }
    }

    /// Frees the memory that is kept for saved bytes of the next window, and says how many bytes that
    /// were. For an allocation of the application that found no room: it is worth another try if
    /// this is not 0.
    pub fn release_retained(&self) -> u64 {
        self.settle();
        let released = self.agents.values().map(|memory| memory.release_retained());
        released.fold(0, u64::saturating_add)
    }

    /// Looks whether work that had outlived its limit has ended, and frees what was held for it.
    /// Every dispatch that is to be replayed does so for its agent; a backend calls it when an
    /// allocation of the application finds no room.
    pub fn settle(&self) {
        for memory in self.agents.values() {
            memory.is_quarantined();
        }
    }

    /// Turns replay on or off. Windows that are open finish.
    ///
    /// Turning it on is not ordered with launches that other threads make at that moment: one that
    /// was found to be of no interest just before may still reach its queue after a window has
    /// opened. So turn it on before the application launches, or let the backend put launches that
    /// it passes on itself behind [`Tracker::enter_dispatch`], as the host backend does.
    pub fn set_active(&self, active: bool) {
        self.switch.turn(active);
    }

    /// The process is shutting down: no further window opens, and open ones start no further pass;
    /// if one was still to come they end without records. Cannot be undone.
    pub fn finalize(&self) {
        self.switch.finalize();
    }

    /// Whether [`finalize`](Self::finalize) was called.
    pub fn is_finalizing(&self) -> bool {
        self.switch.is_final()
    }

    /// Waits until no dispatch is under way, which only ends if replay is off. `false`: one still
    /// is after `limit`. Before an engine is dropped, so that another can be built, turn replay off
    /// and wait here.
    ///
    /// What had not been seen to end when an engine is dropped, nobody sees end any more: copies that
    /// outlived their limit, or a pass that could not be stopped. The memory that they may write
    /// stays held, and the next engine declines on that agent.
    pub fn quiesce(&self, limit: Duration) -> bool {
        let start = Instant::now();
        while !self.switch.is_quiet() {
            if start.elapsed() >= limit {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// How many dispatches ended how.
    pub fn stats(&self) -> EngineStats {
        self.counts.get()
    }

    /// The profiler.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Kernels that are declined without being tried, since one of their passes did not end.
    pub fn refused_kernels(&self) -> HashSet<KernelId> {
        self.refused_kernels.lock().keys().copied().collect()
    }
}

/// What a dispatch looks at first: whether replay is on, and whether a window may be open.
///
/// It lets dispatches through unseen only if replay is off and all that came while it was on are
/// done: one of them may be a window, whose restores would undo what is let in beside it.
struct Switch(AtomicUsize);

impl Switch {
    /// Set while replay is on.
    const ON: usize = 1;
    /// Set for good when the process shuts down; replay is off then.
    const FINAL: usize = 2;
    /// The rest counts dispatches that are under way.
    const DISPATCH: usize = 4;

    // Relaxed everywhere: every change is one step on one word, so switching off comes before or
    // after a dispatch's look at it. Nothing else is ordered with launches.

    /// Whether replay is off and nothing is under way.
    #[inline]
    fn is_quiet(&self) -> bool {
        self.0.load(Relaxed) & !Self::FINAL == 0
    }

    fn is_on(&self) -> bool {
        self.0.load(Relaxed) & Self::ON != 0
    }

    fn is_final(&self) -> bool {
        self.0.load(Relaxed) & Self::FINAL != 0
    }

    /// Turns replay on or off; without effect once it is off for good.
    fn turn(&self, on: bool) {
        self.change(|word| match (word & Self::FINAL != 0, on) {
            (true, _) => word,
            (false, true) => word | Self::ON,
            (false, false) => word & !Self::ON,
        });
    }

    fn finalize(&self) {
        self.change(|word| (word | Self::FINAL) & !Self::ON);
    }

    fn change(&self, change: impl Fn(usize) -> usize) {
        let mut old = self.0.load(Relaxed);
        while let Err(now) = self
            .0
            .compare_exchange_weak(old, change(old), Relaxed, Relaxed)
        {
            old = now;
        }
    }

    fn enter(&self) -> Passage<'_> {
        let was = self.0.fetch_add(Self::DISPATCH, Relaxed);
        Passage {
            switch: self,
            is_on: was & Self::ON != 0,
        }
    }
}

/// One dispatch under way.
struct Passage<'a> {
    switch: &'a Switch,
    is_on: bool,
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        self.switch.0.fetch_sub(Switch::DISPATCH, Relaxed);
    }
}

impl<O> fmt::Debug for Engine<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("active", &self.switch.is_on())
            .field("stats", &self.counts.get())
            .finish_non_exhaustive()
    }
}

/// Runs frees that were put off. One that panics keeps none of the others from running.
fn carry_out(frees: Vec<ParkedFree>) {
    for free in frees {
        if let Err(panic) = guarded(free) {
            tracing::error!(
                panic,
                "a free that was put off panicked; its memory may be lost"
            );
        }
    }
}
