//! What is told of a dispatch: the report that the profiler gets.

use std::time::Duration;

use kr_policy::Fixed;
use kr_replay::{PassPlan, PassStats, WindowStats};
use kr_testkit::replay::{Action, BlitCall, BlitStep, Call, Callback, Launch, Reaction, Rig, Step};
use kr_types::{Outcome, RestoreMode};

/// The n-th of times each of which shows in a sum with others: powers of two.
fn us(n: u32) -> Duration {
    Duration::from_micros(1 << n)
}

/// Moves the clock of `rig`.
fn advance(rig: &Rig, by: Duration) -> impl FnOnce() + Send + 'static {
    let clock = rig.clock.clone();
    move || clock.advance(by)
}

/// All times of a window add up to its total.
#[track_caller]
fn assert_adds_up(stats: &WindowStats) {
    let outside_passes = [
        stats.configure,
        stats.agent_wait,
        stats.drain,
        stats.reach,
        stats.list,
        stats.capture,
        stats.verify,
        stats.put_back,
    ];
    let passes = stats.passes.iter();
    let in_passes = passes.flat_map(|pass| [pass.restore, pass.execute, pass.callbacks]);
    let sum: Duration = outside_passes.into_iter().chain(in_passes).sum();
    assert_eq!(sum, stats.total, "{stats:?}");
}

/// Scripts that make every phase of a window with two passes take a time of its own: the n-th power
/// for the n-th of them, in the order of their calls.
fn every_phase_takes_time(rig: &Rig) -> Launch {
    let wait = |n| Reaction::Run(Box::new(advance(rig, us(n))));
    let blit = |n| BlitStep::Run(Box::new(advance(rig, us(n))));
    // The clock is looked at when `configure` has returned, and before and after the wait for the
    // agent.
    let (clock, inside) = (rig.clock.clone(), advance(rig, us(1)));
    let configure = move || {
        clock.advance(us(0));
        clock.at_look(3, inside);
    };
    // And when the queue was reached, and before and after the list is made.
    let (clock, inside) = (rig.clock.clone(), advance(rig, us(5)));
    let reach: Action = Box::new(move || {
        clock.advance(us(4));
        clock.at_look(3, inside);
    });
    rig.observer
        .on(Callback::Configure, Reaction::Run(Box::new(configure)))
        .on(Callback::Enter(0), wait(7))
        .on(Callback::Exit(0), wait(10))
        .on(Callback::Another(0), wait(11))
        .on(Callback::Enter(1), wait(13))
        .on(Callback::Exit(1), wait(15));
    rig.blit
        .on(BlitCall::Capture, blit(6))
        .on(BlitCall::Restore, blit(12))
        .on(BlitCall::Verify, blit(16));
    rig.launch()
        .on(Call::Drain, Step::Take(us(2)))
        .on(Call::Hold, Step::Take(us(3)))
        .on(Call::Reach, Step::Run(reach))
        .on(Call::Start(0), Step::Take(us(8)))
        .on(Call::Wait(0), Step::Take(us(9)))
        .on(Call::Wait(1), Step::Take(us(14)))
}

/// Every phase of a window is measured, none of them twice, and they add up.
#[test]
fn every_phase_is_accounted_for() {
    let rig = Rig::new(PassPlan::AtMost(2));
    let launch = every_phase_takes_time(&rig);
    assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
    let report = rig.finished().report;
    let stats = &report.stats;
    assert_eq!(stats.configure, us(0));
    assert_eq!(stats.agent_wait, us(1));
    assert_eq!(stats.drain, us(2));
    assert_eq!(stats.reach, us(3) + us(4));
    assert_eq!(stats.list, us(5));
    assert_eq!(stats.capture, us(6));
    assert_eq!(stats.verify, us(16));
    assert_eq!(stats.put_back, Duration::ZERO);
    let bytes = rig.memory.len_bytes();
    let times = |pass: &PassStats| (pass.restore, pass.execute, pass.callbacks);
    let passes: Vec<_> = stats.passes.iter().map(times).collect();
    let first = (Duration::ZERO, us(8) + us(9), us(7) + us(10) + us(11));
    assert_eq!(passes, [first, (us(12), us(14), us(13) + us(15))]);
    let restored = stats.passes.iter().map(|pass| pass.restored_bytes);
    assert_eq!(restored.collect::<Vec<_>>(), [0, bytes]);
    assert_eq!(stats.total, us(17) - us(0), "all of the powers");
    assert_adds_up(stats);
    let regions = rig.memory.addrs().len() as u64;
    assert_eq!((stats.regions, stats.bytes), (regions, bytes));
    rig.assert_ran_once(&launch);
}

/// So is what it takes to stop a pass and to put memory back after it.
#[test]
fn a_pass_that_goes_wrong_is_accounted_for() {
    let rig = Rig::new(PassPlan::Exactly(2));
    for n in [0, 1] {
        let step = BlitStep::Run(Box::new(advance(&rig, us(n))));
        rig.blit.on(BlitCall::Restore, step);
    }
    let launch = rig
        .launch()
        .on(Call::Wait(1), Step::TimeOut)
        .on(Call::Cancel, Step::Take(us(2)));
    assert_eq!(rig.dispatch(&launch), Outcome::Failed);
    let stats = rig.finished().report.stats;
    assert_eq!(stats.passes[1].restore, us(0));
    assert_eq!(stats.put_back, us(1) + us(2));
    assert_adds_up(&stats);
}

/// And so is a callback that panics.
#[test]
fn a_callback_that_panics_is_accounted_for() {
    for callback in [Callback::Enter(1), Callback::Exit(1), Callback::Another(1)] {
        let rig = Rig::new(PassPlan::AtMost(3));
        let advance = advance(&rig, us(3));
        let panics = move || {
            advance();
            panic!("as scripted");
        };
        rig.observer.on(callback, Reaction::Run(Box::new(panics)));
        assert_eq!(rig.dispatch(&rig.launch()), Outcome::Declined);
        let stats = rig.finished().report.stats;
        assert_eq!(stats.passes[1].callbacks, us(3), "{callback:?}");
        assert_adds_up(&stats);
    }
}

/// A report says what was dispatched, what was asked for, and how many passes ran to their end: none
/// outside a window, those before the one that went wrong, repaired ones twice.
#[test]
fn a_report_says_what_was_dispatched_asked_for_and_run() {
    use PassPlan::{AtMost, Exactly, OpenEnded};
    let rig = || {
        let mode = Fixed(RestoreMode::HashOnce);
        Rig::with(Exactly(4), |builder| builder.policy(mode))
    };
    let check = |rig: &Rig, launch: &Launch, plan: PassPlan, outcome, passes: &[u32]| {
        rig.observer.set_plan(plan);
        assert_eq!(rig.dispatch(launch), outcome);
        let report = rig.finished().report;
        assert_eq!(report.dispatch, Rig::describe(launch));
        assert_eq!((report.plan, report.outcome), (plan, outcome));
        assert_eq!(report.passes as usize, passes.len());
        let listed: Vec<_> = report.stats.passes.iter().map(|p| p.pass).collect();
        assert!(listed.starts_with(passes), "{listed:?}");
    };
    for plan in [Exactly(3), AtMost(3)] {
        let rig = rig();
        check(&rig, &rig.launch(), plan, Outcome::Replayed, &[0, 1, 2]);
    }
    let early = rig();
    early.observer.on(Callback::Another(1), Reaction::Stop);
    let launch = early.launch();
    check(&early, &launch, OpenEnded, Outcome::Replayed, &[0, 1]);

    let repaired = rig();
    repaired.blit.unlist(repaired.memory.addrs()[1]);
    let (launch, passes) = (repaired.launch(), [0, 1, 2, 3, 2, 3]);
    check(&repaired, &launch, Exactly(4), Outcome::Repaired, &passes);

    let failed = rig();
    let launch = failed.launch().on(Call::Wait(1), Step::TimeOut);
    check(&failed, &launch, Exactly(4), Outcome::Failed, &[0]);

    let opted_out = rig();
    let launch = opted_out.launch();
    check(&opted_out, &launch, AtMost(1), Outcome::OptedOut, &[]);
    let declined = rig();
    let launch = declined.launch();
    check(&declined, &launch, Exactly(0), Outcome::Declined, &[]);
}
