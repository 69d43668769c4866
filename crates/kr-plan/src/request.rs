//! Requests: what is to be placed, checked and put in order before any tier is asked.

use std::cmp::Reverse;
use std::num::NonZeroU64;

use kr_storage::{BLOCK_ALIGN, congruence};
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
    /// There are more requests than can be numbered.
    #[error("{requests} requests are more than can be planned at once")]
    TooMany {
        /// How many there are.
        requests: usize,
    },
}

/// A request in its place in the order, with what the order is made of.
#[derive(Clone, Copy)]
struct Key {
    live: DeviceAddr,
    priority: i32,
    request: u32,
}

/// Requests that passed all checks, in the order in which they are placed: by priority, the highest
/// first, then by live address.
///
/// No two requests share a byte, so the order is total and does not depend on the caller's.
pub(crate) struct Ordered<'a> {
    regions: &'a [Region],
    requests: &'a [Request],
    order: Vec<Key>,
}

impl<'a> Ordered<'a> {
    pub(crate) fn new(regions: &'a [Region], requests: &'a [Request]) -> Result<Self, PlanError> {
        let count = checked_count(requests.len())?;
        let mut order = Vec::new();
        order
            .try_reserve_exact(requests.len())
            .map_err(|_| PlanError::Metadata {
                requests: requests.len(),
            })?;
        for (request, at) in requests.iter().zip(0..count) {
            order.push(Key {
                live: checked_live(regions, request)?,
                priority: request.priority,
                request: at,
            });
        }
        let ordered = Self {
            regions,
            requests,
            order,
        };
        Ok(ordered.sorted()?)
    }

    fn sorted(mut self) -> Result<Self, RequestError> {
        let of = |key: &Key| &self.requests[key.request as usize];
        // Unstable sorts need no memory. Equal addresses are an error, but always the same one.
        self.order.sort_unstable_by(|a, b| {
            a.live.cmp(&b.live).then_with(|| {
                let rest = |key| (of(key).region, of(key).len);
                rest(a).cmp(&rest(b))
            })
        });
        for pair in self.order.windows(2) {
            let (a, b) = (of(&pair[0]), of(&pair[1]));
            // Does not wrap: the piece lies inside its region.
            if pair[0].live.0 + a.len > pair[1].live.0 {
                let at = pair[1].live;
                return Err(if a.region == b.region {
                    RequestError::Twice {
                        region: a.region,
                        at,
                    }
                } else {
                    RequestError::Overlap {
                        first: a.region,
                        second: b.region,
                        at,
                    }
                });
            }
        }
        if self
            .order
            .windows(2)
            .any(|pair| pair[0].priority < pair[1].priority)
        {
            self.order
                .sort_unstable_by_key(|key| (Reverse(key.priority), key.live));
        }
        Ok(self)
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Bytes of all requests.
    pub(crate) fn demand(&self) -> u128 {
        self.requests.iter().map(|one| u128::from(one.len)).sum()
    }

    /// The requests in order, with their regions and lengths.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a Request, &'a Region, NonZeroU64)> {
        self.order.iter().map(|key| {
            let request = &self.requests[key.request as usize];
            let len = NonZeroU64::new(request.len).expect("empty requests were refused");
            (request, &self.regions[request.region as usize], len)
        })
    }
}

fn checked_count(requests: usize) -> Result<u32, RequestError> {
    u32::try_from(requests).map_err(|_| RequestError::TooMany { requests })
}

/// First live byte of a request on which everything but its neighbours was checked.
fn checked_live(regions: &[Region], request: &Request) -> Result<DeviceAddr, RequestError> {
    let &Request {
        region,
        region_offset,
        len,
        congruence,
        ..
    } = request;
    let Some(of) = regions.get(region as usize) else {
        return Err(RequestError::UnknownRegion {
            region,
            regions: regions.len(),
        });
    };
    if len == 0 {
        return Err(RequestError::Empty {
            region,
            region_offset,
        });
    }
    let region_len = of.len_bytes().get();
    if region_offset
        .checked_add(len)
        .is_none_or(|end| end > region_len)
    {
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
    // Does not wrap: the piece lies inside its region.
    Ok(DeviceAddr(of.base().0 + region_offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_up_to_what_a_number_holds() {
        assert_eq!(checked_count(0), Ok(0));
        assert_eq!(checked_count(u32::MAX as usize), Ok(u32::MAX));
        let requests = u32::MAX as usize + 1;
        assert_eq!(
            checked_count(requests),
            Err(RequestError::TooMany { requests })
        );
    }

    #[test]
    fn a_key_is_as_small_as_it_can_be() {
        assert_eq!(size_of::<Key>(), 16);
        assert_eq!(size_of::<Request>(), 32);
    }
}
