//! The command line, parsed by hand: a few commands with hardly an option.

use std::ffi::OsString;

use crate::emulated;
use crate::fuzz;
use crate::steps::{self, STEPS};

/// What the person asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Say what there is.
    Help,
    /// Run these steps; none named means all.
    Test(Vec<String>),
    /// Run the demo with these arguments.
    Demo(Vec<OsString>),
    /// Run a program on the emulated GPU.
    Emulated(emulated::Request),
    /// Explore the models whose name contains this text; empty means all.
    Loom(String),
    /// Run fuzz targets.
    Fuzz(fuzz::Request),
}

/// Reads the arguments after the program's name.
///
/// # Errors
///
/// One sentence that names the argument and what would have been understood.
pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Command, String> {
    let mut args = args;
    let Some(command) = args.next() else {
        return Ok(Command::Help);
    };
    if command == "demo" {
        return Ok(Command::Demo(args.collect()));
    }
    if command == "emulated" {
        return emulated::Request::parse(args).map(Command::Emulated);
    }
    let rest: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    if rest.iter().any(|arg| arg == "--help" || arg == "-h") {
        return Ok(Command::Help);
    }
    match &*command.to_string_lossy() {
        "help" | "--help" | "-h" => Ok(Command::Help),
        "test" => steps::check_names(&rest).map(|()| Command::Test(rest)),
        "fuzz" => fuzz::Request::parse(&rest).map(Command::Fuzz),
        "loom" => match &*rest {
            [] => Ok(Command::Loom(String::new())),
            [filter] if !filter.starts_with('-') => Ok(Command::Loom(filter.clone())),
            _ => Err(format!(
                "`loom` takes one part of a model's name, not `{}`",
                rest.join(" ")
            )),
        },
        other => Err(format!(
            "unknown command `{other}`; commands: test, demo, emulated, loom, fuzz, help"
        )),
    }
}

/// What `cargo xtask --help` prints.
pub(crate) fn help() -> String {
    let mut text = String::from(
        "\
cargo xtask test [STEP…]     run all steps of CI, or those named, in this order:
",
    );
    for step in STEPS {
        text += &format!("    {:<10} {}\n", step.name, step.about);
    }
    text += "\
cargo xtask demo [ARGS…]     run the demo of kr-replay with ARGS; its exit status is kept
cargo xtask emulated [--trace] -- PROGRAM ARGS…
                             run an HSA program on the emulated GPU (docs/emulated-gpu.md);
                             --trace lists the wave instructions that it executes, --help says more
cargo xtask loom [PART]      explore every loom model (or those with PART in their name) with the
                             full bound on preemptions, and count executions
cargo xtask fuzz [TARGET] [--long | --seconds N]
                             run every fuzz target (or only TARGET) for 10 seconds, 20 minutes or N
                             seconds each, and count executions
cargo xtask help             this text";
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn commands_are_recognised() {
        assert_eq!(parsed(""), Ok(Command::Help));
        assert_eq!(parsed("--help"), Ok(Command::Help));
        assert_eq!(parsed("test fmt --help"), Ok(Command::Help));
        assert_eq!(parsed("test"), Ok(Command::Test(vec![])));
        assert_eq!(
            parsed("test fmt clippy"),
            Ok(Command::Test(vec!["fmt".into(), "clippy".into()]))
        );
        assert_eq!(parsed("loom"), Ok(Command::Loom(String::new())));
        assert_eq!(parsed("loom parked"), Ok(Command::Loom("parked".into())));
        assert!(matches!(parsed("fuzz tiles --long"), Ok(Command::Fuzz(_))));
    }

    #[test]
    fn the_demo_gets_every_argument() {
        assert_eq!(
            parsed("demo --no-restore --help"),
            Ok(Command::Demo(vec!["--no-restore".into(), "--help".into()]))
        );
    }

    #[test]
    fn a_wrong_word_is_named_with_what_would_have_been_right() {
        let error = parsed("tset").unwrap_err();
        assert!(
            error.contains("`tset`") && error.contains("test, demo, emulated"),
            "{error}"
        );
        for line in ["test fmt clipy", "test --clipy"] {
            let error = parsed(line).unwrap_err();
            assert!(
                error.contains("clipy`") && error.contains("fmt, clippy, test"),
                "{error}"
            );
        }
        assert!(parsed("loom a b").is_err());
        assert!(parsed("loom --all").is_err());
        assert!(parsed("fuzz --all").is_err());
    }

    #[test]
    fn help_names_every_step() {
        let help = help();
        for step in STEPS {
            assert!(help.contains(step.about), "{} is missing", step.name);
        }
    }
}
