//! Chores of the workspace, one file per step.

fn main() {}
