//! Step `loom` and the command `cargo xtask loom`: concurrency models, explored by loom.
//!
//! Models are tests under `cfg(all(test, loom))` in modules named `loom_…`. A crate has models exactly
//! if it depends on loom; one that does, yet has no model, fails. Models build into `target/loom`,
//! since `--cfg loom` reaches every dependency.
//!
//! The step bounds preemptions so that it stays short; a model that sets a bound itself keeps it. The
//! command takes the full bound and runs one test per process, to say how many executions each took.
//! Models print that as `loom NAME: N executions`, at their end, so one that printed nothing was not
//! explored to its end.

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
    /// `None` if the model failed, or did not say.
    executions: Option<u64>,
    time: Duration,
}

impl Row {
    fn described(&self) -> String {
        let time = seconds(self.time);
        match self.executions {
            Some(executions) => format!("{executions:>10} executions {time:>9}"),
            None => format!("{:>21} {time:>9}", "FAILED, or no count"),
        }
    }
}

fn explore_one(name: &str, model: String) -> Result<Row, String> {
    let mut command = cargo_test(name, FULL_BOUND);
    command.args(["--", "--nocapture", "--exact", &model]);
    let start = Instant::now();
    let mut explored = None;
    let status = stream(&mut command, |line| {
        if let Some(executions) = executions(line) {
            *explored.get_or_insert(0) += executions;
        }
    })?;
    let row = Row {
        model: format!("{name}::{model}"),
        executions: explored.filter(|_| status.success()),
        time: start.elapsed(),
    };
    say(format_args!("{}: {}", row.model, row.described().trim()));
    Ok(row)
}

/// Reads the line that a model ends with; the harness may have begun that line with the test's name.
fn executions(line: &str) -> Option<u64> {
    let (_, said) = line.split_once("loom ")?;
    let (_, count) = said.strip_suffix(" executions")?.rsplit_once(": ")?;
    count.parse().ok()
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
        for line in [
            "loom window against frees: 1234 executions",
            "test tests::loom_free::a ... loom window against frees: 1234 executions",
        ] {
            assert_eq!(executions(line), Some(1234), "{line}");
        }
        for line in [
            "",
            "1234 executions",
            "loom window against frees: many executions",
            "loom window against frees: 1234 executions so far",
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
