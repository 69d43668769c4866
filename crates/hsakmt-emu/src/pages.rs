//! The page tables of all agents: which agent reaches which addresses, and where the bytes are.
//!
//! One table serves all agents, since they share an address space and differ only in what is mapped to them.
//!
//! Invariants
//! - Entries are not empty and do not overlap.
//! - An entry whose memory is ours holds its [`Region`], so that the memory outlives the entry.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::space::Region;

/// A set of agents, by number of their node: the first agent is node 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agents(u8);

impl Agents {
    /// The first `count` agents.
    pub(crate) fn first(count: u32) -> Self {
        Self(((1u32 << count) - 1) as u8)
    }

    /// The agent of a node; nothing for the CPU's node.
    pub(crate) fn of(node: u32) -> Self {
        Self(
            node.checked_sub(1)
                .and_then(|bit| 1u8.checked_shl(bit))
                .unwrap_or(0),
        )
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The nodes of the set, in a list that lives for ever: the thunk hands out pointers to such lists.
    pub(crate) fn nodes(self) -> &'static [u32] {
        const LISTS: [([u32; 8], usize); 256] = {
            let mut lists = [([0; 8], 0); 256];
            let mut set = 0;
            while set < 256 {
                let mut bit = 0;
                while bit < 8 {
                    if set >> bit & 1 != 0 {
                        lists[set].0[lists[set].1] = bit as u32 + 1;
                        lists[set].1 += 1;
                    }
                    bit += 1;
                }
                set += 1;
            }
            lists
        };
        static NODES: [([u32; 8], usize); 256] = LISTS;
        let (list, len) = &NODES[usize::from(self.0)];
        &list[..*len]
    }
}

/// What is mapped from one address on.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Address behind the last byte.
    pub(crate) end: u64,
    /// Where the first byte is in this process.
    pub(crate) host: u64,
    /// Who reaches it.
    pub(crate) agents: Agents,
    /// Keeps the memory, where it is ours to keep.
    pub(crate) region: Option<Arc<Region>>,
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Pages(BTreeMap<u64, Entry>);

impl Pages {
    /// The entry that holds an address, and the address where it starts.
    pub(crate) fn find(&self, address: u64) -> Option<(u64, &Entry)> {
        let (&start, entry) = self.0.range(..=address).next_back()?;
        (address < entry.end).then_some((start, entry))
    }

    /// Maps `[start, entry.end)`, in place of whatever was mapped there.
    pub(crate) fn map(&mut self, start: u64, entry: Entry) {
        self.unmap(start, entry.end);
        if start < entry.end && !entry.agents.is_empty() {
            self.0.insert(start, entry);
        }
    }

    /// Unmaps `[start, end)` for all agents.
    pub(crate) fn unmap(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        self.split(start);
        self.split(end);
        let inside: Vec<u64> = self.0.range(start..end).map(|(&at, _)| at).collect();
        for at in inside {
            self.0.remove(&at);
        }
    }

    /// Changes who reaches `[start, end)`, where anything is mapped there.
    pub(crate) fn change(&mut self, start: u64, end: u64, change: impl Fn(Agents) -> Agents) {
        if start >= end {
            return;
        }
        self.split(start);
        self.split(end);
        for (_, entry) in self.0.range_mut(start..end) {
            entry.agents = change(entry.agents);
        }
        self.0.retain(|_, entry| !entry.agents.is_empty());
    }

    /// Maps what is not mapped of `[start, end)` to the same addresses of this process, and as yet to nobody.
    ///
    /// Entries for nobody only last until the next [`change`](Self::change).
    pub(crate) fn fill(&mut self, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let behind = match self.find(at) {
                Some((_, entry)) => entry.end,
                None => {
                    let next = self.0.range(at..end).next().map_or(end, |(&next, _)| next);
                    self.0.insert(
                        at,
                        Entry {
                            end: next,
                            host: at,
                            agents: Agents::default(),
                            region: None,
                        },
                    );
                    next
                }
            };
            at = behind;
        }
    }

    /// Makes sure that no entry holds both `at` and the byte before it.
    fn split(&mut self, at: u64) {
        if let Some((&start, entry)) = self.0.range_mut(..at).next_back()
            && at < entry.end
        {
            let behind = Entry {
                host: entry.host + (at - start),
                ..entry.clone()
            };
            entry.end = at;
            self.0.insert(at, behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_set_lists_its_nodes() {
        assert_eq!(Agents::of(1).with(Agents::of(8)).nodes(), [1, 8]);
        assert_eq!(Agents::first(3).nodes(), [1, 2, 3]);
        assert_eq!(Agents::first(8).without(Agents::first(7)).nodes(), [8]);
        assert!(Agents::of(0).is_empty());
    }

    #[derive(Clone, Debug)]
    enum Step {
        Map(u8),
        Unmap,
        Add(u8),
        Fill(u8),
    }

    fn step() -> impl Strategy<Value = (u64, u64, Step)> {
        let what = prop_oneof![
            (1u8..255).prop_map(Step::Map),
            Just(Step::Unmap),
            (1u8..255).prop_map(Step::Add),
            (1u8..255).prop_map(Step::Fill)
        ];
        (0u64..40, 0u64..12, what).prop_map(|(start, len, what)| (start, start + len, what))
    }

    proptest! {
        /// The table says of every address what an array with one cell for each address says.
        #[test]
        fn the_table_is_an_array(steps in prop::collection::vec(step(), 0..40)) {
            let mut pages = Pages::default();
            let mut cells: Vec<Option<(u8, u64)>> = vec![None; 64];
            for (n, (start, end, what)) in steps.into_iter().enumerate() {
                let host = 1000 * (n as u64 + 1);
                match what {
                    Step::Map(set) => {
                        pages.map(start, Entry { end, host, agents: Agents(set), region: None });
                        for at in start..end {
                            cells[at as usize] = Some((set, host + at - start));
                        }
                    }
                    Step::Unmap => {
                        pages.unmap(start, end);
                        cells[start as usize..end as usize].fill(None);
                    }
                    Step::Fill(set) => {
                        pages.fill(start, end);
                        pages.change(start, end, |agents| agents.with(Agents(set)));
                        for at in start..end {
                            cells[at as usize].get_or_insert((0, at)).0 |= set;
                        }
                    }
                    Step::Add(set) => {
                        pages.change(start, end, |agents| agents.with(Agents(set)));
                        for (old, _) in cells[start as usize..end as usize].iter_mut().flatten() {
                            *old |= set;
                        }
                    }
                }
            }
            for at in 0..64 {
                let found = pages.find(at).map(|(start, entry)| (entry.agents.0, entry.host + at - start));
                prop_assert_eq!(found, cells[at as usize]);
            }
        }
    }
}
