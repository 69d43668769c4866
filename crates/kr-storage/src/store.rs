//! Retained blocks: what a window leaves for the next one.
//!
//! Invariants
//! - A block is in one place: retained under its key, held by a [`Lease`], or gone.
//! - Under a key at most one block is retained, and it is taken under that key only.
//! - The mutex is held for moves of blocks and numbers; nothing is allocated from a pool, granted or
//!   freed meanwhile. A large allocation takes seconds.
//! - Every lease's key has its entry before the lease exists, and entries stay, so giving back
//!   allocates nothing.
//!
//! Not here: how large a window's block may be.

use std::fmt;
use std::mem;
use std::num::NonZeroU32;

use kr_types::{AgentId, PoolId, Tier};

use crate::ArenaBlock;
use crate::sync::{Arc, Mutex};

/// What blocks are retained by. A block never goes to another key, so never to another agent, even
/// if the two share a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RetainKey {
    /// The agent whose memory is saved.
    pub agent: AgentId,
    /// The pool that the block was allocated from.
    pub pool: PoolId,
    /// Which kind of storage it serves as.
    pub tier: Tier,
}

impl fmt::Display for RetainKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} memory of {} for {}",
            self.tier, self.pool, self.agent
        )
    }
}

/// What becomes of a block when its window ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Retain {
    /// It is freed.
    Freed,
    /// It is kept for the next window, if no larger one is.
    #[default]
    AcrossWindows,
}

/// A block and the agents that have access to it, besides the owner of its pool.
pub(crate) struct Held<B> {
    pub(crate) block: B,
    pub(crate) granted: Vec<AgentId>,
}

impl<B> Held<B> {
    pub(crate) fn new(block: B) -> Self {
        Self {
            block,
            granted: Vec::new(),
        }
    }
}

struct Entry<B> {
    key: RetainKey,
    retained: Option<Held<B>>,
    /// Windows of the agent since the block was given back.
    idle_windows: u32,
    /// Blocks of this key in quarantine.
    quarantined: u32,
}

struct State<B> {
    entries: Vec<Entry<B>>,
    abandoned: bool,
}

/// A key's place in the store. It stays valid as long as the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryIx(usize);

/// Keeps one block per key between windows, the largest that was given back.
///
/// Cloning makes another handle of the same store. Dropping the last one frees what is retained,
/// unless it was [abandoned](Self::abandon).
pub struct BlockStore<B>(Arc<Shared<B>>);

struct Shared<B> {
    idle_limit: NonZeroU32,
    state: Mutex<State<B>>,
}

impl<B> Clone for BlockStore<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: ArenaBlock> BlockStore<B> {
    /// Makes an empty store. A block is freed once `idle_windows` windows of its agent in a row did
    /// not use it; see [`age`](Self::age).
    pub fn new(idle_windows: NonZeroU32) -> Self {
        Self(Arc::new(Shared {
            idle_limit: idle_windows,
            state: Mutex::new(State {
                entries: Vec::new(),
                abandoned: false,
            }),
        }))
    }

    /// Bytes of the idle block under `key`.
    pub fn retained(&self, key: RetainKey) -> u64 {
        let state = self.0.state.lock();
        state
            .entries
            .iter()
            .filter(|entry| entry.key == key)
            .map(Entry::retained_bytes)
            .sum()
    }

    /// Whether a block of `key` is in quarantine. Nothing is committed under the key meanwhile.
    pub fn is_quarantined(&self, key: RetainKey) -> bool {
        let state = self.0.state.lock();
        state
            .entries
            .iter()
            .any(|entry| entry.key == key && entry.quarantined > 0)
    }

    /// Frees the idle blocks of a pool, whoever they are for, and returns their bytes.
    ///
    /// For an application's allocation that ran out of memory: it is worth another try if this is
    /// not 0.
    pub fn release_pool(&self, pool: PoolId) -> u64 {
        self.release(|entry| entry.key.pool == pool)
    }

    /// Frees the idle blocks of an agent and returns their bytes.
    pub fn release_agent(&self, agent: AgentId) -> u64 {
        self.release(|entry| entry.key.agent == agent)
    }

    /// Frees all idle blocks and returns their bytes.
    pub fn release_all(&self) -> u64 {
        self.release(|_| true)
    }

    /// A window of `agent` has ended, or a dispatch went by without one: frees the agent's blocks
    /// that have been idle for too long, and returns their bytes.
    pub fn age(&self, agent: AgentId) -> u64 {
        let limit = self.0.idle_limit.get();
        self.release(|entry| {
            if entry.key.agent != agent {
                return false;
            }
            entry.idle_windows = entry.idle_windows.saturating_add(1);
            // The window in which the block was given back has used it.
            entry.idle_windows > limit
        })
    }

    /// From now on no block is freed any more: what is retained, and what is given back later, is
    /// leaked. For the end of the process, when the runtime may be gone already.
    pub fn abandon(&self) {
        let mut state = self.0.state.lock();
        state.abandoned = true;
        for entry in &mut state.entries {
            mem::forget(entry.retained.take());
        }
    }

    /// Frees the idle blocks that `which` admits.
    fn release(&self, mut which: impl FnMut(&mut Entry<B>) -> bool) -> u64 {
        let mut released = Vec::new();
        let mut bytes = 0u64;
        {
            let mut state = self.0.state.lock();
            for entry in &mut state.entries {
                if which(entry) {
                    bytes = bytes.saturating_add(entry.retained_bytes());
                    released.extend(entry.retained.take());
                }
            }
        }
        drop(released);
        bytes
    }

    /// The entry of `key`, made if need be.
    pub(crate) fn entry(&self, key: RetainKey) -> EntryIx {
        let mut state = self.0.state.lock();
        let found = state.entries.iter().position(|entry| entry.key == key);
        EntryIx(found.unwrap_or_else(|| {
            state.entries.push(Entry {
                key,
                retained: None,
                idle_windows: 0,
                quarantined: 0,
            });
            state.entries.len() - 1
        }))
    }

    /// Takes the idle block, if there is one.
    ///
    /// # Errors
    ///
    /// [`InQuarantine`] if a block of the key is; nothing was taken.
    pub(crate) fn take(&self, entry: EntryIx) -> Result<Option<Held<B>>, InQuarantine> {
        let mut state = self.0.state.lock();
        let entry = &mut state.entries[entry.0];
        if entry.quarantined > 0 {
            return Err(InQuarantine);
        }
        Ok(entry.retained.take())
    }

    /// Gives a block back: retained if it is larger than what is there, else freed.
    pub(crate) fn give_back(&self, entry: EntryIx, held: Held<B>, retain: Retain) {
        let surplus = {
            let mut state = self.0.state.lock();
            let abandoned = state.abandoned;
            let entry = &mut state.entries[entry.0];
            if abandoned {
                mem::forget(held);
                None
            } else if retain == Retain::AcrossWindows
                && held.block.len_bytes().get() > entry.retained_bytes()
            {
                entry.idle_windows = 0;
                entry.retained.replace(held)
            } else {
                Some(held)
            }
        };
        drop(surplus);
    }

    pub(crate) fn set_quarantined(&self, entry: EntryIx, quarantined: bool) {
        let mut state = self.0.state.lock();
        let count = &mut state.entries[entry.0].quarantined;
        *count = if quarantined {
            count.saturating_add(1)
        } else {
            count.saturating_sub(1)
        };
    }

    /// Whether nobody holds the mutex, for pools that check that nobody does when they are called.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn is_unlocked(&self) -> bool {
        self.0.state.try_lock().is_some()
    }
}

impl<B: ArenaBlock> Entry<B> {
    fn retained_bytes(&self) -> u64 {
        self.retained
            .as_ref()
            .map_or(0, |held| held.block.len_bytes().get())
    }
}

/// A block of the key may still be written.
pub(crate) struct InQuarantine;

impl<B: ArenaBlock> fmt::Debug for BlockStore<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state.lock();
        f.debug_map()
            .entries(
                state
                    .entries
                    .iter()
                    .map(|entry| (entry.key, entry.retained_bytes())),
            )
            .finish()
    }
}
