//! A window in which nothing goes wrong: what is called, in which order, and how often.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use kr_device::host::HostDevice;
use kr_policy::Fixed;
use kr_replay::{BuildError, Engine, Limits, PassPlan};
use kr_testkit::replay::{
    BlitCall, BlitStep, Call, Callback, Event, Measured, Reaction, Rig, ScriptedObserver, Step,
};
use kr_tracker::Tracker;
use kr_types::{DispatchId, Outcome, PassIndex, Reason, RestoreMode, Verified};

/// After which passes the profiler was asked for another one.
fn asked(rig: &Rig) -> Vec<u32> {
    let asked = |event| match event {
        Event::Another(_, pass) => Some(pass.0),
        _ => None,
    };
    rig.log.events().into_iter().filter_map(asked).collect()
}

fn with_limits(plan: PassPlan, change: impl FnOnce(&mut Limits)) -> Rig {
    Rig::with(plan, |builder| {
        let mut limits = Limits::default();
        change(&mut limits);
        builder.limits(limits)
    })
}

/// Every call of a window, in order.
#[test]
fn a_window_from_start_to_end() {
    let rig = Rig::new(PassPlan::AtMost(3));
    let launch = rig.launch();
    assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
    assert_eq!(
        rig.log.to_string(),
        "wants, configure, drain, hold, reach, capture, \
         enter 0, start 0, wait 0, ran, exit 0, another 0, restore full, \
         enter 1, start 1, wait 1, ran, exit 1, another 1, restore full, \
         enter 2, start 2, wait 2, ran, exit 2, \
         verify, finish replayed, leave Complete"
    );
    rig.assert_ran_once(&launch);
}

/// Each pass starts from the bytes that the dispatch found.
#[test]
fn every_pass_sees_the_same_input() {
    let rig = Rig::new(PassPlan::Exactly(4));
    rig.dispatch(&rig.launch());
    let records = rig.finished().records;
    assert_eq!(records.len(), 4);
    for (i, record) in (0..).zip(&records) {
        assert_eq!(record.pass, PassIndex(i));
        let (execution, input) = (i, rig.memory.initial_digest());
        assert_eq!(record.record, Measured { execution, input });
    }
}

/// Without restores later passes start from what earlier ones left: the negative control.
#[test]
fn without_restore_passes_see_each_others_output() {
    let rig = Rig::with(PassPlan::Exactly(3), |builder| builder.without_restore());
    let launch = rig.launch();
    assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
    let inputs: Vec<_> = rig.finished().records;
    assert_ne!(inputs[0].record.input, inputs[1].record.input);
    assert_eq!(rig.memory.bytes(), rig.memory.after(3));
}

/// Asking for no pass at all is a mistake, which costs the dispatch its replay and nothing else.
#[test]
fn no_passes_are_a_bad_plan() {
    for plan in [PassPlan::Exactly(0), PassPlan::AtMost(0)] {
        let rig = Rig::new(plan);
        let launch = rig.launch();
        assert_eq!(rig.dispatch(&launch), Outcome::Declined);
        assert_eq!(rig.finished().report.reason, Some(Reason::BadPlan));
        assert_eq!(
            rig.log.to_string(),
            "wants, configure, finish declined, leave Forward, ran"
        );
        rig.assert_ran_once(&launch);
    }
}

/// One pass is no replay: the dispatch goes its ordinary way, without callbacks for a pass.
#[test]
fn one_pass_opts_out() {
    for plan in [PassPlan::OPT_OUT, PassPlan::Exactly(1), PassPlan::AtMost(1)] {
        let rig = Rig::new(plan);
        let launch = rig.launch();
        assert_eq!(rig.dispatch(&launch), Outcome::OptedOut);
        let finished = rig.finished();
        assert_eq!(finished.report.reason, None);
        assert!(finished.records.is_empty());
        assert_eq!(
            rig.log.to_string(),
            "wants, configure, finish opted-out, leave Forward, ran"
        );
        rig.assert_ran_once(&launch);
    }
}

/// A fixed number of passes asks for no decision.
#[test]
fn exactly_is_never_asked() {
    for n in 2..6 {
        let rig = Rig::new(PassPlan::Exactly(n));
        let launch = rig.launch();
        assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
        assert_eq!(asked(&rig), []);
        assert_eq!(launch.executions(), n);
        assert_eq!(rig.finished().records.len() as u32, n);
        rig.assert_ran_once(&launch);
    }
}

/// A bounded loop is asked after each pass but the last, and the answer never extends it.
#[test]
fn at_most_is_asked_after_all_passes_but_the_last() {
    for n in 2..6 {
        let rig = Rig::new(PassPlan::AtMost(n));
        let launch = rig.launch();
        assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
        assert_eq!(asked(&rig), (0..n - 1).collect::<Vec<_>>());
        assert_eq!(launch.executions(), n);
        rig.assert_ran_once(&launch);
    }
}

/// An open-ended loop is asked after every pass.
#[test]
fn open_ended_is_asked_after_every_pass() {
    let rig = Rig::new(PassPlan::OpenEnded);
    rig.observer.on(Callback::Another(6), Reaction::Stop);
    let launch = rig.launch();
    assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
    assert_eq!(asked(&rig), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(launch.executions(), 7);
    assert!(!rig.finished().report.capped);
    rig.assert_ran_once(&launch);
}

/// Whatever the pass after which the profiler stops, the records are those of the passes that ran,
/// and memory is the output of the last one.
#[test]
fn a_loop_may_end_after_any_pass() {
    for plan in [PassPlan::AtMost(5), PassPlan::OpenEnded] {
        for stop in 0..4 {
            let rig = Rig::new(plan);
            rig.observer.on(Callback::Another(stop), Reaction::Stop);
            let launch = rig.launch();
            assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
            assert_eq!(launch.executions(), stop + 1);
            assert_eq!(rig.finished().records.len() as u32, stop + 1);
            rig.assert_ran_once(&launch);
        }
    }
}

/// A loop that ends after pass 0 has put nothing back, so there is nothing to check: its one record
/// is good even where a check would fail.
#[test]
fn a_loop_that_ends_after_pass_0_puts_nothing_back_and_checks_nothing() {
    for plan in [PassPlan::AtMost(5), PassPlan::OpenEnded] {
        let rig = Rig::new(plan);
        rig.observer.on(Callback::Another(0), Reaction::Stop);
        rig.blit.on(BlitCall::Verify, BlitStep::Fail);
        let launch = rig.launch();
        assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
        assert_eq!(
            rig.log.to_string(),
            "wants, configure, drain, hold, reach, capture, enter 0, start 0, wait 0, ran, exit 0, \
             another 0, finish replayed, leave Complete"
        );
        let finished = rig.finished();
        assert_eq!((finished.report.passes, finished.records.len()), (1, 1));
        rig.assert_ran_once(&launch);
    }
}

/// An open-ended loop that goes on for too many passes is ended, with its records.
#[test]
fn an_open_ended_loop_is_capped_by_passes() {
    let rig = with_limits(PassPlan::OpenEnded, |limits| limits.open_ended_passes = 5);
    let launch = rig.launch();
    assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
    let finished = rig.finished();
    assert!(finished.report.capped);
    assert_eq!(finished.records.len(), 5);
    assert_eq!(launch.executions(), 5);
    rig.assert_ran_once(&launch);
}

/// An open-ended loop that goes on for too long is ended, with its records.
#[test]
fn an_open_ended_loop_is_capped_by_time() {
    let rig = with_limits(PassPlan::OpenEnded, |limits| {
        limits.open_ended_time = Duration::from_millis(30);
    });
    let take = || Step::Take(Duration::from_millis(10));
    let launch = (0..9).fold(rig.launch(), |launch, k| launch.on(Call::Wait(k), take()));
    assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
    assert!(rig.finished().report.capped);
    assert_eq!(launch.executions(), 3, "at 30 ms no further pass starts");
}

/// The caps are for loops without an end; a number that the profiler named is honoured.
#[test]
fn a_bounded_loop_is_not_capped() {
    for plan in [PassPlan::Exactly(9), PassPlan::AtMost(9)] {
        let rig = with_limits(plan, |limits| {
            limits.open_ended_passes = 2;
            limits.open_ended_time = Duration::ZERO;
        });
        assert_eq!(rig.dispatch(&rig.launch()), Outcome::Replayed);
        let finished = rig.finished();
        assert!(!finished.report.capped);
        assert_eq!(finished.records.len(), 9);
    }
}

/// Each pass starts with a copy of what `configure` left; what a pass changes is seen by its own
/// later callbacks and by nobody else.
#[test]
fn user_data_flow_from_configure_into_each_pass() {
    let rig = Rig::new(PassPlan::AtMost(2));
    rig.dispatch(&rig.launch());
    let seen = rig.observer.seen();
    let seen: Vec<_> = seen.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(
        seen,
        [
            ("configure", ""),
            ("enter 0", "configure"),
            ("exit 0", "configure, enter 0"),
            ("another 0", "configure, enter 0, exit 0"),
            ("enter 1", "configure"),
            ("exit 1", "configure, enter 1"),
            ("finish replayed", "configure"),
        ]
    );
}

/// A dispatch that the profiler does not want gets no id and no further callback.
#[test]
fn an_unwanted_dispatch_is_untargeted() {
    let rig = Rig::new(PassPlan::Exactly(2));
    rig.observer.set_wants(false);
    let launch = rig.launch();
    assert_eq!(rig.dispatch(&launch), Outcome::Untargeted);
    assert_eq!(rig.log.to_string(), "wants, leave Forward, ran");
    rig.assert_ran_once(&launch);
    assert_eq!(rig.engine.stats().outcome(Outcome::Untargeted), 1);

    rig.observer.set_wants(true);
    rig.dispatch(&rig.launch());
    assert_eq!(rig.finished().report.id, DispatchId(1), "it took no id");
}

/// Ids are given out once each, to replayed, declined and opted-out dispatches alike.
#[test]
fn every_configured_dispatch_has_an_id_of_its_own() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let plans = [
        PassPlan::Exactly(2),
        PassPlan::Exactly(0),
        PassPlan::Exactly(1),
        PassPlan::Exactly(2),
    ];
    let ids = plans.map(|plan| {
        rig.observer.set_plan(plan);
        rig.dispatch(&rig.launch());
        rig.finished().report.id.0
    });
    assert_eq!(ids, [1, 2, 3, 4]);
}

/// Two engines on one tracker would restore over each other, so the second one is refused until
/// the first is gone.
#[test]
fn a_tracker_has_one_engine_at_a_time() {
    let tracker = Arc::new(Tracker::new(Default::default()));
    let build = || {
        let observer = ScriptedObserver::<()>::new(PassPlan::Exactly(2), &Default::default());
        Engine::builder(tracker.clone(), observer).build()
    };
    let first = build().unwrap();
    assert!(matches!(build(), Err(BuildError::Claimed(_))));
    drop(first);
    assert!(build().is_ok());
}

/// Of many threads that build an engine at the same moment, one gets it.
#[test]
fn one_of_many_threads_gets_the_engine() {
    const THREADS: usize = 4;
    for _ in 0..50 {
        let tracker = Arc::new(Tracker::new(Default::default()));
        let start = Barrier::new(THREADS);
        let build = || {
            let observer = ScriptedObserver::<()>::new(PassPlan::Exactly(2), &Default::default());
            let builder = Engine::builder(tracker.clone(), observer);
            start.wait();
            builder.build()
        };
        let engines: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(build)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(engines.iter().filter(|engine| engine.is_ok()).count(), 1);
    }
}

/// An agent that was given twice would have two owners of its memory.
#[test]
fn an_agent_is_given_once_and_nothing_is_claimed_otherwise() {
    let tracker = Arc::new(Tracker::new(Default::default()));
    let builder = || {
        let observer = ScriptedObserver::<()>::new(PassPlan::Exactly(2), &Default::default());
        let builder = Engine::builder(tracker.clone(), observer);
        // SAFETY: the tracker lists no memory, and nothing is dispatched.
        unsafe { builder.device(HostDevice::new(Rig::AGENT)) }
    };
    // SAFETY: as above.
    let twice = unsafe { builder().device(HostDevice::new(Rig::AGENT)) };
    assert!(matches!(
        twice.build(),
        Err(BuildError::AgentTwice(Rig::AGENT))
    ));
    assert!(builder().build().is_ok());
}

/// A later pass may take ten times as long as pass 0 did, and two seconds at least.
#[test]
fn the_limit_of_later_passes_follows_pass_0() {
    let (ms, s) = (Duration::from_millis, Duration::from_secs);
    for (first, limit) in [
        (ms(1), s(2)),
        (ms(200), s(2)),
        (ms(300), s(3)),
        (s(1), s(10)),
    ] {
        for (later, outcome) in [
            (limit, Outcome::Replayed),
            (limit + Duration::from_nanos(1), Outcome::Failed),
        ] {
            let rig = Rig::new(PassPlan::Exactly(3));
            let launch = rig
                .launch()
                .on(Call::Wait(0), Step::Take(first))
                .on(Call::Wait(2), Step::Take(later));
            assert_eq!(rig.dispatch(&launch), outcome, "{first:?}, then {later:?}");
            rig.assert_ran_once(&launch);
        }
    }
}

/// The report says where the time and the bytes went, by the engine's clock.
#[test]
fn the_report_accounts_for_time_and_bytes() {
    let ms = Duration::from_millis;
    let rig = Rig::new(PassPlan::Exactly(2));
    let wait = |by| {
        let clock = rig.clock.clone();
        Reaction::Run(Box::new(move || clock.advance(by)))
    };
    rig.observer
        .on(Callback::Configure, wait(ms(1)))
        .on(Callback::Enter(1), wait(ms(2)))
        .on(Callback::Exit(1), wait(ms(4)));
    let launch = rig
        .launch()
        .on(Call::Drain, Step::Take(ms(8)))
        .on(Call::Reach, Step::Take(ms(16)))
        .on(Call::Wait(0), Step::Take(ms(32)))
        .on(Call::Wait(1), Step::Take(ms(64)));
    assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
    let stats = rig.finished().report.stats;
    assert_eq!(stats.configure, ms(1));
    assert_eq!(stats.drain, ms(8));
    assert_eq!(stats.reach, ms(16));
    assert_eq!(stats.total, ms(127));
    assert_eq!(stats.regions, rig.memory.addrs().len() as u64);
    assert_eq!(stats.bytes, rig.memory.len_bytes());
    let passes: Vec<_> = stats
        .passes
        .iter()
        .map(|p| (p.pass, p.execute, p.callbacks, p.restored_bytes))
        .collect();
    assert_eq!(
        passes,
        [
            (0, ms(32), ms(0), 0),
            (1, ms(64), ms(6), rig.memory.len_bytes())
        ]
    );
}

/// A record says whether its own start was checked, or only the end of the window.
#[test]
fn records_say_how_they_were_verified() {
    use Verified::{EndOnly, EveryPass};
    let modes = [
        (RestoreMode::Full, [EveryPass; 4]),
        (RestoreMode::HashEveryPass, [EveryPass; 4]),
        (
            RestoreMode::HashOnce,
            [EveryPass, EveryPass, EndOnly, EndOnly],
        ),
    ];
    for (mode, verified) in modes {
        let rig = Rig::with(PassPlan::Exactly(4), |builder| builder.policy(Fixed(mode)));
        let launch = rig.launch();
        assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
        let finished = rig.finished();
        assert_eq!(finished.report.mode, Some(mode));
        assert_eq!(rig.log.count(|e| *e == Event::Restore(mode)), 3);
        let found: Vec<_> = finished.records.iter().map(|r| r.verified).collect();
        assert_eq!(found, verified, "{mode}");
        rig.assert_ran_once(&launch);
    }
}
