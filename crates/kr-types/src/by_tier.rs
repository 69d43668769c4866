//! One value per tier, for facts and decisions that differ between them.

use crate::Tier;

/// One value for each [`Tier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ByTier<T> {
    /// For [`Tier::Device`].
    pub device: T,
    /// For [`Tier::PinnedHost`].
    pub pinned_host: T,
}

impl<T> ByTier<T> {
    /// The same value for every tier.
    pub fn uniform(value: T) -> Self
    where
        T: Clone,
    {
        Self {
            device: value.clone(),
            pinned_host: value,
        }
    }

    /// The value that `f` gives for each tier, asked in order of preference.
    pub fn from_fn(mut f: impl FnMut(Tier) -> T) -> Self {
        Self {
            device: f(Tier::Device),
            pinned_host: f(Tier::PinnedHost),
        }
    }

    /// The value of one tier.
    pub const fn get(&self, tier: Tier) -> &T {
        match tier {
            Tier::Device => &self.device,
            Tier::PinnedHost => &self.pinned_host,
        }
    }

    /// The value of one tier, to change it.
    pub const fn get_mut(&mut self, tier: Tier) -> &mut T {
        match tier {
            Tier::Device => &mut self.device,
            Tier::PinnedHost => &mut self.pinned_host,
        }
    }

    /// What `f` makes of each value.
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> ByTier<U> {
        ByTier {
            device: f(self.device),
            pinned_host: f(self.pinned_host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tier_has_its_own_value() {
        let words = ByTier::from_fn(Tier::as_str);
        for tier in Tier::ALL {
            assert_eq!(*words.get(*tier), tier.as_str());
        }
        assert_eq!(
            words.map(str::len),
            ByTier {
                device: 6,
                pinned_host: 11
            }
        );

        let mut count = ByTier::uniform(1);
        *count.get_mut(Tier::PinnedHost) += 1;
        assert_eq!((count.device, count.pinned_host), (1, 2));
    }
}
