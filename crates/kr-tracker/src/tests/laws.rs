//! The tracker against a naive one: lists that are searched from end to end.

use std::time::Duration;

use kr_types::{AgentId, DeviceAddr, MemoryClass, Region};
use proptest::prelude::*;

use crate::{Footprint, Freed, OpenError, Release, Tracker, TrackerConfig, Window};

const AGENTS: usize = 2;
/// Addresses from 1 on, few enough that allocations meet.
const ADDRESSES: u64 = 12;
const BOUND: u64 = 4;

#[derive(Clone, Debug)]
enum Op {
    Record {
        agent: usize,
        base: u64,
        len: u64,
        class: MemoryClass,
    },
    Free {
        base: u64,
    },
    /// Ends the oldest free that is under way.
    ReallyFree {
        works: bool,
    },
    Open {
        agent: usize,
    },
    Capture {
        agent: usize,
    },
    Close {
        agent: usize,
    },
    Drop {
        agent: usize,
    },
    TakeOrphans,
}

fn op() -> impl Strategy<Value = Op> {
    let agent = 0..AGENTS;
    let class = prop_oneof![
        3 => Just(MemoryClass::Vram),
        1 => Just(MemoryClass::ModuleVariable),
        1 => Just(MemoryClass::Runtime),
    ];
    prop_oneof![
        6 => (agent.clone(), 0..ADDRESSES, 0..4u64, class)
            .prop_map(|(agent, base, len, class)| Op::Record { agent, base, len, class }),
        6 => (0..ADDRESSES).prop_map(|base| Op::Free { base }),
        3 => any::<bool>().prop_map(|works| Op::ReallyFree { works }),
        3 => agent.clone().prop_map(|agent| Op::Open { agent }),
        3 => agent.clone().prop_map(|agent| Op::Capture { agent }),
        1 => agent.clone().prop_map(|agent| Op::Close { agent }),
        1 => agent.prop_map(|agent| Op::Drop { agent }),
        1 => Just(Op::TakeOrphans),
    ]
}

fn id(agent: usize) -> AgentId {
    AgentId(agent as u64)
}

#[derive(Default)]
struct NaiveWindow {
    listed: Vec<Region>,
    parked: Vec<(Region, u32)>,
}

#[derive(Default)]
struct Naive {
    live: Vec<Region>,
    windows: [Option<NaiveWindow>; AGENTS],
    untracked: [bool; AGENTS],
    orphans: Vec<u32>,
}

#[derive(Debug, PartialEq)]
enum NaiveFreed {
    Release,
    Parked,
    Again,
    Unknown,
}

impl Naive {
    /// What has to go before `new` can come; empty if it is free.
    fn evict(&mut self, new: &Region) -> bool {
        let mut evicted = Vec::new();
        self.live.retain(|old| {
            let meets = old.overlaps(new);
            evicted.extend(meets.then_some(*old));
            !meets
        });
        for window in self.windows.iter_mut().flatten() {
            window.parked.retain(|(old, token)| {
                let meets = old.overlaps(new);
                if meets {
                    evicted.push(*old);
                    self.orphans.push(*token);
                }
                !meets
            });
        }
        for old in &evicted {
            self.untracked[old.agent().0 as usize] = true;
        }
        !evicted.is_empty()
    }

    fn insert(&mut self, new: Region) {
        if self.evict(&new) {
            self.untracked[new.agent().0 as usize] = true;
        } else {
            self.live.push(new);
        }
    }

    fn free(&mut self, base: u64, token: u32) -> NaiveFreed {
        let at = |region: &Region| region.base() == DeviceAddr(base);
        if let Some(found) = self.live.iter().position(at) {
            let region = self.live.remove(found);
            match &mut self.windows[region.agent().0 as usize] {
                Some(window) if window.listed.contains(&region) => {
                    window.parked.push((region, token));
                    NaiveFreed::Parked
                }
                _ => NaiveFreed::Release,
            }
        } else if self
            .windows
            .iter()
            .flatten()
            .any(|window| window.parked.iter().any(|(region, _)| at(region)))
        {
            NaiveFreed::Again
        } else {
            NaiveFreed::Unknown
        }
    }

    fn captured(&self, agent: usize) -> Vec<Region> {
        let mut regions: Vec<_> = self
            .live
            .iter()
            .filter(|region| region.agent() == id(agent) && region.class().is_captured())
            .copied()
            .collect();
        regions.sort_by_key(Region::base);
        regions
    }

    fn leave(&mut self, agent: usize) {
        let window = self.windows[agent].take().unwrap_or_default();
        self.orphans
            .extend(window.parked.into_iter().map(|(_, token)| token));
    }

    fn take_orphans(&mut self) -> Vec<u32> {
        sorted(std::mem::take(&mut self.orphans))
    }
}

fn sorted(mut tokens: Vec<u32>) -> Vec<u32> {
    tokens.sort_unstable();
    tokens
}

/// Everything that can be asked, asked of both.
fn compare(
    tracker: &Tracker<u32>,
    windows: &[Option<Window<'_, u32>>; AGENTS],
    naive: &Naive,
    ever: &[Region],
) {
    for addr in (0..ADDRESSES + 4).map(DeviceAddr) {
        let found = naive.live.iter().find(|region| region.contains(addr));
        assert_eq!(tracker.region_at(addr), found.copied(), "at {addr}");
    }
    for region in ever {
        assert_eq!(
            tracker.is_live(region),
            naive.live.contains(region),
            "{region:?}"
        );
    }
    for (agent, window) in windows.iter().enumerate() {
        let captured = naive.captured(agent);
        let footprint = Footprint {
            bytes: captured.iter().map(|region| region.len_bytes().get()).sum(),
            regions: captured.len() as u64,
            untracked: naive.untracked[agent],
        };
        assert_eq!(tracker.footprint(id(agent)), footprint);

        let model = &naive.windows[agent];
        assert_eq!(window.is_some(), model.is_some());
        let (Some(window), Some(model)) = (window, model) else {
            continue;
        };
        for region in ever {
            let exists = naive.live.contains(region)
                || model.parked.iter().any(|(parked, _)| parked == region);
            let holds = model.listed.contains(region) && exists;
            assert_eq!(window.holds(region), holds, "{agent} holds {region:?}");
        }
        let parked = model.parked.iter();
        let parked = parked.map(|(region, _)| region.len_bytes().get()).sum();
        assert_eq!(window.parked_bytes(), parked);
        assert_eq!(window.parked_over_bound(), parked > BOUND);
    }
}

fn run(ops: Vec<Op>) {
    let tracker = Tracker::new(TrackerConfig::default().with_parked_bound_bytes(BOUND));
    let mut windows: [Option<Window<'_, u32>>; AGENTS] = [None, None];
    let mut naive = Naive::default();
    let mut releasing: Vec<Release<u32>> = Vec::new();
    let mut ever: Vec<Region> = Vec::new();
    // Every token that came out, and how many went in.
    let mut out = Vec::new();
    let mut tokens = 0;

    for op in ops {
        let before = [0, 1].map(|agent| tracker.inventory_generation(id(agent)));
        let live_before = naive.live.clone();
        match op {
            Op::Record {
                agent,
                base,
                len,
                class,
            } => {
                let recorded = tracker.record(id(agent), DeviceAddr(base), len, class);
                let newest = ever.iter().map(Region::generation).max();
                match recorded {
                    Ok(region) => {
                        let region = region.expect("the tracker is on");
                        assert!(newest < Some(region.generation()), "generations rise");
                        let expected = Region::new(
                            id(agent),
                            DeviceAddr(base),
                            len,
                            region.generation(),
                            class,
                        );
                        assert_eq!(Ok(region), expected);
                        naive.insert(region);
                        assert!(naive.live.contains(&region), "it overlapped nothing");
                        ever.push(region);
                    }
                    Err(_) => {
                        let any = kr_types::Generation::FIRST;
                        if let Ok(region) =
                            Region::new(id(agent), DeviceAddr(base), len, any, class)
                        {
                            assert!(naive.evict(&region), "there was a reason");
                        }
                        naive.untracked[agent] = true;
                    }
                }
            }
            Op::Free { base } => {
                let token = tokens;
                tokens += 1;
                let freed = match tracker.free(DeviceAddr(base), token) {
                    Freed::Release(release) => {
                        releasing.push(release);
                        NaiveFreed::Release
                    }
                    Freed::Parked => NaiveFreed::Parked,
                    Freed::Again(token) => {
                        out.push(token);
                        NaiveFreed::Again
                    }
                    Freed::Unknown(token) => {
                        out.push(token);
                        NaiveFreed::Unknown
                    }
                };
                assert_eq!(freed, naive.free(base, token));
            }
            Op::ReallyFree { works } if !releasing.is_empty() => {
                let release = releasing.remove(0);
                let region = *release.region();
                let end = |token| if works { Ok(token) } else { Err(token) };
                let (Ok(token) | Err(token)) = release.run(&tracker, end);
                out.push(token);
                if !works {
                    naive.insert(region);
                }
            }
            Op::Open { agent } => match tracker.open_window(id(agent), Duration::ZERO) {
                Ok(window) => {
                    assert!(windows[agent].replace(window).is_none());
                    naive.windows[agent] = Some(NaiveWindow::default());
                }
                Err(error) => {
                    assert_eq!(error, OpenError::Reentrant { agent: id(agent) });
                    assert!(windows[agent].as_ref().is_some_and(Window::is_reentered));
                }
            },
            Op::Capture { agent } => {
                if let (Some(window), Some(model)) = (&mut windows[agent], &naive.windows[agent]) {
                    let list = window.capture_list();
                    let mut listed = model.listed.clone();
                    assert_eq!(list.regions, naive.captured(agent));
                    assert_eq!(list.generation, before[agent]);
                    listed.extend(list.regions);
                    naive.windows[agent].as_mut().expect("as above").listed = listed;
                }
            }
            Op::Close { agent } => {
                if let Some(window) = windows[agent].take() {
                    let frees = window.close();
                    naive.leave(agent);
                    assert_eq!(sorted(frees.clone()), naive.take_orphans());
                    out.extend(frees);
                }
            }
            Op::Drop { agent } => {
                drop(windows[agent].take());
                naive.leave(agent);
            }
            Op::TakeOrphans => {
                let frees = tracker.take_orphans();
                assert_eq!(sorted(frees.clone()), naive.take_orphans());
                out.extend(frees);
            }
            Op::ReallyFree { .. } => {}
        }
        for (agent, before) in before.into_iter().enumerate() {
            let of = |regions: &[Region]| -> Vec<Region> {
                let mine = regions.iter().filter(|region| region.agent() == id(agent));
                mine.copied().collect()
            };
            let now = tracker.inventory_generation(id(agent));
            assert_eq!(now != before, of(&live_before) != of(&naive.live));
            assert!(now >= before);
        }
        compare(&tracker, &windows, &naive, &ever);
    }

    drop(windows);
    out.extend(tracker.take_orphans());
    out.extend(releasing.into_iter().map(Release::into_token));
    assert_eq!(sorted(out), (0..tokens).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// The tracker answers every question as the naive one does, and every token comes out once.
    #[test]
    fn agrees_with_a_naive_tracker(ops in prop::collection::vec(op(), 1..80)) {
        run(ops);
    }
}
