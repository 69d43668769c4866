//! Where saved bytes go: tiers, budgets, spilling, and what is kept between windows.

use std::sync::Arc;

use kr_device::host::{HostDevice, HostDeviceConfig};
use kr_replay::host::{HostBuffer, HostCounters, HostKernel, HostRuntime, KernelLaunch};
use kr_replay::{
    Dispatch, EngineBuilder, Observer, PassContext, PassPlan, PassRecord, WindowReport,
};
use kr_tracker::TrackerConfig;
use kr_types::{AgentId, DeviceAddr, DispatchId, Outcome, Reason, TILE_BYTES, Tier};
use parking_lot::Mutex;

/// Three passes of everything.
#[derive(Default)]
struct Thrice {
    reports: Mutex<Vec<WindowReport>>,
}

impl Observer for Thrice {
    type UserData = ();
    type Measured = HostCounters;
    type Record = ();

    fn configure(&self, _: DispatchId, _: &Dispatch, (): &mut ()) -> PassPlan {
        PassPlan::Exactly(3)
    }

    fn pass_exit(&self, _: &PassContext<'_>, (): &mut (), _: HostCounters) {}

    fn finish(&self, report: &WindowReport, (): (), _: Vec<PassRecord<()>>) {
        self.reports.lock().push(report.clone());
    }
}

const LEN: u64 = 3 * TILE_BYTES + 40;

/// A buffer that every launch increments, on a device with this much memory.
struct App {
    runtime: HostRuntime,
    observer: Arc<Thrice>,
    buffer: HostBuffer,
    runs: u8,
}

impl App {
    fn new(
        device_bytes: Option<u64>,
        pinned_bytes: Option<u64>,
        configure: impl FnOnce(EngineBuilder<Arc<Thrice>>) -> EngineBuilder<Arc<Thrice>>,
    ) -> Self {
        let config = HostDeviceConfig {
            device_bytes,
            pinned_bytes,
            ..HostDeviceConfig::default()
        };
        let device = HostDevice::with_config(AgentId(4), &config);
        let runtime = HostRuntime::with_device(device, TrackerConfig::default());
        let observer = Arc::<Thrice>::default();
        let engine = configure(runtime.engine(observer.clone())).build();
        runtime.attach(engine.expect("the tracker is new"));
        let buffer = runtime.alloc(LEN).expect("the buffer fits");
        buffer.write(&[0u8; LEN as usize]).expect("it is as long");
        Self {
            runtime,
            observer,
            buffer,
            runs: 0,
        }
    }

    /// Launches once, checks that the application sees one run, and says what became of it.
    #[track_caller]
    fn launch(&mut self) -> (Outcome, Option<Reason>) {
        let increment = HostKernel::new("increment", |ctx| {
            let addr = DeviceAddr(ctx.args::<u64>()?);
            let bytes = ctx.load::<u8>(addr, LEN as usize)?;
            ctx.store(addr, &bytes.iter().map(|b| b + 1).collect::<Vec<_>>())
        });
        let launch = KernelLaunch::new(&increment, &self.buffer.addr().0);
        let signal = self.runtime.queue().launch(&launch);
        signal.wait().expect("the kernel stays in its buffer");
        self.runs += 1;
        let bytes = self.buffer.read::<u8>().expect("the buffer is there");
        assert!(bytes.iter().all(|b| *b == self.runs), "one run each");
        let report = self.observer.reports.lock().pop();
        let report = report.expect("`finish` was called");
        (report.outcome, report.reason)
    }

    fn used(&self, tier: Tier) -> u64 {
        self.runtime.device().used_bytes(tier)
    }
}

/// Saved bytes stay on the device if there is room, and their memory is kept for the next window.
#[test]
fn memory_is_kept_for_the_next_window() {
    let mut app = App::new(None, None, |builder| builder);
    assert_eq!(app.used(Tier::Device), LEN);
    assert_eq!(app.launch(), (Outcome::Replayed, None));
    let kept = app.used(Tier::Device);
    assert!(kept >= 2 * LEN, "{kept}");
    for _ in 0..3 {
        assert_eq!(app.launch(), (Outcome::Replayed, None));
        assert_eq!(app.used(Tier::Device), kept);
    }
    assert_eq!(app.used(Tier::PinnedHost), 0);
}

/// A region that the device has no room for is cut on a tile's border, and the rest spills.
#[test]
fn a_region_is_cut_between_tiers() {
    for tiles in 1..=3 {
        let cap = tiles * TILE_BYTES + 39;
        let mut app = App::new(None, None, |b| b.tier_bytes(Tier::Device, cap));
        for _ in 0..2 {
            assert_eq!(app.launch(), (Outcome::Replayed, None));
        }
        assert_eq!(app.used(Tier::Device), LEN + tiles * TILE_BYTES);
        assert_eq!(app.used(Tier::PinnedHost), LEN - tiles * TILE_BYTES);
    }
}

/// Memory that the device does not have, whatever the budget says, is taken elsewhere.
#[test]
fn a_full_device_spills() {
    let mut app = App::new(Some(LEN + 100), None, |builder| builder);
    assert_eq!(app.launch(), (Outcome::Replayed, None));
    assert!(app.used(Tier::PinnedHost) >= LEN - TILE_BYTES);
}

/// What fits nowhere is declined by name, and holds nothing.
#[test]
fn what_fits_nowhere_is_declined() {
    let mut app = App::new(Some(LEN + 100), Some(TILE_BYTES), |builder| builder);
    assert_eq!(app.launch(), (Outcome::Declined, Some(Reason::PlanFailed)));
    assert_eq!(app.used(Tier::Device), LEN);
    assert_eq!(app.used(Tier::PinnedHost), 0);
    let mut app = App::new(None, None, |builder| {
        let builder = builder.tier_bytes(Tier::Device, 0);
        builder.tier_bytes(Tier::PinnedHost, TILE_BYTES)
    });
    assert_eq!(app.launch(), (Outcome::Declined, Some(Reason::PlanFailed)));
}

/// The application's own allocation never fails because memory is kept for windows.
#[test]
fn invariant_11_the_application_gets_memory_that_is_kept() {
    let mut app = App::new(Some(3 * LEN), None, |builder| builder);
    assert_eq!(app.launch(), (Outcome::Replayed, None));
    assert!(app.used(Tier::Device) > LEN);
    let second = app.runtime.alloc(2 * LEN).expect("what is kept makes room");
    assert_eq!(app.used(Tier::Device), 3 * LEN);
    assert!(app.runtime.alloc(1).is_err(), "now the device is full");
    drop(second);
    assert_eq!(app.launch(), (Outcome::Replayed, None));
}
