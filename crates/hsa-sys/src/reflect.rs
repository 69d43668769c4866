//! Tables of what the crate declares: layouts, constants, functions.
//!
//! Not part of the crate's interface. They exist so that a test outside the crate can compare
//! every declaration with the C headers; nothing in the crate's own code depends on them, except
//! that enumerations print their names from here.

/// Since when a name exists in the C headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// In the headers of ROCr 5.2 and all newer ones.
    BASE,
    /// Only in newer headers.
    LATER,
}

/// One C constant.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    /// Its name in the headers.
    pub c_name: &'static str,
    /// Its value; wide enough for every signed and unsigned 64-bit constant.
    pub value: i128,
    /// When it appeared.
    pub generation: Generation,
}

/// One C structure.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Its name in the headers.
    pub c_name: &'static str,
    /// Bytes.
    pub size: usize,
    /// Bytes.
    pub align: usize,
    /// When it appeared.
    pub generation: Generation,
    /// Every field, in order.
    pub fields: &'static [Field],
}

/// One field of a C structure.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in C; raw identifiers keep their `r#`.
    pub c_name: &'static str,
    /// Bytes from the start.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
}

/// One C enumeration or group of bit fields.
#[derive(Clone, Copy, Debug)]
pub struct Enumeration {
    /// The Rust type.
    pub name: &'static str,
    /// All its values.
    pub constants: &'static [Constant],
}

/// The size of the field that `_field` projects to.
pub(crate) const fn size_of_field<T, F>(_field: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// Every structure.
pub fn layouts() -> impl Iterator<Item = &'static Layout> {
    let tables = [
        crate::hsa::LAYOUTS,
        crate::aql::LAYOUTS,
        crate::amd::LAYOUTS,
        crate::image::LAYOUTS,
        crate::finalize::LAYOUTS,
        crate::internal::LAYOUTS,
        crate::kernel::LAYOUTS,
        crate::loader::LAYOUTS,
        crate::aqlprofile::LAYOUTS,
        crate::table::LAYOUTS,
    ];
    tables.into_iter().flatten()
}

/// Every enumeration and group of bit fields.
pub fn enumerations() -> impl Iterator<Item = &'static Enumeration> {
    let tables = [
        crate::hsa::ENUMERATIONS,
        crate::aql::ENUMERATIONS,
        crate::amd::ENUMERATIONS,
        crate::image::ENUMERATIONS,
        crate::finalize::ENUMERATIONS,
        crate::internal::ENUMERATIONS,
        crate::kernel::ENUMERATIONS,
        crate::elf::ENUMERATIONS,
        crate::loader::ENUMERATIONS,
        crate::aqlprofile::ENUMERATIONS,
    ];
    tables.into_iter().flatten()
}

/// Every callback type.
pub fn callbacks() -> &'static [crate::function::Callback] {
    crate::function::callback::CALLBACKS
}
