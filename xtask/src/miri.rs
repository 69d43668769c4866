//! Step `miri`: no undefined behaviour in the code that Miri can run.
//!
//! Miri is part of nightly tool chains only, so it is never the only proof of anything.

use crate::cargo::{cargo, has, tests};
use crate::steps::Outcome;
use crate::workspace;

/// Crates without foreign code: the vocabulary, and what runs on the host backend.
const CRATES: &[&str] = &[
    "kr-types",
    "kr-device",
    "kr-storage",
    "kr-plan",
    "kr-policy",
    "kr-tracker",
    "kr-blit",
];

/// Runs the unit tests of [`CRATES`] under Miri, where it is installed.
pub(crate) fn run() -> Result<Outcome, String> {
    if !has("miri") {
        let why = "cargo miri is not installed; nightly tool chains have it as a component";
        return Ok(Outcome::Skipped(why.into()));
    }
    let mut command = cargo(["miri", "test", "--lib"]);
    for member in workspace::members()? {
        if CRATES.contains(&&*member.name) {
            command.args(["--package", &member.name]);
        }
    }
    // The host backend claims that no integer becomes a pointer; the clock needs no isolation.
    command.env(
        "MIRIFLAGS",
        "-Zmiri-strict-provenance -Zmiri-disable-isolation",
    );
    tests(&mut command)
}
