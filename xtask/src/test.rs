//! Step `test`: everything builds, and unit, integration and doc tests hold.

use crate::cargo::{cargo, succeed, tests};
use crate::steps::Outcome;

/// Builds first, so that code that does not build is told from tests that fail.
pub(crate) fn run() -> Result<Outcome, String> {
    if succeed(&mut cargo(["test", "--workspace", "--no-run"])).is_err() {
        return Ok(Outcome::BuildBroken);
    }
    tests(&mut cargo(["test", "--workspace", "--no-fail-fast"]))
}
