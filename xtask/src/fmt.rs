//! Step `fmt`: every file is formatted as rustfmt would.

use crate::cargo::{cargo, need, succeed};
use crate::steps::Outcome;

/// Checks, changes nothing.
pub(crate) fn run() -> Result<Outcome, String> {
    need("fmt", "rustfmt")?;
    succeed(&mut cargo(["fmt", "--all", "--check"]))
        .map_err(|_| String::from("run `cargo fmt --all`"))?;
    // The fuzz targets are a workspace of their own.
    let fuzz = ["fmt", "--manifest-path", "fuzz/Cargo.toml"];
    succeed(cargo(fuzz).arg("--check")).map_err(|_| format!("run `cargo {}`", fuzz.join(" ")))?;
    Ok(Outcome::Held("all files".into()))
}
