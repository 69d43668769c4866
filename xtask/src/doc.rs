//! Step `doc`: the documentation builds, and no link in it is broken.

use crate::cargo::{cargo, succeed};
use crate::steps::Outcome;

/// Doc tests are not here; they run with the tests.
pub(crate) fn run() -> Result<Outcome, String> {
    let mut command = cargo(["doc", "--workspace", "--no-deps"]);
    succeed(command.env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(Outcome::Held("all crates".into()))
}
