//! Chores of the workspace: `cargo xtask test`, `demo`, `loom` and the rest; `help` lists them.
//!
//! `test` is the whole of CI and can be run by anyone: no root, network, GPU or package is needed
//! beyond a stable Rust tool chain; as root on Debian it installs what more of the tests can use. Each step has a file of its own; [`steps`] runs them in order and
//! adds up what they say.
//!
//! Invariants
//! - The last line of `test` is `N passed, N failed, N skipped`, and the exit status is 0 exactly
//!   when the middle number is.
//! - What did not run is never counted as passed: it is skipped, with a reason, or failed.
//!
//! Not here: anything that a user of the crates needs.

mod cargo;
mod cli;
mod clippy;
mod compiler;
mod demo;
mod doc;
mod emulated;
mod features;
mod fmt;
mod fuzz;
mod graph;
mod loom;
mod miri;
mod output;
mod package;
mod packages;
mod skips;
mod steps;
mod tally;
mod test;
mod workspace;

use std::process::ExitCode;

use cli::Command;

fn main() -> ExitCode {
    let done = match cli::parse(std::env::args_os().skip(1)) {
        Err(message) => {
            output::complain(message);
            return ExitCode::from(2);
        }
        Ok(Command::Help) => {
            output::say(cli::help());
            Ok(true)
        }
        Ok(Command::Test(names)) => Ok(steps::run(&names)),
        Ok(Command::Demo(args)) => Err(demo::become_demo(args)),
        Ok(Command::Emulated(request)) => emulated::start(&request),
        Ok(Command::Loom(filter)) => loom::explore(&filter),
        Ok(Command::Fuzz(request)) => fuzz::explore(&request),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            output::complain(message);
            ExitCode::FAILURE
        }
    }
}
