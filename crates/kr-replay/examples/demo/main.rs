//! Replays real work through a small profiler and shows that it stays right.
//!
//! Five programs (`programs`) launch kernels on the host backend; a profiler of some sixty lines
//! (`profiler`, the code to copy) runs each dispatch several times; every result is compared with a
//! plain computation on the CPU, and the counters of all passes with each other. With
//! `--no-restore` memory is not put back, and the same comparisons must fail: that they do shows
//! that they could.

mod app;
mod args;
mod input;
mod matrix;
mod profiler;
mod programs;
mod report;
mod table;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;
use std::sync::Arc;

use kr_replay::host::HostRuntime;
use kr_types::AgentId;

use app::{App, Progress};
use args::{Command, HELP, Options};
use profiler::Profiler;
use programs::{Histogram, Jacobi, MonteCarlo, Program, Saxpy, Spmv};
use report::Totals;

/// How the process ends.
#[derive(Debug, PartialEq)]
enum Exit {
    Ok = 0,
    Failed = 1,
    Usage = 2,
}

/// How much the programs do.
struct Sizes {
    saxpy_elements: usize,
    jacobi_side: usize,
    jacobi_sweeps: usize,
    mesh_side: usize,
    monte_carlo_lanes: usize,
}

impl Sizes {
    const REAL: Self = Self {
        saxpy_elements: 1 << 20,
        jacobi_side: 512,
        jacobi_sweeps: 30,
        mesh_side: 100,
        monte_carlo_lanes: 1 << 14,
    };
}

fn main() -> ExitCode {
    // Not locked: a kernel that panics on a queue's thread reports to the same stream.
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let terminal = err.is_terminal();
    let args = std::env::args_os().skip(1);
    ExitCode::from(demo(args, &Sizes::REAL, &mut out, &mut err, terminal) as u8)
}

/// The whole demo. `terminal` says whether a line on `err` can be overwritten.
fn demo(
    args: impl IntoIterator<Item = OsString>,
    sizes: &Sizes,
    out: &mut dyn Write,
    err: &mut dyn Write,
    terminal: bool,
) -> Exit {
    let done = match args::parse(args) {
        Ok(Command::Help) => out
            .write_all(HELP.as_bytes())
            .map(|()| true)
            .map_err(Into::into),
        Ok(Command::Run(options)) => {
            let progress = Progress::new(terminal.then_some(&mut *err));
            run(&options, sizes, out, progress)
        }
        Err(error) => {
            // Where even this cannot be written, the exit status is all there is.
            let _ = writeln!(err, "demo: {error}; see --help");
            return Exit::Usage;
        }
    };
    match done {
        Ok(true) => Exit::Ok,
        Ok(false) => Exit::Failed,
        Err(error) => {
            let _ = writeln!(err, "demo: FAILED {}", sentence(&*error));
            Exit::Failed
        }
    }
}

/// Runs all programs under the profiler and reports. Whether everything was right.
fn run(
    options: &Options,
    sizes: &Sizes,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<bool, Box<dyn Error>> {
    let programs = programs(options, sizes)?;

    let runtime = HostRuntime::new(AgentId(0));
    let profiler = Arc::new(Profiler::new(options.passes));
    let engine = runtime.engine(profiler.clone());
    let engine = match options.restore {
        true => engine,
        false => engine.without_restore(),
    };
    runtime.attach(engine.build()?);

    let app = App::new(runtime, progress);
    let mut wrong_elements = 0;
    for program in programs {
        let found = program.run(&app);
        app.progress().clear();
        let finding =
            found.map_err(|error| format!("{}: {}", program.name(), sentence(&*error)))?;
        wrong_elements += finding.mismatches.count;
        report::program(out, program.name(), &finding)?;
    }

    let profiles = profiler.profiles();
    let totals = Totals::new(app.launched(), wrong_elements, &profiles);
    let ok = totals.ok(options.passes);
    report::profiles(out, &profiles)?;
    totals.print(out, ok)?;
    Ok(ok)
}

/// The programs with their inputs, all of which are read here, before anything runs.
fn programs(options: &Options, sizes: &Sizes) -> Result<Vec<Box<dyn Program>>, Box<dyn Error>> {
    let (text, origin) = match &options.matrix {
        Some(path) => (input::matrix(path)?, path.display().to_string()),
        None => {
            let text = matrix::generate(sizes.mesh_side).into_bytes();
            (text, "finite elements".into())
        }
    };
    let matrix = matrix::parse(&text).map_err(|error| format!("{origin}: {error}"))?;
    let file = match &options.file {
        Some(path) => path.clone(),
        None => std::env::current_exe()?,
    };
    let bytes = input::data(&file)?;
    Ok(vec![
        Box::new(Saxpy {
            elements: sizes.saxpy_elements,
            launches: 4,
        }),
        Box::new(Jacobi {
            side: sizes.jacobi_side,
            sweeps: sizes.jacobi_sweeps,
        }),
        Box::new(Spmv {
            matrix,
            origin,
            products: 2,
            steps: 6,
        }),
        Box::new(Histogram {
            bytes,
            origin: file.display().to_string(),
            slices: 4,
        }),
        Box::new(MonteCarlo {
            lanes: sizes.monte_carlo_lanes,
            launches: 4,
        }),
    ])
}

/// An error and what is behind it, in one line.
fn sentence(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
