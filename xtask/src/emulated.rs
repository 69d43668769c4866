//! The command `cargo xtask emulated`: a program on the emulated GPU; and the steps `emulator` and
//! `emulated`.
//!
//! The stand-in for the driver's library is built and laid out under the name that the HSA runtime
//! asks for; the program finds it first. The program's exit status is ours. What can be chosen and
//! what is not modelled is told from the page about the emulator, which its tests keep true.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::cargo::{cargo, root, tests};
use crate::output::say;
use crate::steps::Outcome;
use crate::{compiler, packages};

/// The crates that make up the emulated GPU and the way to it.
const CRATES: [&str; 3] = ["hsa-sys", "amdgpu-emu", "hsakmt-emu"];

/// The step: the packages that the emulator's tests need, then those tests.
pub(crate) fn run() -> Result<Outcome, String> {
    packages::run()?;
    compiler::run()?;
    let mut command = cargo(["test", "--no-fail-fast"]);
    for name in CRATES {
        command.args(["--package", name]);
    }
    tests(&mut command)
}

/// The page about the emulator.
const PAGE: &str = include_str!("../../docs/emulated-gpu.md");

/// How the line of the page begins that runs a program of this repository.
const SAMPLE: &str = "cargo xtask emulated -- cargo run ";

/// What the sample says where no HSA runtime is installed.
const NO_RUNTIME: &str = "cannot open the HSA runtime";

/// The step: the program that the page shows runs as the page says, from an environment of nothing
/// but a home and a path.
pub(crate) fn sample() -> Result<Outcome, String> {
    let line = PAGE.lines().find(|line| line.starts_with(SAMPLE));
    let line = line.ok_or_else(|| format!("the page has no line `{SAMPLE}…`"))?;
    say(format_args!("$ {line}"));
    let mut command = cargo(line.split_whitespace().skip(1));
    command
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| {
            let name = name.to_string_lossy();
            // What says which tool chain builds is not a program's environment.
            let of_tools = ["CARGO", "RUSTUP"]
                .iter()
                .any(|tool| name.starts_with(tool));
            of_tools || ["HOME", "PATH"].contains(&&*name)
        }));
    command.env("RUSTUP_AUTO_INSTALL", "0");
    let output = command
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    if output.status.success() {
        return Ok(Outcome::Held(printed.trim().to_owned()));
    }
    match errors.lines().find(|line| line.contains(NO_RUNTIME)) {
        Some(line) => Ok(Outcome::Skipped(line.to_owned())),
        None => Err(format!(
            "`{line}` ended with {}\n{printed}{errors}",
            output.status
        )),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Say what there is.
    Help,
    /// Run a program.
    Run {
        /// Whether executed instructions are to be listed.
        trace: bool,
        /// The program and its arguments; never empty.
        program: Vec<OsString>,
    },
}

impl Request {
    /// Reads `[--help] [--trace] [--] PROGRAM ARGS…`.
    ///
    /// # Errors
    ///
    /// One sentence that says what is wrong.
    pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut args = args.peekable();
        let mut trace = false;
        while let Some(arg) = args.next_if(|arg| arg.as_encoded_bytes().starts_with(b"-")) {
            match arg.to_str() {
                Some("--help" | "-h") => return Ok(Self::Help),
                Some("--trace") => trace = true,
                Some("--") => break,
                _ => {
                    let arg = arg.to_string_lossy();
                    return Err(format!(
                        "unknown option `{arg}` of `emulated`; it takes --help or --trace, then -- and a program"
                    ));
                }
            }
        }
        let program: Vec<_> = args.collect();
        if program.is_empty() {
            return Err("`emulated` needs a program: cargo xtask emulated -- PROGRAM ARGS…".into());
        }
        Ok(Self::Run { trace, program })
    }
}

/// Does what was asked for. A program replaces this process, so that its exit status and signals are
/// its own; then this returns only if that fails.
///
/// # Errors
///
/// The emulator does not build, or the program can't be started.
pub(crate) fn start(request: &Request) -> Result<bool, String> {
    match request {
        Request::Help => {
            say(help());
            Ok(true)
        }
        Request::Run { trace, program } => Err(become_program(*trace, program)),
    }
}

/// What `cargo xtask emulated --help` prints.
fn help() -> String {
    let [variables, not_modelled] = ["Variables", "What is not modelled"].map(section);
    format!(
        "\
cargo xtask emulated [--trace] -- PROGRAM ARGS…

Runs an HSA program on ROCr 5.2.3 (Debian 12: libhsa-runtime64-1) with an emulated gfx90a.
--trace lists the wave instructions that it executes, on standard error.
See docs/emulated-gpu.md.

{variables}
{not_modelled}"
    )
}

/// A part of the page, with its headline.
fn section(headline: &str) -> &'static str {
    let mut rest = PAGE;
    while let Some(at) = rest.find("\n## ") {
        rest = &rest[at + 1..];
        if rest[3..].starts_with(headline) {
            let end = rest.find("\n\n## ").map_or(rest.len(), |end| end + 1);
            return &rest[3..end];
        }
    }
    ""
}

/// Builds the emulator and becomes the program. Returns only if that fails.
fn become_program(trace: bool, program: &[OsString]) -> String {
    let folder = match lay_out() {
        Ok(folder) => folder,
        Err(message) => return message,
    };
    let mut path = folder.into_os_string();
    if let Some(others) = std::env::var_os("LD_LIBRARY_PATH").filter(|path| !path.is_empty()) {
        path.push(OsStr::new(":"));
        path.push(others);
    }
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]).env("LD_LIBRARY_PATH", path);
    if trace {
        command.env("KR_EMU_TRACE", "1");
    }
    let error = command.stdin(Stdio::inherit()).exec();
    let program = program[0].to_string_lossy();
    format!("cannot start `{program}`: {error}")
}

/// The folder in which the stand-in has the driver's name.
fn lay_out() -> Result<PathBuf, String> {
    // Optimised: an interpreter that is not takes ten times as long.
    let mut build = cargo(["build", "--quiet", "--release", "--package", "hsakmt-emu"]);
    // The program's output is the only one.
    let built = build.stdout(Stdio::null()).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("the emulator does not build".into());
    }
    let folder = root().join("target/emulated");
    let name = folder.join("libhsakmt.so.1");
    let library = root().join("target/release/libhsakmt_emu.so");
    let failed = |error| format!("cannot make {}: {error}", name.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    match std::fs::remove_file(&name) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => std::os::unix::fs::symlink(&library, &name).map_err(failed)?,
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Request, String> {
        Request::parse(args.iter().map(OsString::from))
    }

    #[test]
    fn options_end_at_the_program() {
        let request = |trace, program: &[&str]| {
            let program = program.iter().map(OsString::from).collect();
            Ok(Request::Run { trace, program })
        };
        assert_eq!(parse(&["--", "a", "-b"]), request(false, &["a", "-b"]));
        assert_eq!(parse(&["a", "--trace"]), request(false, &["a", "--trace"]));
        assert_eq!(parse(&["--trace", "--", "--x"]), request(true, &["--x"]));
        assert_eq!(parse(&["--trace", "--help"]), Ok(Request::Help));
        assert_eq!(parse(&["a", "--help"]), request(false, &["a", "--help"]));
    }

    /// The page is where the help comes from; a headline that changed must not empty it.
    #[test]
    fn help_has_what_the_page_lists() {
        let help = help();
        assert!(
            help.contains("\nVariables\n") && help.contains("| `KR_EMU_TRACE` |"),
            "{help}"
        );
        assert!(
            help.contains("\nWhat is not modelled\n\n- Time: "),
            "{help}"
        );
        assert!(
            help.ends_with(".\n") && !help.contains("rocminfo"),
            "{help}"
        );
    }

    #[test]
    fn nonsense_is_refused_in_one_sentence() {
        assert!(parse(&["--trace"]).unwrap_err().contains("needs a program"));
        assert!(parse(&["--fast", "a"]).unwrap_err().contains("`--fast`"));
    }
}
