//! Step `fuzz` and the command `cargo xtask fuzz`: inputs made up by libFuzzer, against models.
//!
//! Targets are the files in `fuzz/fuzz_targets`; each calls one function of a crate. A stable tool chain
//! builds them: libFuzzer's source comes from crates.io, so a C++ compiler is needed, and the options
//! that make the compiler count branches and report comparisons are stable ([`COVERAGE`]). There is no
//! sanitizer: what the targets call is safe code, where a bad index is a panic. The layout is that of
//! `cargo fuzz`, which adds sanitizers where there is a nightly tool chain.
//!
//! What is where, each with a folder per target
//! - `fuzz/seeds`: inputs to begin with, checked in.
//! - `target/fuzz/corpus`: inputs that led somewhere new; the next run begins with them too.
//! - `target/fuzz/found`: inputs that failed. Every run tries them first, so running the target again
//!   repeats the failure until it is mended.
//!
//! The target [`CONTROL`] is broken on purpose, for one input in 2^32. It is run first and must be found
//! out, which chance alone would not do.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::cargo::{cargo, root, succeed};
use crate::output::say;
use crate::steps::{Outcome, seconds};
use crate::tally::Tally;

/// Time of each target in the step.
const SHORT: Duration = Duration::from_secs(10);
/// Time of each target with `--long`.
const LONG: Duration = Duration::from_secs(20 * 60);
/// The target that must fail.
const CONTROL: &str = "control";
/// Counters of branches, with a table of where they are, and reports of operands of comparisons.
const COVERAGE: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";
/// A single input may take this long, and all of them together so much memory. The longest inputs are
/// somewhat longer than a tile and than any test object.
const LIMITS: [&str; 3] = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=20000"];

/// What the command was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Only this target; `None` means all.
    target: Option<String>,
    /// How long each target runs.
    time: Duration,
}

impl Request {
    /// Reads the arguments of the command.
    ///
    /// # Errors
    ///
    /// One sentence that says what would have been understood.
    pub(crate) fn parse(args: &[String]) -> Result<Self, String> {
        let mut request = Self {
            target: None,
            time: SHORT,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match &**arg {
                "--long" => request.time = LONG,
                "--seconds" => {
                    let number = args.next().and_then(|number| number.parse().ok());
                    let number = number.filter(|number| *number > 0);
                    request.time = number
                        .map(Duration::from_secs)
                        .ok_or("`--seconds` wants a whole number above 0")?;
                }
                target if !target.starts_with('-') && request.target.is_none() => {
                    request.target = Some(target.into());
                }
                other => {
                    return Err(format!(
                        "`fuzz` takes one target, `--long` or `--seconds N`, not `{other}`"
                    ));
                }
            }
        }
        Ok(request)
    }
}

/// The step: every target for a short time.
pub(crate) fn run() -> Result<Outcome, String> {
    if let Err(why) = compiler() {
        return Ok(Outcome::Skipped(why));
    }
    let runs = campaign(&targets()?, SHORT)?;
    let failed = runs.iter().filter(|run| run.failure.is_some()).count() as u64;
    let tally = Tally {
        passed: runs.len() as u64 - failed,
        failed,
        skipped: 0,
    };
    if failed == 0 {
        return Ok(Outcome::Ran(tally));
    }
    let failures = runs.iter().filter(|run| run.failure.is_some());
    let names: Vec<_> = failures.map(|run| &*run.target).collect();
    let why = format!("{} failed, see above", names.join(", "));
    Ok(Outcome::Failed { tally, why })
}

/// The command: the target that was asked for, or all; true if none failed.
///
/// # Errors
///
/// There is no such target, or targets cannot be built.
pub(crate) fn explore(request: &Request) -> Result<bool, String> {
    let mut targets = targets()?;
    if let Some(name) = &request.target {
        if !targets.contains(name) {
            let known = targets.join(", ");
            return Err(format!("unknown target `{name}`; targets: {known}"));
        }
        targets.retain(|target| target == name);
    }
    compiler()?;
    let runs = campaign(&targets, request.time)?;
    Ok(runs.iter().all(|run| run.failure.is_none()))
}

/// Says why libFuzzer cannot be built, if it cannot.
fn compiler() -> Result<(), String> {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let version = Command::new(&compiler).arg("--version").output();
    match version {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(format!(
            "no C++ compiler `{}`, which libFuzzer is built with; install g++ or set CXX",
            compiler.display()
        )),
    }
}

/// The names of all targets but the control, sorted.
fn targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/fuzz_targets");
    let unreadable = |error| format!("cannot read {}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_stem().unwrap_or_default();
        if path.extension() == Some(OsStr::new("rs")) && name != CONTROL {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// One run of one target.
#[derive(Debug)]
struct Run {
    target: String,
    /// Inputs that were tried.
    executions: u64,
    /// Inputs that each lead somewhere that no other one does.
    corpus: u64,
    time: Duration,
    /// What went wrong, and with which input.
    failure: Option<String>,
}

/// Builds everything, shows that a bug would be found, and runs `targets`, as many at once as there are
/// processors.
fn campaign(targets: &[String], time: Duration) -> Result<Vec<Run>, String> {
    let programs = build()?;
    control(&programs)?;
    let width = targets.iter().map(String::len).max().unwrap_or(0);
    let next = Mutex::new(targets.iter());
    let work = || -> Result<Vec<Run>, String> {
        let mut runs = Vec::new();
        loop {
            // In a statement of its own, so that the lock is not held during the run.
            let target = next.lock().map_err(|_| "another run panicked")?.next();
            let Some(target) = target else {
                return Ok(runs);
            };
            let run = fuzz(&programs, target, time)?;
            say(run.described(width));
            runs.push(run);
        }
    };
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    say(format_args!(
        "targets: {}, {jobs} at a time, {} each",
        targets.len(),
        seconds(time)
    ));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let mut runs = Vec::new();
        for worker in workers {
            runs.extend(worker.join().map_err(|_| "a run panicked")??);
        }
        Ok(runs)
    })
}

impl Run {
    fn described(&self, width: usize) -> String {
        let Self {
            target,
            executions,
            corpus,
            time,
            failure,
        } = self;
        let rate = *executions as f64 / time.as_secs_f64();
        let counts = format!(
            "{target:<width$} {executions:>12} executions {rate:>9.0}/s {corpus:>6} in corpus {:>9}",
            seconds(*time)
        );
        match failure {
            None => counts,
            Some(failure) => format!("{counts}\n  FAILED: {failure}"),
        }
    }
}

/// Builds all targets and returns the folder that they are in.
fn build() -> Result<PathBuf, String> {
    let host = host()?;
    let mut command = cargo(["build", "--quiet", "--release"]);
    // With a target named, the flags do not reach build scripts and procedural macros.
    command
        .args(["--manifest-path", "fuzz/Cargo.toml", "--target", &host])
        .env("RUSTFLAGS", COVERAGE)
        .env("CARGO_TARGET_DIR", "target/fuzz");
    succeed(&mut command)?;
    Ok(root().join("target/fuzz").join(host).join("release"))
}

/// The target triple of this machine, as its compiler calls it.
fn host() -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .arg("-vV")
        .output()
        .map_err(|error| format!("cannot start rustc: {error}"))?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(String::from)
        .ok_or_else(|| "rustc does not say which host it is for".into())
}

/// Runs the target that must fail.
fn control(programs: &Path) -> Result<(), String> {
    let kept = root().join("target/fuzz/control");
    match fs::remove_file(&kept) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("cannot remove {}: {error}", kept.display()));
        }
        _ => {}
    }
    let log = log_of(
        Command::new(programs.join(CONTROL))
            .arg(total(SHORT))
            .arg(joined("-exact_artifact_path=", &kept)),
    )?;
    if log.success || !kept.exists() {
        let tried = log.stat("number_of_executed_units").unwrap_or(0);
        return Err(format!(
            "the bug in `{CONTROL}` was not found with {tried} inputs, so nor would others be"
        ));
    }
    Ok(())
}

/// Runs one target.
fn fuzz(programs: &Path, target: &str, time: Duration) -> Result<Run, String> {
    let folder = |kind: &str| root().join(kind).join(target);
    let (corpus, found) = (folder("target/fuzz/corpus"), folder("target/fuzz/found"));
    for folder in [&corpus, &found] {
        fs::create_dir_all(folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    }
    let mut command = Command::new(programs.join(target));
    // libFuzzer writes to the first folder and only reads the others.
    command
        .args([&corpus, &found, &folder("fuzz/seeds")])
        .args(LIMITS)
        .arg(total(time))
        .arg("-print_final_stats=1")
        .arg(joined("-artifact_prefix=", &found.join("")));
    let start = Instant::now();
    let log = log_of(&mut command)?;
    let time = start.elapsed();
    let executions = log.stat("number_of_executed_units").unwrap_or(0);
    Ok(Run {
        target: target.into(),
        executions,
        corpus: log.corpus().unwrap_or(0),
        time,
        failure: log.failure(target, executions),
    })
}

/// The option that limits the time of a run.
fn total(time: Duration) -> String {
    format!("-max_total_time={}", time.as_secs())
}

fn joined(option: &str, path: &Path) -> std::ffi::OsString {
    let mut joined = std::ffi::OsString::from(option);
    joined.push(path);
    joined
}

/// What a target wrote, and how it ended.
struct Log {
    text: String,
    success: bool,
}

fn log_of(command: &mut Command) -> Result<Log, String> {
    let output = command
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start a fuzz target: {error}"))?;
    Ok(Log {
        text: String::from_utf8_lossy(&output.stderr).into_owned(),
        success: output.status.success(),
    })
}

impl Log {
    /// One of the numbers at the end.
    fn stat(&self, name: &str) -> Option<u64> {
        self.text.lines().rev().find_map(|line| {
            let line = line.strip_prefix("stat::")?.strip_prefix(name)?;
            line.strip_prefix(':')?.trim().parse().ok()
        })
    }

    /// Inputs in the corpus, of the last line that says so: `#81 DONE cov: 9 ft: 9 corp: 2/8b …`.
    fn corpus(&self) -> Option<u64> {
        self.text.lines().rev().find_map(|line| {
            let (_, corpus) = line.strip_prefix('#')?.split_once(" corp: ")?;
            corpus.split_once('/')?.0.parse().ok()
        })
    }

    /// What went wrong: the panic, or what libFuzzer calls it, and the input.
    fn failure(&self, target: &str, executions: u64) -> Option<String> {
        if self.success {
            return (executions == 0).then(|| "not one input was tried".into());
        }
        let mut lines = self.text.lines();
        let panic = lines.find(|line| line.contains(" panicked at "));
        let mut what = match panic {
            Some(at) => format!("{at} {}", lines.next().unwrap_or_default()),
            None => {
                let mut said = self.text.lines().filter(|line| line.contains("ERROR: "));
                said.next().unwrap_or("it ended without a word").into()
            }
        };
        let written = |line: &str| Some(line.split_once("Test unit written to ")?.1.to_owned());
        if let Some(input) = self.text.lines().find_map(written) {
            what += &format!("\n  input: {input}; `cargo xtask fuzz {target}` tries it first");
        }
        Some(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Request, String> {
        let args: Vec<_> = line.split_whitespace().map(String::from).collect();
        Request::parse(&args)
    }

    fn log(text: &str, success: bool) -> Log {
        let text = text.into();
        Log { text, success }
    }

    const GOOD: &str = "\
INFO: Seed: 42
#2\tINITED cov: 91 ft: 230 corp: 1/1b exec/s: 0 rss: 27Mb
#1986736\tDONE   cov: 91 ft: 236 corp: 68/1322b lim: 18966 exec/s: 180612 rss: 27Mb
Done 1986736 runs in 11 second(s)
stat::number_of_executed_units: 1986736
stat::average_exec_per_sec:     180612
";

    const CRASH: &str = "\
#8\tNEW    cov: 91 ft: 230 corp: 7/9b lim: 4 exec/s: 0 rss: 27Mb L: 2/2 MS: 1 CopyPart-

thread '<unnamed>' (7) panicked at crates/a/src/fuzzing.rs:8:9:
it is odd
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
==7== ERROR: libFuzzer: deadly signal
artifact_prefix='found/'; Test unit written to found/crash-12
stat::number_of_executed_units: 9
";

    #[test]
    fn arguments_are_read() {
        let request = |target: Option<&str>, time| Request {
            target: target.map(String::from),
            time,
        };
        assert_eq!(parsed(""), Ok(request(None, SHORT)));
        assert_eq!(parsed("--long tiles"), Ok(request(Some("tiles"), LONG)));
        let minute = Duration::from_secs(60);
        assert_eq!(
            parsed("plan --seconds 60"),
            Ok(request(Some("plan"), minute))
        );
        for line in ["--seconds", "--seconds 0", "--seconds x"] {
            assert!(parsed(line).unwrap_err().contains("whole number"), "{line}");
        }
        for line in ["a b", "--short"] {
            assert!(parsed(line).unwrap_err().contains("`--long`"), "{line}");
        }
    }

    #[test]
    fn counts_are_read_from_the_end() {
        let log = log(GOOD, true);
        assert_eq!(log.stat("number_of_executed_units"), Some(1_986_736));
        assert_eq!(log.stat("number_of_executed"), None);
        assert_eq!(log.corpus(), Some(68));
        assert_eq!(log.failure("odd", 1_986_736), None);
    }

    #[test]
    fn a_crash_names_the_panic_and_the_input() {
        let log = log(CRASH, false);
        assert_eq!(log.stat("number_of_executed_units"), Some(9));
        assert_eq!(log.corpus(), Some(7));
        let failure = log.failure("odd", 9).unwrap();
        assert!(failure.contains("fuzzing.rs:8:9: it is odd\n"), "{failure}");
        assert!(
            failure.contains("input: found/crash-12; `cargo xtask fuzz odd`"),
            "{failure}"
        );
    }

    #[test]
    fn what_did_not_run_did_not_hold() {
        let silent = log("", true);
        assert!(silent.failure("odd", 0).is_some());
        let stopped = log("==7== ERROR: libFuzzer: out-of-memory", false);
        let failure = stopped.failure("odd", 3).unwrap();
        assert!(failure.contains("out-of-memory"), "{failure}");
        assert!(log("", false).failure("odd", 3).is_some());
    }

    #[test]
    fn every_target_is_built_and_has_seeds() {
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
        let targets = targets().unwrap();
        assert!(targets.len() >= 6, "{targets:?}");
        for target in targets {
            let line = format!("path = \"fuzz_targets/{target}.rs\"");
            assert!(manifest.contains(&line), "{target} is not in the manifest");
            let seeds = root().join("fuzz/seeds").join(&target);
            let seeds = fs::read_dir(seeds).expect("each target has a folder");
            assert!(seeds.count() > 0, "{target} has no seeds");
        }
    }
}
