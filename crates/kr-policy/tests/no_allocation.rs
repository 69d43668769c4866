//! A policy that has been made decides and learns without allocating.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use kr_policy::seam::{Auto, EndCheck, Facts, Mode, Observed, Policy, Rates};
use kr_types::{ByTier, KernelId};

/// The system's allocator, counting what this thread asks of it.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract;
// counting touches a thread-local without a destructor and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises about `layout` are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: `ptr` came from `alloc` above, hence from `System`, with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(of: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    of();
    ALLOCATIONS.get() - before
}

#[test]
fn choosing_and_learning_allocate_nothing() {
    assert_ne!(allocations(|| drop(black_box(vec![1]))), 0, "it counts");

    let auto = Auto::default();
    // More shapes than it remembers, so that old ones make room.
    let windows = (0..5_000).map(|n| Facts {
        kernel: KernelId(n),
        grid: [64, n as u32 % 7, 1],
        passes: Some(5),
        live_bytes: ByTier::uniform(n << 20),
        rates: Rates::ASSUMED,
        can_hash: true,
        end_check: Some(EndCheck::promised()),
        every_pass_only: false,
    });
    let replay = |facts: Facts| {
        let modes = auto.choose(&facts).map(Mode::restore_mode);
        let observed = Observed {
            modes,
            passes: 5,
            hashed_restores: 4,
            changed_bytes: ByTier::uniform(1 << 20),
            equal_lists: Some(true),
            unlisted_change: false,
            blit: None,
        };
        auto.learn(&facts, &observed);
    };
    assert_eq!(allocations(|| windows.for_each(replay)), 0);
}
