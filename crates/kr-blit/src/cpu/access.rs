//! The only file of the engine that calls a device.
//!
//! [`Access`] is made once per operation, from the caller's promise about the memory; what it hands
//! out stays within that promise, so the rest of the engine needs no unsafe code.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use std::time::{Duration, Instant};

use kr_device::{CopyOp, Device, DeviceError};
use kr_types::{DeviceAddr, TILE_BYTES};

use super::fingerprint::BATCH;
use crate::layout::ExtentEntry;
use crate::{Run, Stream, Unfinished};

/// Tiles that are read from the device at once.
const READ_TILES: u64 = 8;
/// Bytes of a buffer for such a read.
pub(super) const READ_BYTES: usize = (READ_TILES * TILE_BYTES) as usize;
/// Bytes that are written back or left alone together.
const LINE: usize = 64;

/// One of the two sides of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Live,
    Saved,
}

impl Side {
    fn start(self, run: &Run<'_>) -> DeviceAddr {
        match self {
            Self::Live => run.live(),
            Self::Saved => run.saved(),
        }
    }
}

/// The memory of a stream, as far as its regions are alive.
pub(super) struct Access<'a, D> {
    device: &'a D,
    stream: &'a Stream,
    retired: &'a [bool],
}

/// A run of an extent that is alive. Made by [`Access`] only.
#[derive(Clone)]
pub(super) struct LiveRun<'a>(Run<'a>);

impl<'a> LiveRun<'a> {
    pub(super) fn entry(&self) -> &'a ExtentEntry {
        self.0.entry()
    }

    pub(super) fn len_bytes(&self) -> u64 {
        self.0.len_bytes()
    }

    pub(super) fn live(&self) -> u64 {
        self.0.live().0
    }

    /// Index in the stream of its first tile.
    pub(super) fn first(&self) -> u64 {
        self.0.tiles().start
    }

    /// Place of its first tile in its batch.
    pub(super) fn at(&self) -> usize {
        self.first() as usize % BATCH
    }

    pub(super) fn picked<F: FnMut(u64) -> bool>(
        &self,
        pick: F,
    ) -> impl Iterator<Item = LiveRun<'a>> + use<'a, F> {
        self.0.picked(pick).map(LiveRun)
    }

    pub(super) fn parts(&self, most: u64) -> impl Iterator<Item = LiveRun<'a>> + use<'a> {
        self.0.parts(most).map(LiveRun)
    }
}

impl<'a, D: Device + Clone> Access<'a, D> {
    /// # Safety
    ///
    /// While the value lives, and after it until the copies of [`submit`](Self::submit) have ended:
    /// - the live side of every extent of `stream` whose region is not `retired` is accessible to
    ///   the agent of `device`, and the saved side belongs to the caller; no two sides overlap;
    /// - nothing but this value writes any of them, or reads what it writes;
    /// - no tile is used by two threads at once, and none by the host that a copy under way uses.
    pub(super) unsafe fn new(device: &'a D, stream: &'a Stream, retired: &'a [bool]) -> Self {
        Self {
            device,
            stream,
            retired,
        }
    }

    /// The tiles of `range`, cut at borders of extents, without those of regions that are gone.
    pub(super) fn runs(&self, range: Range<u64>) -> impl Iterator<Item = LiveRun<'a>> {
        let retired = self.retired;
        let alive = move |run: &Run<'_>| !retired[run.entry().region as usize];
        self.stream.runs(range).filter(alive).map(LiveRun)
    }

    /// All tiles, as [`runs`](Self::runs).
    pub(super) fn all(&self) -> impl Iterator<Item = LiveRun<'a>> {
        self.runs(0..self.stream.tiles())
    }

    /// Reads a run, in parts that fit `buffer`, and hands out tile after tile.
    pub(super) fn each_tile(
        &self,
        side: Side,
        run: &LiveRun<'a>,
        buffer: &mut [u8],
        mut tile: impl FnMut(&LiveRun<'a>, &[u8]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        for part in run.parts(buffer.len() as u64 / TILE_BYTES) {
            let bytes = &mut buffer[..part.len_bytes() as usize];
            self.read(side, &part, bytes)?;
            let tiles = bytes.chunks(TILE_BYTES as usize);
            for (one, bytes) in part.parts(1).zip(tiles) {
                tile(&one, bytes)?;
            }
        }
        Ok(())
    }

    /// Reads all of a run.
    ///
    /// # Panics
    ///
    /// If `into` is of another length.
    pub(super) fn read(
        &self,
        side: Side,
        run: &LiveRun<'a>,
        into: &mut [u8],
    ) -> Result<(), DeviceError> {
        assert_eq!(into.len() as u64, run.len_bytes());
        // SAFETY: the range is a part of one side of an extent that is alive: readable, and written
        // by nobody, by the promise made to `new`.
        unsafe { self.device.read(side.start(&run.0), into) }
    }

    /// Writes `bytes` over the live side of a run, `offset` bytes from its start.
    ///
    /// # Panics
    ///
    /// If they reach past its end.
    fn write(&self, run: &LiveRun<'a>, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        assert!((offset + bytes.len()) as u64 <= run.len_bytes());
        // Does not wrap: it lies inside the extent.
        let to = DeviceAddr(run.live() + offset as u64);
        // SAFETY: the range is a part of the live side of an extent that is alive: writable, and
        // accessed by nobody else, by the promise made to `new`.
        unsafe { self.device.write(to, bytes) }
    }

    /// Writes `bytes` over all of a tile.
    pub(super) fn write_tile(&self, tile: &LiveRun<'a>, bytes: &[u8]) -> Result<(), DeviceError> {
        self.write(tile, 0, bytes)
    }

    /// Makes a tile that holds `live` hold `saved`, by writing the lines that differ. Says how many
    /// bytes those are.
    pub(super) fn patch_tile(
        &self,
        tile: &LiveRun<'a>,
        live: &[u8],
        saved: &[u8],
    ) -> Result<u64, DeviceError> {
        let mut written = 0;
        for lines in differing_lines(live, saved) {
            written += lines.len() as u64;
            self.write(tile, lines.start, &saved[lines])?;
        }
        Ok(written)
    }

    /// Starts copying all of `runs` from one side to the other. `None`: there is nothing to copy.
    pub(super) fn submit(
        &self,
        from: Side,
        runs: impl Iterator<Item = LiveRun<'a>>,
    ) -> Result<Option<CpuUnfinished<D>>, DeviceError> {
        let to = match from {
            Side::Live => Side::Saved,
            Side::Saved => Side::Live,
        };
        let op = |run: LiveRun<'_>| {
            Some(CopyOp {
                from: from.start(&run.0),
                to: to.start(&run.0),
                len: NonZeroU64::new(run.len_bytes())?,
            })
        };
        let copies: Vec<CopyOp> = runs.filter_map(op).collect();
        if copies.is_empty() {
            return Ok(None);
        }
        // SAFETY: sources and destinations are sides of extents that are alive, which stay
        // accessible, unwritten by others and apart from each other until the copies have ended, by
        // the promise made to `new`.
        let fence = unsafe { self.device.submit(&copies) }?;
        let device = self.device.clone();
        Ok(Some(CpuUnfinished { device, fence }))
    }
}

/// Where the two tiles differ, in whole lines (the last one may be short); neighbours are joined.
fn differing_lines<'a>(a: &'a [u8], b: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
    let len = a.len();
    let mut lines = a.chunks(LINE).zip(b.chunks(LINE)).map(|(a, b)| a != b);
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + lines.position(|differs| differs)?;
        // One line has been taken beyond the last that differs, unless the tile ended.
        let more = lines.by_ref().take_while(|differs| *differs).count();
        at = start + more + 2;
        Some(start * LINE..len.min((start + more + 1) * LINE))
    })
}

/// Copies of one submission that had not ended when they were last looked at.
pub struct CpuUnfinished<D: Device> {
    device: D,
    fence: D::Fence,
}

impl<D: Device> CpuUnfinished<D> {
    /// Waits for as long as `time` allows; `Ok(false)` means that copies are still running.
    pub(super) fn wait(&self, time: &Time) -> Result<bool, DeviceError> {
        self.device.wait(&self.fence, time.left())
    }
}

impl<D: Device> fmt::Debug for CpuUnfinished<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuUnfinished(copies of {})", self.device.agent())
    }
}

impl<D: Device> Unfinished for CpuUnfinished<D> {
    fn is_finished(&self) -> bool {
        // An error also means that none of the copies runs any more.
        self.device
            .wait(&self.fence, Duration::ZERO)
            .unwrap_or(true)
    }
}

/// The time that one operation has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    end: Option<Instant>,
    pub(super) limit: Duration,
}

impl Time {
    pub(super) fn start(limit: Duration) -> Self {
        // A limit beyond the clock's range is none.
        let end = Instant::now().checked_add(limit);
        Self { end, limit }
    }

    pub(super) fn left(&self) -> Duration {
        match self.end {
            Some(end) => end.saturating_duration_since(Instant::now()),
            None => self.limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_lines_are_whole_joined_and_complete() {
        let lines = |len: usize, changed: &[usize]| -> Vec<(usize, usize)> {
            let a = vec![7; len];
            let mut b = a.clone();
            for at in changed {
                b[*at] ^= 1;
            }
            let lines = differing_lines(&a, &b);
            lines.map(|lines| (lines.start, lines.end)).collect()
        };
        assert_eq!(lines(300, &[]), []);
        assert_eq!(lines(300, &[0]), [(0, 64)]);
        assert_eq!(lines(300, &[299]), [(256, 300)]);
        assert_eq!(lines(300, &[63, 64, 200]), [(0, 128), (192, 256)]);
        assert_eq!(lines(300, &[0, 130, 140]), [(0, 64), (128, 192)]);
        assert_eq!(lines(300, &[0, 64, 128, 192, 256]), [(0, 300)]);
        assert_eq!(lines(5, &[4]), [(0, 5)]);
        // Every subset of five lines, against the definition.
        for subset in 0..32usize {
            let changed: Vec<_> = (0..5).filter(|i| subset >> i & 1 != 0).collect();
            let at: Vec<_> = changed.iter().map(|i| i * 64 + 1).collect();
            let covered: Vec<_> = lines(300, &at)
                .into_iter()
                .flat_map(|(a, b)| a..b)
                .collect();
            let all = 0..300;
            let expected: Vec<_> = all.filter(|b| changed.contains(&(b / 64))).collect();
            assert_eq!(covered, expected, "{subset:b}");
        }
    }
}
