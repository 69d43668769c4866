//! Step `demo` and the command `cargo xtask demo`: the demo of kr-replay.
//!
//! The development profile is used: `cargo test` has built the example by then.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::cargo::{cargo, stream, succeed};
use crate::steps::Outcome;

/// The last line of a demo that ran to its end and found its results wrong.
const FAILED: &str = "demo: FAILED dispatches=";
/// Programs whose results depend on restoring: without it they must be found wrong.
const IN_PLACE: [&str; 2] = ["saxpy", "monte-carlo"];

/// The step: right with restore, and caught to be wrong without it.
pub(crate) fn run() -> Result<Outcome, String> {
    succeed(&mut demo())?;
    let mut lines = Vec::new();
    let status = stream(demo().arg("--no-restore"), |line| {
        lines.push(line.to_owned())
    })?;
    missed(&lines, status.code()).map_or_else(
        || Ok(Outcome::Held("right with restore, wrong without".into())),
        |what| Err(format!("without restore the demo must fail: {what}")),
    )
}

/// What the negative control should have shown and did not.
fn missed(lines: &[String], code: Option<i32>) -> Option<String> {
    let found_wrong = |program: &&str| {
        let of = |line: &&String| line.split_whitespace().take(2).eq([*program, "FAILED"]);
        lines.iter().any(|line| of(&line))
    };
    if let Some(program) = IN_PLACE.iter().find(|program| !found_wrong(program)) {
        return Some(format!("`{program}` was not found wrong"));
    }
    if !lines.last().is_some_and(|line| line.starts_with(FAILED)) {
        return Some(format!("its last line does not begin with `{FAILED}`"));
    }
    (code != Some(1)).then(|| format!("its exit status is {code:?}, not 1"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_wants_both_programs_the_last_line_and_the_status() {
        let lines = |of: &[&str]| of.iter().copied().map(String::from).collect::<Vec<_>>();
        let good = [
            "saxpy        FAILED  elements wrong: 3",
            "jacobi       ok",
            "monte-carlo  FAILED  elements wrong: 1",
            "demo: FAILED dispatches=2 replayed=2 passes=4 mismatches=4",
        ];
        assert_eq!(missed(&lines(&good), Some(1)), None);
        assert!(missed(&lines(&good), Some(0)).is_some());
        assert!(missed(&lines(&good), None).is_some());
        for left_out in [0, 2, 3] {
            let mut some = good.to_vec();
            some.remove(left_out);
            assert!(missed(&lines(&some), Some(1)).is_some(), "{left_out}");
        }
        let no_file = ["demo: FAILED a.mtx: no such file"];
        assert!(missed(&lines(&no_file), Some(1)).is_some());
    }
}
