//! A backing that writes down what is asked of it and fails as it is told.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use kr_storage::{ArenaBlock, BackingAllocator, CommitError, TierBudget};
use kr_types::{DeviceAddr, Tier};

/// What the commits of a tier do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Works,
    /// The first commit finds no memory, later ones do.
    OutOfMemoryOnce,
    OutOfMemory,
    /// It fails for a reason that a smaller block would not mend.
    Refused,
    /// A commit is a bug of the test.
    Panics,
}

pub(crate) const SCRIPTS: [Script; 4] = [
    Script::Works,
    Script::OutOfMemoryOnce,
    Script::OutOfMemory,
    Script::Refused,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Commit { tier: usize, bytes: u64 },
    Fail { tier: usize, bytes: u64 },
    Undo { tier: usize },
    Drop { tier: usize },
}

/// Events of all tiers of a chain, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Event>>>);

impl Log {
    fn push(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }

    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

pub(crate) struct Scripted {
    pub(crate) tier: usize,
    pub(crate) budget: u64,
    pub(crate) script: Script,
    pub(crate) log: Log,
    failed: bool,
}

impl Scripted {
    pub(crate) fn new(tier: usize, budget: u64, script: Script, log: &Log) -> Self {
        Self {
            tier,
            budget,
            script,
            log: log.clone(),
            failed: false,
        }
    }
}

/// A block at an address that tells its tier.
pub(crate) struct Block {
    tier: usize,
    len: NonZeroU64,
    log: Log,
    undone: bool,
}

/// First byte of the block of a tier.
pub(crate) const fn base_of(tier: usize) -> DeviceAddr {
    DeviceAddr((tier as u64 + 1) << 56)
}

impl ArenaBlock for Block {
    fn addr(&self) -> DeviceAddr {
        base_of(self.tier)
    }

    fn len_bytes(&self) -> NonZeroU64 {
        self.len
    }

    fn undo(mut self: Box<Self>) {
        self.undone = true;
        self.log.push(Event::Undo { tier: self.tier });
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if !self.undone {
            self.log.push(Event::Drop { tier: self.tier });
        }
    }
}

impl BackingAllocator for Scripted {
    type Block = Block;

    fn tier(&self) -> Tier {
        if self.tier == 0 {
            Tier::Device
        } else {
            Tier::PinnedHost
        }
    }

    fn budget(&self) -> TierBudget {
        TierBudget {
            bytes: self.budget,
            ..TierBudget::default()
        }
    }

    fn commit(&mut self, requested: NonZeroU64) -> Result<Block, CommitError> {
        let (tier, bytes) = (self.tier, requested.get());
        let out_of_memory = match self.script {
            Script::Works => false,
            Script::OutOfMemoryOnce => !std::mem::replace(&mut self.failed, true),
            Script::OutOfMemory => true,
            Script::Refused => {
                self.log.push(Event::Fail { tier, bytes });
                return Err(CommitError::Refused {
                    operation: "allocate",
                    requested,
                    source: "scripted".into(),
                });
            }
            Script::Panics => panic!("tier {tier} was committed"),
        };
        if out_of_memory {
            self.log.push(Event::Fail { tier, bytes });
            return Err(CommitError::OutOfMemory {
                requested,
                retained: 0,
            });
        }
        self.log.push(Event::Commit { tier, bytes });
        Ok(Block {
            tier,
            len: requested,
            log: self.log.clone(),
            undone: false,
        })
    }
}
