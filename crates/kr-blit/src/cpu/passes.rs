//! The passes over the work stream that the operations are made of.
//!
//! A pass hands batches of tiles to the workers. Each batch comes with its own parts of the tables
//! that the pass changes, so no two workers touch the same tile or the same entry.

use std::ops::Range;

use kr_device::{Device, DeviceError};
use kr_types::{ByTier, RestoreMode, Tier};

use super::CpuBlit;
use super::access::{Access, CpuUnfinished, LiveRun, Side, Time};
use super::engine::Halt;
use super::fingerprint::{BATCH, Fingerprint, Inspector, Marks, Part, Table, fill};
use super::image::{CpuImage, Found, TierState};
use super::report::RestoreReport;
use super::workers::{Tally, Worker, each};

impl<D: Device + Clone> CpuBlit<D> {
    /// Fingerprints all live tiles; saves those that changed, or all.
    ///
    /// # Safety
    ///
    /// See the type.
    pub(super) unsafe fn save(
        &self,
        image: &mut CpuImage,
        full: bool,
        time: &Time,
    ) -> Result<Tally, Halt<D>> {
        let threads = self.threads_for(image);
        // Before the first restore there is no list, and its marks say which tiles to copy.
        let (stream, saved, changed) = (&image.stream, &mut image.saved, &mut image.listed);
        // SAFETY: the caller's promise; batches are apart from each other, and the copies below
        // start after the last read.
        let access = unsafe { Access::new(&self.device, stream, &image.retired) };
        let parts = saved.batches().zip(changed.batches()).zip(0..);
        let (mut tally, result) = each(threads, parts, |worker, ((mut part, changed), batch)| {
            self.in_time(time, "capture")?;
            let Worker { buffer, tally, .. } = worker;
            *changed = 0;
            for run in access.runs(tiles_of(batch)) {
                access.each_tile(Side::Live, &run, buffer, |tile, bytes| {
                    let at = tile.at();
                    let now = self.inspector.of(bytes);
                    tally.bytes_hashed += bytes.len() as u64;
                    if full || now != part.get(at) {
                        part.set(at, now);
                        *changed |= 1 << at;
                    }
                    Ok(())
                })?;
            }
            Ok(())
        });
        result?;
        let (from, to_copy) = (&*saved, &*changed);
        let runs = access
            .all()
            .flat_map(|run| run.picked(move |tile| to_copy.get(tile) && !from.is_uniform(tile)));
        let runs = runs.inspect(|run| tally.bytes_copied += run.len_bytes());
        let copies = access.submit(Side::Live, runs)?;
        finish(copies, Ok(()), time)?;
        changed.clear();
        Ok(tally)
    }

    /// Puts the saved bytes back, in each tier by its mode.
    ///
    /// # Safety
    ///
    /// See the type.
    pub(super) unsafe fn put_back(
        &self,
        image: &mut CpuImage,
        modes: ByTier<RestoreMode>,
        time: &Time,
    ) -> Result<RestoreReport, Halt<D>> {
        let actions = ByTier::from_fn(|tier| Action::new(*modes.get(tier), image.tiers.get(tier)));
        // A full copy removes the traces of changes off the list, so they are looked for first.
        let due = ByTier::from_fn(|tier| {
            *actions.get(tier) == Action::Copy && image.tiers.get(tier).check_due
        });
        // SAFETY: the caller's promise.
        let searched = unsafe { self.find_unlisted(image, due, time) }?;

        let any = |is: fn(Action) -> bool| Tier::ALL.iter().any(|tier| is(*actions.get(*tier)));
        let threads = match any(Action::hashes) || image.saved.has_uniform() {
            true => self.threads_for(image),
            false => 1,
        };
        let keep_outputs = any(Action::keeps_outputs);
        if keep_outputs && image.outputs.is_none() {
            // Without room for them the passes cannot be compared; nothing else is lost.
            image.outputs = Table::new(image.stream.tiles(), false).ok();
        }
        // SAFETY: the caller's promise; batches are apart from each other, and of a tile that is
        // being copied the host touches nothing.
        let access = unsafe { Access::new(&self.device, &image.stream, &image.retired) };
        let pass = PutBack {
            access: &access,
            inspector: &self.inspector,
            saved: &image.saved,
            tiers: &image.tiers,
            actions: &actions,
        };
        let mut by_copy = 0;
        let runs = access.all().flat_map(|run| pass.copied(run, &image.listed));
        let copies = access.submit(Side::Saved, runs.inspect(|run| by_copy += run.len_bytes()))?;

        let mut outputs = image
            .outputs
            .as_mut()
            .filter(|_| keep_outputs)
            .map(Table::batches);
        let parts = image.listed.batches().zip(0..).map(move |(list, batch)| {
            let outputs = outputs.as_mut().and_then(Iterator::next);
            (batch, Lists { list, outputs })
        });
        let (tally, result) = each(threads, parts, |worker, (batch, mut lists)| {
            self.in_time(time, "restore")?;
            for run in access.runs(tiles_of(batch)) {
                match pass.action(&run) {
                    Action::Hash { .. } => pass.hash(worker, &run, &mut lists)?,
                    _ => pass.fill(worker, &run, *lists.list)?,
                }
            }
            Ok(())
        });
        // What was found before a failure has been found.
        Found::join(&mut image.unlisted, tally.found);
        finish(copies, result, time)?;

        let before = image.tiers;
        image.tiers = ByTier::from_fn(|tier| {
            let (action, before) = (actions.get(tier), before.get(tier));
            TierState {
                has_list: before.has_list || action.hashes(),
                check_due: *action == Action::CopyListed,
                has_outputs: action.keeps_outputs() && image.outputs.is_some(),
            }
        });
        // A comparison says something only if every tier that takes part had what to compare with.
        let compared = |part: fn(Action) -> bool, had: fn(&TierState) -> bool| {
            let part = |tier: &&Tier| part(*actions.get(**tier));
            let mut tiers = Tier::ALL.iter().filter(part).peekable();
            tiers.peek().is_some() && tiers.all(|tier| had(before.get(*tier)))
        };
        let found = [searched.found, tally.found];
        Ok(RestoreReport {
            bytes_copied: by_copy + tally.bytes_copied,
            bytes_written: by_copy + tally.bytes_written,
            bytes_hashed: searched.bytes_hashed + tally.bytes_hashed,
            bytes_retired: image.bytes_retired(),
            tiles_hashed: tally.tiles_hashed,
            tiles_changed: tally.tiles_changed,
            tiles_unlisted: found.iter().flatten().map(|found| found.tiles).sum(),
            list_repeated: compared(Action::hashes, |had| had.has_list)
                .then_some(tally.lists_differ == 0),
            outputs_differ: compared(Action::keeps_outputs, |had| had.has_outputs)
                .then_some(tally.outputs_differ),
        })
    }

    /// Puts everything back by the host.
    ///
    /// # Safety
    ///
    /// See the type.
    pub(super) unsafe fn put_all_back(
        &self,
        image: &mut CpuImage,
        time: &Time,
    ) -> Result<(), DeviceError> {
        // What is left of changes off the list is about to be removed.
        let due = image.tiers.map(|state| state.check_due);
        // SAFETY: the caller's promise.
        unsafe { self.find_unlisted(image, due, time) }?;
        // SAFETY: the caller's promise; batches are apart from each other, and nothing is copied.
        let access = unsafe { Access::new(&self.device, &image.stream, &image.retired) };
        let (_, result) = each(self.threads_for(image), batches(image), |worker, batch| {
            self.in_time(time, "rescue")?;
            for tile in access.runs(batch).flat_map(|run| run.parts(1)) {
                let bytes = &mut worker.spare[..tile.len_bytes() as usize];
                read_saved(&access, &tile, &image.saved, bytes)?;
                access.write_tile(&tile, bytes)?;
            }
            Ok(())
        });
        result?;
        image.tiers = ByTier::default();
        Ok(())
    }

    /// Looks for tiles off the list that differ from the saved ones, in the tiers that are `due`,
    /// and takes note of them: a pass started from what they hold, or from something else.
    ///
    /// # Safety
    ///
    /// See the type.
    pub(super) unsafe fn find_unlisted(
        &self,
        image: &mut CpuImage,
        due: ByTier<bool>,
        time: &Time,
    ) -> Result<Tally, DeviceError> {
        if !due.device && !due.pinned_host {
            return Ok(Tally::default());
        }
        // SAFETY: the caller's promise; nothing is written or copied.
        let access = unsafe { Access::new(&self.device, &image.stream, &image.retired) };
        let (tally, result) = each(self.threads_for(image), batches(image), |worker, batch| {
            self.in_time(time, "check")?;
            let due = |run: &LiveRun<'_>| *due.get(run.entry().tier());
            for run in access.runs(batch).filter(due) {
                for run in run.picked(|tile| !image.listed.get(tile)) {
                    search(
                        &access,
                        Side::Live,
                        &run,
                        worker,
                        &self.inspector,
                        &image.saved,
                    )?;
                }
            }
            Ok(())
        });
        result?;
        Found::join(&mut image.unlisted, tally.found);
        for tier in Tier::ALL {
            image.tiers.get_mut(*tier).check_due &= !due.get(*tier);
        }
        Ok(tally)
    }

    /// Looks for saved tiles that are not what was captured, among those whose turn it is.
    ///
    /// # Safety
    ///
    /// See the type.
    pub(super) unsafe fn audit(
        &self,
        image: &CpuImage,
        time: &Time,
    ) -> Result<Option<Found>, DeviceError> {
        let Some(one_in) = self.audit else {
            return Ok(None);
        };
        let one_in = u64::from(one_in.get()).min(image.stream.tiles()).max(1);
        let turn = image.windows % one_in;
        // SAFETY: the caller's promise; nothing is written or copied.
        let access = unsafe { Access::new(&self.device, &image.stream, &image.retired) };
        let (tally, result) = each(self.threads_for(image), batches(image), |worker, batch| {
            self.in_time(time, "audit")?;
            let picked = |tile| tile % one_in == turn && !image.saved.is_uniform(tile);
            for run in access.runs(batch).flat_map(|run| run.picked(picked)) {
                search(
                    &access,
                    Side::Saved,
                    &run,
                    worker,
                    &self.inspector,
                    &image.saved,
                )?;
            }
            Ok(())
        });
        result.map(|()| tally.found)
    }

    /// No more threads than there are batches.
    fn threads_for(&self, image: &CpuImage) -> usize {
        let batches = image.stream.tiles().div_ceil(BATCH as u64);
        usize::try_from(batches).map_or(self.threads, |batches| batches.min(self.threads))
    }

    /// An error once there is no time left.
    fn in_time(&self, time: &Time, operation: &'static str) -> Result<(), DeviceError> {
        if !time.left().is_zero() {
            return Ok(());
        }
        Err(self.failed(operation, format!("did not end within {:?}", time.limit)))
    }

    pub(super) fn failed(&self, operation: &'static str, detail: String) -> DeviceError {
        DeviceError::Failed {
            agent: self.device.agent(),
            operation,
            detail,
        }
    }
}

/// What a restore does with the tiles of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// Copies all.
    Copy,
    /// Copies what is listed.
    CopyListed,
    /// Hashes all, puts back what changed, and lists it.
    Hash {
        /// What is hashed is also kept as the output of the pass that has just ended.
        keep_outputs: bool,
    },
}

impl Action {
    fn new(mode: RestoreMode, state: &TierState) -> Self {
        match mode {
            RestoreMode::HashEveryPass => Self::Hash { keep_outputs: true },
            RestoreMode::HashOnce if state.has_list => Self::CopyListed,
            RestoreMode::HashOnce => Self::Hash {
                keep_outputs: false,
            },
            // Right in any case, so also for modes that this engine does not know.
            _ => Self::Copy,
        }
    }

    fn hashes(self) -> bool {
        matches!(self, Self::Hash { .. })
    }

    fn keeps_outputs(self) -> bool {
        self == Self::Hash { keep_outputs: true }
    }
}

/// What a restore needs to know of every tile.
struct PutBack<'a, D> {
    access: &'a Access<'a, D>,
    inspector: &'a Inspector,
    saved: &'a Table,
    tiers: &'a ByTier<TierState>,
    actions: &'a ByTier<Action>,
}

/// What a restore changes of one batch.
struct Lists<'a> {
    list: &'a mut u64,
    outputs: Option<Part<'a>>,
}

impl<'a, D: Device + Clone> PutBack<'a, D> {
    fn action(&self, run: &LiveRun<'_>) -> Action {
        *self.actions.get(run.entry().tier())
    }

    /// The parts of a run that the device copies.
    fn copied<'r>(
        &self,
        run: LiveRun<'r>,
        listed: &'a Marks,
    ) -> impl Iterator<Item = LiveRun<'r>> + use<'a, 'r, D> {
        let (saved, action) = (self.saved, self.action(&run));
        run.picked(move |tile| {
            let wanted = match action {
                Action::Copy => true,
                Action::CopyListed => listed.get(tile),
                Action::Hash { .. } => false,
            };
            wanted && !saved.is_uniform(tile)
        })
    }

    /// Writes what the device cannot copy since it was never saved: uniform tiles.
    fn fill(&self, worker: &mut Worker, run: &LiveRun<'_>, list: u64) -> Result<(), DeviceError> {
        let all = self.action(run) == Action::Copy;
        let picked = run.picked(|tile| {
            let listed = list >> (tile % BATCH as u64) & 1 != 0;
            (all || listed) && self.saved.is_uniform(tile)
        });
        for tile in picked.flat_map(|run| run.parts(1)) {
            let bytes = &mut worker.spare[..tile.len_bytes() as usize];
            read_saved(self.access, &tile, self.saved, bytes)?;
            worker.tally.bytes_copied += bytes.len() as u64;
            worker.tally.bytes_written += bytes.len() as u64;
            self.access.write_tile(&tile, bytes)?;
        }
        Ok(())
    }

    /// Hashes a run, and puts back and lists the tiles that changed.
    fn hash(
        &self,
        worker: &mut Worker,
        run: &LiveRun<'_>,
        lists: &mut Lists<'_>,
    ) -> Result<(), DeviceError> {
        let tier = run.entry().tier();
        let (state, keep_outputs) = (self.tiers.get(tier), self.action(run).keeps_outputs());
        let Worker {
            buffer,
            spare,
            tally,
        } = worker;
        self.access
            .each_tile(Side::Live, run, buffer, |tile, live| {
                let (at, now) = (tile.at(), self.inspector.of(live));
                if let Some(outputs) = lists.outputs.as_mut().filter(|_| keep_outputs) {
                    tally.outputs_differ += u64::from(outputs.get(at) != now.narrow());
                    outputs.set(at, now.narrow());
                }
                let changed = now != self.saved.get(tile.first());
                let was_listed = *lists.list >> at & 1 != 0;
                *lists.list = *lists.list & !(1 << at) | u64::from(changed) << at;
                tally.lists_differ += u64::from(changed != was_listed);
                tally.bytes_hashed += live.len() as u64;
                *tally.tiles_hashed.get_mut(tier) += 1;
                if !changed {
                    return Ok(());
                }
                *tally.tiles_changed.get_mut(tier) += 1;
                if state.check_due && !was_listed {
                    tally.find(tile.live());
                }
                let spare = &mut spare[..live.len()];
                read_saved(self.access, tile, self.saved, spare)?;
                tally.bytes_copied += live.len() as u64;
                tally.bytes_written += self.access.patch_tile(tile, live, spare)?;
                Ok(())
            })
    }
}

/// The bytes of a saved tile, whether they were saved or only remembered.
fn read_saved<D: Device + Clone>(
    access: &Access<'_, D>,
    tile: &LiveRun<'_>,
    saved: &Table,
    into: &mut [u8],
) -> Result<(), DeviceError> {
    match saved.get(tile.first()) {
        Fingerprint::Uniform(word) => {
            fill(into, word);
            Ok(())
        }
        Fingerprint::Mixed(_) => access.read(Side::Saved, tile, into),
    }
}

/// Tallies the tiles of a run that are not as they were captured.
fn search<'a, D: Device + Clone>(
    access: &Access<'a, D>,
    side: Side,
    run: &LiveRun<'a>,
    worker: &mut Worker,
    inspector: &Inspector,
    saved: &Table,
) -> Result<(), DeviceError> {
    let Worker { buffer, tally, .. } = worker;
    access.each_tile(side, run, buffer, |tile, bytes| {
        tally.bytes_hashed += bytes.len() as u64;
        if inspector.of(bytes) != saved.get(tile.first()) {
            tally.find(tile.live());
        }
        Ok(())
    })
}

/// Waits for copies, whatever became of the rest, and says what became of both.
fn finish<D: Device>(
    copies: Option<CpuUnfinished<D>>,
    rest: Result<(), DeviceError>,
    time: &Time,
) -> Result<(), Halt<D>> {
    let copied = match copies {
        None => Ok(()),
        Some(copies) => match copies.wait(time) {
            Ok(false) => return Err(Halt::Running(copies)),
            ended => ended.map(drop),
        },
    };
    rest.and(copied).map_err(Halt::Failed)
}

/// The tiles of a batch.
fn tiles_of(batch: u64) -> Range<u64> {
    let start = batch * BATCH as u64;
    start..start + BATCH as u64
}

/// All batches of an image.
fn batches(image: &CpuImage) -> impl Iterator<Item = Range<u64>> + Send + use<> {
    (0..image.stream.tiles().div_ceil(BATCH as u64)).map(tiles_of)
}
