//! The blocks of one window, from their commit until their work was seen to end.

use kr_types::Tier;

use crate::{ArenaBlock, TierIx};

/// One block of a window.
pub struct CommittedBlock {
    /// Position of its tier in the chain.
    pub at: TierIx,
    /// Which kind of memory it is.
    pub tier: Tier,
    /// The memory.
    pub block: Box<dyn ArenaBlock>,
}

/// The blocks of one window, at most one per tier, in the chain's order.
///
/// Dropping gives them back, the last one first.
#[derive(Default)]
pub struct Committed(Vec<CommittedBlock>);

impl Committed {
    pub(crate) fn with_capacity(tiers: u32) -> Self {
        Self(Vec::with_capacity(tiers as usize))
    }

    pub(crate) fn push(&mut self, at: TierIx, tier: Tier, block: Box<dyn ArenaBlock>) {
        self.0.push(CommittedBlock { at, tier, block });
    }

    /// The blocks, in the chain's order.
    pub fn blocks(&self) -> &[CommittedBlock] {
        &self.0
    }

    /// The block of one tier, or `None` if nothing was placed there.
    pub fn get(&self, tier: TierIx) -> Option<&CommittedBlock> {
        self.0.iter().find(|committed| committed.at == tier)
    }

    /// Takes the commits back, the last one first; see [`ArenaBlock::undo`].
    pub fn undo(mut self) {
        while let Some(committed) = self.0.pop() {
            committed.block.undo();
        }
    }

    /// Keeps the blocks from being used, retained or freed, since work that was not seen to end may
    /// still write them.
    pub fn quarantine(mut self) -> Quarantine {
        self.set_quarantined(true);
        Quarantine(Some(self))
    }

    fn set_quarantined(&mut self, quarantined: bool) {
        for committed in &mut self.0 {
            committed.block.set_quarantined(quarantined);
        }
    }
}

impl Drop for Committed {
    fn drop(&mut self) {
        // A vector would drop its elements from the front.
        while let Some(last) = self.0.pop() {
            drop(last);
        }
    }
}

impl std::fmt::Debug for Committed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let blocks = self.0.iter().map(|committed| {
            let block = &committed.block;
            (committed.tier, block.addr(), block.len_bytes())
        });
        f.debug_list().entries(blocks).finish()
    }
}

/// Blocks that work may still write.
///
/// Dropping it leaks them: freed, their memory could be handed out while the work still writes it.
#[must_use = "dropping it leaks the blocks for good"]
#[derive(Debug)]
pub struct Quarantine(Option<Committed>);

impl Quarantine {
    /// The work was seen to end: returns the blocks.
    pub fn end(mut self) -> Committed {
        let mut committed = self.0.take().unwrap_or_default();
        committed.set_quarantined(false);
        committed
    }
}

impl Drop for Quarantine {
    fn drop(&mut self) {
        std::mem::forget(self.0.take());
    }
}
