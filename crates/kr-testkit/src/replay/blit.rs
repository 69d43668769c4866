//! A blit engine that copies everything, unless its script says otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use kr_blit::{
    BlitEngine, BlitError, FullCopy, RestoreError, RestoreResult, Restored, Unfinished, Verdict,
};
use kr_device::host::HostDevice;
use kr_device::{Device, DeviceError};
use kr_types::{DeviceAddr, Extent, Region, RestoreMode};
use parking_lot::Mutex;

use super::script::Script;
use super::{Action, Event, Log};

type Plain = FullCopy<HostDevice>;

/// A call of a [`ScriptedBlit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlitCall {
    /// [`BlitEngine::capture`]
    Capture,
    /// [`BlitEngine::restore`]
    Restore,
    /// [`BlitEngine::rescue`]
    Rescue,
    /// [`BlitEngine::verify`]
    Verify,
}

/// What a call does instead of succeeding.
pub enum BlitStep {
    /// Reports an error. A restore has put back the first extent then, and no other.
    Fail,
    /// Reports that its limit ran out. The copies are made, and for a check the bytes are read, only
    /// in [`ScriptedBlit::finish_copies`]; but for the first extent of a restore.
    TimeOut,
    /// Panics before it does anything.
    Panic,
    /// As [`TimeOut`](Self::TimeOut), but panics instead of reporting it.
    PanicMidway,
    /// Answers a [`BlitEngine::verify`] with this.
    Verdict(Verdict),
    /// Runs this, then succeeds.
    Run(Action),
}

/// Copies that ran out of their limit.
struct Late {
    copies: Box<dyn FnOnce() -> Result<(), DeviceError> + Send>,
    finished: Arc<AtomicBool>,
}

/// A [`FullCopy`] with a script, which takes every mode. A handle: clones are the same engine.
#[derive(Clone)]
pub struct ScriptedBlit(Arc<Shared>);

struct Shared {
    device: HostDevice,
    plain: Plain,
    log: Log,
    script: Script<BlitCall, BlitStep>,
    late: Mutex<Vec<Late>>,
    panics_midway: AtomicBool,
    unlisted: Mutex<Option<DeviceAddr>>,
    bytes_per_tile: u64,
}

impl ScriptedBlit {
    /// An engine for `device` whose calls go to `log`.
    pub fn new(device: &HostDevice, log: &Log) -> Self {
        Self::with_metadata(device, log, 0)
    }

    /// As [`new`](Self::new), needing `bytes_per_tile` bytes of metadata for each tile.
    pub fn with_metadata(device: &HostDevice, log: &Log, bytes_per_tile: u64) -> Self {
        Self(Arc::new(Shared {
            device: device.clone(),
            plain: FullCopy::new(device.clone(), 0x5eed),
            log: log.clone(),
            script: Script::new(),
            late: Mutex::default(),
            panics_midway: AtomicBool::new(false),
            unlisted: Mutex::default(),
            bytes_per_tile,
        }))
    }

    /// The next call of this kind without a step yet does `step`.
    pub fn on(&self, call: BlitCall, step: BlitStep) -> &Self {
        self.0.script.add(call, step);
        self
    }

    /// From now on, restores in mode hash-once after the first one of an image leave out the region
    /// at `base`, as if the kernel had not changed it in pass 0. The final check finds that.
    pub fn unlist(&self, base: DeviceAddr) {
        *self.0.unlisted.lock() = Some(base);
    }

    /// Makes the copies that ran out of their limit, and lets them be seen to have ended.
    ///
    /// # Panics
    ///
    /// If the memory that they read or write is gone.
    pub fn finish_copies(&self) {
        let late = std::mem::take(&mut *self.0.late.lock());
        for Late { copies, finished } in late {
            // Late copies may fail as others do, but not for want of the memory.
            if let Err(error @ DeviceError::Fault { .. }) = copies() {
                panic!("late copies meet memory that is gone: {error}");
            }
            finished.store(true, SeqCst);
        }
    }

    /// The step for `call`; an error if it fails. What is left to the caller is a time-out or a
    /// verdict.
    fn play(&self, call: BlitCall) -> Result<Option<BlitStep>, DeviceError> {
        match self.0.script.take(call) {
            Some(BlitStep::Run(action)) => {
                action();
                Ok(None)
            }
            Some(BlitStep::Panic) => panic!("scripted panic in {call:?}"),
            Some(BlitStep::PanicMidway) => {
                self.0.panics_midway.store(true, SeqCst);
                Ok(Some(BlitStep::TimeOut))
            }
            Some(BlitStep::Fail) => Err(DeviceError::Failed {
                agent: self.0.device.agent(),
                operation: "blit",
                detail: format!("scripted in {call:?}"),
            }),
            other => Ok(other),
        }
    }

    /// Puts `copies` off until [`finish_copies`](Self::finish_copies), and panics if the script says
    /// so.
    fn unfinished(
        &self,
        copies: impl FnOnce() -> Result<(), DeviceError> + Send + 'static,
    ) -> Running {
        let finished = Arc::<AtomicBool>::default();
        self.0.late.lock().push(Late {
            copies: Box::new(copies),
            finished: finished.clone(),
        });
        if self.0.panics_midway.swap(false, SeqCst) {
            panic!("scripted panic with copies on the way");
        }
        Running::Scripted(finished)
    }

    /// Puts back what `alive` admits.
    ///
    /// # Safety
    ///
    /// As for [`BlitEngine::restore`].
    unsafe fn put_back(
        &self,
        image: Image,
        alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> RestoreResult<Image, Torn, Running> {
        let facts = image.facts;
        // SAFETY: the caller's promise, handed on.
        match unsafe {
            let plain = &self.0.plain;
            plain.restore(image.plain, RestoreMode::Full, alive, limit)
        } {
            Ok(restored) => Ok(Restored {
                image: Image {
                    plain: restored.image,
                    facts,
                },
                bytes_copied: restored.bytes_copied,
                bytes_retired: restored.bytes_retired,
            }),
            Err(RestoreError::Failed { torn, source }) => Err(RestoreError::Failed {
                torn: Torn::Device(Box::new(torn), facts),
                source,
            }),
            Err(RestoreError::TimedOut { limit, unfinished }) => Err(RestoreError::TimedOut {
                limit,
                unfinished: Running::Device(unfinished),
            }),
        }
    }

    /// Puts back what a restore has left torn.
    ///
    /// # Safety
    ///
    /// As for [`BlitEngine::rescue`].
    unsafe fn make_up(
        &self,
        torn: Torn,
        alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> Result<Image, BlitError<Running>> {
        match torn {
            Torn::Device(torn, facts) => {
                // SAFETY: the caller's promise, handed on.
                let plain = unsafe { self.0.plain.rescue(*torn, alive, limit) }.map_err(lift)?;
                Ok(Image { plain, facts })
            }
            Torn::Scripted(image) => {
                // SAFETY: the caller's promise, handed on.
                match unsafe { self.put_back(*image, alive, limit) } {
                    Ok(restored) => Ok(restored.image),
                    Err(RestoreError::Failed { source, .. }) => Err(BlitError::Failed(source)),
                    Err(RestoreError::TimedOut { limit, unfinished }) => {
                        Err(BlitError::TimedOut { limit, unfinished })
                    }
                }
            }
        }
    }

    /// Does the same in [`finish_copies`](Self::finish_copies).
    fn late_rescue(&self, torn: Torn) -> Running {
        let engine = self.clone();
        self.unfinished(move || {
            // SAFETY: the caller keeps both sides until the copies are seen to have ended.
            ended(unsafe { engine.make_up(torn, &|_| true, Duration::MAX) })
        })
    }
}

/// Copies that are still running.
pub enum Running {
    /// Until [`ScriptedBlit::finish_copies`].
    Scripted(Arc<AtomicBool>),
    /// Those of the device.
    Device(<Plain as BlitEngine>::Unfinished),
}

impl Unfinished for Running {
    fn is_finished(&self) -> bool {
        match self {
            Self::Scripted(finished) => finished.load(SeqCst),
            Self::Device(running) => running.is_finished(),
        }
    }
}

/// A complete capture.
pub struct Image {
    plain: <Plain as BlitEngine>::Image,
    facts: Facts,
}

/// What an image knows beside its bytes.
#[derive(Clone, Copy)]
pub struct Facts {
    first: Option<DeviceAddr>,
    restores: u32,
    /// What the last restore left out.
    left_out: Option<DeviceAddr>,
}

/// An image whose restore broke off.
pub enum Torn {
    /// By the script.
    Scripted(Box<Image>),
    /// By the device.
    Device(Box<<Plain as BlitEngine>::Torn>, Facts),
}

/// What became of copies that had all the time they wanted.
fn ended<T, U>(result: Result<T, BlitError<U>>) -> Result<(), DeviceError> {
    match result {
        Ok(_) => Ok(()),
        Err(BlitError::Failed(error)) => Err(error),
        Err(BlitError::TimedOut { .. }) => unreachable!("they had no limit"),
    }
}

fn lift(error: BlitError<<Plain as BlitEngine>::Unfinished>) -> BlitError<Running> {
    match error {
        BlitError::Failed(error) => BlitError::Failed(error),
        BlitError::TimedOut { limit, unfinished } => BlitError::TimedOut {
            limit,
            unfinished: Running::Device(unfinished),
        },
    }
}

impl BlitEngine for ScriptedBlit {
    type Image = Image;
    type Torn = Torn;
    type Unfinished = Running;

    fn supports(&self, _mode: RestoreMode) -> bool {
        true
    }

    fn bytes_needed(&self, tiles: u64) -> u64 {
        tiles.saturating_mul(self.0.bytes_per_tile)
    }

    unsafe fn capture(
        &self,
        extents: Vec<Extent>,
        limit: Duration,
    ) -> Result<Image, BlitError<Running>> {
        self.0.log.push(Event::Capture);
        if let Some(BlitStep::TimeOut) = self.play(BlitCall::Capture)? {
            let plain = self.0.plain.clone();
            let unfinished = self.unfinished(move || {
                // SAFETY: the caller keeps both sides until the copies are seen to have ended.
                ended(unsafe { plain.capture(extents, Duration::MAX) })
            });
            return Err(BlitError::TimedOut { limit, unfinished });
        }
        let first = extents.first().map(|extent| extent.region().base());
        // SAFETY: the caller's promise, handed on.
        let plain = unsafe { self.0.plain.capture(extents, limit) }.map_err(lift)?;
        let facts = Facts {
            first,
            restores: 0,
            left_out: None,
        };
        Ok(Image { plain, facts })
    }

    unsafe fn restore(
        &self,
        mut image: Image,
        mode: RestoreMode,
        alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> RestoreResult<Image, Torn, Running> {
        self.0.log.push(Event::Restore(mode));
        let step = self.play(BlitCall::Restore);
        if matches!(step, Err(_) | Ok(Some(BlitStep::TimeOut))) {
            let first = image.facts.first;
            let first_only = |region: &Region| Some(region.base()) == first && alive(region);
            // SAFETY: the caller's promise, for fewer regions.
            let torn = unsafe { self.put_back(image, &first_only, limit) }?.image;
            return Err(match step {
                Err(source) => RestoreError::Failed {
                    torn: Torn::Scripted(Box::new(torn)),
                    source,
                },
                Ok(_) => RestoreError::TimedOut {
                    limit,
                    unfinished: self.late_rescue(Torn::Scripted(Box::new(torn))),
                },
            });
        }
        let relies_on_list = mode == RestoreMode::HashOnce && image.facts.restores > 0;
        let left_out = self.0.unlisted.lock().filter(|_| relies_on_list);
        image.facts.restores += 1;
        image.facts.left_out = left_out;
        let listed = |region: &Region| Some(region.base()) != left_out && alive(region);
        // SAFETY: the caller's promise, for no more regions.
        unsafe { self.put_back(image, &listed, limit) }
    }

    unsafe fn rescue(
        &self,
        torn: Torn,
        alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> Result<Image, BlitError<Running>> {
        self.0.log.push(Event::Rescue);
        if let Some(BlitStep::TimeOut) = self.play(BlitCall::Rescue)? {
            let unfinished = self.late_rescue(torn);
            return Err(BlitError::TimedOut { limit, unfinished });
        }
        // SAFETY: the caller's promise, handed on.
        unsafe { self.make_up(torn, alive, limit) }
    }

    unsafe fn verify(
        &self,
        image: Image,
        alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> Result<(Image, Verdict), BlitError<Running>> {
        self.0.log.push(Event::Verify);
        match self.play(BlitCall::Verify)? {
            Some(BlitStep::Verdict(verdict)) => return Ok((image, verdict)),
            Some(BlitStep::TimeOut) => {
                let plain = self.0.plain.clone();
                let unfinished = self.unfinished(move || {
                    // SAFETY: the caller keeps both sides until the check is seen to have ended.
                    ended(unsafe { plain.verify(image.plain, &|_| true, Duration::MAX) })
                });
                return Err(BlitError::TimedOut { limit, unfinished });
            }
            _ => {}
        }
        if let Some(first) = image.facts.left_out {
            return Ok((image, Verdict::UnlistedChange { tiles: 1, first }));
        }
        let Image { plain, facts } = image;
        // SAFETY: the caller's promise, handed on.
        let (plain, verdict) = unsafe { self.0.plain.verify(plain, alive, limit) }.map_err(lift)?;
        Ok((Image { plain, facts }, verdict))
    }
}
