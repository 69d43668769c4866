//! Step `demo` and the command `cargo xtask demo`: the demo of kr-replay.
//!
//! The development profile is used: `cargo test` has built the example by then.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::cargo::{cargo, stream, succeed};
use crate::steps::Outcome;

/// What the demo says if a result was not the expected one.
const FAILED: &str = "demo: FAILED";

/// The step: right with restore, and caught to be wrong without it.
pub(crate) fn run() -> Result<Outcome, String> {
    succeed(&mut demo())?;
    let mut admitted = false;
    let status = stream(demo().arg("--no-restore"), |line| {
        admitted |= line.starts_with(FAILED);
    })?;
    if status.code() == Some(1) && admitted {
        Ok(Outcome::Held("right with restore, wrong without".into()))
    } else {
        let line = if admitted { "a line" } else { "no line" };
        Err(format!(
            "without restore the demo must end with exit status 1 and a line `{FAILED}`, \
             not with {status} and {line}"
        ))
    }
}

/// The command: this process becomes the demo, so its exit status and signals are the demo's own.
/// Returns only if that fails.
pub(crate) fn become_demo(args: Vec<OsString>) -> String {
    let error = demo().args(args).stdin(Stdio::inherit()).exec();
    format!("cannot start cargo: {error}")
}

fn demo() -> Command {
    cargo([
        "run",
        "--quiet",
        "--package",
        "kr-replay",
        "--example",
        "demo",
        "--",
    ])
}
