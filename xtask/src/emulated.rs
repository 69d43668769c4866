//! The command `cargo xtask emulated`: a program on the emulated GPU; and the step `emulator`.
//!
//! The stand-in for the driver's library is built and laid out under the name that the HSA runtime
//! asks for; the program finds it first. The program's exit status is ours.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::cargo::{cargo, root, tests};
use crate::packages;
use crate::steps::Outcome;

/// The crates that make up the emulated GPU and the way to it.
const CRATES: [&str; 3] = ["hsa-sys", "amdgpu-emu", "hsakmt-emu"];

/// The step: the packages that the emulator's tests need, then those tests.
pub(crate) fn run() -> Result<Outcome, String> {
    packages::run()?;
    let mut command = cargo(["test", "--no-fail-fast"]);
    for name in CRATES {
        command.args(["--package", name]);
    }
    tests(&mut command)
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    trace: bool,
    program: Vec<OsString>,
}

impl Request {
    /// Reads `[--trace] [--] PROGRAM ARGS…`.
    ///
    /// # Errors
    ///
    /// One sentence that says what is wrong.
    pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut args = args.peekable();
        let mut trace = false;
        while let Some(arg) = args.next_if(|arg| arg.as_encoded_bytes().starts_with(b"-")) {
            match arg.to_str() {
                Some("--trace") => trace = true,
                Some("--") => break,
                _ => {
                    let arg = arg.to_string_lossy();
                    return Err(format!(
                        "unknown option `{arg}` of `emulated`; it takes --trace, then -- and a program"
                    ));
                }
            }
        }
        let program: Vec<_> = args.collect();
        if program.is_empty() {
            return Err("`emulated` needs a program: cargo xtask emulated -- PROGRAM ARGS…".into());
        }
        Ok(Self { trace, program })
    }
}

/// Builds the emulator and becomes the program. Returns only if that fails.
pub(crate) fn become_program(request: &Request) -> String {
    let folder = match lay_out() {
        Ok(folder) => folder,
        Err(message) => return message,
    };
    let mut path = folder.into_os_string();
    if let Some(others) = std::env::var_os("LD_LIBRARY_PATH").filter(|path| !path.is_empty()) {
        path.push(OsStr::new(":"));
        path.push(others);
    }
    let mut command = Command::new(&request.program[0]);
    command
        .args(&request.program[1..])
        .env("LD_LIBRARY_PATH", path);
    if request.trace {
        command.env("KR_EMU_TRACE", "1");
    }
    let error = command.stdin(Stdio::inherit()).exec();
    let program = request.program[0].to_string_lossy();
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
            Ok(Request { trace, program })
        };
        assert_eq!(parse(&["--", "a", "-b"]), request(false, &["a", "-b"]));
        assert_eq!(parse(&["a", "--trace"]), request(false, &["a", "--trace"]));
        assert_eq!(parse(&["--trace", "--", "--x"]), request(true, &["--x"]));
    }

    #[test]
    fn nonsense_is_refused_in_one_sentence() {
        assert!(parse(&["--trace"]).unwrap_err().contains("needs a program"));
        assert!(parse(&["--fast", "a"]).unwrap_err().contains("`--fast`"));
    }
}
