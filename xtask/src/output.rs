//! Lines for the person at the terminal.
//!
//! A reader that goes away (`cargo xtask test | head`) ends the output, not the run, so errors of
//! writing are dropped here on purpose; `println!` would panic.

use std::fmt::Display;
use std::io::{self, Write as _};

/// Writes one line to standard output.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// Passes on bytes of a child as they are.
pub(crate) fn pass_on(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(bytes);
    let _ = stdout.flush();
}

/// Writes one error to standard error.
pub(crate) fn complain(message: impl Display) {
    let _ = writeln!(io::stderr().lock(), "error: {message}");
}
