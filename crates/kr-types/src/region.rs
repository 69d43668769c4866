//! What is captured, and where a piece of it is saved.

use core::num::NonZeroU64;

use crate::addr::checked_range;
use crate::{AgentId, DeviceAddr, Generation, RangeError, Tier, Tiles};

/// What kind of memory an allocation is; decides whether windows capture it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryClass {
    /// Device memory of the agent, coarse or fine-grained: captured.
    Vram,
    /// A writable module-scope variable of a loaded code object: captured.
    ModuleVariable,
    /// Kernarg and executable-flag pools, memory of the profiler and of the runtime: never touched.
    Runtime,
}

impl MemoryClass {
    /// Whether a window saves and restores memory of this class.
    pub const fn is_captured(self) -> bool {
        match self {
            Self::Vram | Self::ModuleVariable => true,
            Self::Runtime => false,
        }
    }
}

/// One live range of device memory with its identity.
///
/// Two regions are the same allocation only if they are equal in every field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    agent: AgentId,
    base: DeviceAddr,
    len: NonZeroU64,
    generation: Generation,
    class: MemoryClass,
}

impl Region {
    /// Describes `len` bytes at `base`, owned by `agent`.
    ///
    /// # Errors
    ///
    /// [`RangeError`] if the range is empty, starts at the null address or wraps.
    pub const fn new(
        agent: AgentId,
        base: DeviceAddr,
        len: u64,
        generation: Generation,
        class: MemoryClass,
    ) -> Result<Self, RangeError> {
        match checked_range(base, len) {
            Ok(len) => Ok(Self {
                agent,
                base,
                len,
                generation,
                class,
            }),
            Err(error) => Err(error),
        }
    }

    /// The agent that owns the memory.
    pub const fn agent(&self) -> AgentId {
        self.agent
    }

    /// First byte.
    pub const fn base(&self) -> DeviceAddr {
        self.base
    }

    /// Length in bytes; never 0.
    pub const fn len_bytes(&self) -> NonZeroU64 {
        self.len
    }

    /// One past the last byte.
    pub const fn end(&self) -> DeviceAddr {
        // Does not wrap: the constructor checked it.
        DeviceAddr(self.base.0 + self.len.get())
    }

    /// The stamp that tells this allocation from earlier and later ones at the same address.
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// What kind of memory it is.
    pub const fn class(&self) -> MemoryClass {
        self.class
    }

    /// Whether `addr` lies inside.
    pub const fn contains(&self, addr: DeviceAddr) -> bool {
        self.base.0 <= addr.0 && addr.0 < self.end().0
    }

    /// Whether the two share a byte. The agent does not matter: addresses are unique per process.
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.base.0 < other.end().0 && other.base.0 < self.end().0
    }

    /// The region's tiles, in order.
    pub const fn tiles(&self) -> Tiles {
        Tiles::new(self.len)
    }
}

/// A piece of a region together with the place where its bytes are saved.
///
/// Live and saved side have the same length; neither wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    region: Region,
    region_offset: u64,
    len: NonZeroU64,
    saved: DeviceAddr,
    tier: Tier,
}

impl Extent {
    /// Places `len` bytes of `region`, from `region_offset` on, at `saved` in `tier`.
    ///
    /// # Errors
    ///
    /// [`RangeError`] if the piece is empty, reaches past the region's end, or the saved side starts
    /// at the null address or wraps.
    pub const fn new(
        region: Region,
        region_offset: u64,
        len: u64,
        saved: DeviceAddr,
        tier: Tier,
    ) -> Result<Self, RangeError> {
        let len = match checked_range(saved, len) {
            Ok(len) => len,
            Err(error) => return Err(error),
        };
        let fits = match region_offset.checked_add(len.get()) {
            Some(end) => end <= region.len.get(),
            None => false,
        };
        if !fits {
            return Err(RangeError::Wraps {
                base: region.base,
                len: len.get(),
            });
        }
        Ok(Self {
            region,
            region_offset,
            len,
            saved,
            tier,
        })
    }

    /// The region that this is a piece of.
    pub const fn region(&self) -> &Region {
        &self.region
    }

    /// Where the piece starts within its region, in bytes.
    pub const fn region_offset(&self) -> u64 {
        self.region_offset
    }

    /// First byte of the application's memory.
    pub const fn live(&self) -> DeviceAddr {
        // Does not wrap: the piece lies inside its region.
        DeviceAddr(self.region.base.0 + self.region_offset)
    }

    /// First byte of the saved copy.
    pub const fn saved(&self) -> DeviceAddr {
        self.saved
    }

    /// Length of either side, in bytes; never 0.
    pub const fn len_bytes(&self) -> NonZeroU64 {
        self.len
    }

    /// Which kind of storage the saved side is in.
    pub const fn tier(&self) -> Tier {
        self.tier
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(base: u64, len: u64) -> Result<Region, RangeError> {
        Region::new(
            AgentId(1),
            DeviceAddr(base),
            len,
            Generation::FIRST,
            MemoryClass::Vram,
        )
    }

    #[test]
    fn bad_ranges_are_refused_by_name() {
        let at = DeviceAddr(0x10);
        assert_eq!(region(0x10, 0), Err(RangeError::Empty { base: at }));
        assert_eq!(region(0, 8), Err(RangeError::Null { len: 8 }));
        let len = u64::MAX - 0xf;
        assert_eq!(region(0x10, len), Err(RangeError::Wraps { base: at, len }));
        assert!(region(0x10, len - 1).is_ok(), "the last byte may be used");
    }

    #[test]
    fn neighbours_do_not_overlap() {
        let (a, b) = (region(0x10, 16).unwrap(), region(0x20, 16).unwrap());
        assert!(!a.overlaps(&b) && !b.overlaps(&a));
        let c = region(0x1f, 2).unwrap();
        assert!(a.overlaps(&c) && c.overlaps(&b));
        assert!(a.contains(DeviceAddr(0x1f)) && !a.contains(DeviceAddr(0x20)));
    }

    #[test]
    fn an_extent_stays_inside_its_region() {
        let r = region(0x100, 64).unwrap();
        let extent = |offset, len| Extent::new(r, offset, len, DeviceAddr(0x9000), Tier::Device);
        assert_eq!(extent(60, 4).unwrap().live(), DeviceAddr(0x13c));
        assert!(extent(60, 5).is_err());
        assert!(extent(u64::MAX, 2).is_err());
        assert!(extent(0, 0).is_err());
    }
}
