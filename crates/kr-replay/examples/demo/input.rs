//! Files that the user names. A refusal is one sentence that begins with the path.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// What is read of a file for the histogram at the most, in bytes.
pub(crate) const MAX_FILE: u64 = 16 << 20;
/// The largest matrix file, in bytes; also what ends the reading of a device file that never does.
const MAX_MATRIX: u64 = 256 << 20;

/// A whole matrix file.
pub(crate) fn matrix(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = start_of(path, MAX_MATRIX + 1)?;
    if bytes.len() as u64 > MAX_MATRIX {
        let limit = MAX_MATRIX >> 20;
        return Err(refuse(path, format!("is larger than {limit} MiB")));
    }
    Ok(bytes)
}

/// The first [`MAX_FILE`] bytes of a file that has any.
pub(crate) fn data(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = start_of(path, MAX_FILE)?;
    if bytes.is_empty() {
        return Err(refuse(path, "is empty, so there is nothing to count"));
    }
    Ok(bytes)
}

/// A sentence about `path`.
pub(crate) fn refuse(path: &Path, what: impl std::fmt::Display) -> String {
    format!("{}: {what}", path.display())
}

fn start_of(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let read = || -> io::Result<Vec<u8>> {
        let file = File::open(path)?;
        // Opening a directory succeeds; the error of reading one depends on the system.
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => refuse(path, "does not exist"),
        io::ErrorKind::IsADirectory => refuse(path, "is a directory, expected a file"),
        io::ErrorKind::PermissionDenied => refuse(path, "may not be read by this user"),
        _ => refuse(path, format!("cannot be read: {error}")),
    })
}
