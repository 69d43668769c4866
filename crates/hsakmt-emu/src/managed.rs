//! Managed memory: ranges that the application mapped by itself and announced with attributes.
//!
//! Access is what matters of them, as no other call says that agents may reach such a range. The other attributes are
//! hints, which are kept so that they can be asked for.

use crate::abi::{SvmAttribute, svm};
use crate::error::Error;
use crate::pages::{Agents, Pages};

/// What was asked for about a range.
#[derive(Clone, Copy, Debug)]
struct Hints {
    preferred: u32,
    prefetched: u32,
    flags: u32,
    /// Logarithm of the pages that move together.
    granularity: u32,
}

impl Default for Hints {
    /// What the driver says of a range that nobody gave attributes: accessible to the host, coherent, 2 MiB.
    fn default() -> Self {
        Self {
            preferred: svm::NOWHERE,
            prefetched: svm::NOWHERE,
            flags: 3,
            granularity: 9,
        }
    }
}

/// The ranges that have hints, with their first address and the one behind the last; the latest counts.
#[derive(Debug, Default)]
pub(crate) struct Managed(Vec<(u64, u64, Hints)>);

impl Managed {
    /// Gives `[start, end)` attributes, in order, up to one that does not exist.
    pub(crate) fn set(
        &mut self,
        pages: &mut Pages,
        (start, end): (u64, u64),
        attributes: &[SvmAttribute],
    ) -> Result<(), Error> {
        let mut hints = self.hints(start, end);
        self.0.retain(|&(from, to, _)| (from, to) != (start, end));
        let result = attributes
            .iter()
            .try_for_each(|&SvmAttribute { kind, value }| {
                match kind {
                    svm::PREFERRED_LOC => hints.preferred = value,
                    svm::PREFETCH_LOC => hints.prefetched = value,
                    svm::ACCESS | svm::ACCESS_IN_PLACE => {
                        pages.fill(start, end);
                        pages.change(start, end, |agents| agents.with(Agents::of(value)));
                    }
                    svm::NO_ACCESS => {
                        pages.change(start, end, |agents| agents.without(Agents::of(value)))
                    }
                    svm::SET_FLAGS => hints.flags |= value,
                    svm::CLR_FLAGS => hints.flags &= !value,
                    svm::GRANULARITY => hints.granularity = value,
                    _ => return Err(unknown(kind)),
                }
                Ok(())
            });
        self.0.push((start, end, hints));
        result
    }

    /// Answers questions about `[start, end)` in place.
    pub(crate) fn get(
        &self,
        pages: &Pages,
        (start, end): (u64, u64),
        attributes: &mut [SvmAttribute],
    ) -> Result<(), Error> {
        let hints = self.hints(start, end);
        for SvmAttribute { kind, value } in attributes {
            let (asked, agent) = ({ *kind }, Agents::of(*value));
            *value = match asked {
                svm::PREFERRED_LOC => hints.preferred,
                svm::PREFETCH_LOC => hints.prefetched,
                svm::SET_FLAGS => hints.flags,
                svm::CLR_FLAGS => !hints.flags,
                svm::GRANULARITY => hints.granularity,
                // The question names an agent, and the answer is in the kind.
                svm::ACCESS | svm::ACCESS_IN_PLACE | svm::NO_ACCESS => {
                    let reached = pages
                        .find(start)
                        .is_some_and(|(_, entry)| entry.agents.contains(agent));
                    *kind = if reached {
                        svm::ACCESS_IN_PLACE
                    } else {
                        svm::NO_ACCESS
                    };
                    continue;
                }
                _ => return Err(unknown(asked)),
            };
        }
        Ok(())
    }

    fn hints(&self, start: u64, end: u64) -> Hints {
        let holds = |&&(from, to, _): &&(u64, u64, Hints)| from <= start && end <= to;
        self.0
            .iter()
            .rev()
            .find(holds)
            .map_or(Hints::default(), |&(_, _, hints)| hints)
    }
}

fn unknown(kind: u32) -> Error {
    Error::Argument {
        what: "an attribute of managed memory",
        value: kind.into(),
        want: "0 to 7",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(
        managed: &Managed,
        pages: &Pages,
        range: (u64, u64),
        kind: u32,
        value: u32,
    ) -> (u32, u32) {
        let mut question = [SvmAttribute { kind, value }];
        managed.get(pages, range, &mut question).unwrap();
        let [SvmAttribute { kind, value }] = question;
        (kind, value)
    }

    #[test]
    fn access_is_mapped_and_hints_are_kept() {
        let (mut managed, mut pages) = (Managed::default(), Pages::default());
        let range = (0x1000, 0x5000);
        let set = |kind, value| SvmAttribute { kind, value };
        managed
            .set(
                &mut pages,
                range,
                &[set(svm::ACCESS, 2), set(svm::PREFERRED_LOC, 1)],
            )
            .unwrap();
        assert_eq!(
            pages
                .find(0x4fff)
                .map(|(start, entry)| (start, entry.host, entry.agents)),
            Some((0x1000, 0x1000, Agents::of(2)))
        );
        let part = (0x2000, 0x3000);
        assert_eq!(
            ask(&managed, &pages, part, svm::PREFERRED_LOC, 0),
            (svm::PREFERRED_LOC, 1)
        );
        assert_eq!(
            ask(&managed, &pages, part, svm::PREFETCH_LOC, 0),
            (svm::PREFETCH_LOC, svm::NOWHERE)
        );
        assert_eq!(
            ask(&managed, &pages, part, svm::ACCESS, 2),
            (svm::ACCESS_IN_PLACE, 2)
        );
        assert_eq!(
            ask(&managed, &pages, part, svm::ACCESS, 1),
            (svm::NO_ACCESS, 1)
        );
        managed
            .set(
                &mut pages,
                part,
                &[set(svm::NO_ACCESS, 2), set(svm::SET_FLAGS, 8)],
            )
            .unwrap();
        assert_eq!(
            ask(&managed, &pages, part, svm::SET_FLAGS, 0),
            (svm::SET_FLAGS, 11)
        );
        assert_eq!(
            ask(&managed, &pages, part, svm::PREFERRED_LOC, 0),
            (svm::PREFERRED_LOC, 1),
            "a part inherits"
        );
        assert!(
            pages.find(0x2000).is_none()
                && pages.find(0x1000).is_some()
                && pages.find(0x3000).is_some()
        );
        assert!(managed.set(&mut pages, part, &[set(8, 0)]).is_err());
    }
}
