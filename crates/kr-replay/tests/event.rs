//! The event that tells people of a dispatch.
//!
//! One test in a process of its own: which events are of interest is remembered for the whole
//! process, so dispatches of other tests would decide it, too.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kr_policy::Fixed;
use kr_replay::{PassPlan, PassStats, WindowReport};
use kr_testkit::replay::{
    BlitCall, BlitStep, Call, Callback, Launch, Reaction, Rig, Step, ToolMemory,
};
use kr_types::{MemoryClass, Outcome, Reason, RestoreMode};
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// A time that no other phase takes.
fn us(n: u32) -> Duration {
    Duration::from_micros(1 << n)
}

/// A dispatch in which phases take times of their own.
fn phases_take_time(rig: &Rig) -> Launch {
    let wait = |n| {
        let clock = rig.clock.clone();
        move || clock.advance(us(n))
    };
    let callback = |n| Reaction::Run(Box::new(wait(n)));
    let blit = |n| BlitStep::Run(Box::new(wait(n)));
    rig.observer
        .on(Callback::Configure, callback(0))
        .on(Callback::Enter(0), callback(1))
        .on(Callback::Exit(1), callback(2));
    rig.blit
        .on(BlitCall::Capture, blit(3))
        .on(BlitCall::Restore, blit(4))
        .on(BlitCall::Verify, blit(5));
    rig.launch()
        .on(Call::Drain, Step::Take(us(6)))
        .on(Call::Reach, Step::Take(us(7)))
        .on(Call::Wait(0), Step::Take(us(8)))
        .on(Call::Wait(1), Step::Take(us(9)))
}

/// The fields of an event, as text.
type Fields = BTreeMap<String, String>;

/// Keeps the events that tell of an outcome.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<(Level, Fields)>>>);

impl Subscriber for Events {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = AsText::default();
        event.record(&mut fields);
        if fields.0.contains_key("outcome") {
            self.0.lock().push((*event.metadata().level(), fields.0));
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct AsText(Fields);

impl Visit for AsText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

/// What an event must say of a dispatch, from its report.
fn fields(report: &WindowReport) -> Fields {
    let stats = &report.stats;
    let us = |time: Duration| time.as_micros().to_string();
    let sum = |part: fn(&PassStats) -> Duration| us(stats.passes.iter().map(part).sum());
    let always = [
        ("id", report.id.0.to_string()),
        ("agent", report.dispatch.agent.0.to_string()),
        ("queue", report.dispatch.queue.0.to_string()),
        ("kernel", report.dispatch.kernel_name.to_string()),
        ("plan", format!("{:?}", report.plan)),
        ("outcome", report.outcome.to_string()),
        ("passes", report.passes.to_string()),
        ("capped", report.capped.to_string()),
        ("regions", stats.regions.to_string()),
        ("bytes", stats.bytes.to_string()),
        ("parked_bytes", stats.parked_bytes.to_string()),
        ("configure_us", us(stats.configure)),
        ("agent_wait_us", us(stats.agent_wait)),
        ("drain_us", us(stats.drain)),
        ("reach_us", us(stats.reach)),
        ("list_us", us(stats.list)),
        ("capture_us", us(stats.capture)),
        ("restore_us", sum(|pass| pass.restore)),
        ("execute_us", sum(|pass| pass.execute)),
        ("callbacks_us", sum(|pass| pass.callbacks)),
        ("verify_us", us(stats.verify)),
        ("put_back_us", us(stats.put_back)),
        ("total_us", us(stats.total)),
    ];
    let sometimes = [
        ("reason", report.reason.map(|reason| reason.to_string())),
        ("why", report.message.clone()),
        ("mode", report.mode.map(|mode| mode.to_string())),
    ];
    let sometimes = sometimes.into_iter().flat_map(|(k, v)| Some((k, v?)));
    let message = ("message", format!("dispatch {}", report.outcome));
    let all = always.into_iter().chain(sometimes).chain([message]);
    all.map(|(k, v)| (k.to_owned(), v)).collect()
}

/// The event of a dispatch carries what its report says, at a level that fits the outcome.
#[test]
fn the_event_carries_what_the_report_says() {
    let events = Events::default();
    tracing::subscriber::set_global_default(events.clone()).expect("this test is alone");
    let check = |level: Level, rig: Rig, launch: Launch| {
        rig.dispatch(&launch);
        let report = rig.finished().report;
        let told = std::mem::take(&mut *events.0.lock());
        assert_eq!(told, [(level, fields(&report))]);
        report
    };
    let new = |plan| Rig::with(plan, |builder| builder.policy(Fixed(RestoreMode::HashOnce)));

    let rig = new(PassPlan::AtMost(2));
    let memory = ToolMemory::new(&rig, MemoryClass::Vram);
    let free = move || assert_eq!(memory.free(), "parked");
    let launch = phases_take_time(&rig).on(Call::Start(1), Step::Run(Box::new(free)));
    let report = check(Level::DEBUG, rig, launch);
    assert_eq!(report.outcome, Outcome::Replayed);

    let rig = new(PassPlan::Exactly(4));
    rig.blit.unlist(rig.memory.addrs()[1]);
    let launch = rig.launch();
    let report = check(Level::WARN, rig, launch);
    assert_eq!(report.outcome, Outcome::Repaired);

    let rig = new(PassPlan::Exactly(2));
    let launch = rig
        .launch()
        .on(Call::Wait(1), Step::TimeOut)
        .on(Call::Cancel, Step::Take(us(2)));
    let report = check(Level::ERROR, rig, launch);
    assert_eq!(report.reason, Some(Reason::PassTimeout));

    let rig = new(PassPlan::Exactly(0));
    let launch = rig.launch();
    let report = check(Level::WARN, rig, launch);
    assert_eq!(report.reason, Some(Reason::BadPlan));
}
