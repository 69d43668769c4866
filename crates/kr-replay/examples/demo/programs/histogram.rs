//! How often each byte value occurs in a file: slices of it are added to the same 256 bins, one
//! launch per slice.

use std::error::Error;

use kr_replay::host::{HostKernel, KernelLaunch};

use super::{Finding, Mismatches, Program, element, groups};
use crate::app::App;
use crate::table;

/// Bytes per workgroup.
const GROUP: usize = 64 * 1024;
const BINS: usize = 256;

pub(crate) struct Histogram {
    /// What is counted; not empty.
    pub(crate) bytes: Vec<u8>,
    /// Where the bytes come from, for people.
    pub(crate) origin: String,
    pub(crate) slices: usize,
}

impl Program for Histogram {
    fn name(&self) -> &'static str {
        "histogram"
    }

    fn run(&self, app: &App<'_>) -> Result<Finding, Box<dyn Error>> {
        let data = app.upload(&self.bytes)?;
        let bins = app.upload(&[0u64; BINS])?;
        let kernel = kernel();
        for slice in groups(self.bytes.len(), self.bytes.len().div_ceil(self.slices)) {
            let first = element::<u8>(data.addr().0, slice.start).0;
            let args = [first, slice.len() as u64, bins.addr().0];
            app.launch(&KernelLaunch::new(&kernel, &args).grid([slice.len() as u32, 1, 1]))?;
        }

        let mut want = [0u64; BINS];
        for byte in &self.bytes {
            want[usize::from(*byte)] += 1;
        }
        let mut mismatches = Mismatches::default();
        mismatches.compare("bins", &bins.read::<u64>()?, &want);
        let (most, times) = (0..BINS)
            .zip(want)
            .fold((0, 0), |best, bin| match bin.1 > best.1 {
                true => bin,
                false => best,
            });
        let (size, times) = (table::bytes(self.bytes.len() as u64), table::count(times));
        Ok(Finding {
            summary: format!(
                "{}, {size}, most often {most:#04x}: {times} times",
                self.origin
            ),
            mismatches,
        })
    }
}

/// Operations: bytes counted. Each workgroup counts into bins of its own first, as one would in
/// LDS.
fn kernel() -> HostKernel {
    HostKernel::new("histogram", |ctx| {
        let [data, n, bins] = ctx.args::<[u64; 3]>()?;
        for group in groups(n as usize, GROUP) {
            let mut own = [0u32; BINS];
            for byte in ctx.load::<u8>(element::<u8>(data, group.start), group.len())? {
                own[usize::from(byte)] += 1;
            }
            ctx.add_operations(group.len() as u64);
            let mut totals: Vec<u64> = ctx.load(element::<u64>(bins, 0), BINS)?;
            for (total, own) in totals.iter_mut().zip(own) {
                *total += u64::from(own);
            }
            ctx.store(element::<u64>(bins, 0), &totals)?;
        }
        Ok(())
    })
}
