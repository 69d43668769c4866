//! Step `features`: each crate builds alone, with every combination of its features.
//!
//! Alone, because cargo unites the features that all crates of a build ask for: a crate that forgets
//! to ask for one still builds with the workspace, and not for its users. Through clippy, because it
//! can refuse warnings (code that is dead without a feature) without building the dependencies anew.

use crate::cargo::{cargo, need, succeed};
use crate::steps::Outcome;
use crate::workspace;

/// More features than this make more combinations than anyone will wait for.
const MOST_FEATURES: usize = 6;

/// Checks every combination and says how many there were.
pub(crate) fn run() -> Result<Outcome, String> {
    need("clippy", "clippy")?;
    let mut checked = 0;
    let mut wrong = Vec::new();
    for member in workspace::members()? {
        if member.features.len() > MOST_FEATURES {
            return Err(format!(
                "{} has {} features, which is 2 to that power of combinations; \
                 have fewer, or raise MOST_FEATURES in xtask/src/features.rs",
                member.name,
                member.features.len()
            ));
        }
        for features in powerset(&member.features) {
            let features = features.join(",");
            let mut command = cargo(["clippy", "--quiet", "--no-default-features"]);
            command.args(["--package", &member.name, "--features", &features]);
            command.args(["--", "-D", "warnings"]);
            checked += 1;
            if succeed(&mut command).is_err() {
                wrong.push(format!("{} [{features}]", member.name));
            }
        }
    }
    if wrong.is_empty() {
        Ok(Outcome::Held(format!("{checked} combinations")))
    } else {
        Err(format!(
            "{} of {checked} combinations have errors or warnings: {}",
            wrong.len(),
            wrong.join(", ")
        ))
    }
}

/// Every subset, the empty one first.
fn powerset(features: &[String]) -> Vec<Vec<&str>> {
    let mut sets = vec![vec![]];
    for feature in features {
        for at in 0..sets.len() {
            let mut larger = sets[at].clone();
            larger.push(feature.as_str());
            sets.push(larger);
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subset_comes_once() {
        assert_eq!(powerset(&[]), [Vec::<&str>::new()]);
        let features = ["a", "b", "c"].map(String::from);
        let sets = powerset(&features);
        assert_eq!(
            sets,
            [
                vec![],
                vec!["a"],
                vec!["b"],
                vec!["a", "b"],
                vec!["c"],
                vec!["a", "c"],
                vec!["b", "c"],
                vec!["a", "b", "c"],
            ]
        );
    }
}
