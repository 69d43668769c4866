//! Step `loom` and the command `cargo xtask loom`: concurrency models, explored by loom.
//!
//! Models are tests under `cfg(all(test, loom))` in modules named `loom_…`. A crate has models exactly
//! if it depends on loom; one that does, yet has no model, fails. Models build into `target/loom`,
//! since `--cfg loom` reaches every dependency.
//!
//! The step bounds preemptions so that it stays short. The command takes the full bound and runs one
//! model per process, so that each one's executions can be counted.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::cargo::{cargo, stream, tests};
use crate::output::say;
use crate::steps::{Outcome, seconds};
use crate::tally::Tally;
use crate::workspace;

/// Preemptions explored in the step: two threads interleave in every way that two switches allow.
const SHORT_BOUND: &str = "2";
/// Preemptions explored by the command; beyond it models take hours and find next to nothing.
const FULL_BOUND: &str = "3";
/// A run over all models that finds fewer has lost some.
const FEWEST_MODELS: usize = 5;
/// What the name of each model contains.
const MODELS: &str = "loom_";

/// The step: all models of each crate, short.
pub(crate) fn run() -> Result<Outcome, String> {
    let mut sum = Tally::default();
    let mut wrong = Vec::new();
    for name in crates_with_models()? {
        let outcome = tests(cargo_test(&name, SHORT_BOUND).arg(MODELS))?;
        sum += outcome.tally();
        if let Outcome::Failed { why, .. } = outcome {
            wrong.push(format!("{name}: {why}"));
        }
    }
    if wrong.is_empty() {
        Ok(Outcome::Ran(sum))
    } else {
        let why = wrong.join("; ");
        Ok(Outcome::Failed { tally: sum, why })
    }
}

/// The command: every model whose name contains `filter`, with the full bound; true if all hold.
///
/// # Errors
///
/// Models do not build, or fewer are there than must be.
pub(crate) fn explore(filter: &str) -> Result<bool, String> {
    let mut rows: Vec<Row> = Vec::new();
    for name in crates_with_models()? {
        for model in models(&name)? {
            if model.contains(filter) {
                rows.push(explore_one(&name, model)?);
            }
        }
    }
    if rows.is_empty() {
        return Err(format!("no model has `{filter}` in its name"));
    }
    say("");
    let width = rows.iter().map(|row| row.model.len()).max().unwrap_or(0);
    for row in &rows {
        say(format_args!("{:<width$}  {}", row.model, row.described()));
    }
    let complete = !filter.is_empty() || rows.len() >= FEWEST_MODELS;
    if !complete {
        return Err(format!(
            "only {} models ran, and there must be {FEWEST_MODELS} at least",
            rows.len()
        ));
    }
    Ok(rows.iter().all(|row| row.executions.is_some()))
}

/// One explored model.
struct Row {
    model: String,
    /// `None` if the model failed, or stopped before its end.
    executions: Option<u64>,
    time: Duration,
}

impl Row {
    fn described(&self) -> String {
        let time = seconds(self.time);
        match self.executions {
            Some(executions) => format!("{executions:>10} executions {time:>9}"),
            None => format!("{:>21} {time:>9}", "FAILED"),
        }
    }
}

fn explore_one(name: &str, model: String) -> Result<Row, String> {
    let mut command = cargo_test(name, FULL_BOUND);
    command
        .args(["--", "--nocapture", "--exact", &model])
        // Loom's closing line, and not one line per switch of threads.
        .env("LOOM_LOG", "loom::model=info")
        .env("NO_COLOR", "1");
    let start = Instant::now();
    let mut completed: Option<u64> = None;
    let status = stream(&mut command, |line| {
        if let Some(executions) = executions(line) {
            *completed.get_or_insert(0) += executions;
        }
    })?;
    let row = Row {
        model: format!("{name}::{model}"),
        executions: completed.filter(|_| status.success()),
        time: start.elapsed(),
    };
    say(format_args!("{}: {}", row.model, row.described().trim()));
    Ok(row)
}

/// Reads the line that loom ends a complete exploration with.
fn executions(line: &str) -> Option<u64> {
    let (_, count) = line.split_once("Completed in ")?;
    count.strip_suffix(" iterations")?.parse().ok()
}

/// The names of all models of a crate.
fn models(name: &str) -> Result<Vec<String>, String> {
    let mut listed = Vec::new();
    let mut command = cargo_test(name, FULL_BOUND);
    let status = stream(command.args(["--", "--list", MODELS]), |line| {
        listed.extend(line.strip_suffix(": test").map(String::from));
    })?;
    if !status.success() {
        return Err(format!("the models of {name} do not build"));
    }
    if listed.is_empty() {
        return Err(format!(
            "{name} depends on loom but has no test with `{MODELS}` in its name"
        ));
    }
    Ok(listed)
}

fn crates_with_models() -> Result<Vec<String>, String> {
    let names: Vec<_> = workspace::members()?
        .into_iter()
        .filter(|member| member.uses("loom"))
        .map(|member| member.name)
        .collect();
    if names.is_empty() {
        return Err("no crate depends on loom, so there are no models".into());
    }
    Ok(names)
}

/// `cargo test` over the models of one crate; release, because exploring takes long.
fn cargo_test(name: &str, preemptions: &str) -> Command {
    let mut command = cargo(["test", "--quiet", "--release", "--package", name, "--lib"]);
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", "target/loom")
        .env("LOOM_MAX_PREEMPTIONS", preemptions);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_read_from_the_closing_line_only() {
        let line = " INFO loom::model: Completed in 1234 iterations";
        assert_eq!(executions(line), Some(1234));
        for line in [
            "",
            " INFO loom::model:  ================== Iteration 20000 ==================",
            "Completed in some iterations",
            "test result: ok. 1 passed; 0 failed; 0 ignored",
        ] {
            assert_eq!(executions(line), None, "{line}");
        }
    }

    #[test]
    fn a_model_without_a_count_failed() {
        let row = |executions| Row {
            model: "m".into(),
            executions,
            time: Duration::from_millis(1500),
        };
        assert!(row(None).described().contains("FAILED"));
        assert_eq!(row(Some(7)).described().trim(), "7 executions     1.5 s");
    }
}
