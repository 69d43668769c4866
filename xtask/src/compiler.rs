//! Step `compiler`: the pinned compiler of the test kernels, from PyPI's package `ziglang`.
//!
//! The wheel is unpacked below `target`; nothing of the system changes. Where it cannot be had, the
//! step is skipped, and so is the test that rebuilds the kernels and compares.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cargo::{root, succeed};
use crate::steps::Outcome;

/// The version that the manifest of the test kernels names.
const VERSION: &str = "0.17.1";

/// Fetches the compiler unless it is there.
pub(crate) fn run() -> Result<Outcome, String> {
    let tools = root().join("target/tools");
    let zig = tools.join("ziglang/zig");
    let there = [
        python().args(["-m", "ziglang", "version"]),
        Command::new(&zig).arg("version"),
    ]
    .into_iter()
    .any(is_pinned);
    if there {
        return Ok(Outcome::Held(format!("ziglang {VERSION} is there")));
    }
    Ok(match fetch(&tools, &zig) {
        Ok(()) => Outcome::Held(format!("fetched ziglang {VERSION}")),
        Err(why) => Outcome::Skipped(format!("ziglang {VERSION} cannot be fetched: {why}")),
    })
}

fn python() -> Command {
    let mut python = Command::new("python3");
    python.stdin(Stdio::null());
    python
}

fn is_pinned(command: &mut Command) -> bool {
    let output = command.stderr(Stdio::null()).output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == VERSION.as_bytes())
}

fn fetch(tools: &Path, zig: &Path) -> Result<(), String> {
    succeed(
        python()
            .args(["-m", "pip", "download", "--quiet", "--no-deps"])
            .args(["--disable-pip-version-check", "--only-binary=:all:"])
            .arg("--dest")
            .arg(tools)
            .arg(format!("ziglang=={VERSION}")),
    )?;
    let wheel = wheel(tools).ok_or("pip left no wheel")?;
    succeed(
        python()
            .args(["-m", "zipfile", "-e"])
            .arg(&wheel)
            .arg(tools),
    )?;
    let failed = |error| format!("cannot use {}: {error}", zig.display());
    // Unpacking does not keep it.
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(zig, executable).map_err(failed)?;
    std::fs::remove_file(&wheel).map_err(failed)?;
    match is_pinned(Command::new(zig).arg("version")) {
        true => Ok(()),
        false => Err("what was unpacked does not run".into()),
    }
}

fn wheel(tools: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(tools).ok()?;
    let mut paths = files.filter_map(|file| Some(file.ok()?.path()));
    paths.find(|path| path.extension().is_some_and(|extension| extension == "whl"))
}
