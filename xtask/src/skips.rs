//! Tests that could not run on this machine, and why.
//!
//! A test that finds what it needs missing reports itself as ignored and appends a line
//! `name: reason` to a `.txt` file of its own in `target/skips/`. The folder is emptied before the
//! first step, so what is in it afterwards belongs to this run.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::cargo;

/// Where tests say why they did not run.
pub(crate) fn folder() -> PathBuf {
    cargo::root().join("target/skips")
}

/// Forgets the skips of earlier runs and leaves an empty folder.
///
/// # Errors
///
/// The folder cannot be emptied or made; old lines could then be taken for new ones.
pub(crate) fn clear(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => fs::create_dir_all(folder),
    }
    .map_err(|error| format!("cannot empty {}: {error}", folder.display()))
}

/// Every line of every `.txt` file in `folder`, each once, sorted.
///
/// # Errors
///
/// The folder or a file in it cannot be read.
pub(crate) fn read(folder: &Path) -> Result<BTreeSet<String>, String> {
    let unreadable = |error| format!("cannot read {}: {error}", folder.display());
    let mut lines = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let text = fs::read(&path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            lines.extend(
                String::from_utf8_lossy(&text)
                    .lines()
                    .map(str::trim)
                    .filter(|line| !line.is_empty())
                    .map(String::from),
            );
        }
    }
    Ok(lines)
}

/// The list that a run ends with: each line, and how many of `skipped` gave no reason.
pub(crate) fn listing(lines: &BTreeSet<String>, skipped: u64) -> String {
    if skipped == 0 && lines.is_empty() {
        return "nothing was skipped".into();
    }
    let mut text = String::from("skipped:");
    for line in lines {
        text += "\n  ";
        text += line;
    }
    let silent = skipped.saturating_sub(lines.len() as u64);
    if silent > 0 {
        text += &format!("\n  {silent} more without a reason in target/skips");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(of: &[&str]) -> BTreeSet<String> {
        of.iter().copied().map(String::from).collect()
    }

    #[test]
    fn lines_of_all_text_files_are_read_once_and_cleared() {
        let folder = std::env::temp_dir().join(format!("xtask-skips-{}", std::process::id()));
        clear(&folder).unwrap();
        assert_eq!(read(&folder), Ok(lines(&[])));
        fs::write(folder.join("b.txt"), "hip: no clang\n\nrocr: no libhsa\n").unwrap();
        fs::write(folder.join("a.txt"), "rocr: no libhsa\n").unwrap();
        fs::write(folder.join("a.tmp"), "not: this\n").unwrap();
        assert_eq!(
            read(&folder),
            Ok(lines(&["hip: no clang", "rocr: no libhsa"]))
        );
        clear(&folder).unwrap();
        assert_eq!(read(&folder), Ok(lines(&[])));
        fs::remove_dir_all(&folder).unwrap();
        assert!(read(&folder).unwrap_err().contains("cannot read"));
    }

    #[test]
    fn a_skip_without_a_reason_shows() {
        assert_eq!(listing(&lines(&[]), 0), "nothing was skipped");
        assert_eq!(
            listing(&lines(&["miri: none"]), 1),
            "skipped:\n  miri: none"
        );
        assert_eq!(
            listing(&lines(&["miri: none"]), 3),
            "skipped:\n  miri: none\n  2 more without a reason in target/skips"
        );
    }
}
