//! Tests of the whole tracker: unit tests and laws on real threads, models under `--cfg loom`.

#[cfg(not(loom))]
mod unit;
