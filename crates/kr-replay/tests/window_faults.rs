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
use kr_tracker::{RecordError, TrackerConfig};
use kr_types::Outcome::{Declined, Failed};
use kr_types::{
    AgentId, DeviceAddr, KernelId, MemoryClass, Outcome, QueueId, Reason, RestoreMode, Tier,
    Verified,
};

/// The calls of a window up to the first pass, without what comes after it.
const ENTERED: &str = "wants, configure, drain, hold, reach";

/// Work of other queues that does not end costs the dispatch its replay and nothing else; its queue
/// is left alone until it has been idle.
#[test]
fn a_stuck_drain_is_free_of_charge() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let refusal = (Declined, Reason::DrainTimeout, Leave::Forward);
    let launch = rig.launch().on(Call::Drain, Step::TimeOut);
    let what = rig.assert_refused(&launch, refusal, "wants, configure, drain");
    assert!(what.contains("5s"), "it names the limit: {what}");

    rig.queue.set_idle(false);
    // Nothing is waited for.
    rig.assert_refused(&rig.launch(), refusal, "wants, configure");

    rig.queue.set_idle(true);
    rig.assert_works();
    rig.queue.set_idle(false);
    rig.assert_works();
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
        (Call::Drain, Leave::Forward, "configure, drain"),
        (Call::Hold, Leave::Forward, "configure, drain, hold"),
        (Call::Reach, Leave::RunOnce, ENTERED),
        (Call::Start(0), Leave::RunOnce, "enter 0, start 0"),
    ];
    for (call, how, log) in calls {
        let rig = Rig::new(PassPlan::Exactly(2));
        let launch = rig.launch().on(call, Step::Fail(Reason::Cooperative));
        rig.assert_refused(&launch, (Declined, Reason::Cooperative, how), log);
        assert_eq!(launch.executions(), 1);
        rig.assert_works();
    }
}

/// If earlier work of the queue does not end, the dispatch runs once after it, and the queue is
/// left alone until it has been idle.
#[test]
fn a_queue_that_is_not_reached_runs_once_and_is_left_alone() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let refusal = |how| (Declined, Reason::ReachTimeout, how);
    let launch = rig.launch().on(Call::Reach, Step::TimeOut);
    rig.assert_refused(&launch, refusal(Leave::RunOnce), ENTERED);

    rig.queue.set_idle(false);
    let again = rig.launch();
    rig.assert_refused(&again, refusal(Leave::Forward), "wants, configure");
    rig.queue.set_idle(true);
    rig.assert_works();
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
    for (pinned_bytes, outcome) in [(1 << 20, Outcome::Replayed), (4096, Declined)] {
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
        if got == Declined {
            assert_eq!(report.reason, Some(Reason::PlanFailed));
            let what = report.message.unwrap();
            for tier in [Tier::Device, Tier::PinnedHost] {
                assert!(what.contains(tier.as_str()), "names {tier}: {what}");
            }
        }
        rig.assert_ran_once(&launch);
    }
}

/// A capture that fails is declined; no restore is ever made from it.
#[test]
fn a_capture_that_fails_is_declined() {
    let rig = Rig::new(PassPlan::Exactly(2));
    rig.blit.on(BlitCall::Capture, BlitStep::Fail);
    let refusal = (Declined, Reason::CaptureFailed, Leave::RunOnce);
    rig.assert_refused(&rig.launch(), refusal, &format!("{ENTERED}, capture"));
    rig.assert_works();
}

/// What a window takes at the most by the message of a dispatch that is over its budget.
fn bytes_needed() -> u64 {
    let rig = Rig::with(PassPlan::Exactly(2), |builder| builder.budget_bytes(0));
    let refusal = (Declined, Reason::Budget, Leave::Forward);
    let message = rig.assert_refused(&rig.launch(), refusal, "wants, configure");
    let number = message.split(" takes ").nth(1);
    let number = number.and_then(|rest| rest.split(' ').next()?.parse().ok());
    number.expect("the message names the bytes")
}

/// What a window may take is what its message names: exactly as much is admitted, one byte less is
/// not.
#[test]
fn the_budget_is_exact() {
    let needed = bytes_needed();
    for (budget, outcome) in [(needed, Outcome::Replayed), (needed - 1, Declined)] {
        let plan = PassPlan::Exactly(2);
        let rig = Rig::with(plan, |builder| builder.budget_bytes(budget));
        let launch = rig.launch();
        assert_eq!(rig.dispatch(&launch), outcome);
        rig.assert_ran_once(&launch);
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
    let refusal = (Declined, Reason::Budget, Leave::RunOnce);
    rig.assert_refused(&launch, refusal, ENTERED);
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
    let report = rig.finished().report;
    assert_eq!(got, Declined);
    assert_eq!(report.reason, Some(Reason::UntrackedMemory));
    let what = report.message.unwrap();
    assert!(what.contains("agent 99"), "{what}");
    assert_eq!(launch.left(), Some(Leave::Forward));
    rig.assert_ran_once(&launch);
}

/// An agent that may have memory that nobody told of cannot be saved.
#[test]
fn untracked_memory_is_declined() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let base = DeviceAddr(u64::MAX - 3);
    let tracker = rig.runtime.tracker();
    let wraps = tracker.record(Rig::AGENT, base, 8, MemoryClass::Vram);
    assert!(matches!(wraps, Err(RecordError::Range(_))));
    let refusal = (Declined, Reason::UntrackedMemory, Leave::Forward);
    rig.assert_refused(&rig.launch(), refusal, "wants, configure");
}

/// So is one whose known memory was handed out again without a free that was seen. What the
/// application had there, it still has, and it can free it.
#[test]
fn memory_whose_free_was_missed_is_declined() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let (tracker, base) = (rig.runtime.tracker(), rig.memory.addrs()[2]);
    let overlaps = tracker.record(Rig::AGENT, base, 4, MemoryClass::Vram);
    assert!(matches!(overlaps, Err(RecordError::Overlaps { .. })));
    let refusal = (Declined, Reason::UntrackedMemory, Leave::Forward);
    for _ in 0..2 {
        rig.log.clear();
        rig.assert_refused(&rig.launch(), refusal, "wants, configure");
    }
    assert_eq!(rig.memory.runs(), Some(2));
    let device = rig.runtime.device();
    let used = device.used_bytes(Tier::Device);
    rig.memory.free(2);
    assert_eq!(device.used_bytes(Tier::Device), used - 4100);
}

/// Pass 0 that does not end becomes the application's own run, and its kernel is not tried again.
#[test]
fn pass_0_that_does_not_end_is_adopted() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let refusal = |how| (Declined, Reason::PassTimeout, how);
    let launch = rig.launch().on(Call::Wait(0), Step::TimeOut);
    let log = format!("{ENTERED}, capture, enter 0, start 0, wait 0");
    rig.assert_refused(&launch, refusal(Leave::Adopt), &log);
    assert_eq!(launch.executions(), 1);
    assert_eq!(rig.engine_bytes(), 0);

    assert!(rig.engine.refused_kernels().contains(&Rig::KERNEL));
    let again = refusal(Leave::Forward);
    let what = rig.assert_refused(&rig.launch(), again, "wants, configure");
    assert!(what.contains("step"), "it names the kernel: {what}");

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
        let refusal = (Failed, Reason::PassTimeout, Leave::RunOnce);
        let log = format!("wait {pass}, cancel, broke off, restore full");
        rig.assert_refused(&launch, refusal, &log);
        assert!(rig.engine.refused_kernels().contains(&Rig::KERNEL));
    }
}

/// A launch whose pass 1 does not end and cannot be stopped.
fn unstoppable(rig: &Rig) -> Launch {
    rig.launch()
        .on(Call::Wait(1), Step::TimeOut)
        .on(Call::Cancel, Step::TimeOut)
}

/// A later pass that cannot be stopped may write at any time: nothing is put back under it, and
/// nothing is replayed on its agent any more.
#[test]
fn a_later_pass_that_cannot_be_stopped_costs_the_agent() {
    let rig = Rig::new(PassPlan::Exactly(3));
    let refusal = (Failed, Reason::PassTimeout, Leave::Deviated);
    let log = "wait 1, cancel, broke off";
    rig.assert_refused(&unstoppable(&rig), refusal, log);

    let next = rig.launch();
    let mut other = Rig::describe(&next);
    other.kernel = KernelId(2);
    let got = rig.engine.dispatch(&other, next.target());
    let reason = rig.finished().report.reason;
    assert_eq!((got, reason), (Declined, Some(Reason::AgentQuarantined)));
    assert_eq!((next.left(), next.signal()), (Some(Leave::Forward), 0));
}

/// An error of pass 0 is the application's own error.
#[test]
fn an_error_of_pass_0_is_the_applications() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let step = Step::Fail(Reason::QueueError);
    let launch = rig.launch().on(Call::Wait(0), step);
    let refusal = (Declined, Reason::QueueError, Leave::Fault);
    rig.assert_refused(&launch, refusal, "start 0, wait 0, broke off");
    assert_eq!(launch.executions(), 1);
}

/// An error of a later pass is none of the application's: memory is put back, and it runs once more.
#[test]
fn an_error_of_a_later_pass_is_undone() {
    for pass in 1..3 {
        let rig = Rig::new(PassPlan::Exactly(3));
        let step = Step::Fail(Reason::QueueError);
        let launch = rig.launch().on(Call::Wait(pass), step);
        let refusal = (Failed, Reason::QueueError, Leave::RunOnce);
        let log = format!("wait {pass}, broke off, restore full");
        rig.assert_refused(&launch, refusal, &log);
        rig.assert_works();
    }
}

/// A later pass that does not start leaves memory as it was put back for it, so the application
/// runs once more.
#[test]
fn a_later_pass_that_does_not_start_is_made_up_for() {
    let rig = Rig::new(PassPlan::Exactly(3));
    let step = Step::Fail(Reason::QueueError);
    let launch = rig.launch().on(Call::Start(1), step);
    let refusal = (Declined, Reason::QueueError, Leave::RunOnce);
    rig.assert_refused(&launch, refusal, "restore full, enter 1, start 1");
}

/// A restore that fails is made up for on a second path; no pass follows it.
#[test]
fn a_restore_that_is_rescued_costs_the_records_only() {
    let rig = Rig::new(PassPlan::Exactly(3));
    rig.blit.on(BlitCall::Restore, BlitStep::Fail);
    let refusal = (Failed, Reason::RestoreFailed, Leave::RunOnce);
    rig.assert_refused(&rig.launch(), refusal, "exit 0, restore full, rescue");
    rig.assert_works();
}

/// If the second path fails too, memory is a mix, and that is said.
#[test]
fn a_restore_that_is_torn_is_reported() {
    let rig = Rig::new(PassPlan::Exactly(3));
    rig.blit
        .on(BlitCall::Restore, BlitStep::Fail)
        .on(BlitCall::Rescue, BlitStep::Fail);
    let refusal = (Failed, Reason::RestoreFailed, Leave::Deviated);
    rig.assert_refused(&rig.launch(), refusal, "restore full, rescue");
    rig.assert_works();
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
        let step = Step::Fail(Reason::QueueError);
        let launch = rig.launch().on(Call::Wait(1), step);
        let log = "wait 1, broke off, restore full, rescue";
        rig.assert_refused(&launch, (Failed, Reason::QueueError, how), log);
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
    rig.assert_ran_once(&launch);
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
    rig.assert_ran_once(&launch);
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
    let refusal = (Failed, Reason::UnlistedChange, Leave::RunOnce);
    rig.assert_refused(&rig.launch(), refusal, "verify, restore full");
}

/// A repair may go wrong in every way that a window can.
#[test]
fn a_repair_that_goes_wrong_leaves_the_application_right() {
    let steps = [
        (Step::TimeOut, Reason::PassTimeout, "cancel, broke off"),
        (
            Step::Fail(Reason::QueueError),
            Reason::QueueError,
            "wait 2, broke off",
        ),
    ];
    for (step, reason, log) in steps {
        let rig = unlisted_change(4);
        let launch = rig
            .launch()
            .on(Call::Wait(2), Step::Run(Box::new(|| {})))
            .on(Call::Wait(2), step);
        let log = format!("{log}, restore full");
        rig.assert_refused(&launch, (Failed, reason, Leave::RunOnce), &log);
    }
    let rig = unlisted_change(4);
    for _ in 0..3 {
        rig.blit
            .on(BlitCall::Restore, BlitStep::Run(Box::new(|| {})));
    }
    rig.blit.on(BlitCall::Restore, BlitStep::Fail);
    let refusal = (Failed, Reason::RestoreFailed, Leave::RunOnce);
    rig.assert_refused(&rig.launch(), refusal, "verify, restore full, rescue");
}

/// Who was waiting for the agent when it was given up does not replay there either: the pass that
/// could not be stopped would run beside its own.
#[test]
fn an_agent_that_is_given_up_turns_away_those_who_wait_for_it() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let (entered, inside) = mpsc::channel();
    let (admitted, waiting) = mpsc::channel();
    let tell = Step::Run(Box::new(move || entered.send(()).unwrap()));
    let wait = Step::Run(Box::new(move || waiting.recv().unwrap()));
    let first = unstoppable(&rig)
        .on(Call::Hold, tell)
        .on(Call::Wait(0), wait);
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
        // The first look at the clock after `configure` ends the time of that callback; the second
        // one comes when the dispatch has been admitted, and starts its wait for the agent.
        let clock = rig.clock.clone();
        let arrive = move || clock.at_look(2, move || admitted.send(()).unwrap());
        rig.observer
            .on(Callback::Configure, Reaction::Run(Box::new(arrive)));
        let got = rig.engine.dispatch(&other_kernel, second.target());
        assert_eq!(got, Declined);
        assert_eq!(window.join().unwrap(), Failed);
    });
    assert_eq!((second.left(), second.signal()), (Some(Leave::Forward), 0));
    assert_eq!(rig.engine.stats().reason(Reason::AgentQuarantined), 1);
}

/// If something wrote the saved bytes, the last pass may have started from them: nothing is put
/// back any more, and the application is told.
#[test]
fn a_damaged_image_is_reported() {
    let rig = Rig::new(PassPlan::Exactly(3));
    let first = rig.memory.addrs()[0];
    let verdict = Verdict::ImageDamaged { tiles: 2, first };
    rig.blit.on(BlitCall::Verify, BlitStep::Verdict(verdict));
    let refusal = (Failed, Reason::RestoreFailed, Leave::Deviated);
    let what = rig.assert_refused(&rig.launch(), refusal, "exit 2, verify");
    assert!(what.contains("2 tiles"), "{what}");
    assert_eq!(rig.log.count(|e| matches!(e, Event::Restore(_))), 2);
}

/// Without a final check nobody knows what the passes started from, so nothing is claimed.
#[test]
fn a_final_check_that_fails_releases_nothing() {
    let rig = Rig::new(PassPlan::Exactly(3));
    rig.blit.on(BlitCall::Verify, BlitStep::Fail);
    let refusal = (Failed, Reason::RestoreFailed, Leave::Deviated);
    rig.assert_refused(&rig.launch(), refusal, "exit 2, verify");
    rig.assert_works();
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
    let refusal = (Failed, Reason::RestoreFailed, Leave::Deviated);
    rig.assert_refused(&rig.launch(), refusal, "exit 3, verify");
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
            assert_eq!(got == Failed, suspect, "{callback:?}");
            rig.assert_ran_once(&launch);
        }
        let rig = unlisted_change(4);
        rig.observer.on(Callback::Exit(pass), finalize(&rig));
        let launch = rig.launch();
        rig.dispatch(&launch);
        assert_eq!(rig.finished().report.reason, Some(Reason::Finalizing));
        rig.assert_ran_once(&launch);

        let rig = unlisted_change(4);
        let step = Step::Fail(Reason::QueueError);
        let launch = rig.launch().on(Call::Start(pass), step);
        rig.dispatch(&launch);
        assert_eq!(rig.finished().report.reason, Some(Reason::QueueError));
        rig.assert_ran_once(&launch);
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
        assert_eq!(report.outcome == Failed, deviates);
        assert_eq!(beside.bytes(), beside.after(1));
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
        let refusal = (Declined, Reason::AgentBusy, Leave::Forward);
        let what = rig.assert_refused(&rig.launch(), refusal, "wants, configure");
        assert!(what.contains("agent 7"), "{what}");
        drop(leave);
    });
}
