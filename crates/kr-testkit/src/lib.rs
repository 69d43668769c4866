//! What tests of this workspace share: each seam's contract as a suite that every implementation
//! runs ([`conformance`]), and fakes that do what a script says ([`replay`]).
//!
//! Invariants
//! - A suite assumes what the seam's documentation promises and nothing else, so it passes on any
//!   backend that keeps the contract.
//! - Every rule of a suite is seen to fail: `tests/` runs it against an implementation that breaks
//!   that rule and little else.
//!
//! The crate is a dev-dependency, used from `tests/` folders only: a unit test of a crate that
//! this one depends on would see that crate's types twice.

pub mod conformance;
pub mod replay;
