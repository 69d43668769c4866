//! A kernel that can be replayed on paper.

use kr_policy::seam::{EndCheck, Facts, History, Mode, Observed, Rates};
use kr_types::{ByTier, KernelId, RestoreMode, Tier};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

pub(crate) const PROMISE: EndCheck = EndCheck::promised();
pub(crate) const FULL: Mode = Mode::Full;
pub(crate) const EVERY: Mode = Mode::HashEveryPass;
pub(crate) const ONCE: Mode = Mode::HashOnce(PROMISE);

/// Memory for which hashing once can save the time that it must: 32 ms and more at five passes.
pub(crate) const HUGE: ByTier<u64> = tiers(64 * GIB, 8 * GIB);

pub(crate) const fn tiers<T: Copy>(device: T, pinned_host: T) -> ByTier<T> {
    ByTier {
        device,
        pinned_host,
    }
}

/// Five passes over memory of this size, with everything possible and allowed.
pub(crate) const fn facts(live_bytes: ByTier<u64>) -> Facts {
    Facts {
        kernel: KernelId(1),
        grid: [1 << 20, 1, 1],
        passes: Some(5),
        live_bytes,
        rates: Rates::ASSUMED,
        can_hash: true,
        end_check: Some(PROMISE),
        every_pass_only: false,
    }
}

/// What a kernel does to memory, and how long its profiler goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    /// Fraction of each tier that a pass changes.
    pub(crate) changed: ByTier<f64>,
    /// Whether each pass changes the same tiles.
    pub(crate) steady: bool,
    /// Passes that the profiler wants, if the plan allows so many.
    pub(crate) wants: u32,
}

impl Kernel {
    pub(crate) const fn changing(device: f64, pinned_host: f64) -> Self {
        Self {
            changed: tiers(device, pinned_host),
            steady: true,
            wants: u32::MAX,
        }
    }

    /// What a window in these modes sees, and no more than that.
    pub(crate) fn window(self, facts: &Facts, modes: ByTier<RestoreMode>) -> Observed {
        let any = |mode| Tier::ALL.iter().any(|tier| *modes.get(*tier) == mode);
        let every = any(RestoreMode::HashEveryPass);
        let once = any(RestoreMode::HashOnce);
        let passes = facts.passes.unwrap_or(u32::MAX).min(self.wants);
        let restores = passes.saturating_sub(1);
        let hashed_restores = match (every, once) {
            (true, _) => restores,
            (_, true) => restores.min(1),
            _ => 0,
        };
        let changed_bytes = ByTier::from_fn(|tier| match *modes.get(tier) {
            RestoreMode::Full => 0,
            _ => (facts.live_bytes.get(tier).to_owned() as f64 * self.changed.get(tier)) as u64,
        });
        Observed {
            modes,
            passes,
            hashed_restores,
            changed_bytes,
            equal_lists: (every && restores >= 2).then_some(self.steady),
            unlisted_change: once && restores >= 2 && !self.steady,
            blit: None,
        }
    }
}

/// Learns from so many windows of a kernel that all run in one mode.
pub(crate) fn learn(
    history: &mut History,
    facts: &Facts,
    mode: RestoreMode,
    windows: u32,
    kernel: Kernel,
) {
    for _ in 0..windows {
        history.learn(facts, &kernel.window(facts, ByTier::uniform(mode)));
    }
}
