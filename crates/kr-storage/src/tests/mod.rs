//! Tests of blocks over a scripted pool, and models of the store.

#[cfg(not(loom))]
mod blocks;
#[cfg(not(loom))]
mod laws;
#[cfg(loom)]
mod loom_store;
#[cfg(not(loom))]
mod pool;
