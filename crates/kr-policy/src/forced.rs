//! The policy that does not choose, and the word that asks for it.

use std::fmt;

use kr_types::{ByTier, RestoreMode};

use crate::auto::Auto;
use crate::facts::{Facts, Observed};
use crate::mode::Mode;
use crate::seam::Policy;

/// One mode for all windows, or the nearest that is possible: without the promise of a final check
/// hash-every-pass stands in for hash-once, and where nothing can hash a full copy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Always(pub RestoreMode);

impl Policy for Always {
    fn choose(&self, facts: &Facts) -> ByTier<Mode> {
        ByTier::uniform(match self.0 {
            RestoreMode::HashEveryPass | RestoreMode::HashOnce if !facts.can_hash => Mode::Full,
            RestoreMode::HashEveryPass => Mode::HashEveryPass,
            RestoreMode::HashOnce => facts
                .may_hash_once()
                .map_or(Mode::HashEveryPass, Mode::HashOnce),
            _ => Mode::Full,
        })
    }

    fn learn(&self, _: &Facts, _: &Observed) {}
}

/// What a user can ask for, as in `KR_RESTORE_FORCE_MODE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    /// Let [`Auto`] choose.
    Auto,
    /// See [`Always`].
    Always(RestoreMode),
}

impl Forced {
    /// The policy that does it.
    pub fn policy(self) -> Box<dyn Policy> {
        match self {
            Self::Auto => Box::new(Auto::default()),
            Self::Always(mode) => Box::new(Always(mode)),
        }
    }
}

/// The word for [`Forced::Auto`]; the others are those of [`RestoreMode`].
const AUTO: &str = "auto";

/// Reads `auto` or the word of a [`RestoreMode`].
///
/// # Errors
///
/// Any other string. The caller is expected to say so once, and to go on with [`Forced::Auto`].
pub fn parse_forced(word: &str) -> Result<Forced, UnknownMode> {
    if word == AUTO {
        return Ok(Forced::Auto);
    }
    word.parse()
        .map(Forced::Always)
        .map_err(|_| UnknownMode::of(word))
}

/// A string that names no restore mode; says which do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMode {
    given: String,
}

impl UnknownMode {
    /// A message shows no more of a string than this many characters.
    const SHOWN: usize = 64;

    fn of(word: &str) -> Self {
        Self {
            given: word.chars().take(Self::SHOWN).collect(),
        }
    }

    /// What was given, or the beginning of it.
    pub fn given(&self) -> &str {
        &self.given
    }
}

impl fmt::Display for UnknownMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = &self.given;
        write!(f, "{given:?} is not a known restore mode; known are {AUTO}")?;
        RestoreMode::ALL
            .iter()
            .try_for_each(|mode| write!(f, ", {mode}"))
    }
}

impl std::error::Error for UnknownMode {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Rates;
    use crate::mode::EndCheck;
    use kr_types::KernelId;
    use proptest::prelude::*;

    const PROMISE: EndCheck = EndCheck::promised();

    fn facts(can_hash: bool, end_check: Option<EndCheck>, every_pass_only: bool) -> Facts {
        Facts {
            kernel: KernelId(1),
            grid: [1; 3],
            passes: Some(5),
            live_bytes: ByTier::uniform(1 << 30),
            rates: Rates::ASSUMED,
            can_hash,
            end_check,
            every_pass_only,
        }
    }

    #[test]
    fn a_forced_mode_is_used_or_the_nearest_possible() {
        use RestoreMode::{Full, HashEveryPass, HashOnce};
        let all = facts(true, Some(PROMISE), false);
        let unpromised = facts(true, None, false);
        let every_pass_only = facts(true, Some(PROMISE), true);
        let no_hash = facts(false, Some(PROMISE), false);
        for (forced, facts, mode) in [
            (Full, all, Mode::Full),
            (HashEveryPass, all, Mode::HashEveryPass),
            (HashOnce, all, Mode::HashOnce(PROMISE)),
            (HashOnce, unpromised, Mode::HashEveryPass),
            (HashOnce, every_pass_only, Mode::HashEveryPass),
            (HashEveryPass, every_pass_only, Mode::HashEveryPass),
            (Full, no_hash, Mode::Full),
            (HashEveryPass, no_hash, Mode::Full),
            (HashOnce, no_hash, Mode::Full),
        ] {
            let chosen = Forced::Always(forced).policy().choose(&facts);
            assert_eq!(chosen, ByTier::uniform(mode), "{forced} {facts:?}");
        }
    }

    #[test]
    fn auto_chooses_by_the_facts() {
        let auto = Forced::Auto.policy();
        let modes = |can_hash| auto.choose(&facts(can_hash, None, false));
        assert_eq!(modes(true), ByTier::uniform(Mode::HashEveryPass));
        assert_eq!(modes(false), ByTier::uniform(Mode::Full));
    }

    #[test]
    fn the_words_that_can_be_forced() {
        for (word, forced) in [
            ("auto", Forced::Auto),
            ("full", Forced::Always(RestoreMode::Full)),
            (
                "hash-every-pass",
                Forced::Always(RestoreMode::HashEveryPass),
            ),
            ("hash-once", Forced::Always(RestoreMode::HashOnce)),
        ] {
            assert_eq!(parse_forced(word), Ok(forced));
        }
        for word in [
            "",
            "Auto",
            "full ",
            " full",
            "hash_once",
            "full,auto",
            "fúll",
            "\0",
        ] {
            let error = parse_forced(word).unwrap_err();
            assert_eq!(error.given(), word);
        }
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_known_ones() {
        assert_eq!(
            parse_forced("fast\n").unwrap_err().to_string(),
            r#""fast\n" is not a known restore mode; known are auto, full, hash-every-pass, hash-once"#
        );
        let long = parse_forced(&"ü".repeat(10_000)).unwrap_err();
        assert_eq!(long.given(), "ü".repeat(64));
    }

    proptest! {
        /// Any string is read or answered with its beginning.
        #[test]
        fn any_string_is_read_or_refused(word in ".{0,80}") {
            if let Err(error) = parse_forced(&word) {
                prop_assert!(word.starts_with(error.given()));
            }
        }
    }
}
