//! Tests of the whole tracker: calls and laws on real threads, models under `--cfg loom`.

#[cfg(not(loom))]
mod laws;
#[cfg(not(loom))]
mod unit;

#[cfg(loom)]
mod loom_claim;
#[cfg(loom)]
mod loom_enter;
#[cfg(loom)]
mod loom_free;
#[cfg(loom)]
mod model;
