//! Opening the runtime's library while the program runs.
//!
//! Invariant: a library that was opened stays loaded until the process ends. Runtimes start threads
//! and leave addresses of theirs in many places, so function pointers may be kept and copied freely.

use core::ffi::c_int;
use core::fmt;
use core::ptr::{self, NonNull};
use std::ffi::{OsStr, OsString};
use std::mem::ManuallyDrop;

use libloading::os::unix;

use crate::function::{Function, Info, MissingFunction};

/// The names that [`Library::open`] tries, in this order.
pub const RUNTIME_NAMES: &[&str] = &[
    "libhsa-runtime64.so.1",
    "libhsa-runtime64.so",
    "/opt/rocm/lib/libhsa-runtime64.so.1",
];

/// The names that [`Library::open_aqlprofile`] tries, in this order.
pub const AQLPROFILE_NAMES: &[&str] = &[
    "libhsa-amd-aqlprofile64.so.1",
    "libhsa-amd-aqlprofile64.so",
    "/opt/rocm/lib/libhsa-amd-aqlprofile64.so.1",
];

/// No library could be opened under any name.
#[derive(Clone, Debug, thiserror::Error)]
pub struct OpenError {
    wanted: &'static Wanted,
    /// The names tried, in order, and what the system said about each.
    pub tried: Vec<(OsString, String)>,
}

/// What is looked for, in words for errors.
#[derive(Debug)]
struct Wanted {
    what: &'static str,
    hint: &'static str,
}

const RUNTIME: Wanted = Wanted {
    what: "cannot open the HSA runtime",
    hint: "install ROCm, or put the library's folder into LD_LIBRARY_PATH",
};

const LOADED_RUNTIME: Wanted = Wanted {
    what: "no HSA runtime has been loaded",
    hint: "load one first, or open one",
};

const AQLPROFILE: Wanted = Wanted {
    what: "cannot open the aqlprofile library",
    hint: "install the package hsa-amd-aqlprofile, or put the library's folder into LD_LIBRARY_PATH",
};

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; tried", self.wanted.what)?;
        for (index, (name, reason)) in self.tried.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma} {} ({reason})", name.display())?;
        }
        write!(f, "; {}", self.wanted.hint)
    }
}

/// An open library with functions of this crate.
///
/// Functions are looked up when asked for, so a library may lack those that are not needed.
pub struct Library {
    // Never dropped: the library stays loaded (invariant).
    handle: ManuallyDrop<unix::Library>,
    name: OsString,
}

impl Library {
    /// Opens the HSA runtime by the [names](RUNTIME_NAMES) that distributors give it. If one with
    /// that name is in the process already, it is that one.
    ///
    /// # Errors
    ///
    /// If the system finds none; the error has its words for each name.
    ///
    /// # Safety
    ///
    /// The library found is an HSA runtime: its functions have the signatures of this crate, and
    /// loading it does no harm.
    pub unsafe fn open() -> Result<Self, OpenError> {
        // SAFETY: the caller's promise.
        unsafe { Self::open_any(&RUNTIME, RUNTIME_NAMES, 0) }
    }

    /// As [`open`](Self::open), if the runtime is in the process already; loads nothing.
    ///
    /// # Errors
    ///
    /// If it is not, under any of the names.
    ///
    /// # Safety
    ///
    /// As for [`open`](Self::open).
    pub unsafe fn open_loaded() -> Result<Self, OpenError> {
        // SAFETY: the caller's promise.
        unsafe { Self::open_any(&LOADED_RUNTIME, RUNTIME_NAMES, libc::RTLD_NOLOAD) }
    }

    /// Opens the HSA runtime at a path or under a name.
    ///
    /// # Errors
    ///
    /// If the system cannot open it.
    ///
    /// # Safety
    ///
    /// As for [`open`](Self::open).
    pub unsafe fn open_path(path: impl AsRef<OsStr>) -> Result<Self, OpenError> {
        // SAFETY: the caller's promise.
        unsafe { Self::open_any(&RUNTIME, &[path], 0) }
    }

    /// Opens the library of counters by its [names](AQLPROFILE_NAMES). It loads the HSA runtime if
    /// that is not loaded.
    ///
    /// # Errors
    ///
    /// If the system finds none.
    ///
    /// # Safety
    ///
    /// The library found is AMD's: its functions have the signatures of this crate, and loading it
    /// does no harm.
    pub unsafe fn open_aqlprofile() -> Result<Self, OpenError> {
        // SAFETY: the caller's promise.
        unsafe { Self::open_any(&AQLPROFILE, AQLPROFILE_NAMES, 0) }
    }

    /// # Safety
    ///
    /// The functions of any library with one of the names have the signatures of this crate, and
    /// loading it does no harm.
    unsafe fn open_any(
        wanted: &'static Wanted,
        names: &[impl AsRef<OsStr>],
        flags: c_int,
    ) -> Result<Self, OpenError> {
        let flags = unix::RTLD_NOW | unix::RTLD_LOCAL | flags;
        let mut tried = Vec::new();
        for name in names {
            let name = name.as_ref();
            // SAFETY: the library's initialisers are harmless (contract); it is never unloaded.
            match unsafe { unix::Library::open(Some(name), flags) } {
                Ok(handle) => {
                    let handle = ManuallyDrop::new(handle);
                    return Ok(Self {
                        handle,
                        name: name.to_owned(),
                    });
                }
                Err(error) => tried.push((name.to_owned(), reason(name, &error))),
            }
        }
        Err(OpenError { wanted, tried })
    }

    /// The name under which the library was found.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Looks a function up.
    ///
    /// # Errors
    ///
    /// If the library does not export it.
    pub fn get<F: Copy>(&self, function: Function<F>) -> Result<F, MissingFunction> {
        let info = function.info();
        let address = self.address(info).map_or(ptr::null_mut(), NonNull::as_ptr);
        // SAFETY: null, or the library's function of this name, which has the signature of this
        // crate (promise to `open`) and stays loaded (invariant).
        let found = unsafe { function.at(address) };
        found.ok_or_else(|| MissingFunction::new(info, self.name.to_string_lossy()))
    }

    /// Looks a function up without its type; for lists of what a library has.
    pub fn address(&self, info: &Info) -> Option<NonNull<()>> {
        // SAFETY: an address is asked for, whatever is there.
        let symbol = unsafe { self.handle.get::<*mut ()>(info.name) };
        NonNull::new(*symbol.ok()?)
    }
}

/// What the system said about a name, without the name.
fn reason(name: &OsStr, error: &libloading::Error) -> String {
    use std::error::Error;

    let Some(said) = error.source() else {
        // With RTLD_NOLOAD the system has nothing to say.
        return "not loaded".to_owned();
    };
    let said = said.to_string();
    let rest = said.strip_prefix(&*name.to_string_lossy());
    let rest = rest.and_then(|rest| rest.strip_prefix(": "));
    rest.map_or(said.clone(), str::to_owned)
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error must say what was tried, or nobody can tell why nothing was found.
    #[test]
    fn an_error_names_every_attempt() {
        let names = ["libno-such-runtime.so.1", "/nowhere/libno-such-runtime.so"];
        // SAFETY: there are no such libraries.
        let error = unsafe { Library::open_any(&RUNTIME, &names, 0) }.unwrap_err();
        let reason = "cannot open shared object file: No such file or directory";
        let expected = format!(
            "cannot open the HSA runtime; tried {} ({reason}), {} ({reason}); \
             install ROCm, or put the library's folder into LD_LIBRARY_PATH",
            names[0], names[1]
        );
        assert_eq!(error.to_string(), expected);
    }

    /// Asking for what is loaded must not load anything.
    #[test]
    fn nothing_is_loaded_by_asking() {
        // SAFETY: nothing is loaded, or the test fails.
        let error = unsafe { Library::open_loaded() }.unwrap_err();
        let text = "no HSA runtime has been loaded; tried libhsa-runtime64.so.1 (not loaded)";
        assert!(error.to_string().starts_with(text), "{error}");
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert!(!maps.contains("libhsa-runtime64"), "{maps}");
    }

    /// Any library will do to see that a missing function is an error with its name.
    #[test]
    fn a_missing_function_is_named() {
        // SAFETY: the C library has been loaded already.
        let library = unsafe { Library::open_path("libc.so.6") }.unwrap();
        let missing = library.get(crate::function::hsa_amd_vmem_map).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "hsa_amd_vmem_map is not in libc.so.6; ROCr has it since 5.7"
        );
    }
}
