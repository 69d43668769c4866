//! Every function: its pointer type and its descriptor, under the C name.
//!
//! Each name is two things. As a type it is the function's pointer type. As a constant it is a
//! [`Function`] of that type, which [`Library::get`], [`ApiTables::get`] and [`SavedTables::get`]
//! turn into a pointer:
//!
#![cfg_attr(feature = "loading", doc = "```no_run")]
#![cfg_attr(not(feature = "loading"), doc = "```text")]
//! use hsa_sys::{Library, function, hsa_status_t};
//!
//! // SAFETY: the library found by these names on this machine is AMD's runtime.
//! let library = unsafe { Library::open()? };
//! let init: function::hsa_init = library.get(function::hsa_init)?;
//! // SAFETY: `hsa_init` asks nothing of its caller.
//! let status = unsafe { init() };
//! assert_eq!(status, hsa_status_t::SUCCESS);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Safety
//!
//! All pointers are `unsafe` to call. What holds for all of them:
//!
//! - The runtime must be running: between a successful `hsa_init` and the last `hsa_shut_down`,
//!   except for `hsa_init` and `hsa_status_string`. Most functions notice and return
//!   [`ERROR_NOT_INITIALIZED`]; those that return no status (signals, queue indices) do not.
//! - Handles are the runtime's, of this process, and not destroyed yet.
//! - Pointers are valid for what the function reads or writes: `*const` in, `*mut` out, arrays for
//!   their count. An attribute query writes the type that the attribute's documentation gives.
//! - Callbacks must not unwind. Unless said otherwise they run on the calling thread, before the
//!   function returns.
//!
//! Anything a function asks beyond that is said where it is declared, in the words of the headers
//! where those are longer: `hsa.h`, `hsa_ext_amd.h`.
//!
//! # Versions
//!
//! [`Info::since`] is the first release whose headers have the function. Distributors build what
//! they like, so ask for the function rather than for the version.
//!
//! [`Library::get`]: crate::Library::get
//! [`ApiTables::get`]: crate::ApiTables::get
//! [`SavedTables::get`]: crate::SavedTables::get
//! [`ERROR_NOT_INITIALIZED`]: crate::hsa_status_t::ERROR_NOT_INITIALIZED

use core::fmt;
use core::marker::PhantomData;

/// A release of ROCr, by the version of ROCm that it came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// Major version.
    pub major: u16,
    /// Minor version.
    pub minor: u16,
}

impl Release {
    /// The oldest release whose headers this crate follows.
    pub const V5_2: Self = Self { major: 5, minor: 2 };

    /// Stands for versions that are newer than 7.1 and in no numbered release yet.
    pub const AFTER_V7_1: Self = Self { major: 7, minor: 2 };
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Where a function is found. Slots of API tables count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Home {
    /// The core table; exported too.
    Core {
        /// Slot.
        slot: u16,
    },
    /// AMD's table.
    AmdExt {
        /// Slot in [`AmdExtLayout::A`](crate::AmdExtLayout::A), if it is there.
        layout_a: Option<u16>,
        /// Slot in [`AmdExtLayout::B`](crate::AmdExtLayout::B).
        layout_b: u16,
        /// Whether the library exports it too; some are for tools only.
        exported: bool,
    },
    /// The finalizer's table; exported too.
    Finalizer {
        /// Slot.
        slot: u16,
    },
    /// The images' table; exported too.
    Image {
        /// Slot.
        slot: u16,
    },
    /// Exported, in no table.
    Symbol,
    /// In a table that `hsa_system_get_major_extension_table` fills in; not exported.
    Extension,
    /// Exported by `libhsa-amd-aqlprofile64.so`.
    Aqlprofile,
}

impl Home {
    const fn core(slot: u16) -> Self {
        Self::Core { slot }
    }

    const fn amd_ext(layout_a: u16, layout_b: u16) -> Self {
        let layout_a = if layout_a == 0 { None } else { Some(layout_a) };
        Self::AmdExt {
            layout_a,
            layout_b,
            exported: true,
        }
    }

    const fn amd_ext_table_only(layout_a: u16, layout_b: u16) -> Self {
        Self::AmdExt {
            layout_a: Some(layout_a),
            layout_b,
            exported: false,
        }
    }

    const fn finalizer(slot: u16) -> Self {
        Self::Finalizer { slot }
    }

    const fn image(slot: u16) -> Self {
        Self::Image { slot }
    }

    const fn symbol() -> Self {
        Self::Symbol
    }

    const fn extension() -> Self {
        Self::Extension
    }

    const fn aqlprofile() -> Self {
        Self::Aqlprofile
    }
}

/// What is known about a function besides its type.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Its C name.
    pub name: &'static str,
    /// The first release that has it.
    pub since: Release,
    /// Where it is found.
    pub home: Home,
    #[doc(hidden)]
    pub signature: Signature,
}

impl Info {
    /// Whether the runtime's library exports the function as a symbol.
    pub const fn is_exported(&self) -> bool {
        match self.home {
            Home::AmdExt { exported, .. } => exported,
            Home::Extension | Home::Aqlprofile => false,
            Home::Core { .. } | Home::Finalizer { .. } | Home::Image { .. } | Home::Symbol => true,
        }
    }
}

/// A function's types as written, for comparison with the headers.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    pub parameters: &'static [&'static str],
    pub result: &'static str,
}

/// A callback type as written, for comparison with the headers.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Callback {
    pub name: &'static str,
    pub signature: Signature,
}

/// A function that can be looked up. `F` is its pointer type.
#[derive(Clone, Copy, Debug)]
pub struct Function<F> {
    info: &'static Info,
    // Invariant: `F` is a function pointer type; only `functions!` makes values.
    pointer: PhantomData<F>,
}

impl<F: Copy> Function<F> {
    const fn new(info: &'static Info) -> Self {
        assert!(size_of::<F>() == size_of::<*mut ()>());
        Self {
            info,
            pointer: PhantomData,
        }
    }

    /// What is known about it.
    pub const fn info(&self) -> &'static Info {
        self.info
    }

    /// The pointer type's value for an address; null is none.
    ///
    /// # Safety
    ///
    /// `address` is null or the address of this function, or of one with the same signature.
    pub(crate) unsafe fn at(self, address: *mut ()) -> Option<F> {
        if address.is_null() {
            return None;
        }
        // SAFETY: `F` is a function pointer type (invariant), as wide as `address` (`new`), and the
        // caller vouches that such a function is at this address, which is not null.
        Some(unsafe { core::mem::transmute_copy::<*mut (), F>(&address) })
    }

    /// The address that the pointer type's value has.
    pub(crate) fn address(self, pointer: F) -> *mut () {
        // SAFETY: `F` is a function pointer type (invariant), as wide as the result (`new`).
        unsafe { core::mem::transmute_copy::<F, *mut ()>(&pointer) }
    }
}

/// A function that is not where it was looked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is not in {place}; ROCr has it since {since}")]
pub struct MissingFunction {
    /// Its C name.
    pub name: &'static str,
    /// The first release that has it.
    pub since: Release,
    /// Where it was looked for.
    pub place: String,
}

impl MissingFunction {
    pub(crate) fn new(info: &Info, place: impl Into<String>) -> Self {
        Self {
            name: info.name,
            since: info.since,
            place: place.into(),
        }
    }
}

/// Declares functions that live in one kind of place and appeared together.
macro_rules! functions {
    (
        $table:ident: $home:ident, $place:literal, since $major:literal, $minor:literal;
        $(
            $(#[$doc:meta])*
            $($slot:literal)* fn $name:ident($($parameter:ident: $type:ty),* $(,)?) $(-> $result:ty)?;
        )+
    ) => {
        $(
            $(#[$doc])*
            #[doc = concat!("\n\n", $place, $(" ", stringify!($slot),)* "; since ROCr ",
                stringify!($major), ".", stringify!($minor), ".")]
            pub type $name = unsafe extern "C" fn($($parameter: $type),*) $(-> $result)?;

            $(#[$doc])*
            #[doc = concat!("\n\n", $place, $(" ", stringify!($slot),)* "; since ROCr ",
                stringify!($major), ".", stringify!($minor), ".")]
            pub const $name: $crate::Function<$name> = $crate::Function::new(&$crate::function::Info {
                name: stringify!($name),
                since: $crate::function::Release { major: $major, minor: $minor },
                home: $crate::function::Home::$home($($slot),*),
                signature: $crate::function::Signature {
                    parameters: &[$(stringify!($type)),*],
                    result: concat!($(stringify!($result))?),
                },
            });
        )+

        pub(crate) const $table: &[&$crate::function::Info] = &[$($name.info()),+];
    };
}

/// Declares the types of callbacks.
macro_rules! callbacks {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($parameter:ident: $type:ty),* $(,)?) $(-> $result:ty)?;
    )+) => {
        $(
            $(#[$doc])*
            pub type $name = unsafe extern "C" fn($($parameter: $type),*) $(-> $result)?;
        )+

        pub(crate) const CALLBACKS: &[$crate::function::Callback] = &[$(
            $crate::function::Callback {
                name: stringify!($name),
                signature: $crate::function::Signature {
                    parameters: &[$(stringify!($type)),*],
                    result: concat!($(stringify!($result))?),
                },
            },
        )+];
    };
}

mod amd;
mod aqlprofile;
pub(crate) mod callback;
mod core_table;
mod image;
mod loader;
mod symbol;

pub use amd::*;
pub use aqlprofile::*;
pub use core_table::*;
pub use image::*;
pub use loader::*;
pub use symbol::*;

/// Every function of the crate.
pub fn all() -> impl Iterator<Item = &'static Info> {
    let tables = [
        core_table::CORE,
        amd::BASE,
        amd::TABLE_ONLY,
        amd::SINCE_5_5,
        amd::SINCE_5_6,
        amd::SINCE_5_7,
        amd::SINCE_6_1,
        amd::SINCE_6_2,
        amd::SINCE_6_3,
        amd::SINCE_6_4,
        amd::SINCE_7_0,
        amd::AFTER_7_1,
        image::FINALIZER,
        image::IMAGE,
        symbol::SYMBOL,
        loader::LOADER,
        aqlprofile::V1,
        aqlprofile::V2,
        aqlprofile::V2_SINCE_7_0,
    ];
    tables.into_iter().flatten().copied()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// Slots of one table with the names in them.
    fn slots(select: impl Fn(Home) -> Option<u16>) -> BTreeMap<u16, &'static str> {
        let mut slots = BTreeMap::new();
        for info in all() {
            let Some(slot) = select(info.home) else {
                continue;
            };
            let other = slots.insert(slot, info.name);
            assert_eq!(other, None, "slot {slot} is also {}", info.name);
        }
        slots
    }

    /// Every slot has one function, so no entry of a table was forgotten.
    #[test]
    fn tables_have_no_gaps() {
        let core = slots(|home| match home {
            Home::Core { slot } => Some(slot),
            _ => None,
        });
        let layout_a = slots(|home| match home {
            Home::AmdExt { layout_a, .. } => layout_a,
            _ => None,
        });
        let layout_b = slots(|home| match home {
            Home::AmdExt { layout_b, .. } => Some(layout_b),
            _ => None,
        });
        let finalizer = slots(|home| match home {
            Home::Finalizer { slot } => Some(slot),
            _ => None,
        });
        let image = slots(|home| match home {
            Home::Image { slot } => Some(slot),
            _ => None,
        });
        for (slots, count) in [
            (core, 125),
            (layout_a, 48),
            (layout_b, 82),
            (finalizer, 6),
            (image, 13),
        ] {
            assert!(slots.into_keys().eq(1..=count), "table of {count}");
        }
    }

    /// How layout B came from layout A: two slots inserted after 16, three after 47 of A.
    #[test]
    fn layout_b_is_layout_a_with_insertions() {
        for info in all() {
            let Home::AmdExt {
                layout_a, layout_b, ..
            } = info.home
            else {
                continue;
            };
            let expected = match layout_b {
                1..=16 => Some(layout_b),
                19..=49 => Some(layout_b - 2),
                53 => Some(48),
                _ => None,
            };
            assert_eq!(layout_a, expected, "{}", info.name);
            assert_eq!(
                layout_a.is_some(),
                info.since == Release::V5_2,
                "{}",
                info.name
            );
        }
    }

    /// Later releases only append to layout B.
    #[test]
    fn layout_b_grew_at_its_end() {
        let mut since = BTreeMap::new();
        for info in all() {
            if let Home::AmdExt { layout_b, .. } = info.home {
                since.insert(layout_b, info.since);
            }
        }
        let later: Vec<_> = since.range(54..).map(|(_, since)| *since).collect();
        assert!(later.is_sorted(), "{later:?}");
        assert_eq!(later.last(), Some(&Release::AFTER_V7_1));
    }

    #[test]
    fn names_are_unique() {
        let mut names = BTreeSet::new();
        for info in all() {
            assert!(names.insert(info.name), "{} twice", info.name);
        }
    }

    /// An address goes through the pointer type and back unchanged.
    #[test]
    fn addresses_survive_the_pointer_type() {
        unsafe extern "C" fn stop() -> crate::hsa_status_t {
            crate::hsa_status_t(7)
        }
        let address = hsa_shut_down.address(stop);
        assert_eq!(address.cast_const(), stop as *const ());
        // SAFETY: `stop` has the signature of `hsa_shut_down`.
        let pointer = unsafe { hsa_shut_down.at(address) }.unwrap();
        // SAFETY: `stop` asks nothing of its caller.
        assert_eq!(unsafe { pointer() }.0, 7);
        // SAFETY: null is allowed.
        assert!(unsafe { hsa_shut_down.at(core::ptr::null_mut()) }.is_none());
    }
}
