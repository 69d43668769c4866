//! Why there is no plan, with the reason of every round.

use std::error::Error;
use std::fmt;
use std::num::NonZeroU64;

use kr_storage::Refusal;

use crate::{BudgetReport, RequestError};

/// Why nothing was placed or committed. No block is held that was not held before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A request makes no sense. No tier was asked.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The host has no memory for the plan itself.
    #[error("the host has no memory for the plan of {requests} requests")]
    Metadata {
        /// How many requests there are.
        requests: usize,
    },
    /// No tier has room, after those that could not be committed were given up.
    #[error(transparent)]
    NoCapacity(#[from] NoCapacity),
}

/// A request that no tier has room for.
#[derive(Debug)]
pub struct NoCapacity {
    /// Its region, as an index into the caller's list.
    pub region: u32,
    /// Bytes of it that have no place.
    pub missing: NonZeroU64,
    /// What was asked for and what there was.
    pub report: BudgetReport,
    /// The commits that failed before, in order.
    pub rounds: Vec<FailedRound>,
}

impl fmt::Display for NoCapacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            region,
            missing,
            report,
            rounds,
        } = self;
        write!(
            f,
            "no tier has room for {missing} more bytes of region {region} ({report})"
        )?;
        for round in rounds {
            write!(f, "; {round}")?;
        }
        Ok(())
    }
}

impl Error for NoCapacity {}

/// A round of planning whose blocks could not all be had.
#[derive(Debug)]
pub struct FailedRound {
    /// The tier, and what it said.
    pub refusal: Refusal,
    /// What was done about it.
    pub then: Then,
}

/// What was done about a tier that had no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It was tried again with so many bytes at the most.
    CutTo(NonZeroU64),
    /// It was given up for this window.
    Disabled,
}

impl fmt::Display for FailedRound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.refusal)?;
        let mut source = self.refusal.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        match self.then {
            Then::CutTo(bytes) => write!(f, ", so it was cut to {bytes} bytes"),
            Then::Disabled => f.write_str(", so it was given up"),
        }
    }
}
