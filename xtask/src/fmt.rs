//! Step `fmt`: every file is formatted as rustfmt would.

use crate::cargo::{cargo, has, succeed};
use crate::steps::Outcome;

/// Checks, changes nothing.
pub(crate) fn run() -> Result<Outcome, String> {
    if !has("fmt") {
        return Err("rustfmt is not installed; run `rustup component add rustfmt`".into());
    }
    succeed(&mut cargo(["fmt", "--all", "--check"]))
        .map_err(|_| String::from("run `cargo fmt --all`"))?;
    Ok(Outcome::Held("all files".into()))
}
