//! Requests: what is to be placed, checked and put in order before any tier is asked.

use std::num::NonZeroU64;

use kr_storage::{Align, BLOCK_ALIGN, congruence};
use kr_types::{DeviceAddr, Region};

use crate::PlanError;

/// A piece of a region that is to be placed; usually all of it.
///
/// The numbers are the caller's and may be anything: planning checks them first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which region, as an index into the list that is given along.
    pub region: u32,
    /// The higher, the earlier it is placed, and so the nearer to the agent.
    pub priority: i32,
    /// Where the piece starts within its region, in bytes.
    pub region_offset: u64,
    /// Length of the piece in bytes.
    pub len: u64,
    /// Live and saved side agree modulo this many bytes: a power of two up to
    /// [`BLOCK_ALIGN`].
    pub congruence: u64,
}

impl Request {
    /// All of `region`, which is at `index` of the list, with the [`congruence`] of its length.
    pub const fn whole(index: u32, region: &Region) -> Self {
        Self {
            region: index,
            priority: 0,
            region_offset: 0,
            len: region.len_bytes().get(),
            congruence: congruence(region.len_bytes()),
        }
    }

    /// The same with another priority.
    #[must_use]
    pub const fn with_priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }
}

/// What is wrong with a request. No tier was asked.
///
/// Regions are named by their index in the caller's list. That a region is empty, starts at the null
/// address or wraps is refused by [`Region::new`] already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is no such region.
    #[error("region {region} is asked for, but there are only {regions}")]
    UnknownRegion {
        /// The index that was given.
        region: u32,
        /// How many regions there are.
        regions: usize,
    },
    /// The piece has no bytes.
    #[error("a piece of region {region} at offset {region_offset} is empty; leave it out instead")]
    Empty {
        /// Whose piece it is.
        region: u32,
        /// Where it starts, in bytes.
        region_offset: u64,
    },
    /// The piece does not end within its region, or past 2^64.
    #[error(
        "a piece of {len} bytes at offset {region_offset} reaches past the end of region {region}, \
         which has {region_len} bytes"
    )]
    PastEnd {
        /// Whose piece it is.
        region: u32,
        /// Where it starts, in bytes.
        region_offset: u64,
        /// Its length in bytes.
        len: u64,
        /// The region's length in bytes.
        region_len: u64,
    },
    /// The congruence is zero, not a power of two, or more than blocks are aligned to.
    #[error(
        "region {region} cannot be congruent modulo {congruence}: give a power of two up to \
         {BLOCK_ALIGN}"
    )]
    BadCongruence {
        /// Whose it is.
        region: u32,
        /// What was given, in bytes.
        congruence: u64,
    },
    /// Two requests cover the same byte of one region.
    #[error("the byte of region {region} at {at} is asked for twice")]
    Twice {
        /// The region.
        region: u32,
        /// The first byte that both cover.
        at: DeviceAddr,
    },
    /// Two regions cover the same byte.
    #[error("regions {first} and {second} both cover {at}")]
    Overlap {
        /// The one that starts first, or comes first in the list.
        first: u32,
        /// The other one.
        second: u32,
        /// The first byte that both cover.
        at: DeviceAddr,
    },
}

/// A request that passed all checks but those against its neighbours.
#[derive(Clone, Copy)]
pub(crate) struct Checked {
    /// First live byte. It and the length lie inside the region.
    pub(crate) live: DeviceAddr,
    pub(crate) len: NonZeroU64,
    pub(crate) region: u32,
    pub(crate) priority: i32,
    congruence: u64,
}

impl Checked {
    fn new(regions: &[Region], request: &Request) -> Result<Self, RequestError> {
        let &Request {
            region,
            priority,
            region_offset,
            len,
            congruence,
        } = request;
        let Some(of) = regions.get(region as usize) else {
            return Err(RequestError::UnknownRegion {
                region,
                regions: regions.len(),
            });
        };
        let Some(some) = NonZeroU64::new(len) else {
            return Err(RequestError::Empty {
                region,
                region_offset,
            });
        };
        let region_len = of.len_bytes().get();
        let end = region_offset.checked_add(len);
        if end.is_none_or(|end| end > region_len) {
            return Err(RequestError::PastEnd {
                region,
                region_offset,
                len,
                region_len,
            });
        }
        if !congruence.is_power_of_two() || congruence > BLOCK_ALIGN {
            return Err(RequestError::BadCongruence { region, congruence });
        }
        Ok(Self {
            // Does not wrap: the piece lies inside its region.
            live: DeviceAddr(of.base().0 + region_offset),
            len: some,
            region,
            priority,
            congruence,
        })
    }

    /// Where the bytes from `live` on, which lie inside the piece, may be saved.
    pub(crate) fn align(&self, live: DeviceAddr) -> Align {
        Align::congruent(live, self.congruence).expect("other moduli were refused")
    }

    /// What sorts by live address. A tie is an error, but always the same one.
    fn by_address(&self) -> u128 {
        u128::from(self.live.0) << 32 | u128::from(self.region)
    }

    /// What sorts by priority, the highest first, then by live address.
    fn by_priority(&self) -> u128 {
        let rank = i32::MAX.abs_diff(self.priority);
        u128::from(rank) << 64 | u128::from(self.live.0)
    }

    /// One past the last live byte.
    fn end(&self) -> u64 {
        // Does not wrap: the piece lies inside its region.
        self.live.0 + self.len.get()
    }
}

/// All requests, checked, in the order in which they are placed: by priority, the highest first, then
/// by live address.
///
/// No two share a byte, so the order is total and does not depend on the caller's. Sorting needs no
/// memory, and none of what follows looks anything up at random.
pub(crate) struct Ordered(Vec<Checked>);

impl Ordered {
    pub(crate) fn new(regions: &[Region], requests: &[Request]) -> Result<Self, PlanError> {
        let mut order = Vec::new();
        if order.try_reserve_exact(requests.len()).is_err() {
            let requests = requests.len();
            return Err(PlanError::Metadata { requests });
        }
        for request in requests {
            order.push(Checked::new(regions, request)?);
        }
        order.sort_unstable_by_key(Checked::by_address);
        let neighbours = || order.iter().zip(order.iter().skip(1));
        if let Some((first, second)) = neighbours().find(|(a, b)| a.end() > b.live.0) {
            return Err(overlap(first, second).into());
        }
        if neighbours().any(|(a, b)| a.priority < b.priority) {
            order.sort_unstable_by_key(Checked::by_priority);
        }
        Ok(Self(order))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Checked> {
        self.0.iter()
    }

    /// Bytes of all requests.
    pub(crate) fn demand(&self) -> u128 {
        self.iter().map(|one| u128::from(one.len.get())).sum()
    }
}

fn overlap(first: &Checked, second: &Checked) -> RequestError {
    let at = second.live;
    if first.region == second.region {
        let region = first.region;
        RequestError::Twice { region, at }
    } else {
        RequestError::Overlap {
            first: first.region,
            second: second.region,
            at,
        }
    }
}
