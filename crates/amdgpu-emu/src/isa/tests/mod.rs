//! What each instruction does, said a second time.
//!
//! The tables here state effects in terms as far from the interpreter's as is reasonable: integers as wide integers
//! that are cut off at the end, floats as exact 64-bit values that are rounded at the end. [`every_row_is_stated`]
//! holds the tables against the interpreter's, so that no instruction comes without its statement.
#![expect(
    clippy::type_complexity,
    reason = "a table says the type of its rows once"
)]
#![expect(
    clippy::precedence,
    reason = "bits are put together as in the interpreter's tables"
)]
#![expect(
    clippy::needless_range_loop,
    reason = "a lane is an index of several things at once"
)]
#![expect(
    clippy::double_comparisons,
    reason = "that less or equal is less, or equal, is the statement"
)]

mod control;
mod float;
mod integer;
mod machine;
mod memory;
mod modifiers;

use std::collections::BTreeSet;

use crate::isa::decode::rows;
use crate::isa::row::Exec;

#[test]
fn every_row_is_stated() {
    let modelled = rows()
        .filter(|(_, row)| !matches!(row.exec, Exec::Missing))
        .map(|(_, row)| row.name.to_owned());
    let modelled: BTreeSet<String> = modelled.collect();
    let stated = [
        integer::stated(),
        float::stated(),
        memory::stated(),
        control::stated(),
    ]
    .concat();
    let stated: BTreeSet<String> = stated.into_iter().collect();
    let unstated: Vec<_> = modelled.difference(&stated).collect();
    assert!(
        unstated.is_empty(),
        "{} without a test: {unstated:?}",
        unstated.len()
    );
    let unknown: Vec<_> = stated.difference(&modelled).collect();
    assert!(
        unknown.is_empty(),
        "tests of what is not modelled: {unknown:?}"
    );
}
