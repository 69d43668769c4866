//! Windows in which a backend fails: what the application and the profiler get then.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use kr_blit::Verdict;
use kr_device::host::{Fault, HostDevice, HostDeviceConfig};
use kr_policy::Fixed;
use kr_replay::host::HostRuntime;
use kr_replay::{Leave, Limits, PassPlan};
use kr_testkit::replay::{
    AppMemory, BlitCall, BlitStep, Call, Callback, Event, FakeQueue, Launch, Reaction, Rig, Step,
};
use kr_tracker::TrackerConfig;
use kr_types::{
    AgentId, DeviceAddr, KernelId, MemoryClass, Outcome, QueueId, Reason, RestoreMode, Tier,
    Verified,
};

/// The application has had its one run.
#[track_caller]
fn assert_right(rig: &Rig, launch: &Launch) {
    assert_eq!(launch.violations(), [""; 0]);
    assert_eq!(launch.signal(), 0);
    assert_eq!(rig.memory.bytes(), rig.memory.after(1));
    assert_ne!(launch.left(), Some(Leave::Deviated));
}

/// The dispatch came to `outcome` for `reason`, which is counted; it has a message and no records.
#[track_caller]
fn assert_ended(rig: &Rig, got: Outcome, outcome: Outcome, reason: Reason) -> String {
    let finished = rig.finished();
    assert_eq!((got, finished.report.outcome), (outcome, outcome));
    assert_eq!(finished.report.reason, Some(reason));
    assert!(finished.records.is_empty());
    assert!(rig.engine.stats().reason(reason) > 0);
    finished.report.message.expect("a reason has a message")
}

/// The next dispatch of `launch`'s kind is replayed, from memory as it is now.
#[track_caller]
fn assert_works(rig: &Rig) {
    let (launch, input) = (rig.launch(), rig.memory.digest());
    assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
    assert_eq!(launch.violations(), [""; 0]);
    let records = rig.finished().records;
    assert!(records.iter().all(|record| record.record.input == input));
    assert_eq!(rig.engine_bytes(), 0);
}

/// The agent takes no windows any more; the application goes on.
#[track_caller]
fn assert_given_up(rig: &Rig) {
    let launch = rig.launch();
    let got = rig.dispatch(&launch);
    assert_ended(rig, got, Outcome::Declined, Reason::AgentQuarantined);
    assert_eq!((launch.left(), launch.signal()), (Some(Leave::Forward), 0));
}

/// Work of other queues that does not end costs the dispatch its replay and nothing else; its queue
/// is left alone until it has been idle.
#[test]
fn a_stuck_drain_is_free_of_charge() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let launch = rig.launch().on(Call::Drain, Step::TimeOut);
    let got = rig.dispatch(&launch);
    assert_eq!(
        rig.log.to_string(),
        "wants, configure, drain, finish declined, leave Forward, ran"
    );
    let what = assert_ended(&rig, got, Outcome::Declined, Reason::DrainTimeout);
    assert!(what.contains("5s"), "it names the limit: {what}");
    assert_right(&rig, &launch);

    rig.queue.set_idle(false);
    rig.log.clear();
    let got = rig.dispatch(&rig.launch());
    assert_ended(&rig, got, Outcome::Declined, Reason::DrainTimeout);
    assert_eq!(
        rig.log.to_string(),
        "wants, configure, finish declined, leave Forward, ran",
        "nothing was waited for"
    );

    rig.queue.set_idle(true);
    assert_works(&rig);
    rig.queue.set_idle(false);
    assert_works(&rig);
}

/// A stuck queue says nothing about the others.
#[test]
fn only_the_stuck_queue_is_left_alone() {
    let rig = Rig::new(PassPlan::Exactly(2));
    rig.dispatch(&rig.launch().on(Call::Drain, Step::TimeOut));
    rig.finished();
    rig.queue.set_idle(false);
    let other = Launch::new(
        &FakeQueue::new(QueueId(12)),
        &rig.memory,
        &rig.clock,
        &rig.log,
    );
    assert_eq!(rig.dispatch(&other), Outcome::Replayed);
}

/// What a target reports in a call before the first pass is the reason of a decline, and the
/// application gets its run: on its own queue if nothing was held, else by the target.
#[test]
fn an_error_before_the_first_pass_declines() {
    let calls = [
        (Call::Drain, Leave::Forward),
        (Call::Hold, Leave::Forward),
        (Call::Reach, Leave::RunOnce),
        (Call::Start(0), Leave::RunOnce),
    ];
    for (call, how) in calls {
        let rig = Rig::new(PassPlan::Exactly(2));
        let launch = rig.launch().on(call, Step::Fail(Reason::Cooperative));
        let got = rig.dispatch(&launch);
        assert_ended(&rig, got, Outcome::Declined, Reason::Cooperative);
        assert_eq!(launch.left(), Some(how), "{call:?}");
        assert_eq!(launch.executions(), 1);
        assert_right(&rig, &launch);
        assert_works(&rig);
    }
}

/// If earlier work of the queue does not end, the dispatch runs once after it, and the queue is
/// left alone until it has been idle.
#[test]
fn a_queue_that_is_not_reached_runs_once_and_is_left_alone() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let launch = rig.launch().on(Call::Reach, Step::TimeOut);
    let got = rig.dispatch(&launch);
    assert_ended(&rig, got, Outcome::Declined, Reason::ReachTimeout);
    assert_eq!(launch.left(), Some(Leave::RunOnce));
    assert_right(&rig, &launch);

    rig.queue.set_idle(false);
    let again = rig.launch();
    let got = rig.dispatch(&again);
    assert_ended(&rig, got, Outcome::Declined, Reason::ReachTimeout);
    assert_eq!(again.left(), Some(Leave::Forward));
    rig.queue.set_idle(true);
    assert_works(&rig);
}

/// Whichever operation of the device fails, for the n-th time: before the first restore the
/// dispatch is declined, later it fails, and the application is right in every case.
#[test]
fn every_fault_of_the_device_leaves_the_application_right() {
    use Outcome::{Declined, Failed, Replayed};
    // Three regions, two restores; host memory stands in for device memory that cannot be had.
    let table = [
        (Fault::Alloc, &[(1, Replayed)][..]),
        (Fault::Submit, &[(1, Declined), (2, Failed), (1, Replayed)]),
        (Fault::Copy, &[(3, Declined), (6, Failed), (1, Replayed)]),
        (Fault::Read, &[(3, Declined), (3, Failed), (1, Replayed)]),
        (Fault::Write, &[(1, Replayed)]),
    ];
    for (fault, runs) in table {
        let expected = runs
            .iter()
            .flat_map(|(times, outcome)| std::iter::repeat_n(*outcome, *times));
        for (n, outcome) in (0..).zip(expected) {
            let rig = Rig::new(PassPlan::Exactly(3));
            rig.runtime.device().fail_nth(fault, n);
            let launch = rig.launch();
            let got = rig.dispatch(&launch);
            let reason = match outcome {
                Declined => Some(Reason::CaptureFailed),
                Failed => Some(Reason::RestoreFailed),
                _ => None,
            };
            let report = rig.finished().report;
            assert_eq!((got, report.reason), (outcome, reason), "{fault:?} {n}");
            assert_eq!(launch.signal(), 0);
            assert_eq!(rig.memory.bytes(), rig.memory.after(1), "{fault:?} {n}");
            assert_eq!(rig.engine_bytes(), 0, "{fault:?} {n}");
        }
    }
}

/// Saved bytes go to host memory if the device has no room, and nowhere if neither has.
#[test]
fn what_fits_no_tier_is_declined() {
    for (pinned_bytes, outcome) in [(1 << 20, Outcome::Replayed), (4096, Outcome::Declined)] {
        let config = HostDeviceConfig {
            device_bytes: Some(8192),
            pinned_bytes: Some(pinned_bytes),
            ..HostDeviceConfig::default()
        };
        let device = HostDevice::with_config(Rig::AGENT, &config);
        let runtime = HostRuntime::with_device(device, TrackerConfig::default());
        let rig = Rig::on(runtime, PassPlan::Exactly(2), |builder| builder);
        let launch = rig.launch();
        let got = rig.dispatch(&launch);
        assert_eq!(got, outcome);
        let report = rig.finished().report;
        if got == Outcome::Declined {
            assert_eq!(report.reason, Some(Reason::PlanFailed));
            let what = report.message.unwrap();
            for tier in [Tier::Device, Tier::PinnedHost] {
                assert!(what.contains(tier.as_str()), "names {tier}: {what}");
            }
        }
        assert_right(&rig, &launch);
    }
}

/// A capture that fails is declined; no restore is ever made from it.
#[test]
fn a_capture_that_fails_is_declined() {
    let rig = Rig::new(PassPlan::Exactly(2));
    rig.blit.on(BlitCall::Capture, BlitStep::Fail);
    let launch = rig.launch();
    let got = rig.dispatch(&launch);
    assert_ended(&rig, got, Outcome::Declined, Reason::CaptureFailed);
    assert_eq!(
        rig.log.to_string(),
        "wants, configure, drain, hold, reach, capture, finish declined, leave RunOnce, ran"
    );
    assert_right(&rig, &launch);
    assert_works(&rig);
}

/// While copies that ran out of their limit may still run, their arena is kept and nothing is
/// replayed on the agent; once they were seen to end, both are over.
#[test]
fn a_capture_that_does_not_end_is_quarantined_until_it_does() {
    let rig = Rig::new(PassPlan::Exactly(2));
    rig.blit.on(BlitCall::Capture, BlitStep::TimeOut);
    let launch = rig.launch();
    let got = rig.dispatch(&launch);
    assert_ended(&rig, got, Outcome::Declined, Reason::CaptureFailed);
    assert_right(&rig, &launch);
    let kept = rig.engine_bytes();
    assert!(kept >= rig.memory.len_bytes(), "{kept} bytes are kept");

    for _ in 0..3 {
        let launch = rig.launch();
        let got = rig.dispatch(&launch);
        assert_ended(&rig, got, Outcome::Declined, Reason::AgentQuarantined);
        assert_eq!(launch.left(), Some(Leave::Forward));
        assert_eq!(launch.signal(), 0);
        assert_eq!(rig.engine_bytes(), kept);
    }
    rig.blit.finish_copies();
    assert_works(&rig);
}

/// The same with copies of a device that really stand still.
#[test]
fn real_copies_are_quarantined_too() {
    let rig = Rig::with(PassPlan::Exactly(2), |builder| {
        let mut limits = Limits::default();
        limits.capture = Duration::from_millis(2);
        builder.limits(limits)
    });
    let hold = rig.runtime.device().hold_copies();
    let launch = rig.launch();
    let got = rig.dispatch(&launch);
    assert_ended(&rig, got, Outcome::Declined, Reason::CaptureFailed);
    assert_right(&rig, &launch);
    let got = rig.dispatch(&rig.launch());
    assert_ended(&rig, got, Outcome::Declined, Reason::AgentQuarantined);
    drop(hold);
    let mut outcome = Outcome::Declined;
    while outcome == Outcome::Declined {
        thread::yield_now();
        outcome = rig.dispatch(&rig.launch());
        rig.finished();
    }
    assert_eq!((outcome, rig.engine_bytes()), (Outcome::Replayed, 0));
}

/// An engine that goes away while copies may still run gives up their arena instead of freeing it
/// under them.
#[test]
fn an_arena_in_quarantine_is_not_freed_by_the_end_of_the_engine() {
    for ended in [false, true] {
        let rig = Rig::new(PassPlan::Exactly(2));
        rig.blit.on(BlitCall::Capture, BlitStep::TimeOut);
        rig.dispatch(&rig.launch());
        if ended {
            rig.blit.finish_copies();
        }
        let (device, app_bytes) = (rig.runtime.device().clone(), rig.memory.len_bytes());
        assert!(device.used_bytes(Tier::Device) > app_bytes);
        let Rig { engine, memory, .. } = rig;
        drop(engine);
        assert_eq!(device.used_bytes(Tier::Device) == app_bytes, ended);
        drop(memory);
    }
}

/// What a window takes at the most by the message of a dispatch that is over its budget.
fn bytes_needed() -> u64 {
    let rig = Rig::with(PassPlan::Exactly(2), |builder| builder.budget_bytes(0));
    let launch = rig.launch();
    let got = rig.dispatch(&launch);
    let message = assert_ended(&rig, got, Outcome::Declined, Reason::Budget);
    assert_eq!(launch.left(), Some(Leave::Forward));
    let number = message.split(" takes ").nth(1);
    let number = number.and_then(|rest| rest.split(' ').next()?.parse().ok());
    number.expect("the message names the bytes")
}

/// What a window may take is what its message names: exactly as much is admitted, one byte less is
/// not.
#[test]
fn the_budget_is_exact() {
    let needed = bytes_needed();
    for (budget, outcome) in [(needed, Outcome::Replayed), (needed - 1, Outcome::Declined)] {
        let plan = PassPlan::Exactly(2);
        let rig = Rig::with(plan, |builder| builder.budget_bytes(budget));
        let launch = rig.launch();
        assert_eq!(rig.dispatch(&launch), outcome);
        assert_right(&rig, &launch);
    }
}

/// A window never takes more memory than the number that was held against the budget.
#[test]
fn a_window_stays_within_what_was_budgeted() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let (sender, used) = mpsc::channel();
    let device = rig.runtime.device().clone();
    let measure = move || sender.send(device.used_bytes(Tier::Device)).unwrap();
    rig.observer
        .on(Callback::Enter(0), Reaction::Run(Box::new(measure)));
    rig.dispatch(&rig.launch());
    let taken = used.recv().unwrap() - rig.memory.len_bytes();
    assert!((rig.memory.len_bytes()..=bytes_needed()).contains(&taken));
}

/// Memory that was allocated after admission counts as well.
#[test]
fn the_budget_is_held_against_what_is_captured() {
    let needed = bytes_needed();
    let rig = Rig::with(PassPlan::Exactly(2), |builder| builder.budget_bytes(needed));
    let (runtime, (sender, buffer)) = (rig.runtime.clone(), mpsc::channel());
    let alloc = move || sender.send(runtime.alloc(1).unwrap()).unwrap();
    let launch = rig.launch().on(Call::Reach, Step::Run(Box::new(alloc)));
    let got = rig.dispatch(&launch);
    assert_ended(&rig, got, Outcome::Declined, Reason::Budget);
    assert_eq!(launch.left(), Some(Leave::RunOnce));
    assert_right(&rig, &launch);
    drop(buffer);
}

/// An agent without a device cannot be replayed on.
#[test]
fn an_unknown_agent_is_declined() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let launch = rig.launch();
    let mut dispatch = Rig::describe(&launch);
    dispatch.agent = AgentId(99);
    let got = rig.engine.dispatch(&dispatch, launch.target());
    let what = assert_ended(&rig, got, Outcome::Declined, Reason::UntrackedMemory);
    assert!(what.contains("agent 99"), "{what}");
    assert_eq!(launch.left(), Some(Leave::Forward));
    assert_right(&rig, &launch);
}

/// An agent that may have memory that nobody told of cannot be saved.
#[test]
fn untracked_memory_is_declined() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let wraps =
        rig.runtime
            .tracker()
            .record(Rig::AGENT, DeviceAddr(u64::MAX - 3), 8, MemoryClass::Vram);
    assert!(wraps.is_err());
    let launch = rig.launch();
    let got = rig.dispatch(&launch);
    assert_ended(&rig, got, Outcome::Declined, Reason::UntrackedMemory);
    assert_eq!(launch.left(), Some(Leave::Forward));
    assert_right(&rig, &launch);
}

/// Pass 0 that does not end becomes the application's own run, and its kernel is not tried again.
#[test]
fn pass_0_that_does_not_end_is_adopted() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let launch = rig.launch().on(Call::Wait(0), Step::TimeOut);
    let got = rig.dispatch(&launch);
    assert_ended(&rig, got, Outcome::Declined, Reason::PassTimeout);
    assert_eq!(
        rig.log.to_string(),
        "wants, configure, drain, hold, reach, capture, enter 0, start 0, wait 0, \
         finish declined, leave Adopt, ran"
    );
    assert_eq!(launch.executions(), 1);
    assert_right(&rig, &launch);
    assert_eq!(rig.engine_bytes(), 0);

    assert!(rig.engine.refused_kernels().contains(&Rig::KERNEL));
    let again = rig.launch();
    let got = rig.dispatch(&again);
    let what = assert_ended(&rig, got, Outcome::Declined, Reason::PassTimeout);
    assert!(what.contains("step"), "it names the kernel: {what}");
    assert_eq!(again.left(), Some(Leave::Forward));

    let launch = rig.launch();
    let mut other = Rig::describe(&launch);
    other.kernel = KernelId(2);
    let got = rig.engine.dispatch(&other, launch.target());
    assert_eq!(got, Outcome::Replayed, "other kernels go on");
}

/// A later pass that does not end is stopped; memory is put back and the dispatch runs once more.
#[test]
fn a_later_pass_that_is_stopped_costs_the_records_only() {
    for pass in 1..3 {
        let rig = Rig::new(PassPlan::Exactly(3));
        let launch = rig.launch().on(Call::Wait(pass), Step::TimeOut);
        let got = rig.dispatch(&launch);
        assert_ended(&rig, got, Outcome::Failed, Reason::PassTimeout);
        let log = rig.log.to_string();
        let end = format!(
            "wait {pass}, cancel, broke off, restore full, finish failed, leave RunOnce, ran"
        );
        assert!(log.ends_with(&end), "{log}");
        assert_right(&rig, &launch);
        assert!(rig.engine.refused_kernels().contains(&Rig::KERNEL));
    }
}

/// A later pass that cannot be stopped may write at any time: nothing is put back under it, and
/// nothing is replayed on its agent any more.
#[test]
fn a_later_pass_that_cannot_be_stopped_costs_the_agent() {
    let rig = Rig::new(PassPlan::Exactly(3));
    let launch = rig
        .launch()
        .on(Call::Wait(1), Step::TimeOut)
        .on(Call::Cancel, Step::TimeOut);
    let got = rig.dispatch(&launch);
    let what = assert_ended(&rig, got, Outcome::Failed, Reason::PassTimeout);
    assert!(what.contains("may deviate"), "{what}");
    assert_eq!((launch.left(), launch.signal()), (Some(Leave::Deviated), 0));
    let log = rig.log.to_string();
    let end = "wait 1, cancel, broke off, finish failed, leave Deviated";
    assert!(log.ends_with(end), "{log}");

    let next = rig.launch();
    let mut other = Rig::describe(&next);
    other.kernel = KernelId(2);
    let got = rig.engine.dispatch(&other, next.target());
    assert_ended(&rig, got, Outcome::Declined, Reason::AgentQuarantined);
    assert_eq!(next.left(), Some(Leave::Forward));
}

/// An error of pass 0 is the application's own error.
#[test]
fn an_error_of_pass_0_is_the_applications() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let launch = rig
        .launch()
        .on(Call::Wait(0), Step::Fail(Reason::QueueError));
    let got = rig.dispatch(&launch);
    assert_ended(&rig, got, Outcome::Declined, Reason::QueueError);
    assert_eq!((launch.left(), launch.signal()), (Some(Leave::Fault), 0));
    assert_eq!(launch.executions(), 1);
    assert_eq!(rig.memory.bytes(), rig.memory.after_half_a_run());
    assert_eq!(launch.violations(), [""; 0]);
}

/// An error of a later pass is none of the application's: memory is put back, and it runs once more.
#[test]
fn an_error_of_a_later_pass_is_undone() {
    for pass in 1..3 {
        let rig = Rig::new(PassPlan::Exactly(3));
        let step = Step::Fail(Reason::QueueError);
        let launch = rig.launch().on(Call::Wait(pass), step);
        let got = rig.dispatch(&launch);
        assert_ended(&rig, got, Outcome::Failed, Reason::QueueError);
        assert_eq!(launch.left(), Some(Leave::RunOnce));
        assert_right(&rig, &launch);
        assert_works(&rig);
    }
}

/// A later pass that does not start leaves memory as it was put back for it, so the application
/// runs once more.
#[test]
fn a_later_pass_that_does_not_start_is_made_up_for() {
    let rig = Rig::new(PassPlan::Exactly(3));
    let step = Step::Fail(Reason::QueueError);
    let launch = rig.launch().on(Call::Start(1), step);
    let got = rig.dispatch(&launch);
    assert_ended(&rig, got, Outcome::Declined, Reason::QueueError);
    assert_eq!(launch.left(), Some(Leave::RunOnce));
    assert_right(&rig, &launch);
}

/// A restore that fails is made up for on a second path; no pass follows it.
#[test]
fn a_restore_that_is_rescued_costs_the_records_only() {
    let rig = Rig::new(PassPlan::Exactly(3));
    rig.blit.on(BlitCall::Restore, BlitStep::Fail);
    let launch = rig.launch();
    let got = rig.dispatch(&launch);
    assert_ended(&rig, got, Outcome::Failed, Reason::RestoreFailed);
    let log = rig.log.to_string();
    let end = "exit 0, restore full, rescue, finish failed, leave RunOnce, ran";
    assert!(log.ends_with(end), "{log}");
    assert_right(&rig, &launch);
    assert_works(&rig);
}

/// If the second path fails too, memory is a mix, and that is said.
#[test]
fn a_restore_that_is_torn_is_reported() {
    let rig = Rig::new(PassPlan::Exactly(3));
    rig.blit
        .on(BlitCall::Restore, BlitStep::Fail)
        .on(BlitCall::Rescue, BlitStep::Fail);
    let launch = rig.launch();
    let got = rig.dispatch(&launch);
    let what = assert_ended(&rig, got, Outcome::Failed, Reason::RestoreFailed);
    assert!(what.contains("may deviate"), "{what}");
    assert_eq!((launch.left(), launch.signal()), (Some(Leave::Deviated), 0));
    let log = rig.log.to_string();
    assert!(
        log.ends_with("restore full, rescue, finish failed, leave Deviated"),
        "{log}"
    );
    assert_works(&rig);
}

/// A restore that does not end in time may still write: nothing else is copied or run on top of it,
/// its arena is kept, and the agent takes no windows until it was seen to end.
#[test]
fn a_restore_that_does_not_end_is_quarantined_until_it_does() {
    let rig = Rig::new(PassPlan::Exactly(3));
    rig.blit.on(BlitCall::Restore, BlitStep::TimeOut);
    let launch = rig.launch();
    let got = rig.dispatch(&launch);
    let what = assert_ended(&rig, got, Outcome::Failed, Reason::RestoreFailed);
    assert!(what.contains("may deviate"), "{what}");
    assert_eq!((launch.left(), launch.signal()), (Some(Leave::Deviated), 0));
    let log = rig.log.to_string();
    assert!(
        log.ends_with("restore full, finish failed, leave Deviated"),
        "{log}"
    );
    assert!(rig.engine_bytes() > 0);

    let got = rig.dispatch(&rig.launch());
    assert_ended(&rig, got, Outcome::Declined, Reason::AgentQuarantined);
    rig.blit.finish_copies();
    assert_works(&rig);
}

/// If putting memory back after a bad pass fails as well, the outcome is still one clear report.
#[test]
fn a_failed_restore_after_a_failed_pass_is_reported() {
    for (rescue, how) in [(true, Leave::RunOnce), (false, Leave::Deviated)] {
        let rig = Rig::new(PassPlan::Exactly(2));
        // The first restore is the one before pass 1.
        rig.blit
            .on(BlitCall::Restore, BlitStep::Run(Box::new(|| {})))
            .on(BlitCall::Restore, BlitStep::Fail);
        if !rescue {
            rig.blit.on(BlitCall::Rescue, BlitStep::Fail);
        }
        let launch = rig
            .launch()
            .on(Call::Wait(1), Step::Fail(Reason::QueueError));
        let got = rig.dispatch(&launch);
        assert_ended(&rig, got, Outcome::Failed, Reason::QueueError);
        assert_eq!((launch.left(), launch.signal()), (Some(how), 0));
        if rescue {
            assert_right(&rig, &launch);
        }
    }
}

/// A rig whose restores leave out a buffer from the second one on, as hash-once would if the kernel
/// had not changed it in pass 0.
fn unlisted_change(passes: u32) -> Rig {
    let rig = Rig::with(PassPlan::Exactly(passes), |builder| {
        builder.policy(Fixed(RestoreMode::HashOnce))
    });
    rig.blit.unlist(rig.memory.addrs()[1]);
    rig
}

/// Two passes cannot be harmed by an unlisted change: nothing started after the list was made.
#[test]
fn an_unlisted_change_is_harmless_to_two_passes() {
    let rig = unlisted_change(2);
    let first = rig.memory.addrs()[1];
    let verdict = Verdict::UnlistedChange { tiles: 1, first };
    rig.blit.on(BlitCall::Verify, BlitStep::Verdict(verdict));
    let launch = rig.launch();
    assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
    let records = rig.finished().records;
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|r| r.verified == Verified::EveryPass));
    assert_right(&rig, &launch);
}

/// Passes that may have started from other bytes run again on good ones, and only their second
/// records are released.
#[test]
fn an_unlisted_change_is_repaired() {
    let rig = unlisted_change(4);
    let launch = rig.launch();
    assert_eq!(rig.dispatch(&launch), Outcome::Repaired);
    let log = rig.log.to_string();
    let end = "enter 3, start 3, wait 3, ran, exit 3, verify, \
               restore full, enter 2, start 2, wait 2, ran, exit 2, \
               restore full, enter 3, start 3, wait 3, ran, exit 3, \
               verify, finish repaired, leave Complete";
    assert!(log.ends_with(end), "{log}");
    let finished = rig.finished();
    assert!(finished.report.message.is_some() && finished.report.reason.is_none());
    let records: Vec<_> = finished.records.iter().map(|r| r.record).collect();
    let executions: Vec<_> = records.iter().map(|record| record.execution).collect();
    assert_eq!(executions, [0, 1, 4, 5]);
    let initial = rig.memory.initial_digest();
    assert!(records.iter().all(|record| record.input == initial));
    let verified = finished.records.iter().map(|record| record.verified);
    assert!(verified.into_iter().all(|v| v == Verified::EveryPass));
    assert_right(&rig, &launch);
}

/// Without the check and the repair, the suspect passes would have been reported with wrong inputs:
/// the negative control of the test above.
#[test]
fn an_unlisted_change_does_reach_the_passes() {
    let rig = unlisted_change(4);
    rig.blit
        .on(BlitCall::Verify, BlitStep::Verdict(Verdict::Clean));
    assert_eq!(rig.dispatch(&rig.launch()), Outcome::Replayed);
    let initial = rig.memory.initial_digest();
    let records = rig.finished().records;
    let good: Vec<_> = records.iter().map(|r| r.record.input == initial).collect();
    assert_eq!(good, [true, true, false, false]);
    assert_ne!(rig.memory.bytes(), rig.memory.after(1));
}

/// A deviation that is there again after the repair is none that a restore can cure: memory is put
/// back and the application runs once more, without records.
#[test]
fn a_repair_that_does_not_help_fails() {
    let rig = unlisted_change(4);
    let first = rig.memory.addrs()[1];
    for _ in 0..2 {
        let verdict = Verdict::UnlistedChange { tiles: 1, first };
        rig.blit.on(BlitCall::Verify, BlitStep::Verdict(verdict));
    }
    let launch = rig.launch();
    let got = rig.dispatch(&launch);
    assert_ended(&rig, got, Outcome::Failed, Reason::UnlistedChange);
    let log = rig.log.to_string();
    assert!(
        log.ends_with("verify, restore full, finish failed, leave RunOnce, ran"),
        "{log}"
    );
    assert_right(&rig, &launch);
}

/// A repair may go wrong in every way that a window can.
#[test]
fn a_repair_that_goes_wrong_leaves_the_application_right() {
    let good = || Step::Run(Box::new(|| {}));
    for step in [Step::TimeOut, Step::Fail(Reason::QueueError)] {
        let rig = unlisted_change(4);
        let launch = rig
            .launch()
            .on(Call::Wait(2), good())
            .on(Call::Wait(2), step);
        assert_eq!(rig.dispatch(&launch), Outcome::Failed);
        assert!(rig.finished().records.is_empty());
        assert_eq!(launch.left(), Some(Leave::RunOnce));
        assert_right(&rig, &launch);
    }
    let rig = unlisted_change(4);
    for _ in 0..3 {
        rig.blit
            .on(BlitCall::Restore, BlitStep::Run(Box::new(|| {})));
    }
    rig.blit.on(BlitCall::Restore, BlitStep::Fail);
    let launch = rig.launch();
    let got = rig.dispatch(&launch);
    assert_ended(&rig, got, Outcome::Failed, Reason::RestoreFailed);
    assert_right(&rig, &launch);
}

/// Who was waiting for the agent when it was given up does not replay there either: the pass that
/// could not be stopped would run beside its own.
#[test]
fn an_agent_that_is_given_up_turns_away_those_who_wait_for_it() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let (entered, inside) = mpsc::channel();
    let (arrived, waiting) = mpsc::channel();
    let wait_for_the_other = move || {
        waiting.recv().unwrap();
        // It is about to stand in line; nothing tells when it does.
        thread::sleep(Duration::from_millis(20));
    };
    let first = rig
        .launch()
        .on(
            Call::Hold,
            Step::Run(Box::new(move || entered.send(()).unwrap())),
        )
        .on(Call::Wait(0), Step::Run(Box::new(wait_for_the_other)))
        .on(Call::Wait(1), Step::TimeOut)
        .on(Call::Cancel, Step::TimeOut);
    let second = Launch::new(
        &FakeQueue::new(QueueId(12)),
        &rig.memory,
        &rig.clock,
        &rig.log,
    );
    let mut other_kernel = Rig::describe(&second);
    other_kernel.kernel = KernelId(2);
    thread::scope(|scope| {
        let window = scope.spawn(|| rig.dispatch(&first));
        inside.recv().unwrap();
        let arrive = Reaction::Run(Box::new(move || arrived.send(()).unwrap()));
        rig.observer.on(Callback::Configure, arrive);
        let got = rig.engine.dispatch(&other_kernel, second.target());
        assert_eq!(got, Outcome::Declined);
        assert_eq!(window.join().unwrap(), Outcome::Failed);
    });
    assert_eq!((second.left(), second.signal()), (Some(Leave::Forward), 0));
    assert_eq!(rig.engine.stats().reason(Reason::AgentQuarantined), 1);
}

/// Whatever call of a backend panics, the application gets its one run and the profiler a reason; the
/// target is left before the agent is, and nothing is replayed there any more.
#[test]
fn a_panic_of_the_backend_leaves_the_target_and_then_the_agent() {
    let calls = [
        Call::Drain,
        Call::Hold,
        Call::Reach,
        Call::Start(0),
        Call::Start(1),
        Call::Wait(0),
        Call::Wait(1),
    ];
    for call in calls {
        let rig = Rig::new(PassPlan::Exactly(2));
        let tracker = rig.runtime.tracker().clone();
        let (sender, alone) = mpsc::channel();
        let leave = move || {
            let entered = thread::spawn(move || {
                let guard = tracker.try_enter_dispatch(Rig::AGENT);
                guard.is_some()
            });
            sender.send(!entered.join().unwrap()).unwrap();
        };
        let launch = rig
            .launch()
            .on(call, Step::Panic)
            .on(Call::Leave, Step::Run(Box::new(leave)));
        let got = rig.dispatch(&launch);
        let what = assert_ended(&rig, got, Outcome::Declined, Reason::QueueError);
        assert!(what.contains("scripted panic"), "{what}");
        assert!(alone.recv().unwrap(), "{call:?}: the agent was left first");
        assert_eq!(launch.violations(), [""; 0], "{call:?}");
        assert_eq!(launch.signal(), 0);
        assert_eq!(rig.memory.bytes(), rig.memory.after(1), "{call:?}");
        assert_given_up(&rig);
    }
}

/// If something wrote the saved bytes, the last pass may have started from them: nothing is put
/// back any more, and the application is told.
#[test]
fn a_damaged_image_is_reported() {
    let rig = Rig::new(PassPlan::Exactly(3));
    let first = rig.memory.addrs()[0];
    let verdict = Verdict::ImageDamaged { tiles: 2, first };
    rig.blit.on(BlitCall::Verify, BlitStep::Verdict(verdict));
    let launch = rig.launch();
    let got = rig.dispatch(&launch);
    let what = assert_ended(&rig, got, Outcome::Failed, Reason::RestoreFailed);
    assert!(
        what.contains("2 tiles") && what.contains("may deviate"),
        "{what}"
    );
    assert_eq!((launch.left(), launch.signal()), (Some(Leave::Deviated), 0));
    assert_eq!(rig.log.count(|e| matches!(e, Event::Restore(_))), 2);
}

/// Without a final check nobody knows what the passes started from, so nothing is claimed.
#[test]
fn a_final_check_that_fails_releases_nothing() {
    let rig = Rig::new(PassPlan::Exactly(3));
    rig.blit.on(BlitCall::Verify, BlitStep::Fail);
    let launch = rig.launch();
    let got = rig.dispatch(&launch);
    let what = assert_ended(&rig, got, Outcome::Failed, Reason::RestoreFailed);
    assert!(what.contains("may deviate"), "{what}");
    assert_eq!((launch.left(), launch.signal()), (Some(Leave::Deviated), 0));
    assert_works(&rig);
}

/// Damage that shows after a repair is as final as damage before it.
#[test]
fn a_damaged_image_is_not_put_back_after_a_repair_either() {
    let rig = unlisted_change(4);
    let first = rig.memory.addrs()[1];
    for verdict in [
        Verdict::UnlistedChange { tiles: 1, first },
        Verdict::ImageDamaged { tiles: 1, first },
    ] {
        rig.blit.on(BlitCall::Verify, BlitStep::Verdict(verdict));
    }
    let launch = rig.launch();
    let got = rig.dispatch(&launch);
    let what = assert_ended(&rig, got, Outcome::Failed, Reason::RestoreFailed);
    assert!(what.contains("may deviate"), "{what}");
    let log = rig.log.to_string();
    let end = "exit 3, verify, finish failed, leave Deviated";
    assert!(log.ends_with(end), "{log}");
    assert_eq!(launch.signal(), 0);
}

/// A window that ends before its final check leaves nothing behind that only the check would have
/// found: memory is put back in full, and the application runs once more.
#[test]
fn stopping_before_the_check_leaves_no_unlisted_change_behind() {
    let finalize = |rig: &Rig| {
        let engine = rig.engine.clone();
        Reaction::Run(Box::new(move || engine.finalize()))
    };
    for pass in 0..3 {
        let panics =
            [Callback::Enter, Callback::Exit, Callback::Another].map(|callback| callback(pass));
        for callback in panics {
            let rig = unlisted_change(4);
            rig.observer.set_plan(PassPlan::AtMost(4));
            rig.observer.on(callback, Reaction::Panic);
            let launch = rig.launch();
            let got = rig.dispatch(&launch);
            let report = rig.finished().report;
            assert_eq!(report.reason, Some(Reason::ToolPanicked));
            // A list takes effect from the second restore on.
            let suspect = pass == 2;
            assert_eq!(got == Outcome::Failed, suspect, "{callback:?}");
            assert_right(&rig, &launch);
        }
        let rig = unlisted_change(4);
        rig.observer.on(Callback::Exit(pass), finalize(&rig));
        let launch = rig.launch();
        rig.dispatch(&launch);
        assert_eq!(rig.finished().report.reason, Some(Reason::Finalizing));
        assert_right(&rig, &launch);

        let rig = unlisted_change(4);
        let step = Step::Fail(Reason::QueueError);
        let launch = rig.launch().on(Call::Start(pass), step);
        rig.dispatch(&launch);
        assert_eq!(rig.finished().report.reason, Some(Reason::QueueError));
        assert_right(&rig, &launch);
    }
}

/// Over work that a callback launched nothing is put back, so the doubt is reported instead.
#[test]
fn nested_work_leaves_a_doubt_that_only_the_check_could_clear() {
    for (pass, how) in [(1, Leave::Complete), (2, Leave::Deviated)] {
        let rig = unlisted_change(4);
        let beside = Arc::new(AppMemory::new(&rig.runtime, 0x55));
        let nested = rig.launch_beside(&FakeQueue::new(QueueId(12)), &beside);
        let (engine, inner) = (rig.engine.clone(), nested.clone());
        let launch_it = move || {
            engine.dispatch(&Rig::describe(&inner), inner.target());
        };
        let reaction = Reaction::Run(Box::new(launch_it));
        rig.observer.on(Callback::Exit(pass), reaction);
        let launch = rig.launch();
        rig.dispatch(&launch);
        let report = rig.observer.take_finished().pop().unwrap().report;
        assert_eq!(report.reason, Some(Reason::Reentrant));
        assert_eq!((launch.left(), launch.signal()), (Some(how), 0));
        let deviates = report.message.unwrap().contains("may deviate");
        assert_eq!(deviates, how == Leave::Deviated);
        assert_eq!(report.outcome == Outcome::Failed, deviates);
        assert_eq!(beside.bytes(), beside.after(1));
    }
}

/// A panic of the blit engine, too, leaves the target and the agent; after a restore that broke off
/// so the target knows that memory may deviate.
#[test]
fn a_panic_of_the_blit_engine_leaves_the_target() {
    for (call, how) in [
        (BlitCall::Capture, Leave::RunOnce),
        (BlitCall::Restore, Leave::Deviated),
        (BlitCall::Verify, Leave::Complete),
    ] {
        let rig = Rig::new(PassPlan::Exactly(2));
        rig.blit.on(call, BlitStep::Panic);
        let launch = rig.launch();
        let outcome = match how {
            Leave::Deviated => Outcome::Failed,
            _ => Outcome::Declined,
        };
        let got = rig.dispatch(&launch);
        let what = assert_ended(&rig, got, outcome, Reason::QueueError);
        assert_eq!(what.contains("may deviate"), how == Leave::Deviated);
        assert_eq!((launch.left(), launch.signal()), (Some(how), 0), "{call:?}");
        assert_eq!(launch.violations(), [""; 0], "{call:?}");
        assert_given_up(&rig);
    }
}

/// An agent that others do not leave is not waited for longer than one window's limits take
/// together.
#[test]
fn a_busy_agent_is_declined() {
    let ms = Duration::from_millis;
    let rig = Rig::with(PassPlan::Exactly(2), |builder| {
        let mut limits = Limits::default();
        (limits.drain, limits.reach, limits.capture) = (ms(1), ms(1), ms(1));
        limits.verify = ms(1);
        (limits.first_pass, limits.cancel, limits.restore) = (ms(1), ms(1), ms(1));
        builder.limits(limits)
    });
    let (sender, entered) = mpsc::channel();
    let (leave, stay) = mpsc::channel::<()>();
    let tracker = rig.runtime.tracker();
    thread::scope(|scope| {
        scope.spawn(move || {
            let _inside = tracker.enter_dispatch(Rig::AGENT);
            sender.send(()).unwrap();
            stay.recv().unwrap_err();
        });
        entered.recv().unwrap();
        let launch = rig.launch();
        let got = rig.dispatch(&launch);
        let what = assert_ended(&rig, got, Outcome::Declined, Reason::AgentBusy);
        assert!(what.contains("agent 7"), "{what}");
        assert_eq!(launch.left(), Some(Leave::Forward));
        assert_right(&rig, &launch);
        drop(leave);
    });
}

/// Memory that the application frees while copies that ran out of their limit may still touch it is
/// not handed out again before they have ended, whether they belong to a capture or to a restore.
#[test]
fn copies_that_outlive_their_window_touch_nothing_that_came_after() {
    for (call, outcome) in [
        (BlitCall::Capture, Outcome::Declined),
        (BlitCall::Restore, Outcome::Failed),
    ] {
        let rig = Rig::new(PassPlan::Exactly(2));
        rig.blit.on(call, BlitStep::TimeOut);
        assert_eq!(rig.dispatch(&rig.launch()), outcome);
        rig.memory.free(2);
        let device = rig.runtime.device().clone();
        let buffer = rig.runtime.alloc(4100).unwrap();
        device.write_bytes(buffer.addr(), &[0xee; 4100]).unwrap();
        let held = device.used_bytes(Tier::Device);
        rig.blit.finish_copies();
        assert!(buffer.read::<u8>().unwrap() == [0xee; 4100], "{call:?}");
        rig.engine.settle();
        assert!(
            device.used_bytes(Tier::Device) < held,
            "{call:?}: freed at last"
        );
    }
}
