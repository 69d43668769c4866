//! The real ROCr on the emulated agents.
//!
//! Each case is a process of its own: one `hsa_init`, one set of variables, and a crash is one failed case. The
//! parent starts itself again with the case's name, after it made a folder in which the library that stands beside
//! this executable has the name that ROCr asks for. Where no ROCr is installed, all cases are ignored, and the reason
//! is printed and kept in the target folder.

mod cases;
mod client;

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};

use cases::{CASES, Case, End};

/// The variable that makes a process run a case.
const CASE: &str = "HSAKMT_EMU_CASE";

/// The longest that a case may take.
const LIMIT: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(CASE) {
        let case = CASES
            .iter()
            .find(|case| case.name == name)
            .expect("the parent process knows the cases");
        (case.run)();
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::from_args();
    let missing = missing();
    if let Some(reason) = &missing {
        skip(reason);
    }
    let library = if missing.is_none() {
        library_folder()
    } else {
        PathBuf::new()
    };
    let trials = CASES.iter().map(|case| {
        let library = library.clone();
        Trial::test(case.name, move || run(case, &library)).with_ignored_flag(missing.is_some())
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Why the cases can't run here.
fn missing() -> Option<String> {
    // SAFETY: what the loader finds under the runtime's name is ROCr, which does nothing before it is called.
    unsafe { hsa_sys::Library::open() }
        .err()
        .map(|error| error.to_string())
}

/// Says that all cases are skipped, here and in the list of all skipped tests.
fn skip(reason: &str) {
    let mut list = String::new();
    for case in CASES {
        writeln!(list, "{}: {reason}", case.name).expect("a string takes all text");
    }
    print!("{list}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("skips");
    let written = std::fs::create_dir_all(&folder).and_then(|()| {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.join("hsakmt-emu.txt"));
        file?.write_all(list.as_bytes())
    });
    if let Err(error) = written {
        eprintln!(
            "cannot keep the list of skipped cases in {}: {error}",
            folder.display()
        );
    }
}

/// A folder in which the library of this crate is `libhsakmt.so.1`.
fn library_folder() -> PathBuf {
    let this = std::env::current_exe().expect("a test knows where it is");
    let library = this.with_file_name("libhsakmt_emu.so");
    assert!(
        library.exists(),
        "{} is built together with this test",
        library.display()
    );
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hsakmt-emu");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let link = folder.join("libhsakmt.so.1");
    // Another run of this test may be doing the same; a link replaces another in one step.
    let new = folder.join(format!("libhsakmt.so.1.{}", std::process::id()));
    std::os::unix::fs::symlink(library, &new).expect("the target folder can be written");
    std::fs::rename(new, link).expect("the target folder can be written");
    folder
}

/// The command that runs a case.
fn command(name: &str, vars: &[(&str, &str)], library: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test knows where it is"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("KR_EMU_") || text.starts_with("HSA_") || text.starts_with("ROCR_") {
            command.env_remove(&name);
        }
    }
    command
        .env(CASE, name)
        .env("LD_LIBRARY_PATH", library)
        .envs(vars.iter().copied());
    command
}

fn run(case: &Case, library: &Path) -> Result<(), Failed> {
    let output = output(&mut command(case.name, case.vars, library));
    let errors = String::from_utf8_lossy(&output.stderr);
    let (ended, said) = match &case.end {
        End::Well => (output.status.success(), &[][..]),
        End::Said(texts) => (output.status.success(), *texts),
        End::Aborted(text) => (
            output.status.signal() == Some(libc::SIGABRT),
            std::slice::from_ref(text),
        ),
    };
    if ended && said.iter().all(|text| errors.contains(text)) {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    Err(format!(
        "want {:?}, got {}\n{printed}{errors}",
        case.end, output.status
    )
    .into())
}

/// Runs a command to its end, or kills it.
fn output(command: &mut Command) -> Output {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this test can be started");
    let until = Instant::now() + LIMIT;
    // The pipes hold what a case prints; one that prints more is stuck and dies of the limit.
    while child.try_wait().expect("the child is ours").is_none() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
    // A child that has ended can't be killed any more.
    let _ = child.kill();
    child.wait_with_output().expect("the child is ours")
}
