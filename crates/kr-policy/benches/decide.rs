//! What a decision of the automatic policy costs a window: 1 µs at the most, 0.3 µs wanted.
//!
//! `cargo bench -p kr-policy --bench decide`. The inputs are the dearest there are: both tiers in
//! use, lists trusted and promised to be checked so that all nine combinations are compared, and
//! so many shapes known that most sets are half full or more.

use std::cell::Cell;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use kr_policy::seam::{Always, Auto, EndCheck, Facts, Mode, Observed, Policy, Rates};
use kr_types::{ByTier, KernelId, RestoreMode};

const SHAPES: u64 = 500;

fn facts(kernel: u64) -> Facts {
    Facts {
        kernel: KernelId(kernel),
        grid: [1 << 20, 1, 1],
        passes: Some(12),
        live_bytes: ByTier {
            device: 64 << 30,
            pinned_host: 8 << 30,
        },
        rates: Rates::ASSUMED,
        can_hash: true,
        end_check: Some(EndCheck::promised()),
        every_pass_only: false,
    }
}

const OBSERVED: Observed = Observed {
    modes: ByTier {
        device: RestoreMode::HashEveryPass,
        pinned_host: RestoreMode::HashEveryPass,
    },
    passes: 12,
    hashed_restores: 11,
    changed_bytes: ByTier {
        device: 1 << 30,
        pinned_host: 1 << 26,
    },
    equal_lists: Some(true),
    unlisted_change: false,
    blit: None,
};

/// A policy that has seen each kernel three times.
fn taught() -> Auto {
    let auto = Auto::default();
    for _ in 0..3 {
        for kernel in 0..SHAPES {
            auto.learn(&facts(kernel), &OBSERVED);
        }
    }
    auto
}

fn decide(c: &mut Criterion) {
    let auto = taught();
    let once = Mode::HashOnce(EndCheck::promised());
    assert_eq!(auto.choose(&facts(SHAPES - 1)).device, once);

    c.bench_function("choose, one shape again", |b| {
        let facts = facts(SHAPES - 1);
        b.iter(|| auto.choose(black_box(&facts)));
    });
    let next = Cell::new(0);
    let each = || {
        next.set((next.get() + 1) % SHAPES);
        facts(next.get())
    };
    c.bench_function("choose, 500 shapes in turn", |b| {
        b.iter(|| auto.choose(black_box(&each())));
    });
    c.bench_function("choose, a shape never seen", |b| {
        let facts = facts(SHAPES + 1);
        b.iter(|| auto.choose(black_box(&facts)));
    });
    c.bench_function("choose, forced", |b| {
        let always = Always(RestoreMode::HashEveryPass);
        let facts = facts(0);
        b.iter(|| always.choose(black_box(&facts)));
    });
    c.bench_function("learn, 500 shapes in turn", |b| {
        b.iter(|| auto.learn(black_box(&each()), black_box(&OBSERVED)));
    });
}

criterion_group!(benches, decide);
criterion_main!(benches);
