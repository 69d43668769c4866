//! Vocabulary of kernel replay, shared by every crate of the workspace.
//!
//! Here are the words that more than one crate must agree on: addresses and ids, what memory is
//! captured ([`Region`]), where a piece of it is saved ([`Extent`]), in which units it is hashed and
//! copied ([`Tile`]), how it is put back ([`RestoreMode`]) and how a dispatch ended ([`Outcome`],
//! [`Reason`]).
//!
//! Invariants
//! - A [`Region`] or an [`Extent`] is never empty and never wraps the address space: the only
//!   constructors refuse both.
//! - An allocation's identity is base, length *and* [`Generation`]; allocators reuse addresses.
//!
//! Not here: devices, clocks, logs, the environment. The crate is `no_std` and has no unsafe code.
//!
//! # Example
//!
//! ```
//! use kr_types::{AgentId, DeviceAddr, Generation, MemoryClass, Region, TILE_BYTES};
//!
//! let region = Region::new(
//!     AgentId(1),
//!     DeviceAddr(0x1000),
//!     3 * TILE_BYTES + 7,
//!     Generation::FIRST,
//!     MemoryClass::Vram,
//! )?;
//! assert_eq!(region.tiles().count(), 4);
//! assert_eq!(region.tiles().last().unwrap().len(), 7);
//! # Ok::<(), kr_types::RangeError>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

mod addr;
mod by_tier;
mod ids;
mod outcome;
mod region;
mod tile;

pub use addr::{DeviceAddr, RangeError};
pub use by_tier::ByTier;
pub use ids::{
    AgentId, DispatchId, Generation, InventoryGeneration, KernelId, PassIndex, PoolId, QueueId,
};
pub use outcome::{Outcome, Reason, RestoreMode, Tier, UnknownWord, Verified};
pub use region::{Extent, MemoryClass, Region};
pub use tile::{TILE_BYTES, Tile, Tiles};
