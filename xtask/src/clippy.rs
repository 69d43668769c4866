//! Step `clippy`: no warning in any target of any crate.

use crate::cargo::{cargo, need, succeed};
use crate::steps::Outcome;

/// Warnings are errors here only, so that a half-written change still builds and runs.
pub(crate) fn run() -> Result<Outcome, String> {
    need("clippy", "clippy")?;
    let args = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    succeed(&mut cargo(args))?;
    Ok(Outcome::Held("all targets".into()))
}
