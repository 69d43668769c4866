//! Heat: which regions a dispatch is likely to write, so that they are saved near the agent.
//!
//! It decides what is fast, never what is correct: every region is saved, whatever its priority.

use kr_types::{DeviceAddr, Region};

/// Priority of a region that changed in earlier dispatches.
const CHANGED: i32 = 2;
/// Priority of a region that a kernel argument points into. It may well be read only.
const POINTED_AT: i32 = 1;

/// Every aligned eight-byte value of a kernarg block, as an address; nulls are left out.
///
/// Most are no addresses at all, so they mean something only where they fall into a known range.
pub fn kernarg_pointers(kernarg: &[u8]) -> impl Iterator<Item = DeviceAddr> {
    let (words, _) = kernarg.as_chunks();
    words
        .iter()
        .map(|word| DeviceAddr(u64::from_le_bytes(*word)))
        .filter(|addr| !addr.is_null())
}

/// The priority of each region: highest for those that changed in earlier dispatches *and* that a
/// kernel argument points into, then those that changed, then those that are pointed into.
///
/// ```
/// use kr_plan::priorities;
/// use kr_types::{AgentId, DeviceAddr, Generation, MemoryClass, Region};
///
/// let region = |base| {
///     Region::new(AgentId(1), DeviceAddr(base), 0x100, Generation::FIRST, MemoryClass::Vram)
/// };
/// let regions = [region(0x1000)?, region(0x2000)?, region(0x3000)?];
/// let kernarg = [0x2080u64, 42].map(u64::to_le_bytes).concat();
/// let heat = priorities(&regions, &kernarg, |region| region.base() == DeviceAddr(0x3000));
/// assert!(heat[2] > heat[1] && heat[1] > heat[0]);
/// # Ok::<(), kr_types::RangeError>(())
/// ```
pub fn priorities(
    regions: &[Region],
    kernarg: &[u8],
    changed: impl Fn(&Region) -> bool,
) -> Vec<i32> {
    let mut pointers: Vec<_> = kernarg_pointers(kernarg).collect();
    pointers.sort_unstable();
    regions
        .iter()
        .map(|region| {
            let next = pointers.partition_point(|addr| *addr < region.base());
            let pointed_at = pointers
                .get(next)
                .is_some_and(|addr| region.contains(*addr));
            i32::from(pointed_at) * POINTED_AT + i32::from(changed(region)) * CHANGED
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kr_types::{AgentId, Generation, MemoryClass};
    use proptest::prelude::*;

    fn region(base: u64, len: u64) -> Region {
        Region::new(
            AgentId(1),
            DeviceAddr(base),
            len,
            Generation::FIRST,
            MemoryClass::Vram,
        )
        .unwrap()
    }

    #[test]
    fn pointers_are_aligned_whole_and_not_null() {
        let mut kernarg = [7u64, 0, 0x1234].map(u64::to_le_bytes).concat();
        kernarg.extend([0xff; 7]);
        let found: Vec<_> = kernarg_pointers(&kernarg).collect();
        assert_eq!(found, [DeviceAddr(7), DeviceAddr(0x1234)]);
        assert_eq!(kernarg_pointers(&[0xff; 7]).count(), 0);
    }

    #[test]
    fn both_signs_add_up() {
        let all = [
            region(0x10, 16),
            region(0x20, 16),
            region(0x30, 16),
            region(0x40, 16),
        ];
        let kernarg = [0x2fu64, 0x40].map(u64::to_le_bytes).concat();
        let changed = |region: &Region| region.base().0 >= 0x30;
        assert_eq!(priorities(&all, &kernarg, changed), [0, 1, 2, 3]);
        assert_eq!(priorities(&all, &[], |_| false), [0; 4]);
    }

    proptest! {
        /// A region is pointed into exactly if a search through all values finds one inside.
        #[test]
        fn pointed_at_matches_a_search(
            ranges in prop::collection::vec((1u64..100, 1u64..20), 0..20),
            words in prop::collection::vec(0u64..130, 0..10),
        ) {
            let regions: Vec<_> = ranges.into_iter().map(|(base, len)| region(base, len)).collect();
            let kernarg: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let found = priorities(&regions, &kernarg, |_| false);
            for (region, priority) in regions.iter().zip(found) {
                let inside = words.iter().any(|word| region.contains(DeviceAddr(*word)));
                prop_assert_eq!(priority > 0, inside);
            }
        }
    }
}
