//! Running cargo as a child.
//!
//! Children read nothing from the terminal. Their errors go straight to ours; their output is passed
//! on line by line while it is read.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::output;
use crate::steps::Outcome;
use crate::tally::Tally;

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the workspace")
}

/// `cargo ARGS` at the root of the workspace.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root()).stdin(Stdio::null());
    // A test run must not change the tool chain that it runs on.
    command.env("RUSTUP_AUTO_INSTALL", "0");
    command
}

/// Says what to install if a component of the tool chain is missing.
///
/// # Errors
///
/// It is missing.
pub(crate) fn need(subcommand: &str, component: &str) -> Result<(), String> {
    if has(subcommand) {
        Ok(())
    } else {
        Err(format!(
            "{component} is not installed; run `rustup component add {component}`"
        ))
    }
}

/// True if `cargo SUBCOMMAND --version` works, that is, the component is installed.
pub(crate) fn has(subcommand: &str) -> bool {
    cargo([subcommand, "--version"])
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Runs `command` to its end, passing its output on and showing each line to `on_line`.
///
/// # Errors
///
/// The command could not be started, or its output not be read.
pub(crate) fn stream(
    command: &mut Command,
    mut on_line: impl FnMut(&str),
) -> Result<ExitStatus, String> {
    output::say(format_args!("$ {}", shown(command)));
    each_line(command, |line| {
        output::pass_on(line);
        on_line(String::from_utf8_lossy(line).trim_end());
    })
}

/// Runs `command` to its end and hands over each line as it comes, line feed included.
fn each_line(command: &mut Command, mut on_line: impl FnMut(&[u8])) -> Result<ExitStatus, String> {
    let program = program(command);
    let failed = |what: &str, error| format!("cannot {what} `{program}`: {error}");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed("start", error))?;
    let mut lines = BufReader::new(child.stdout.take().expect("its output is piped"));
    let mut line = Vec::new();
    let read = loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => break Ok(()),
            Ok(_) => on_line(&line),
            Err(error) => break Err(error),
        }
    };
    // Closes our end first: a child that still writes ends instead of waiting for a reader.
    drop(lines);
    let status = child.wait().map_err(|error| failed("wait for", error))?;
    read.map_err(|error| failed("read from", error))?;
    Ok(status)
}

/// Runs a command that either succeeds or does not.
///
/// # Errors
///
/// The command could not be run, or said no; what it had to say is on the terminal already.
pub(crate) fn succeed(command: &mut Command) -> Result<(), String> {
    let status = stream(command, |_| ())?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}` ended with {status}", shown(command)))
    }
}

/// Runs test binaries and adds up the tests.
///
/// # Errors
///
/// The command could not be run at all.
pub(crate) fn tests(command: &mut Command) -> Result<Outcome, String> {
    let mut tally = Tally::default();
    let status = stream(command, |line| {
        if let Some(result) = Tally::from_line(line) {
            tally += result;
        }
    })?;
    Ok(judge(tally, status.success(), &status.to_string()))
}

/// A run of tests is good only if tests ran, none failed, and the command agrees.
fn judge(mut tally: Tally, success: bool, status: &str) -> Outcome {
    let why = if tally.failed > 0 {
        format!("{} failed", tally.failed)
    } else if !success {
        tally.failed = 1;
        format!("a test binary did not build or crashed: {status}")
    } else if tally.executed() == 0 {
        tally.failed = 1;
        "not one test ran".into()
    } else {
        return Outcome::Ran(tally);
    };
    Outcome::Failed { tally, why }
}

/// The command as a person would type it at the root of the workspace.
fn shown(command: &Command) -> String {
    let mut words = Vec::new();
    let said = |(name, _): &(&OsStr, _)| *name != "RUSTUP_AUTO_INSTALL";
    for (name, value) in command.get_envs().filter(said) {
        let value = value.unwrap_or_default().to_string_lossy();
        words.push(format!("{}={}", name.to_string_lossy(), quoted(&value)));
    }
    words.push(program(command));
    words.extend(command.get_args().map(|arg| quoted(&arg.to_string_lossy())));
    words.join(" ")
}

/// The name of the program without its folder.
fn program(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    name.to_string_lossy().into_owned()
}

fn quoted(word: &str) -> String {
    if word.is_empty() || word.contains([' ', '\'', '"']) {
        format!("{word:?}")
    } else {
        word.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u64, failed: u64, skipped: u64) -> Tally {
        Tally {
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn a_good_run_needs_a_test_that_ran() {
        assert_eq!(
            judge(tally(3, 0, 1), true, ""),
            Outcome::Ran(tally(3, 0, 1))
        );
        for (counted, success, expected) in [
            (tally(0, 0, 0), true, tally(0, 1, 0)),
            (tally(0, 0, 4), true, tally(0, 1, 4)),
            (tally(3, 0, 0), false, tally(3, 1, 0)),
            (tally(3, 2, 0), false, tally(3, 2, 0)),
            (tally(3, 2, 0), true, tally(3, 2, 0)),
        ] {
            let outcome = judge(counted, success, "signal 11");
            assert_eq!(outcome.tally(), expected, "{outcome:?}");
        }
    }

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command
            .args(["test", "--lib"])
            .env("RUSTFLAGS", "--cfg loom");
        assert_eq!(shown(&command), "RUSTFLAGS=\"--cfg loom\" cargo test --lib");
    }

    #[test]
    fn a_missing_component_is_named() {
        assert_eq!(
            need("no-such-command", "sparkle"),
            Err("sparkle is not installed; run `rustup component add sparkle`".into())
        );
    }

    #[test]
    fn a_command_that_is_not_there_is_an_error() {
        let error = each_line(&mut Command::new("no-such-program-here"), |_| ()).unwrap_err();
        assert!(
            error.contains("cannot start `no-such-program-here`"),
            "{error}"
        );
    }

    #[test]
    fn status_and_lines_of_a_child_come_through() {
        let mut seen = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; printf two; exit 3"]);
        let status = each_line(&mut command, |line| seen.push(line.to_owned())).unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!(seen, [&b"one\n"[..], b"two"]);
    }
}
