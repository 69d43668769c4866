//! What device memory exists: a plain data structure, one lock around it, no clock, no thread.
//!
//! A range of memory moves between these states; the last column says which call moves it on.
//!
//! | State | Meaning | Left by |
//! |---|---|---|
//! | absent | never recorded, or really free | `record` → live |
//! | live | the application has it, no window does | `start_capture` → held, `free` → releasing |
//! | held | the application has it, and it is in the capture of its agent's open window | `end_capture` → live, `free` → parked |
//! | parked | the application freed it, the window still has it; it keeps its address | `end_capture` → releasing |
//! | releasing | out of the inventory; its real free runs, or is about to, on some thread | really free → absent, `put_back` → live |
//!
//! A free is decided by one call under one lock, so there is no moment in which memory is neither
//! held nor releasing, or both.
//!
//! Invariants
//! - Entries do not overlap, parked ones included: their address is still taken.
//! - Generations rise from entry to entry and are never used again; only `put_back` keeps one.
//! - An agent's inventory generation rises with everything that changes what the application has.
//! - A region that could not be recorded leaves its agent marked as having untracked memory, forever.
//! - No free token is dropped in here: dropping one may run anything.

use std::collections::BTreeMap;
use std::ops::Bound;

use kr_types::{
    AgentId, DeviceAddr, Generation, InventoryGeneration, MemoryClass, RangeError, Region,
};

/// Why an allocation could not be recorded.
///
/// Either way the agent counts as having untracked memory from now on, so that no window misses
/// any: see [`Footprint::untracked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The range does not describe memory. Nothing else changed.
    #[error("cannot track the allocation; replay declines on its agent from now on")]
    Range(#[from] RangeError),
    /// The range overlaps memory that was still known, so a free was missed.
    ///
    /// Everything that it overlaps is forgotten: no window writes there any more, and freeing it is
    /// the caller's business ([`Freed::Unknown`]). Its agents, too, have untracked memory now.
    #[error(
        "the allocation of {len_bytes} bytes at {base} overlaps a tracked one of {} bytes at {}: \
         its free was missed; replay declines on both agents from now on",
        existing.len_bytes(), existing.base()
    )]
    Overlaps {
        /// Where the new allocation starts.
        base: DeviceAddr,
        /// How long it is, in bytes.
        len_bytes: u64,
        /// The lowest of the regions that it overlaps.
        existing: Region,
    },
}

/// What has become of a freed allocation.
#[derive(Debug)]
#[must_use = "the memory is not free yet"]
pub enum Freed<F> {
    /// Nothing holds the memory: really free it now.
    Release(Release<F>),
    /// A window still has the memory in its capture. It is out of the inventory, the token comes
    /// back when the window leaves; the application is told that the free succeeded.
    Parked,
    /// A second free of parked memory: a bug of the application. Really freeing it would pull it
    /// from under the window, so answer what the runtime answers for an address that it does not
    /// know, and do not use the token.
    Again(F),
    /// Not the base of a tracked allocation: do what would be done without a tracker.
    Unknown(F),
}

/// An allocation on its way out: no longer in the inventory, not yet really free.
#[derive(Debug)]
#[must_use = "the memory is not free yet"]
pub struct Release<F> {
    pub(crate) region: Region,
    pub(crate) token: F,
}

/// How much memory of an agent a window would have to save.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes of the live regions whose class is captured.
    pub bytes: u64,
    /// How many such regions there are.
    pub regions: u64,
    /// The agent may have memory that the tracker does not know, since tracking was switched on
    /// late or an allocation could not be recorded. Never goes back to `false`.
    pub untracked: bool,
}

/// What a window has to save: see [`Window::capture_list`](crate::Window::capture_list).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaptureList {
    /// The agent's live regions of captured classes, by rising base address.
    pub regions: Vec<Region>,
    /// The agent's inventory when the list was made.
    pub generation: InventoryGeneration,
}

struct Entry<F> {
    region: Region,
    state: State<F>,
}

enum State<F> {
    /// Held if it is listed while its agent has a capture. The mark need not be cleared at the end
    /// of a capture, since the next one lists whatever is live then.
    Live {
        listed: bool,
    },
    Parked {
        token: F,
    },
}

/// An agent's capture from `start_capture` to `end_capture`.
#[derive(Default)]
struct Capture {
    /// Bases of the entries that are parked, in the order of their frees.
    parked: Vec<DeviceAddr>,
    /// The sum of their lengths.
    parked_bytes: u64,
}

#[derive(Default)]
struct Agent {
    footprint: Footprint,
    generation: InventoryGeneration,
    capture: Option<Capture>,
}

impl Agent {
    fn changed(&mut self) {
        self.generation.0 += 1;
    }

    fn add(&mut self, region: &Region) {
        self.changed();
        if region.class().is_captured() {
            self.footprint.bytes += region.len_bytes().get();
            self.footprint.regions += 1;
        }
    }

    fn remove(&mut self, region: &Region) {
        self.changed();
        if region.class().is_captured() {
            self.footprint.bytes -= region.len_bytes().get();
            self.footprint.regions -= 1;
        }
    }

    fn unpark(&mut self, region: &Region) {
        if let Some(capture) = &mut self.capture {
            capture.parked.retain(|base| *base != region.base());
            capture.parked_bytes -= region.len_bytes().get();
        }
    }
}

pub(crate) struct Inventory<F> {
    by_base: BTreeMap<DeviceAddr, Entry<F>>,
    agents: BTreeMap<AgentId, Agent>,
    next_generation: Generation,
    /// Memory of every agent, also of those not seen yet, may have been missed.
    late: bool,
    /// Parked frees whose window is gone without having been closed.
    orphans: Vec<F>,
}

impl<F> Inventory<F> {
    pub(crate) fn new() -> Self {
        Self {
            by_base: BTreeMap::new(),
            agents: BTreeMap::new(),
            next_generation: Generation::FIRST,
            late: false,
            orphans: Vec::new(),
        }
    }

    pub(crate) fn mark_late(&mut self) {
        self.late = true;
    }

    pub(crate) fn mark_untracked(&mut self, agent: AgentId) {
        self.agent(agent).footprint.untracked = true;
    }

    pub(crate) fn record(
        &mut self,
        agent: AgentId,
        base: DeviceAddr,
        len_bytes: u64,
        class: MemoryClass,
    ) -> Result<Region, RecordError> {
        let region = Region::new(agent, base, len_bytes, self.next_generation, class)
            .inspect_err(|_| self.mark_untracked(agent))?;
        self.next_generation = self.next_generation.next();
        self.insert(region)?;
        Ok(region)
    }

    /// Undoes a free whose real free failed. The region is not part of a capture that was started
    /// in between.
    pub(crate) fn put_back(&mut self, region: Region) {
        // An overlap means that the memory was handed out again after all, so there is nothing to
        // put back; `insert` has marked the agents.
        let _ = self.insert(region);
    }

    pub(crate) fn free(&mut self, base: DeviceAddr, token: F) -> Freed<F> {
        let Some(entry) = self.by_base.get_mut(&base) else {
            return Freed::Unknown(token);
        };
        let State::Live { listed } = entry.state else {
            return Freed::Again(token);
        };
        let region = entry.region;
        let agent = self.agents.entry(region.agent()).or_default();
        agent.remove(&region);
        match &mut agent.capture {
            Some(capture) if listed => {
                capture.parked.push(base);
                capture.parked_bytes += region.len_bytes().get();
                entry.state = State::Parked { token };
                Freed::Parked
            }
            _ => {
                self.by_base.remove(&base);
                Freed::Release(Release { region, token })
            }
        }
    }

    pub(crate) fn footprint(&self, agent: AgentId) -> Footprint {
        let mut footprint = self
            .agents
            .get(&agent)
            .map_or_else(Footprint::default, |agent| agent.footprint);
        footprint.untracked |= self.late;
        footprint
    }

    pub(crate) fn generation(&self, agent: AgentId) -> InventoryGeneration {
        self.agents
            .get(&agent)
            .map_or_else(InventoryGeneration::default, |agent| agent.generation)
    }

    pub(crate) fn region_at(&self, addr: DeviceAddr) -> Option<Region> {
        let (_, entry) = self.by_base.range(..=addr).next_back()?;
        (entry.is_live() && entry.region.contains(addr)).then_some(entry.region)
    }

    pub(crate) fn is_live(&self, region: &Region) -> bool {
        self.entry_of(region).is_some_and(Entry::is_live)
    }

    /// Lists what a window on `agent` has to save; from now until `end_capture` it holds that.
    pub(crate) fn start_capture(&mut self, agent: AgentId) -> CaptureList {
        let listing = self.agent(agent);
        listing.capture.get_or_insert_default();
        let generation = listing.generation;
        let mut regions = Vec::new();
        for entry in self.by_base.values_mut() {
            let Entry { region, state } = entry;
            if region.agent() != agent || !region.class().is_captured() {
                continue;
            }
            if let State::Live { listed } = state {
                *listed = true;
                regions.push(*region);
            }
        }
        CaptureList {
            regions,
            generation,
        }
    }

    /// Whether the capture of `region`'s agent has it and its memory is still what was captured.
    pub(crate) fn holds(&self, region: &Region) -> bool {
        let capture = self
            .agents
            .get(&region.agent())
            .and_then(|agent| agent.capture.as_ref());
        let state = self.entry_of(region).map(|entry| &entry.state);
        capture.is_some()
            && matches!(
                state,
                Some(State::Live { listed: true } | State::Parked { .. })
            )
    }

    /// Starts a capture on `agent` without listing, unless one has started.
    pub(crate) fn start_capture_of_nothing(&mut self, agent: AgentId) {
        self.agent(agent).capture.get_or_insert_default();
    }

    /// Whether a capture on `agent` has started and not ended.
    pub(crate) fn has_capture(&self, agent: AgentId) -> bool {
        self.agents
            .get(&agent)
            .is_some_and(|agent| agent.capture.is_some())
    }

    /// Bytes that the capture on `agent` keeps from being freed.
    pub(crate) fn parked_bytes(&self, agent: AgentId) -> u64 {
        self.agents
            .get(&agent)
            .and_then(|agent| agent.capture.as_ref())
            .map_or(0, |capture| capture.parked_bytes)
    }

    /// Ends the capture on `agent` and moves what it parked to the orphans.
    pub(crate) fn end_capture(&mut self, agent: AgentId) {
        let Some(capture) = self.agent(agent).capture.take() else {
            return;
        };
        for base in capture.parked {
            let entry = self.by_base.remove(&base);
            if let Some(State::Parked { token }) = entry.map(|entry| entry.state) {
                self.orphans.push(token);
            }
        }
    }

    pub(crate) fn take_orphans(&mut self) -> Vec<F> {
        std::mem::take(&mut self.orphans)
    }

    fn agent(&mut self, agent: AgentId) -> &mut Agent {
        self.agents.entry(agent).or_default()
    }

    fn entry_of(&self, region: &Region) -> Option<&Entry<F>> {
        self.by_base
            .get(&region.base())
            .filter(|entry| entry.region == *region)
    }

    fn insert(&mut self, region: Region) -> Result<(), RecordError> {
        if let Some(existing) = self.forget_overlapped(&region) {
            self.mark_untracked(region.agent());
            return Err(RecordError::Overlaps {
                base: region.base(),
                len_bytes: region.len_bytes().get(),
                existing,
            });
        }
        self.agent(region.agent()).add(&region);
        let state = State::Live { listed: false };
        self.by_base.insert(region.base(), Entry { region, state });
        Ok(())
    }

    /// Takes out every entry that shares a byte with `region`; returns the lowest.
    fn forget_overlapped(&mut self, region: &Region) -> Option<Region> {
        let mut lowest = None;
        // Entries do not overlap, so the last one before the end is the first to look at.
        while let Some((&base, entry)) = self
            .by_base
            .range((Bound::Unbounded, Bound::Excluded(region.end())))
            .next_back()
            && entry.region.overlaps(region)
        {
            let Some(Entry { region: old, state }) = self.by_base.remove(&base) else {
                break;
            };
            let agent = self.agents.entry(old.agent()).or_default();
            agent.footprint.untracked = true;
            match state {
                State::Live { .. } => agent.remove(&old),
                State::Parked { token } => {
                    agent.unpark(&old);
                    self.orphans.push(token);
                }
            }
            lowest = Some(old);
        }
        lowest
    }
}

impl<F> Entry<F> {
    fn is_live(&self) -> bool {
        matches!(self.state, State::Live { .. })
    }
}
