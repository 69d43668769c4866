//! Work that outlives its limit: copies of ours, or a pass that cannot be stopped. It may write until
//! it was seen to end, so what it may touch is kept, and nothing is replayed beside it.

use std::thread;
use std::time::Duration;

use kr_device::host::{Fault, HostDevice};
use kr_replay::host::HostBuffer;
use kr_replay::{Leave, Limits, PassPlan};
use kr_testkit::replay::{BlitCall, BlitStep, Call, Launch, Refusal, Rig, Step};
use kr_types::Outcome::{Declined, Failed};
use kr_types::{Outcome, Reason, Tier};

/// Steps cannot be copied, so a table makes them.
type MakeStep = fn() -> BlitStep;

/// Work that outlives its limit, and what its dispatch ends in.
struct Late {
    /// Steps of the blit engine, in order.
    blit: &'static [(BlitCall, MakeStep)],
    refusal: Refusal,
    calls: &'static str,
}

const FAIL: MakeStep = || BlitStep::Fail;
const TIME_OUT: MakeStep = || BlitStep::TimeOut;

/// Every operation on the application's memory that can run out of its limit.
const LATE: [Late; 4] = [
    Late {
        blit: &[(BlitCall::Capture, TIME_OUT)],
        refusal: (Declined, Reason::CaptureFailed, Leave::RunOnce),
        calls: "hold, reach, capture",
    },
    Late {
        blit: &[(BlitCall::Restore, TIME_OUT)],
        refusal: (Failed, Reason::RestoreFailed, Leave::Deviated),
        calls: "exit 0, restore full",
    },
    Late {
        blit: &[(BlitCall::Restore, FAIL), (BlitCall::Rescue, TIME_OUT)],
        refusal: (Failed, Reason::RestoreFailed, Leave::Deviated),
        calls: "exit 0, restore full, rescue",
    },
    Late {
        blit: &[(BlitCall::Verify, TIME_OUT)],
        refusal: (Failed, Reason::RestoreFailed, Leave::Deviated),
        calls: "exit 1, verify",
    },
];

impl Late {
    /// A rig on which this has just happened.
    #[track_caller]
    fn happen(&self) -> Rig {
        let rig = Rig::new(PassPlan::Exactly(2));
        for (call, step) in self.blit {
            rig.blit.on(*call, step());
        }
        rig.assert_refused(&rig.launch(), self.refusal, self.calls);
        rig
    }
}

/// The application frees its last buffer and makes one of the same size, with bytes of its own.
fn free_and_reuse(rig: &Rig) -> HostBuffer {
    rig.memory.free(2);
    let buffer = rig.runtime.alloc(4100).expect("the host has memory");
    let device = rig.runtime.device();
    let written = device.write_bytes(buffer.addr(), &[0xee; 4100]);
    written.expect("the buffer was just made");
    buffer
}

#[track_caller]
fn assert_untouched(buffer: &HostBuffer) {
    assert!(buffer.read::<u8>().expect("it is alive") == [0xee; 4100]);
}

fn used_bytes(device: &HostDevice) -> u64 {
    device.used_bytes(Tier::Device)
}

/// While copies may still run their arena is kept and nothing is replayed on the agent, for as long
/// as it takes; once they were seen to end, both are over.
#[test]
fn an_agent_with_late_copies_is_quarantined_until_they_end() {
    for late in LATE {
        let rig = late.happen();
        let kept = rig.engine_bytes();
        assert!(kept >= rig.memory.len_bytes(), "{kept} bytes are kept");
        for _ in 0..3 {
            rig.assert_quarantined();
            assert_eq!(rig.engine_bytes(), kept);
        }
        rig.blit.finish_copies();
        rig.assert_works();
    }
}

/// Memory that the application frees while copies may still touch it is not handed out again before
/// they have ended.
#[test]
fn late_copies_touch_nothing_that_came_after() {
    for late in LATE {
        let rig = late.happen();
        let buffer = free_and_reuse(&rig);
        let held = used_bytes(rig.runtime.device());
        rig.blit.finish_copies();
        assert_untouched(&buffer);
        rig.engine.settle();
        let used = used_bytes(rig.runtime.device());
        assert!(used < held, "{}: freed at last", late.calls);
    }
}

/// Late copies that fail have ended as well: what they touched is let go.
#[test]
fn late_copies_that_fail_have_ended() {
    for late in LATE {
        let rig = late.happen();
        for fault in [Fault::Submit, Fault::Copy, Fault::Read] {
            rig.runtime.device().fail_nth(fault, 0);
        }
        let buffer = free_and_reuse(&rig);
        rig.blit.finish_copies();
        rig.engine.settle();
        let app_bytes = rig.memory.len_bytes();
        assert_eq!(
            used_bytes(rig.runtime.device()),
            app_bytes,
            "{}",
            late.calls
        );
        assert_untouched(&buffer);
    }
}

/// Copies of a device that really stand still are waited for like those of a script.
#[test]
fn real_copies_are_quarantined_too() {
    let rig = Rig::with(PassPlan::Exactly(2), |builder| {
        let capture = Duration::from_millis(2);
        builder.limits(Limits {
            capture,
            ..Limits::default()
        })
    });
    let hold = rig.runtime.device().hold_copies();
    let refusal = (Declined, Reason::CaptureFailed, Leave::RunOnce);
    rig.assert_refused(&rig.launch(), refusal, "reach, capture");
    rig.assert_quarantined();
    drop(hold);
    let mut outcome = Declined;
    while outcome == Declined {
        thread::yield_now();
        outcome = rig.dispatch(&rig.launch());
        rig.finished();
    }
    assert_eq!((outcome, rig.engine_bytes()), (Outcome::Replayed, 0));
}

/// An engine that goes away while copies may still run gives up their arena instead of freeing it
/// under them.
#[test]
fn an_arena_under_late_copies_is_not_freed_by_the_end_of_the_engine() {
    for late in LATE {
        for ended in [false, true] {
            let rig = late.happen();
            if ended {
                rig.blit.finish_copies();
            }
            let (device, app_bytes) = (rig.runtime.device().clone(), rig.memory.len_bytes());
            assert!(used_bytes(&device) > app_bytes);
            let Rig { engine, memory, .. } = rig;
            drop(engine);
            assert_eq!(used_bytes(&device) == app_bytes, ended);
            drop(memory);
        }
    }
}

/// The next engine on the same memory finds an agent as the one before left it: if the copies had
/// ended by then it replays there.
#[test]
fn the_next_engine_replays_if_the_copies_had_ended() {
    for late in LATE {
        let rig = late.happen();
        rig.blit.finish_copies();
        rig.with_next_engine().assert_works();
    }
}

/// If they had not, nobody is left to see them end: the next engine declines there for good, and
/// what they touch stays held.
#[test]
fn the_next_engine_declines_if_the_copies_had_not_ended() {
    for late in LATE {
        let rig = late.happen().with_next_engine();
        rig.assert_quarantined();
        let buffer = free_and_reuse(&rig);
        rig.blit.finish_copies();
        assert_untouched(&buffer);
        rig.engine.settle();
        rig.assert_quarantined();
    }
}

/// A launch whose pass 1 does not end and cannot be stopped, dispatched.
#[track_caller]
fn unstoppable(rig: &Rig) -> Launch {
    let launch = rig
        .launch()
        .on(Call::Wait(1), Step::TimeOut)
        .on(Call::Cancel, Step::TimeOut);
    let refusal = (Failed, Reason::PassTimeout, Leave::Deviated);
    rig.assert_refused(&launch, refusal, "wait 1, cancel, broke off");
    launch
}

/// What a pass that cannot be stopped may write is never handed out again, neither before it goes
/// on nor after, whatever else is asked of the engine.
#[test]
fn memory_under_an_unstoppable_pass_is_held_for_good() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let launch = unstoppable(&rig);
    let device = rig.runtime.device();
    let before = used_bytes(device);
    let buffer = free_and_reuse(&rig);
    let held = used_bytes(device);
    assert_eq!(
        held,
        before + buffer.len_bytes(),
        "the old one is still held"
    );
    launch.finish_pass();
    assert_untouched(&buffer);
    rig.engine.settle();
    assert_eq!(used_bytes(device), held);
}

/// An agent that was given up is so for the next engine as well: the pass may still go on.
#[test]
fn the_next_engine_does_not_replay_beside_an_unstoppable_pass() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let launch = unstoppable(&rig);
    let rig = rig.with_next_engine();
    rig.assert_quarantined();
    let buffer = free_and_reuse(&rig);
    launch.finish_pass();
    assert_untouched(&buffer);
    rig.assert_quarantined();
}
