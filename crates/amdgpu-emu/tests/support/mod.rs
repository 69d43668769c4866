//! What several test programs share: the checked-in objects, tools that may be there, and skips with a reason.
#![allow(dead_code, reason = "each test program uses a part")]

use std::fs;
use std::io::Write as _;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Trial;

/// The kernels in `kernels/test`.
pub(crate) const KERNELS: [&str; 9] = [
    "atomics", "calls", "copy", "counter", "digest", "reduce", "saxpy", "scan", "scratch",
];

/// Code object versions that each is built for.
pub(crate) const VERSIONS: [u8; 2] = [4, 5];

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder with the kernels' sources. It is not part of the package.
pub(crate) fn sources() -> PathBuf {
    crate_dir().join("../../kernels/test")
}

/// Where the checked-in objects lie.
pub(crate) fn objects() -> PathBuf {
    crate_dir().join("tests/objects")
}

/// The checked-in object of a kernel.
pub(crate) fn object(kernel: &str, version: u8) -> Vec<u8> {
    let path = objects().join(format!("{kernel}.v{version}.co"));
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A test that runs if what it needs is there, and else counts as ignored with the reason on record.
pub(crate) fn trial_with<T: Deref + Send + 'static>(
    name: &str,
    need: Result<T, String>,
    test: fn(&T::Target),
) -> Trial {
    match need {
        Ok(tool) => Trial::test(name.to_owned(), move || {
            test(&tool);
            Ok(())
        }),
        Err(reason) => {
            record_skip(name, &reason);
            Trial::test(name.to_owned(), || Ok(())).with_ignored_flag(true)
        }
    }
}

fn record_skip(name: &str, reason: &str) {
    let folder = crate_dir().join("../../target/skips");
    fs::create_dir_all(&folder).expect("target can be written");
    let mut file = fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("amdgpu-emu.txt"))
        .expect("target can be written");
    writeln!(file, "{name}: {reason}").expect("target can be written");
}

/// A program of LLVM 19 that knows the processor, by the name that Debian or LLVM itself gives it.
pub(crate) fn llvm(tool: &str) -> Result<String, String> {
    let works = |program: &String| {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| {
            let text = String::from_utf8_lossy(&output.stdout);
            text.contains("version 19") || text.contains("LLD 19")
        })
    };
    let named = [
        format!("{tool}-19"),
        format!("/usr/lib/llvm-19/bin/{tool}"),
        tool.to_owned(),
    ];
    named
        .into_iter()
        .find(works)
        .ok_or_else(|| format!("{tool} of LLVM 19 is not installed"))
}

/// The pinned compiler: the command that runs it.
pub(crate) fn zig() -> Result<Vec<String>, String> {
    // Where `cargo xtask test compiler` puts it.
    let fetched = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools/ziglang/zig");
    let commands = [
        vec![fetched.display().to_string()],
        vec!["python3".to_owned(), "-m".to_owned(), "ziglang".to_owned()],
        vec!["zig".to_owned()],
    ];
    let pinned = |command: &Vec<String>| {
        let output = Command::new(&command[0])
            .args(&command[1..])
            .arg("version")
            .output();
        output.is_ok_and(|output| output.stdout.trim_ascii() == b"0.17.1")
    };
    commands.into_iter().find(pinned).ok_or_else(|| {
        "the compiler in the Python package ziglang 0.17.1 is not installed".to_owned()
    })
}

/// Runs a command to its successful end and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Vec<u8> {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}
