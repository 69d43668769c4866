//! The declarations against the runtime's library, as far as that goes without a GPU.

use std::ffi::CStr;
use std::path::Path;

use hsa_sys::function::{self, Release};
use hsa_sys::{Library, hsa_status_t};
use libtest_mimic::Trial;

use crate::{Check, Outcome, compared, trial};

pub(crate) fn trials() -> Vec<Trial> {
    type Named = (&'static str, fn(&Library) -> Check);
    let checks: [Named; 4] = [
        (
            "runtime::exports_what_5_2_exports",
            exports_what_5_2_exports,
        ),
        ("runtime::lacks_what_came_later", lacks_what_came_later),
        ("runtime::knows_every_status", knows_every_status),
        ("runtime::init_needs_a_driver", init_needs_a_driver),
    ];
    let with_library = |(name, check): Named| {
        // SAFETY: what has these names on a machine that builds this is ROCr.
        trial(name, move || match unsafe { Library::open() } {
            Ok(library) => check(&library),
            Err(error) => Ok(Outcome::Skipped(error.to_string())),
        })
    };
    checks.into_iter().map(with_library).collect()
}

/// All functions, and what is wrong with how the library exports those that `select` takes.
fn check_exports(
    library: &Library,
    expected: bool,
    select: impl Fn(&function::Info) -> bool,
) -> Check {
    let functions: Vec<_> = function::all().filter(|info| select(info)).collect();
    let wrong = functions
        .iter()
        .filter(|info| library.address(info).is_some() != expected);
    let word = if expected { "missing" } else { "there" };
    let wrong = wrong
        .map(|info| format!("{} is {word}", info.name))
        .collect();
    compared(functions.len(), wrong)
}

/// Newer runtimes have them too.
fn exports_what_5_2_exports(library: &Library) -> Check {
    check_exports(library, true, |info| {
        info.is_exported() && info.since == Release::V5_2
    })
}

/// If the releases and the marks of functions for tools are right, the oldest runtime has no others.
fn lacks_what_came_later(library: &Library) -> Check {
    if library
        .get(function::hsa_amd_memory_async_copy_on_engine)
        .is_ok()
    {
        return Ok(Outcome::Skipped(format!(
            "{} is newer than ROCr 5.4",
            library.name().display()
        )));
    }
    check_exports(library, false, |info| {
        !info.is_exported() || info.since > Release::V5_2
    })
}

/// The runtime has the same name for each status, or none; those it must know are in the headers of
/// ROCr 5.2 and not an extension's.
fn knows_every_status(library: &Library) -> Check {
    let status_string = library
        .get(function::hsa_status_string)
        .map_err(|error| error.to_string())?;
    let mut count = 0;
    let mut differences = Vec::new();
    for constant in hsa_status_t::CONSTANTS {
        let mut text = std::ptr::null();
        let status = hsa_status_t(constant.value as u32);
        // SAFETY: works without `hsa_init`; `text` is there to be written.
        if unsafe { status_string(status, &raw mut text) } != hsa_status_t::SUCCESS {
            continue;
        }
        // SAFETY: the runtime gave a text that is a constant of its.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        count += 1;
        if !text.starts_with(constant.c_name) {
            differences.push(format!("{status:?} is \"{text}\" to the runtime"));
        }
    }
    compared(count, differences)
}

fn init_needs_a_driver(library: &Library) -> Check {
    if Path::new("/dev/kfd").exists() {
        return Ok(Outcome::Skipped("this machine has the driver".to_owned()));
    }
    let init = library
        .get(function::hsa_init)
        .map_err(|error| error.to_string())?;
    // SAFETY: asks nothing of its caller.
    let status = unsafe { init() };
    if status == hsa_status_t::ERROR_OUT_OF_RESOURCES {
        return Ok(Outcome::Compared(1));
    }
    Err(format!("hsa_init without a driver came to {status:?}"))
}
