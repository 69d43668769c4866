//! Step `packages`: what some tests need from Debian is installed, where that is possible.
//!
//! Only on a Debian system and only as root; what is installed is said. Everywhere else the step is
//! skipped, and so are, one by one and with their reasons, the tests that would need a package.

use std::process::{Command, Stdio};

use crate::cargo::{stream, succeed};
use crate::output::say;
use crate::steps::Outcome;

/// The HSA runtime and its headers for the emulator's tests; a disassembler, a compiler and a linker
/// for AMD GPUs, to compare the decoder with; pip, which fetches the kernels' own compiler.
const PACKAGES: &[&str] = &[
    "libhsa-runtime64-1",
    "libhsa-runtime-dev",
    "llvm-19",
    "clang-19",
    "lld-19",
    "g++",
    "python3-pip",
];

/// Installs what is missing of [`PACKAGES`].
pub(crate) fn run() -> Result<Outcome, String> {
    let Ok(missing) = missing() else {
        return Ok(Outcome::Skipped("this is not a Debian system".into()));
    };
    if missing.is_empty() {
        return Ok(Outcome::Held("all are there".into()));
    }
    let list = missing.join(" ");
    if !is_root() {
        return Ok(Outcome::Skipped(format!(
            "not root, so not installed: {list}; `apt-get install {list}` as root brings them"
        )));
    }
    say(format_args!("installing {list}"));
    let mut update = apt(&["update", "-q"]);
    let mut install = apt(&["install", "-q", "-y", "--no-install-recommends"]);
    install.args(&missing);
    let done = succeed(&mut update).and_then(|()| succeed(&mut install));
    Ok(match done {
        Ok(()) => Outcome::Held(format!("installed {list}")),
        Err(why) => Outcome::Skipped(format!("cannot be installed: {list}: {why}")),
    })
}

fn apt(args: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    command
}

/// Those of [`PACKAGES`] that are not installed.
///
/// # Errors
///
/// There is no `dpkg-query` to ask.
fn missing() -> Result<Vec<&'static str>, String> {
    let installed = |package: &str| {
        Command::new("dpkg-query")
            .args(["--show", "--showformat=${db:Status-Status}", package])
            .stderr(Stdio::null())
            .output()
            .map(|output| output.stdout == b"installed")
    };
    PACKAGES
        .iter()
        .copied()
        .filter_map(|package| match installed(package) {
            Ok(true) => None,
            Ok(false) => Some(Ok(package)),
            Err(error) => Some(Err(format!("cannot start dpkg-query: {error}"))),
        })
        .collect()
}

fn is_root() -> bool {
    let mut id = String::new();
    let asked = stream(Command::new("id").arg("-u").stdin(Stdio::null()), |line| {
        id = line.to_owned();
    });
    asked.is_ok() && id == "0"
}
