//! What outlives an operation.

use std::fmt;

use kr_types::{ByTier, Extent, InventoryGeneration, Region};

use super::fingerprint::{Marks, NoRoom, Table};
use crate::{Stream, StreamError, Verdict};

/// A complete capture of some extents: a fingerprint of each saved tile, and what later operations
/// have learnt. The saved bytes themselves are in the arena, which belongs to the caller.
///
/// It may outlive its window: the next one [recaptures](super::CpuBlit::recapture) it.
pub struct CpuImage {
    pub(super) stream: Stream,
    /// By region: it is gone, for ever.
    pub(super) retired: Vec<bool>,
    /// At which generation of the inventory `retired` was brought up to date.
    pub(super) inventory: Option<InventoryGeneration>,
    /// What was saved.
    pub(super) saved: Table,
    /// Tiles that the last hashed restore found changed: the list.
    pub(super) listed: Marks,
    /// Output of the last pass, in tiers whose state says so. Made when first needed.
    pub(super) outputs: Option<Table>,
    pub(super) tiers: ByTier<TierState>,
    /// Changes off the list that were found and not yet reported by a check.
    pub(super) unlisted: Option<Found>,
    /// How often it was recaptured.
    pub(super) windows: u64,
}

/// What holds for the tiles of one tier, since the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TierState {
    /// `listed` is what a hashed restore of this window found.
    pub(super) has_list: bool,
    /// The last restore put back what is listed and nothing else: a check is due.
    pub(super) check_due: bool,
    /// `outputs` is what the pass before the last restore left.
    pub(super) has_outputs: bool,
}

/// Some tiles: how many, and the live address of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) tiles: u64,
    pub(super) first: u64,
}

impl Found {
    /// One tile more, or what another worker found.
    pub(super) fn join(found: &mut Option<Self>, other: Option<Self>) {
        *found = match (*found, other) {
            (Some(a), Some(b)) => Some(Self {
                tiles: a.tiles + b.tiles,
                first: a.first.min(b.first),
            }),
            (a, b) => a.or(b),
        };
    }
}

/// Why there is no image of some extents.
#[derive(Debug)]
pub(super) enum NoImage {
    Extents(StreamError),
    HostMemory { tiles: u64 },
}

impl fmt::Display for NoImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extents(error) => error.fmt(f),
            Self::HostMemory { tiles } => {
                write!(f, "the host has no memory for the digests of {tiles} tiles")
            }
        }
    }
}

impl CpuImage {
    /// An image of which nothing is saved yet.
    pub(super) fn new(extents: &[Extent], wide: bool) -> Result<Self, NoImage> {
        let stream = Stream::new(extents).map_err(NoImage::Extents)?;
        let tiles = stream.tiles();
        let no_room = |NoRoom| NoImage::HostMemory { tiles };
        Ok(Self {
            retired: vec![false; stream.regions().len()],
            inventory: None,
            saved: Table::new(tiles, wide).map_err(no_room)?,
            listed: Marks::new(tiles).map_err(no_room)?,
            outputs: None,
            tiers: ByTier::default(),
            unlisted: None,
            windows: 0,
            stream,
        })
    }

    /// Forgets what the last window learnt.
    pub(super) fn open_window(&mut self) {
        self.listed.clear();
        self.tiers = ByTier::default();
        self.unlisted = None;
    }

    /// Says at which generation of the inventory the extents were listed, so that the first restore
    /// need not ask for every region if nothing was allocated or freed since.
    pub fn listed_at(&mut self, inventory: InventoryGeneration) {
        self.inventory = Some(inventory);
    }

    /// Takes note of regions that are gone.
    pub(super) fn retire(&mut self, liveness: Liveness<'_>) {
        if liveness.inventory.is_some() && liveness.inventory == self.inventory {
            return;
        }
        for (region, retired) in self.stream.regions().iter().zip(&mut self.retired) {
            *retired |= !(liveness.alive)(region);
        }
        self.inventory = liveness.inventory;
    }

    /// Bytes of regions that are gone.
    pub(super) fn bytes_retired(&self) -> u64 {
        let entries = self.stream.entries().iter();
        let retired = entries.filter(|entry| self.retired[entry.region as usize]);
        retired.map(|entry| entry.len).sum()
    }

    /// What a check reports of changes off the list.
    pub(super) fn take_verdict(&mut self) -> Verdict {
        match self.unlisted.take() {
            None => Verdict::Clean,
            Some(Found { tiles, first }) => Verdict::UnlistedChange {
                tiles,
                first: kr_types::DeviceAddr(first),
            },
        }
    }

    /// Bytes of the host's memory that the image takes.
    pub fn host_bytes(&self) -> u64 {
        size_of::<Self>() as u64
            + self.stream.host_bytes()
            + self.retired.capacity() as u64
            + self.saved.host_bytes()
            + self.listed.host_bytes()
            + self.outputs.as_ref().map_or(0, Table::host_bytes)
    }
}

impl fmt::Debug for CpuImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuImage")
            .field("extents", &self.stream.entries().len())
            .field("tiles", &self.stream.tiles())
            .finish_non_exhaustive()
    }
}

/// A [`CpuImage`] whose restore broke off.
#[derive(Debug)]
pub struct CpuTorn(pub(super) Box<CpuImage>);

/// Which regions are still the allocations that were saved.
#[derive(Clone, Copy)]
pub struct Liveness<'a> {
    inventory: Option<InventoryGeneration>,
    alive: &'a dyn Fn(&Region) -> bool,
}

impl<'a> Liveness<'a> {
    /// Asks `alive` for every region.
    pub fn ask(alive: &'a dyn Fn(&Region) -> bool) -> Self {
        let inventory = None;
        Self { inventory, alive }
    }

    /// Asks `alive` for every region, unless the image was asked about at the same generation of
    /// the inventory.
    pub fn at(inventory: InventoryGeneration, alive: &'a dyn Fn(&Region) -> bool) -> Self {
        let inventory = Some(inventory);
        Self { inventory, alive }
    }
}

impl fmt::Debug for Liveness<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Liveness({:?})", self.inventory)
    }
}
