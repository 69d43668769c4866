//! The command line.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use lexopt::prelude::*;

pub(crate) const HELP: &str = "\
Replays the kernels of a few real programs several times each on identical memory, through a small
profiler, and compares every result with a plain computation on the CPU.

usage: demo [options]
  --passes N      passes of every dispatch, 2 to 64 (default 4)
  --matrix FILE   a square sparse matrix in Matrix Market form (default: a finite-element matrix)
  --file FILE     the file whose bytes are counted, its first 16 MiB (default: this executable)
  --no-restore    put nothing back between passes; the results must then be wrong
  -h, --help      this text

exit status: 0 all results right, 1 something wrong, 2 this command line not understood
";

const PASSES: RangeInclusive<u32> = 2..=64;

/// What to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Help,
    Run(Options),
}

/// How to do it.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) passes: u32,
    pub(crate) matrix: Option<PathBuf>,
    pub(crate) file: Option<PathBuf>,
    pub(crate) restore: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            passes: 4,
            matrix: None,
            file: None,
            restore: true,
        }
    }
}

/// Reads the arguments that follow the program's name. An error is one sentence.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, lexopt::Error> {
    let mut options = Options::default();
    let mut args = lexopt::Parser::from_args(args);
    while let Some(arg) = args.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("no-restore") => options.restore = false,
            Long("matrix") => options.matrix = Some(args.value()?.into()),
            Long("file") => options.file = Some(args.value()?.into()),
            Long("passes") => {
                let value = args.value()?;
                let passes = value.to_str().and_then(|text| text.parse().ok());
                options.passes = passes
                    .filter(|passes| PASSES.contains(passes))
                    .ok_or_else(|| format!("expected 2 to 64 after '--passes', found {value:?}"))?;
            }
            _ => return Err(arg.unexpected()),
        }
    }
    Ok(Command::Run(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_read_in_any_order_and_either_form() {
        let want = Options {
            passes: 2,
            matrix: Some("a.mtx".into()),
            file: Some("b".into()),
            restore: false,
        };
        let line = "--no-restore --file=b --matrix a.mtx --passes 2";
        assert_eq!(command(line), Ok(Command::Run(want)));
        assert_eq!(command(""), Ok(Command::Run(Options::default())));
        assert_eq!(command("--passes 3 -h"), Ok(Command::Help));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("--pases 3", "'--pases'"),
            ("-v", "'-v'"),
            ("x.mtx", "\"x.mtx\""),
            ("--passes", "'--passes'"),
            ("--passes many", "after '--passes', found \"many\""),
            (
                "--passes 1",
                "expected 2 to 64 after '--passes', found \"1\"",
            ),
            ("--passes 65", "found \"65\""),
            ("--passes -1", "found \"-1\""),
            ("--no-restore=yes", "'--no-restore'"),
        ] {
            let message = command(line).unwrap_err();
            assert!(message.contains(part), "{line}: {message}");
            assert_eq!(message.lines().count(), 1);
        }
    }
}
