//! Planning when the host runs out of memory: an error, whichever allocation fails.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

use common::holes::Holes;
use common::scripted::{Log, Script, Scripted};
use kr_plan::{PlanError, Request, plan};
use kr_storage::{Arena, Fallback, NullAllocator, PrefixChunking};
use kr_types::{AgentId, DeviceAddr, Generation, MemoryClass, Region, TILE_BYTES};

thread_local! {
    /// Allocations of this thread that still succeed, while armed.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// The system's allocator, until it has nothing left for this thread.
struct Limited;

fn refuses() -> bool {
    LEFT.with(|left| match left.get() {
        None => false,
        Some(0) => true,
        Some(some) => {
            left.set(Some(some - 1));
            false
        }
    })
}

// SAFETY: every call is passed on unchanged, or refused with null as the contract allows. The
// thread-local has no destructor and is initialised without allocating.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses() {
            return null_mut();
        }
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` came from `System` with this layout, since nothing else is handed out.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        if refuses() {
            return null_mut();
        }
        // SAFETY: as for `dealloc`; the caller's promise about `len` is passed on.
        unsafe { System.realloc(memory, layout, len) }
    }
}

#[global_allocator]
static LIMITED: Limited = Limited;

/// Each list of the plan in turn cannot be had: the order, the placements, more placements than
/// requests, and nothing else is allocated on the way.
#[test]
fn every_allocation_of_a_plan_may_fail() {
    let regions: Vec<_> = (1..=50)
        .map(|at| {
            let base = DeviceAddr(at << 30);
            let len = 4 * TILE_BYTES;
            Region::new(AgentId(1), base, len, Generation::FIRST, MemoryClass::Vram).unwrap()
        })
        .collect();
    let mut requests: Vec<_> = (0..)
        .zip(&regions)
        .map(|(at, one)| Request::whole(at, one).with_priority(at as i32 % 3))
        .collect();
    // Descending addresses and mixed priorities: both sorts have work to do.
    requests.reverse();
    // Holes of a tile each split every request in four.
    let holes = (0..200)
        .map(|at| (at * 2 * TILE_BYTES, TILE_BYTES))
        .collect();
    let backing = Scripted::new(0, u64::MAX, Script::Panics, &Log::default());
    let arena = Arena::new(PrefixChunking::TILE, Holes::new(holes), backing);
    let mut chain = Fallback::new(arena, NullAllocator);

    let mut failed = 0;
    let plan = loop {
        LEFT.set(Some(failed));
        let result = plan(&mut chain, &regions, &requests);
        LEFT.set(None);
        match result {
            Ok(plan) => break plan,
            Err(PlanError::Metadata { requests: 50 }) => failed += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(failed < 20, "that is an allocation per region");
    };
    assert_eq!(plan.placements.len(), 200);
    assert!(failed >= 4, "{failed}");
}
