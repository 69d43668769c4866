//! The steps of `cargo xtask test`, and the run over them.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::output::{complain, say};
use crate::tally::Tally;
use crate::{
    clippy, compiler, demo, doc, emulated, features, fmt, fuzz, graph, loom, miri, package,
    packages, skips, test,
};

/// One thing that must hold before a change goes in.
pub(crate) struct Step {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// What it checks, in one line of the help.
    pub(crate) about: &'static str,
    /// Does it; an error is a failure that needs no more explanation.
    run: fn() -> Result<Outcome, String>,
    /// Other steps do the same and more, so it only runs when it is named.
    only_named: bool,
}

/// All steps, in the order in which they run: cheap and telling ones first.
pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "packages",
        about: "on Debian and as root: what some tests need is installed (else they are skipped)",
        run: packages::run,
        only_named: false,
    },
    Step {
        name: "compiler",
        about: "the pinned compiler of the test kernels is fetched (else rebuilding them is skipped)",
        run: compiler::run,
        only_named: false,
    },
    Step {
        name: "fmt",
        about: "every file is formatted",
        run: fmt::run,
        only_named: false,
    },
    Step {
        name: "clippy",
        about: "no warning in any target",
        run: clippy::run,
        only_named: false,
    },
    Step {
        name: "test",
        about: "everything builds; unit, integration and doc tests hold",
        run: test::run,
        only_named: false,
    },
    Step {
        name: "doc",
        about: "the documentation builds without a warning",
        run: doc::run,
        only_named: false,
    },
    Step {
        name: "features",
        about: "each crate builds alone, with every combination of its features",
        run: features::run,
        only_named: false,
    },
    Step {
        name: "loom",
        about: "the concurrency models hold, with a short bound on preemptions",
        run: loom::run,
        only_named: false,
    },
    Step {
        name: "fuzz",
        about: "made-up inputs find nothing in ten seconds per target (skipped without a C++ compiler)",
        run: fuzz::run,
        only_named: false,
    },
    Step {
        name: "graph",
        about: "crates use only what is drawn below them, and their manifests are complete",
        run: graph::run,
        only_named: false,
    },
    Step {
        name: "demo",
        about: "the demo is right with restore and wrong without it",
        run: demo::run,
        only_named: false,
    },
    Step {
        name: "emulated",
        about: "the program of docs/emulated-gpu.md runs on the emulated GPU (skipped without ROCr)",
        run: emulated::sample,
        only_named: false,
    },
    Step {
        name: "miri",
        about: "no undefined behaviour in what Miri can run (skipped where it is not installed)",
        run: miri::run,
        only_named: false,
    },
    Step {
        name: "package",
        about: "each crate to be published is complete: it builds from its package",
        run: package::run,
        only_named: false,
    },
    Step {
        name: "emulator",
        about: "only when named: packages, then the tests of the emulated GPU alone",
        run: emulated::run,
        only_named: true,
    },
];

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A check without tests of its own held; what it looked at.
    Held(String),
    /// Tests ran and none failed.
    Ran(Tally),
    /// Tests ran, or should have, and it is not good.
    Failed {
        /// What was counted; `failed` is never 0.
        tally: Tally,
        /// One line for the table.
        why: String,
    },
    /// This machine lacks something; what.
    Skipped(String),
    /// Nothing builds, so no later step can say anything.
    BuildBroken,
}

impl Outcome {
    /// What the step adds to the closing line.
    pub(crate) fn tally(&self) -> Tally {
        let one = |passed, failed, skipped| Tally {
            passed,
            failed,
            skipped,
        };
        match self {
            Self::Held(_) => one(1, 0, 0),
            Self::Ran(tally) | Self::Failed { tally, .. } => *tally,
            Self::Skipped(_) => one(0, 0, 1),
            Self::BuildBroken => one(0, 1, 0),
        }
    }

    /// A check without tests of its own that did not hold.
    fn not_held(why: String) -> Self {
        let tally = Tally {
            failed: 1,
            ..Tally::default()
        };
        Self::Failed { tally, why }
    }

    fn described(&self) -> String {
        match self {
            Self::Held(what) => format!("passed: {what}"),
            Self::Ran(tally) => format!("passed: {tally}"),
            Self::Failed { why, .. } => format!("FAILED: {why}"),
            Self::Skipped(why) => format!("skipped: {why}"),
            Self::BuildBroken => "FAILED: the workspace does not build".into(),
        }
    }
}

/// Refuses names that no step has.
///
/// # Errors
///
/// One sentence with the name and the list of steps.
pub(crate) fn check_names(names: &[String]) -> Result<(), String> {
    let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let kind = if name.starts_with('-') {
                "option"
            } else {
                "step"
            };
            Err(format!(
                "unknown {kind} `{name}`; steps: {}",
                known.join(", ")
            ))
        }
    }
}

/// The steps with these names, in their usual order; no name means all.
fn selected(names: &[String]) -> impl Iterator<Item = &'static Step> {
    STEPS.iter().filter(move |step| match names {
        [] => !step.only_named,
        _ => names.iter().any(|name| name == step.name),
    })
}

/// Runs the steps with these names (none: all) and reports; true if nothing failed.
///
/// A failed step does not keep later ones from running, so that one run shows everything there is to
/// mend. Only when the workspace does not build is the rest skipped.
pub(crate) fn run(names: &[String]) -> bool {
    let mut rows = Vec::new();
    let mut broken = false;
    if let Err(message) = skips::clear(&skips::folder()) {
        complain(&message);
        rows.push(("skips", Duration::ZERO, Outcome::not_held(message)));
    }
    for step in selected(names) {
        if broken {
            let why = "the workspace does not build".into();
            rows.push((step.name, Duration::ZERO, Outcome::Skipped(why)));
            continue;
        }
        say(format_args!("== {}", step.name));
        let _watch = Watch::over(step.name);
        let start = Instant::now();
        let outcome = (step.run)().unwrap_or_else(Outcome::not_held);
        let time = start.elapsed();
        broken = outcome == Outcome::BuildBroken;
        say(format_args!(
            "   {} after {}: {}\n",
            step.name,
            seconds(time),
            outcome.described()
        ));
        rows.push((step.name, time, outcome));
    }
    report(rows)
}

/// How long a step may take before the whole run is given up: something hangs.
const STEP_LIMIT: Duration = Duration::from_secs(25 * 60);

/// Ends this process, as failed, if a step hangs. What the step started is left to whoever started
/// us; it shows in a list of processes.
struct Watch {
    /// Dropped with the watch, which ends it.
    _done: Sender<()>,
}

impl Watch {
    fn over(step: &'static str) -> Self {
        let (done, waits) = channel::<()>();
        std::thread::spawn(move || {
            if waits.recv_timeout(STEP_LIMIT) == Err(RecvTimeoutError::Timeout) {
                complain(format!(
                    "step `{step}` has not ended after {}: what it started last hangs",
                    seconds(STEP_LIMIT)
                ));
                say(Outcome::not_held(String::new()).tally());
                std::process::exit(1);
            }
        });
        Self { _done: done }
    }
}

/// Prints the table of times, every skip, and the closing line.
fn report(mut rows: Vec<(&str, Duration, Outcome)>) -> bool {
    let mut reasons = skips::read(&skips::folder()).unwrap_or_else(|message| {
        complain(&message);
        rows.push(("skips", Duration::ZERO, Outcome::not_held(message)));
        Default::default()
    });
    for (name, time, outcome) in &rows {
        say(format_args!(
            "{name:<10} {:>9}  {}",
            seconds(*time),
            outcome.described()
        ));
        if let Outcome::Skipped(why) = outcome {
            reasons.insert(format!("{name}: {why}"));
        }
    }
    let total = rows.iter().map(|(_, time, _)| *time).sum();
    let sum: Tally = rows.iter().map(|(_, _, outcome)| outcome.tally()).sum();
    say(format_args!("{:<10} {:>9}\n", "total", seconds(total)));
    say(skips::listing(&reasons, sum.skipped));
    say(sum);
    sum.failed == 0
}

/// A time as people compare it.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> Vec<String> {
        of.iter().copied().map(String::from).collect()
    }

    #[test]
    fn no_name_means_every_step_in_order() {
        let all: Vec<_> = selected(&[]).map(|step| step.name).collect();
        let declared = STEPS.iter().filter(|step| !step.only_named);
        let declared: Vec<_> = declared.map(|step| step.name).collect();
        assert_eq!(all, declared);
    }

    #[test]
    fn named_steps_run_once_in_their_usual_order() {
        let chosen = names(&["graph", "fmt", "graph"]);
        let steps: Vec<_> = selected(&chosen).map(|step| step.name).collect();
        assert_eq!(steps, ["fmt", "graph"]);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_list() {
        assert_eq!(check_names(&names(&["fmt", "doc"])), Ok(()));
        let error = check_names(&names(&["fmt", "docs"])).unwrap_err();
        assert!(
            error.starts_with("unknown step `docs`; steps: packages, compiler, fmt, clippy, test")
        );
        let error = check_names(&names(&["--fast"])).unwrap_err();
        assert!(error.starts_with("unknown option `--fast`; steps: "));
    }

    #[test]
    fn only_what_ran_and_held_counts_as_passed() {
        let tally = |outcome: Outcome| outcome.tally().to_string();
        assert_eq!(
            tally(Outcome::Held("x".into())),
            "1 passed, 0 failed, 0 skipped"
        );
        assert_eq!(
            tally(Outcome::not_held("x".into())),
            "0 passed, 1 failed, 0 skipped"
        );
        assert_eq!(
            tally(Outcome::Skipped("x".into())),
            "0 passed, 0 failed, 1 skipped"
        );
        assert_eq!(tally(Outcome::BuildBroken), "0 passed, 1 failed, 0 skipped");
    }
}
