//! What the demo says in the end, from what the profiler has kept.

use std::io::{self, Write};
use std::time::Duration;

use kr_replay::host::HostCounters;
use kr_types::Outcome;

use crate::profiler::Profile;
use crate::programs::Finding;
use crate::table;

/// The numbers of the last line.
#[derive(Debug, PartialEq)]
pub(crate) struct Totals {
    /// Launches, as the application counted them.
    pub(crate) dispatches: u64,
    /// Dispatches that the engine replayed.
    pub(crate) replayed: u64,
    /// Passes whose counters the profiler got.
    pub(crate) passes: u64,
    /// Wrong elements, and counters that should be equal in all passes of a dispatch and are not.
    pub(crate) mismatches: u64,
}

impl Totals {
    pub(crate) fn new(dispatches: u64, wrong_elements: u64, profiles: &[Profile]) -> Self {
        let passes = |profile: &Profile| profile.passes.len() as u64;
        let unequal = |profile: &Profile| unequal(&profile.passes).count() as u64;
        Self {
            dispatches,
            replayed: profiles.iter().filter(|profile| replayed(profile)).count() as u64,
            passes: profiles.iter().map(passes).sum(),
            mismatches: wrong_elements + profiles.iter().map(unequal).sum::<u64>(),
        }
    }

    /// Whether every dispatch was replayed as often as planned, and everything was right.
    pub(crate) fn ok(&self, planned_passes: u32) -> bool {
        let planned = self.dispatches * u64::from(planned_passes);
        let complete = self.replayed == self.dispatches && self.passes == planned;
        self.dispatches > 0 && complete && self.mismatches == 0
    }

    /// The last line.
    pub(crate) fn print(&self, out: &mut dyn Write, ok: bool) -> io::Result<()> {
        let verdict = if ok { "ok" } else { "FAILED" };
        let Self {
            dispatches,
            replayed,
            passes,
            mismatches,
        } = self;
        writeln!(
            out,
            "demo: {verdict} dispatches={dispatches} replayed={replayed} passes={passes} \
             mismatches={mismatches}"
        )
    }
}

/// One line about a program's result.
pub(crate) fn program(out: &mut dyn Write, name: &str, finding: &Finding) -> io::Result<()> {
    match &finding.mismatches.first {
        None => writeln!(out, "{name:<11}  ok      {}", finding.summary),
        Some(first) => {
            let count = table::count(finding.mismatches.count);
            writeln!(
                out,
                "{name:<11}  FAILED  elements wrong: {count}; first: {first}"
            )
        }
    }
}

/// The table of counters, and below it what does not belong in a good report.
pub(crate) fn profiles(out: &mut dyn Write, profiles: &[Profile]) -> io::Result<()> {
    let heads = [
        "kernel",
        "dispatches",
        "pass",
        "bytes read",
        "bytes written",
        "operations",
        "wall time",
    ];
    writeln!(
        out,
        "\nper pass: sums over the kernel's dispatches, and the median wall time\n"
    )?;
    let kernels = kernels(profiles);
    let rows: Vec<_> = kernels.iter().flat_map(|kernel| rows(kernel)).collect();
    table::print(out, heads, &rows)?;
    writeln!(out)?;
    for kernel in &kernels {
        print_unequal(out, kernel)?;
        print_not_replayed(out, kernel)?;
    }
    Ok(())
}

/// Says if counters of a kernel differ between passes.
fn print_unequal(out: &mut dyn Write, kernel: &[&Profile]) -> io::Result<()> {
    let mut all = kernel.iter().flat_map(|profile| {
        let report = &profile.report;
        unequal(&profile.passes).map(move |(pass, counter)| (report, pass, counter))
    });
    let Some((report, pass, counter)) = all.next() else {
        return Ok(());
    };
    writeln!(
        out,
        "{}: counters unequal to those of pass 0: {}; first: {counter} in pass {pass} of {}",
        report.dispatch.kernel_name,
        table::count(1 + all.count() as u64),
        report.id,
    )
}

/// Says if dispatches of a kernel were not replayed.
fn print_not_replayed(out: &mut dyn Write, kernel: &[&Profile]) -> io::Result<()> {
    let mut all = kernel.iter().filter(|profile| !replayed(profile));
    let Some(Profile { report, .. }) = all.next() else {
        return Ok(());
    };
    writeln!(
        out,
        "{}: dispatches not replayed: {}; first: {} is {}, {}: {}",
        report.dispatch.kernel_name,
        table::count(1 + all.count() as u64),
        report.id,
        report.outcome,
        report.reason.map_or("no reason", |reason| reason.as_str()),
        report.message.as_deref().unwrap_or("no message"),
    )
}

fn replayed(profile: &Profile) -> bool {
    matches!(
        profile.report.outcome,
        Outcome::Replayed | Outcome::Repaired
    )
}

/// Pass and name of each counter that must be equal in all passes of a dispatch and differs from
/// pass 0. Wall time may differ.
fn unequal(passes: &[HostCounters]) -> impl Iterator<Item = (usize, &'static str)> {
    passes.iter().enumerate().flat_map(|(pass, counters)| {
        let first = &passes[0];
        [
            (counters.bytes_read != first.bytes_read, "bytes read"),
            (
                counters.bytes_written != first.bytes_written,
                "bytes written",
            ),
            (counters.operations != first.operations, "operations"),
        ]
        .into_iter()
        .filter_map(move |(differs, name)| differs.then_some((pass, name)))
    })
}

/// The dispatches of each kernel, kernels in the order of their first launch.
fn kernels(profiles: &[Profile]) -> Vec<Vec<&Profile>> {
    let mut kernels: Vec<Vec<&Profile>> = Vec::new();
    for profile in profiles {
        let name = &profile.report.dispatch.kernel_name;
        match kernels
            .iter_mut()
            .find(|kernel| kernel[0].report.dispatch.kernel_name == *name)
        {
            Some(kernel) => kernel.push(profile),
            None => kernels.push(vec![profile]),
        }
    }
    kernels
}

/// One row per pass of one kernel; its name stands in the first.
fn rows(kernel: &[&Profile]) -> Vec<[String; 7]> {
    let passes = kernel.iter().map(|profile| profile.passes.len()).max();
    let row = |pass: usize| {
        let counters = kernel.iter().filter_map(|profile| profile.passes.get(pass));
        let sum = |of: fn(&HostCounters) -> u64| counters.clone().map(of).sum();
        let (name, dispatches) = match pass {
            0 => (
                kernel[0].report.dispatch.kernel_name.to_string(),
                kernel.len().to_string(),
            ),
            _ => Default::default(),
        };
        [
            name,
            dispatches,
            pass.to_string(),
            table::bytes(sum(|counters| counters.bytes_read)),
            table::bytes(sum(|counters| counters.bytes_written)),
            table::count(sum(|counters| counters.operations)),
            table::time(median(counters.map(|counters| counters.wall).collect())),
        ]
    };
    (0..passes.unwrap_or_default()).map(row).collect()
}

/// The middle one; of an even number, the upper of the two in the middle.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(bytes_read: u64, operations: u64, wall: u64) -> HostCounters {
        let wall = Duration::from_nanos(wall);
        HostCounters {
            bytes_read,
            operations,
            wall,
            ..HostCounters::default()
        }
    }

    #[test]
    fn work_must_be_equal_in_all_passes_and_time_need_not() {
        let passes = [counters(8, 1, 5), counters(8, 1, 6), counters(4, 2, 5)];
        assert_eq!(unequal(&passes[..2]).count(), 0);
        let found: Vec<_> = unequal(&passes).collect();
        assert_eq!(found, [(2, "bytes read"), (2, "operations")]);
        assert_eq!(unequal(&[]).count(), 0);
    }

    #[test]
    fn only_complete_and_right_is_ok() {
        let totals = |dispatches, replayed, passes, mismatches| Totals {
            dispatches,
            replayed,
            passes,
            mismatches,
        };
        assert!(totals(3, 3, 6, 0).ok(2));
        for bad in [(3, 2, 6, 0), (3, 3, 5, 0), (3, 3, 6, 1), (0, 0, 0, 0)] {
            assert!(!totals(bad.0, bad.1, bad.2, bad.3).ok(2), "{bad:?}");
        }
    }

    #[test]
    fn medians() {
        let median =
            |times: &[u64]| median(times.iter().copied().map(Duration::from_nanos).collect());
        assert_eq!(median(&[]), Duration::ZERO);
        assert_eq!(median(&[9, 1, 5]), Duration::from_nanos(5));
    }
}
