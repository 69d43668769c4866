//! Holds the crate's declarations against the real thing: the C headers and the runtime's library.
//!
//! Both come with Debian's `libhsa-runtime-dev`; a C++ compiler is needed too. `HSA_INCLUDE_DIR`
//! names another folder that has `hsa/hsa.h`. Where something is missing the tests are ignored, and
//! say why in `target/skips/hsa-sys.txt` too.

use std::fs;
use std::io::Write;
use std::path::Path;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

mod cpp;
mod headers;
#[cfg(feature = "loading")]
mod runtime;

/// What a check came to: how much it compared, or that it could not.
enum Outcome {
    Compared(usize),
    Skipped(String),
}

/// What a check returns; an error lists every difference.
type Check = Result<Outcome, String>;

fn main() {
    let trials = headers::trials();
    #[cfg(feature = "loading")]
    let trials = trials.into_iter().chain(runtime::trials()).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// A test of this file's kind. Comparing nothing is a failure.
fn trial(name: &'static str, check: impl FnOnce() -> Check + Send + 'static) -> Trial {
    Trial::ignorable_test(name, move || match check()? {
        Outcome::Compared(0) => Err("nothing was compared".into()),
        Outcome::Compared(_) => Ok(Completion::Completed),
        Outcome::Skipped(reason) => {
            record_skip(name, &reason)?;
            Ok(Completion::ignored_with(reason))
        }
    })
}

/// Appends a line to the list of skips of this crate.
fn record_skip(name: &str, reason: &str) -> Result<(), Failed> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    let folder = target
        .ok_or("the folder for temporary files has no parent")?
        .join("skips");
    fs::create_dir_all(&folder)?;
    let mut list = fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("hsa-sys.txt"))?;
    Ok(list.write_all(format!("{name}: {reason}\n").as_bytes())?)
}

/// Success with what was compared, unless there are differences.
fn compared(count: usize, differences: Vec<String>) -> Check {
    if differences.is_empty() {
        return Ok(Outcome::Compared(count));
    }
    Err(format!(
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    ))
}
