//! One suite per seam. A suite is a table of named rules; a backend's test runs all of them and
//! reports the ones it breaks by name.

pub mod device;
mod rig;

/// One rule of a seam's contract.
#[derive(Clone, Copy, Debug)]
pub struct Rule<D: 'static> {
    /// What holds, as an identifier.
    pub name: &'static str,
    /// Panics, saying what it saw, if `D` breaks the rule.
    pub check: fn(&D),
}
