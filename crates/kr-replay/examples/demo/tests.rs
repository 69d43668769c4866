//! The demo from end to end, at small sizes.

use std::fs;
use std::path::PathBuf;

use super::*;

const SMALL: Sizes = Sizes {
    saxpy_elements: 5_000,
    jacobi_side: 20,
    jacobi_sweeps: 3,
    mesh_side: 6,
    monte_carlo_lanes: 40,
};

/// What it ends with, and what it writes to both streams.
fn demo_of(args: &[&str], terminal: bool) -> (Exit, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = args.iter().map(OsString::from);
    let exit = demo(args, &SMALL, &mut out, &mut err, terminal);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (exit, text(out), text(err))
}

/// A file with `contents` that is removed in the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, contents: &[u8]) -> Self {
        let name = format!("kr-demo-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, contents).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn everything_is_right_with_restore() {
    let (exit, out, err) = demo_of(&["--passes", "3"], false);
    assert_eq!(exit, Exit::Ok, "{out}{err}");
    // Launches: 4 saxpy, 3 Jacobi, 2 products, 6 steps of two kernels, 4 slices, 4 Monte-Carlo.
    let last = "demo: ok dispatches=29 replayed=29 passes=87 mismatches=0";
    assert_eq!(out.lines().last(), Some(last), "{out}");
    for kernel in [
        "saxpy",
        "jacobi",
        "spmv",
        "normalise",
        "histogram",
        "monte-carlo",
    ] {
        let mut rows = out.lines().skip_while(|line| !line.starts_with("kernel"));
        assert!(
            rows.any(|row| row.starts_with(kernel)),
            "no {kernel} in\n{out}"
        );
    }
    assert_eq!(err, "", "nothing but a terminal gets a progress line");
}

#[test]
fn programs_that_read_what_they_write_are_wrong_without_restore() {
    let (exit, out, _) = demo_of(&["--no-restore"], false);
    assert_eq!(exit, Exit::Failed, "{out}");
    let failed = |name: &str| {
        let mut lines = out.lines();
        lines.any(|line| line.starts_with(name) && line.contains("FAILED"))
    };
    for name in ["saxpy", "histogram", "monte-carlo"] {
        assert!(failed(name), "{name} did not fail:\n{out}");
    }
    assert!(
        out.lines().last().unwrap().starts_with("demo: FAILED "),
        "{out}"
    );
}

#[test]
fn a_terminal_gets_a_line_that_is_cleared() {
    let (exit, out, err) = demo_of(&["--passes", "2"], true);
    assert_eq!(exit, Exit::Ok, "{out}{err}");
    assert!(err.contains("\r\x1b[Kdispatch 1: saxpy\r"), "{err:?}");
    assert!(err.ends_with("\r\x1b[K"), "{err:?}");
    assert!(!out.contains('\x1b'));
}

#[test]
fn a_matrix_and_a_file_can_be_given() {
    let text = b"%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 2\n2 2 -3\n";
    let (matrix, file) = (
        Temporary::new("given.mtx", text),
        Temporary::new("given", b"abca"),
    );
    let (exit, out, err) = demo_of(&["--matrix", matrix.path(), "--file", file.path()], false);
    assert_eq!(exit, Exit::Ok, "{out}{err}");
    assert!(
        out.contains("2 rows, 2 entries, power method at 3.0 in step 6"),
        "{out}"
    );
    assert!(out.contains("4 B, most often 0x61: 2 times"), "{out}");
}

/// The second power of this matrix is zero.
#[test]
fn the_power_method_stops_where_its_vector_vanishes() {
    let text = b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n";
    let matrix = Temporary::new("nilpotent.mtx", text);
    let (exit, out, err) = demo_of(&["--matrix", matrix.path()], false);
    assert_eq!(exit, Exit::Ok, "{out}{err}");
    assert!(out.contains("vanishes in step 2"), "{out}");
}

/// Values at both ends of what f64 holds neither overflow nor count as wrong.
#[test]
fn extreme_values_are_within_tolerance() {
    for value in ["8e307", "5e-324", "2.3e-308"] {
        let text = format!(
            "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 {value}\n2 2 {value}\n1 2 0\n"
        );
        let matrix = Temporary::new(value, text.as_bytes());
        let (exit, out, err) = demo_of(&["--matrix", matrix.path()], false);
        assert_eq!(exit, Exit::Ok, "{value}: {out}{err}");
    }
}

#[test]
fn input_that_cannot_be_used_is_named_before_anything_runs() {
    let (empty, bad) = (
        Temporary::new("empty", b""),
        Temporary::new("bad.mtx", b"1 2 3\n"),
    );
    let directory = std::env::temp_dir();
    let directory = directory.to_str().unwrap();
    for (option, path, what) in [
        ("--matrix", "no/such.mtx", "does not exist"),
        ("--matrix", directory, "is a directory, expected a file"),
        (
            "--matrix",
            empty.path(),
            "is empty, expected a Matrix Market header",
        ),
        ("--matrix", bad.path(), "line 1: expected a header such as"),
        ("--file", "no/such", "does not exist"),
        ("--file", directory, "is a directory, expected a file"),
        (
            "--file",
            empty.path(),
            "is empty, so there is nothing to count",
        ),
    ] {
        let (exit, out, err) = demo_of(&[option, path], true);
        assert_eq!((exit, &*out), (Exit::Failed, ""), "{option} {path}");
        let want = format!("demo: FAILED {path}: {what}");
        assert!(err.starts_with(&want) && err.lines().count() == 1, "{err}");
    }
}

#[test]
fn the_command_line_is_explained_or_refused() {
    let (exit, out, err) = demo_of(&["--help"], false);
    assert_eq!((exit, &*out, &*err), (Exit::Ok, HELP, ""));
    let (exit, out, err) = demo_of(&["--pases=3"], false);
    assert_eq!((exit, &*out), (Exit::Usage, ""));
    assert_eq!(err, "demo: invalid option '--pases'; see --help\n");
}
