//! The API tables that a runtime hands to its tools (`hsa_api_trace.h`).
//!
//! Every exported function of the runtime jumps through a slot of such a table, so a tool that
//! replaces a slot sees all calls. A table's length depends on the runtime, and its `minor_id` is
//! that length in bytes; AMD's table even changed its order once. So tables are byte ranges here,
//! never structures: a slot is computed from the layout and checked against the length before it is
//! touched, and a runtime whose tables are not understood is refused as a whole.
//!
//! ```no_run
//! use hsa_sys::{ApiTables, HsaApiTable, SavedTables, function, hsa_queue_t, hsa_status_t};
//! use std::ffi::c_char;
//! use std::ptr::NonNull;
//! use std::sync::OnceLock;
//!
//! static ORIGINAL: OnceLock<SavedTables> = OnceLock::new();
//!
//! unsafe extern "C" fn queue_destroy(queue: *mut hsa_queue_t) -> hsa_status_t {
//!     let original = ORIGINAL.get().map(|saved| saved.get(function::hsa_queue_destroy));
//!     let Some(Ok(original)) = original else { return hsa_status_t::ERROR };
//!     // SAFETY: the caller keeps the promises that the original asks for.
//!     unsafe { original(queue) }
//! }
//!
//! #[unsafe(no_mangle)]
//! pub unsafe extern "C" fn OnLoad(
//!     table: *mut HsaApiTable,
//!     _runtime_version: u64,
//!     _failed_tool_count: u64,
//!     _failed_tool_names: *const *const c_char,
//! ) -> bool {
//!     let Some(table) = NonNull::new(table) else { return false };
//!     // SAFETY: the runtime passes its tables, which live as long as it does.
//!     let Ok(tables) = (unsafe { ApiTables::new(table) }) else { return true };
//!     ORIGINAL.get_or_init(|| tables.save());
//!     // SAFETY: `queue_destroy` does what the original does, and lives as long as this library,
//!     // which is linked with `-z nodelete`.
//!     unsafe { tables.replace(function::hsa_queue_destroy, queue_destroy) }.is_ok()
//! }
//! ```
//!
//! Invariants
//! - No byte at or beyond a table's length is read or written.
//! - A function is looked for only in a slot that is known to be its own in this layout.
//! - Slots are read and written atomically, so tables may be used from any thread.
//!
//! Not here: how a tool gets loaded, and what it does.

use core::ffi::c_char;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::function::{Function, Home, Info, MissingFunction};

/// The entry point of a tool, exported as `OnLoad`: the tables, the root table's major version, and
/// the tools that failed to load so far. Returning false means that this one failed too.
pub type OnLoad = unsafe extern "C" fn(
    table: *mut HsaApiTable,
    runtime_version: u64,
    failed_tool_count: u64,
    failed_tool_names: *const *const c_char,
) -> bool;

/// The exit point of a tool, exported as `OnUnload`. Agents and queues still exist.
pub type OnUnload = unsafe extern "C" fn();

/// What every table begins with.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApiTableVersion {
    /// Changes with incompatible changes; zero is no table.
    pub major_id: u32,
    /// Bytes of the table, this included.
    pub minor_id: u32,
    /// Counts additions. The length says the same more reliably.
    pub step_id: u32,
    /// Zero.
    pub reserved: u32,
}

layout! {
    LAYOUTS;
    BASE ApiTableVersion: 16, 4 { major_id: 0, minor_id: 4, step_id: 8, reserved: 12 }
}

/// The root table: its version, and behind it pointers to the others.
///
/// [`ApiTables::new`] reads them; how many there are depends on the version.
#[repr(C)]
#[derive(Debug)]
pub struct HsaApiTable {
    /// Version and length.
    pub version: ApiTableVersion,
}

/// Order of the functions in AMD's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmdExtLayout {
    /// ROCr 5.0 to 5.4: 48 slots.
    A,
    /// Since ROCr 5.5: two slots were inserted after the 16th, three after the 47th (of A); later
    /// releases only add at the end.
    B,
}

impl AmdExtLayout {
    /// Bytes of the only table that has layout A.
    const A_BYTES: u32 = 400;
    /// Bytes of the smallest table of major version 1 that has layout B.
    const B_MIN_BYTES: u32 = 440;

    /// The layout of an AMD table with this version.
    ///
    /// Lengths between those of the two layouts occurred between releases only; they follow neither,
    /// so there is none for them.
    pub const fn of(version: ApiTableVersion) -> Option<Self> {
        match (version.major_id, version.minor_id) {
            (1, Self::A_BYTES) => Some(Self::A),
            (1, Self::B_MIN_BYTES..) | (2, _) => Some(Self::B),
            _ => None,
        }
    }
}

/// Why tables were refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The table's version, or for AMD's table its length, is not one this crate knows.
    #[error(
        "the {table} table has version {} and {} bytes, which is unknown; \
         a newer version of hsa-sys may know it",
        version.major_id, version.minor_id
    )]
    UnknownVersion {
        /// Which table.
        table: &'static str,
        /// Its version.
        version: ApiTableVersion,
    },
    /// The root table does not point at this table.
    #[error("the runtime has no {table} table")]
    NoTable {
        /// Which table.
        table: &'static str,
    },
}

/// The tables that have functions of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Core,
    AmdExt,
    Finalizer,
    Image,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Core, Self::AmdExt, Self::Finalizer, Self::Image];

    const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::AmdExt => "AMD extension",
            Self::Finalizer => "finalizer",
            Self::Image => "image",
        }
    }

    /// Where the root table has the pointer to this one.
    const fn root_offset(self) -> usize {
        VERSION_BYTES + self as usize * SLOT_BYTES
    }

    /// Whether a table of this kind is understood.
    const fn knows(self, version: ApiTableVersion) -> bool {
        match self {
            Self::AmdExt => AmdExtLayout::of(version).is_some(),
            Self::Core | Self::Finalizer | Self::Image => matches!(version.major_id, 1 | 2),
        }
    }
}

const VERSION_BYTES: usize = size_of::<ApiTableVersion>();
const SLOT_BYTES: usize = size_of::<*mut ()>();

/// Table and slot, counted from 1, of a function.
fn slot_of(info: &Info, layout: AmdExtLayout) -> Option<(Kind, usize)> {
    let (kind, slot) = match (info.home, layout) {
        (Home::Core { slot }, _) => (Kind::Core, slot),
        (Home::AmdExt { layout_a, .. }, AmdExtLayout::A) => (Kind::AmdExt, layout_a?),
        (Home::AmdExt { layout_b, .. }, AmdExtLayout::B) => (Kind::AmdExt, layout_b),
        (Home::Finalizer { slot }, _) => (Kind::Finalizer, slot),
        (Home::Image { slot }, _) => (Kind::Image, slot),
        (Home::Symbol | Home::Extension | Home::Aqlprofile, _) => return None,
    };
    Some((kind, usize::from(slot)))
}

fn missing(info: &Info, layout: AmdExtLayout) -> MissingFunction {
    let place = match slot_of(info, layout) {
        Some((kind, _)) => format!("this runtime's {} table", kind.name()),
        None => "any API table".to_owned(),
    };
    MissingFunction::new(info, place)
}

/// A table: address and length.
#[derive(Clone, Copy)]
struct Table {
    base: NonNull<u8>,
    version: ApiTableVersion,
}

impl Table {
    /// Bytes of the table.
    const fn len(self) -> usize {
        self.version.minor_id as usize
    }

    /// Slots that fit in whole.
    const fn slots(self) -> usize {
        self.len().saturating_sub(VERSION_BYTES) / SLOT_BYTES
    }

    /// A slot, counted from 1, if the table is that long.
    fn slot(&self, slot: usize) -> Option<&AtomicPtr<()>> {
        if slot == 0 || slot > self.slots() {
            return None;
        }
        let offset = VERSION_BYTES + (slot - 1) * SLOT_BYTES;
        // SAFETY: `offset + SLOT_BYTES` is at most `len()` (checked above), and the table has that
        // many bytes (contract of `ApiTables::new`).
        let pointer = unsafe { self.base.add(offset) };
        // SAFETY: the table is aligned for pointers and `offset` a multiple of their size; it is
        // valid and accessed by nobody else without synchronisation (contract of `ApiTables::new`).
        Some(unsafe { AtomicPtr::from_ptr(pointer.as_ptr().cast()) })
    }
}

/// The live tables of a runtime.
#[derive(Clone, Copy)]
pub struct ApiTables {
    root: ApiTableVersion,
    layout: AmdExtLayout,
    // Indexed by `Kind`; core and AMD's are always there.
    tables: [Option<Table>; 4],
}

// SAFETY: the tables are memory of the process, valid wherever it is used (contract of `new`), and
// all accesses after `new` are atomic.
unsafe impl Send for ApiTables {}

// SAFETY: as above.
unsafe impl Sync for ApiTables {}

impl ApiTables {
    /// Reads which tables there are.
    ///
    /// # Errors
    ///
    /// If the root table's version is unknown, or the core or AMD's table is missing or of unknown
    /// version. Then nothing is known about any slot, and a tool should stay passive.
    ///
    /// # Safety
    ///
    /// `root` is what the runtime passed to a tool, or built like that: aligned for pointers, with
    /// `version.minor_id` bytes, of which those behind the version are pointers to tables, null or
    /// made likewise. Root and tables stay valid, for reading and writing, while this value or a
    /// copy is used. Each slot holds null or a function with the signature of that slot. While this
    /// value is used, slots are written by nobody else, or atomically.
    pub unsafe fn new(root: NonNull<HsaApiTable>) -> Result<Self, TableError> {
        // SAFETY: valid for reading (contract).
        let version = unsafe { root.cast::<ApiTableVersion>().read() };
        if !matches!(version.major_id, 1..=3) {
            return Err(TableError::UnknownVersion {
                table: "root",
                version,
            });
        }
        let root_table = Table {
            base: root.cast(),
            version,
        };

        let mut tables = [None; 4];
        for kind in Kind::ALL {
            // SAFETY: the root table is as `root_table` says, and its entries are null or tables
            // (contract).
            let table = unsafe { read_table(root_table, kind) };
            let needed = matches!(kind, Kind::Core | Kind::AmdExt);
            tables[kind as usize] = match table {
                Some(table) if kind.knows(table.version) => Some(table),
                Some(Table { version, .. }) if needed => {
                    return Err(TableError::UnknownVersion {
                        table: kind.name(),
                        version,
                    });
                }
                None if needed => return Err(TableError::NoTable { table: kind.name() }),
                // Nothing depends on these; their functions count as missing.
                _ => None,
            };
        }
        let amd = tables[Kind::AmdExt as usize].map(|table| table.version);
        let layout = amd.and_then(AmdExtLayout::of);
        let layout = layout.expect("the AMD table is there and its version known: checked above");
        Ok(Self {
            root: version,
            layout,
            tables,
        })
    }

    /// Version of the root table. Its major version tells generations of runtimes apart: 1 until
    /// ROCr 5.7, 2 in 6.0, 3 since 6.1.
    pub const fn root_version(&self) -> ApiTableVersion {
        self.root
    }

    /// The order of AMD's table.
    pub const fn amd_ext_layout(&self) -> AmdExtLayout {
        self.layout
    }

    /// The pointer in a function's slot.
    ///
    /// # Errors
    ///
    /// If this runtime has no such slot, or null in it.
    pub fn get<F: Copy>(&self, function: Function<F>) -> Result<F, MissingFunction> {
        let pointer = self
            .slot(function.info())
            .map(|slot| slot.load(Ordering::Acquire));
        // SAFETY: the slot is this function's and holds null or such a function (contract of `new`).
        let found = pointer.and_then(|pointer| unsafe { function.at(pointer) });
        found.ok_or_else(|| missing(function.info(), self.layout))
    }

    /// Puts another function into a function's slot and returns what was there.
    ///
    /// # Errors
    ///
    /// If this runtime has no such slot. Nothing was changed then.
    ///
    /// # Safety
    ///
    /// From now on everybody in the process calls `new` for `function`, in any thread: it must do
    /// what the headers promise of that function, must not unwind, and must stay loaded until the
    /// process ends or the slot holds something else and all calls have returned.
    pub unsafe fn replace<F: Copy>(
        &self,
        function: Function<F>,
        new: F,
    ) -> Result<Option<F>, MissingFunction> {
        let slot = self.slot(function.info());
        let slot = slot.ok_or_else(|| missing(function.info(), self.layout))?;
        let old = slot.swap(function.address(new), Ordering::AcqRel);
        // SAFETY: the slot is this function's and held null or such a function (contract of `new`).
        Ok(unsafe { function.at(old) })
    }

    /// Puts `new` into a function's slot if `current` is in it; returns whether it was.
    ///
    /// A tool that leaves puts back the original this way, so that a tool that came later and
    /// replaced the slot again is not cut off.
    ///
    /// # Errors
    ///
    /// If this runtime has no such slot.
    ///
    /// # Safety
    ///
    /// As for [`replace`](Self::replace).
    pub unsafe fn replace_if<F: Copy>(
        &self,
        function: Function<F>,
        current: F,
        new: F,
    ) -> Result<bool, MissingFunction> {
        let slot = self.slot(function.info());
        let slot = slot.ok_or_else(|| missing(function.info(), self.layout))?;
        let (current, new) = (function.address(current), function.address(new));
        Ok(slot
            .compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
            .is_ok())
    }

    /// Copies all slots of all tables. They may hold functions of other tools: call those, do not go
    /// around them.
    pub fn save(&self) -> SavedTables {
        let copy = |table: Table| {
            let slots = (1..=table.slots()).filter_map(|slot| table.slot(slot));
            slots
                .map(|slot| Address(slot.load(Ordering::Acquire)))
                .collect()
        };
        let tables = self.tables.map(|table| table.map(copy).unwrap_or_default());
        SavedTables {
            root: self.root,
            layout: self.layout,
            tables,
        }
    }

    /// How many slots AMD's table has.
    pub fn amd_ext_slots(&self) -> usize {
        self.tables[Kind::AmdExt as usize].map_or(0, Table::slots)
    }

    /// A slot of AMD's table by number, counted from 1, if the table is that long.
    ///
    /// For slots above 82, whose meaning differs between versions that are not released: the caller
    /// finds out, for example by calling the exported function. Writing to a slot is what
    /// [`replace`](Self::replace) says about it.
    pub fn amd_ext_slot(&self, slot: usize) -> Option<NonNull<*mut ()>> {
        let table = self.tables[Kind::AmdExt as usize].as_ref()?;
        NonNull::new(table.slot(slot)?.as_ptr())
    }

    fn slot(&self, info: &Info) -> Option<&AtomicPtr<()>> {
        let (kind, slot) = slot_of(info, self.layout)?;
        self.tables[kind as usize].as_ref()?.slot(slot)
    }
}

/// The table that the root table points at, unless there is none or its version is all zero.
///
/// # Safety
///
/// `root` is a root table as [`ApiTables::new`] demands.
unsafe fn read_table(root: Table, kind: Kind) -> Option<Table> {
    let offset = kind.root_offset();
    if offset + SLOT_BYTES > root.len() {
        return None;
    }
    // SAFETY: inside the root table (checked above).
    let entry = unsafe { root.base.add(offset) };
    // SAFETY: aligned, valid for reading and a pointer (contract).
    let base = NonNull::new(unsafe { entry.cast::<*mut u8>().read() })?;
    // SAFETY: not null, so a table, which begins with its version (contract).
    let version = unsafe { base.cast::<ApiTableVersion>().read() };
    (version.major_id != 0).then_some(Table { base, version })
}

impl fmt::Debug for ApiTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions = self.tables.map(|table| table.map(|table| table.version));
        f.debug_struct("ApiTables")
            .field("root", &self.root)
            .field("layout", &self.layout)
            .field("tables", &versions)
            .finish()
    }
}

/// The address of a function, or null.
#[derive(Clone, Copy)]
struct Address(*mut ());

// SAFETY: a number as far as threads are concerned; calling the function is unsafe in itself.
unsafe impl Send for Address {}

// SAFETY: as above.
unsafe impl Sync for Address {}

/// A copy of a runtime's tables as they were at one time.
#[derive(Clone)]
pub struct SavedTables {
    root: ApiTableVersion,
    layout: AmdExtLayout,
    // Indexed by `Kind`. Each slot was read from a live table, at the same place.
    tables: [Box<[Address]>; 4],
}

impl SavedTables {
    /// Version of the root table.
    pub const fn root_version(&self) -> ApiTableVersion {
        self.root
    }

    /// The order of AMD's table.
    pub const fn amd_ext_layout(&self) -> AmdExtLayout {
        self.layout
    }

    /// The pointer that was in a function's slot.
    ///
    /// # Errors
    ///
    /// If the runtime had no such slot, or null in it.
    pub fn get<F: Copy>(&self, function: Function<F>) -> Result<F, MissingFunction> {
        let address = slot_of(function.info(), self.layout)
            .and_then(|(kind, slot)| self.tables[kind as usize].get(slot.checked_sub(1)?));
        // SAFETY: copied from this function's slot, which held null or such a function (contract of
        // `ApiTables::new`).
        let found = address.and_then(|address| unsafe { function.at(address.0) });
        found.ok_or_else(|| missing(function.info(), self.layout))
    }
}

impl fmt::Debug for SavedTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = [0, 1, 2, 3].map(|kind: usize| self.tables[kind].len());
        f.debug_struct("SavedTables")
            .field("root", &self.root)
            .field("layout", &self.layout)
            .field("slots", &slots)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{function, hsa_status_t};

    /// Tables of a made-up runtime, each in memory of exactly its length.
    struct Runtime {
        root: Vec<*mut ()>,
        tables: [Vec<*mut ()>; 4],
    }

    fn table(version: ApiTableVersion, words: usize) -> Vec<*mut ()> {
        let mut words = vec![core::ptr::null_mut::<()>(); words.max(2)];
        // SAFETY: two words are as long as a version, and aligned better.
        unsafe { words.as_mut_ptr().cast::<ApiTableVersion>().write(version) };
        words
    }

    fn version(major_id: u32, minor_id: u32) -> ApiTableVersion {
        ApiTableVersion {
            major_id,
            minor_id,
            step_id: 0,
            reserved: 0,
        }
    }

    impl Runtime {
        fn new(root: (u32, u32), core: (u32, u32), amd: (u32, u32)) -> Self {
            let make =
                |(major, bytes): (u32, u32)| table(version(major, bytes), bytes as usize / 8);
            let mut tables = [core, amd, (1, 64), (1, 120)].map(make);
            let mut root = make(root);
            for (entry, table) in root.iter_mut().skip(2).zip(&mut tables) {
                *entry = table.as_mut_ptr().cast();
            }
            Self { root, tables }
        }

        fn with_amd(major: u32, bytes: u32) -> Self {
            Self::new((3, 64), (2, 1016), (major, bytes))
        }

        fn tables(&mut self) -> Result<ApiTables, TableError> {
            let root = NonNull::new(self.root.as_mut_ptr().cast()).unwrap();
            // SAFETY: made as the contract says; the tests keep `self` while they use the tables.
            unsafe { ApiTables::new(root) }
        }

        fn address(&self, kind: Kind, slot: usize) -> *const () {
            (&raw const self.tables[kind as usize][slot + 1]).cast()
        }
    }

    unsafe extern "C" fn first() -> hsa_status_t {
        hsa_status_t(1)
    }

    unsafe extern "C" fn second() -> hsa_status_t {
        hsa_status_t(2)
    }

    fn call(function: function::hsa_init) -> u32 {
        // SAFETY: one of the two above.
        unsafe { function() }.0
    }

    #[test]
    fn amd_layout_follows_from_major_version_and_length() {
        use AmdExtLayout::{A, B};

        let known = [(400, A), (440, B), (456, B), (552, B), (u32::MAX, B)];
        for (bytes, layout) in known {
            assert_eq!(AmdExtLayout::of(version(1, bytes)), Some(layout), "{bytes}");
        }
        for bytes in [552, 560, 576, 584, 592, 608, 624, 1000] {
            assert_eq!(AmdExtLayout::of(version(2, bytes)), Some(B), "{bytes}");
        }
        for bytes in [0, 392, 399, 401, 408, 424, 432, 439] {
            assert_eq!(AmdExtLayout::of(version(1, bytes)), None, "{bytes}");
        }
        for major in [0, 3, u32::MAX] {
            assert_eq!(AmdExtLayout::of(version(major, 608)), None, "{major}");
        }
    }

    #[test]
    fn unknown_versions_are_refused_with_their_numbers() {
        let refused = |mut runtime: Runtime| runtime.tables().unwrap_err();

        for major in [0, 4] {
            let error = refused(Runtime::new((major, 64), (2, 1016), (2, 608)));
            let version = version(major, 64);
            assert_eq!(
                error,
                TableError::UnknownVersion {
                    table: "root",
                    version
                }
            );
        }
        let error = refused(Runtime::new((3, 64), (3, 1016), (2, 608)));
        assert_eq!(
            error,
            TableError::UnknownVersion {
                table: "core",
                version: version(3, 1016)
            }
        );
        let error = refused(Runtime::with_amd(1, 424));
        let text = "the AMD extension table has version 1 and 424 bytes";
        assert!(error.to_string().starts_with(text), "{error}");
    }

    #[test]
    fn core_and_amd_tables_must_be_there_and_others_need_not() {
        // A root table that ends before the pointer, a null pointer, a version of all zero.
        for bytes in [16, 24, 28] {
            let mut runtime = Runtime::new((1, 48), (1, 1016), (1, 400));
            let root = version(1, bytes);
            // SAFETY: the first two words are the version.
            unsafe {
                runtime
                    .root
                    .as_mut_ptr()
                    .cast::<ApiTableVersion>()
                    .write(root)
            };
            let table = if bytes < 24 { "core" } else { "AMD extension" };
            assert_eq!(runtime.tables().unwrap_err(), TableError::NoTable { table });
        }
        let mut runtime = Runtime::with_amd(2, 608);
        runtime.root[3] = core::ptr::null_mut();
        let table = "AMD extension";
        assert_eq!(runtime.tables().unwrap_err(), TableError::NoTable { table });

        let mut runtime = Runtime::with_amd(2, 608);
        runtime.root[4] = core::ptr::null_mut();
        runtime.tables[Kind::Image as usize][0] = core::ptr::null_mut();
        let tables = runtime.tables().unwrap();
        assert!(tables.get(function::hsa_ext_program_create).is_err());
        assert!(tables.get(function::hsa_ext_image_create).is_err());
    }

    #[test]
    fn an_image_table_of_unknown_version_counts_as_missing() {
        for (major, found) in [(1, true), (2, true), (3, false)] {
            let mut runtime = Runtime::with_amd(2, 608);
            let image = runtime.tables[Kind::Image as usize].as_mut_ptr();
            // SAFETY: the first two words are the version.
            unsafe { image.cast::<ApiTableVersion>().write(version(major, 120)) };
            runtime.tables[Kind::Image as usize][2] = first as *const () as *mut ();
            let tables = runtime.tables().unwrap();
            let create = tables.get(function::hsa_ext_image_get_capability);
            assert_eq!(create.is_ok(), found, "version {major}");
        }
    }

    #[test]
    fn a_slot_is_reached_if_and_only_if_it_lies_within_the_table() {
        for (major, bytes) in [
            (1, 400),
            (1, 440),
            (1, 456),
            (2, 552),
            (2, 608),
            (2, 1000),
            (2, 24),
        ] {
            let mut runtime = Runtime::with_amd(major, bytes);
            let tables = runtime.tables().unwrap();
            let mut reached = 0;
            for info in function::all() {
                let Some((Kind::AmdExt, slot)) = slot_of(info, tables.amd_ext_layout()) else {
                    continue;
                };
                let end = 16 + 8 * slot;
                let found = tables
                    .slot(info)
                    .map(|slot| slot.as_ptr().cast_const().cast());
                let expected = end <= bytes as usize;
                let address = expected.then(|| runtime.address(Kind::AmdExt, slot));
                assert_eq!(found, address, "{} in {bytes} bytes", info.name);
                reached += usize::from(expected);
            }
            assert_eq!(reached, (bytes as usize / 8 - 2).min(82), "{bytes} bytes");
            assert_eq!(tables.amd_ext_slots(), bytes as usize / 8 - 2);
        }
    }

    #[test]
    fn slots_are_counted_from_one_and_end_with_the_table() {
        let mut runtime = Runtime::with_amd(2, 16 + 90 * 8);
        let tables = runtime.tables().unwrap();
        assert_eq!(tables.amd_ext_slot(0), None);
        let last = tables.amd_ext_slot(90).unwrap().as_ptr();
        assert_eq!(last.cast_const().cast(), runtime.address(Kind::AmdExt, 90));
        assert_eq!(tables.amd_ext_slot(91), None);
    }

    #[test]
    fn a_length_that_cuts_a_slot_leaves_it_out() {
        let mut runtime = Runtime::with_amd(2, 608);
        let cut = version(2, 607);
        // SAFETY: the first two words are the version.
        unsafe {
            let amd = runtime.tables[Kind::AmdExt as usize].as_mut_ptr();
            amd.cast::<ApiTableVersion>().write(cut);
        }
        let tables = runtime.tables().unwrap();
        assert_eq!(tables.amd_ext_slots(), 73);
        let missing = tables
            .get(function::hsa_amd_portable_export_dmabuf_v2)
            .unwrap_err();
        assert_eq!(
            missing.to_string(),
            "hsa_amd_portable_export_dmabuf_v2 is not in this runtime's AMD extension table; \
             ROCr has it since 7.0"
        );
    }

    #[test]
    fn replaced_functions_are_live_and_saved_ones_stay() {
        let mut runtime = Runtime::with_amd(1, 400);
        let tables = runtime.tables().unwrap();
        let init = function::hsa_init;
        assert!(tables.get(init).is_err(), "null is no function");

        // SAFETY: the functions live as long as the process.
        let replace = |new| unsafe { tables.replace(init, new) }.unwrap();
        let replace_if = |current, new| {
            // SAFETY: as above.
            unsafe { tables.replace_if(init, current, new) }.unwrap()
        };

        assert!(replace(first).is_none());
        let saved = tables.save();
        assert_eq!(replace(second).map(call), Some(1));
        assert_eq!(call(tables.get(init).unwrap()), 2);
        assert_eq!(call(saved.get(init).unwrap()), 1);

        assert!(!replace_if(first, first), "somebody else is there");
        assert_eq!(call(tables.get(init).unwrap()), 2);
        assert!(replace_if(second, saved.get(init).unwrap()));
        assert_eq!(call(tables.get(init).unwrap()), 1);
    }

    #[test]
    fn saved_tables_have_what_live_ones_have() {
        let mut runtime = Runtime::with_amd(2, 552);
        runtime.tables[Kind::Core as usize][2] = first as *const () as *mut ();
        runtime.tables[Kind::AmdExt as usize][2 + 66] = first as *const () as *mut ();
        let tables = runtime.tables().unwrap();
        let saved = tables.save();
        assert_eq!(saved.root_version(), version(3, 64));
        assert_eq!(saved.amd_ext_layout(), AmdExtLayout::B);

        let last = function::hsa_amd_vmem_get_alloc_properties_from_handle;
        let live = last.address(tables.get(last).unwrap());
        assert_eq!(live.cast_const(), first as *const ());
        assert_eq!(live, last.address(saved.get(last).unwrap()));
        let absent = function::hsa_amd_agent_set_async_scratch_limit;
        assert_eq!(
            tables.get(absent).unwrap_err(),
            saved.get(absent).unwrap_err()
        );
        let nowhere = function::hsa_signal_load_acquire;
        let missing = saved.get(nowhere).unwrap_err();
        assert!(
            missing.to_string().contains("is not in any API table"),
            "{missing}"
        );
    }
}
