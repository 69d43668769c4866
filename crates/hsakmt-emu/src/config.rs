//! What of the emulated machine can be chosen, and the variables that choose it.
//!
//! [`VARIABLES`] is the one list of them; `KR_EMU_HELP=1` prints it, and what is not modelled. A value that is not understood is an error, since
//! a program that was to run on two agents must not run on one.

use std::fmt::Write as _;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

/// Most agents.
pub(crate) const MAX_AGENTS: u32 = 8;

/// Shader engines of an agent; the number of compute units is a multiple of it.
pub(crate) const SHADER_ENGINES: u32 = 8;

/// A variable, as the help shows it.
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) default: &'static str,
    pub(crate) values: &'static str,
    pub(crate) meaning: &'static str,
}

/// Every variable that is read.
pub(crate) const VARIABLES: [Variable; 10] = [
    Variable {
        name: "KR_EMU_HELP",
        default: "0",
        values: "0, 1",
        meaning: "print this list, and what is not modelled, when the emulated driver is opened",
    },
    Variable {
        name: "KR_EMU_AGENTS",
        default: "1",
        values: "1 to 8",
        meaning: "agents; several are linked by xGMI",
    },
    Variable {
        name: "KR_EMU_COMPUTE_UNITS",
        default: "104",
        values: "8 to 104, a multiple of 8",
        meaning: "compute units of an agent, as ROCr sees them",
    },
    Variable {
        name: "KR_EMU_VRAM_MIB",
        default: "4096",
        values: "64 to 1048576",
        meaning: "VRAM of an agent in MiB; host memory backs what is used of it",
    },
    Variable {
        name: "KR_EMU_BLITS",
        default: "native",
        values: "native, interpreted",
        meaning: "how ROCr's own copy and fill kernels run: recognised and done by the host, or instruction by instruction",
    },
    Variable {
        name: "KR_EMU_QUEUE_ERRORS",
        default: "signal",
        values: "signal, exceptions",
        meaning: "how a queue reports an error: in its inactive signal, or as drivers with exception support do",
    },
    Variable {
        name: "KR_EMU_BUDGET",
        default: "0",
        values: "0 (none) or a number",
        meaning: "wave instructions after which a dispatch is ended as an error",
    },
    Variable {
        name: "KR_EMU_NO_PROGRESS",
        default: "0",
        values: "0 (off) or a number",
        meaning: "times that all waves may repeat their state before a dispatch is ended as an error",
    },
    Variable {
        name: "KR_EMU_LOG",
        default: "errors",
        values: "quiet, errors, calls, packets",
        meaning: "what is written to standard error; each value includes those before it",
    },
    Variable {
        name: "KR_EMU_TRACE",
        default: "0",
        values: "0, 1 or a path with a /",
        meaning: "list each wave instruction that is interpreted, on standard error or at the end of a file",
    },
];

/// How ROCr's own kernels run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blits {
    Native,
    Interpreted,
}

/// How a queue reports an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueErrors {
    Signal,
    Exceptions,
}

/// What is written to standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Log {
    Quiet,
    Errors,
    Calls,
    Packets,
}

/// Where executed wave instructions are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trace {
    Off,
    StandardError,
    File(PathBuf),
}

/// The emulated machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) help: bool,
    pub(crate) agents: u32,
    pub(crate) compute_units: u32,
    pub(crate) vram_bytes: u64,
    pub(crate) blits: Blits,
    pub(crate) queue_errors: QueueErrors,
    pub(crate) budget: Option<NonZeroU64>,
    pub(crate) no_progress: Option<NonZeroU32>,
    pub(crate) log: Log,
    pub(crate) trace: Trace,
}

/// A variable that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("{name}={value}: want {values}")]
    Value {
        name: &'static str,
        value: String,
        values: &'static str,
    },
    #[error("{0}: no such variable, KR_EMU_HELP=1 lists them")]
    Unknown(String),
}

impl Default for Config {
    fn default() -> Self {
        Self {
            help: false,
            agents: 1,
            compute_units: 104,
            vram_bytes: 4096 << 20,
            blits: Blits::Native,
            queue_errors: QueueErrors::Signal,
            budget: None,
            no_progress: None,
            log: Log::Errors,
            trace: Trace::Off,
        }
    }
}

impl Config {
    /// Reads the variables that begin with `KR_EMU_`; others are nobody's business here.
    pub(crate) fn from_vars(
        vars: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        for (name, value) in vars {
            if !name.starts_with("KR_EMU_") {
                continue;
            }
            let Some(variable) = VARIABLES.iter().find(|variable| variable.name == name) else {
                return Err(ConfigError::Unknown(name));
            };
            if config.set(variable.name, &value).is_none() {
                return Err(ConfigError::Value {
                    name: variable.name,
                    value,
                    values: variable.values,
                });
            }
        }
        Ok(config)
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let within = |low: u64, high: u64| {
            value
                .parse()
                .ok()
                .filter(|number| (low..=high).contains(number))
        };
        match name {
            "KR_EMU_HELP" => self.help = within(0, 1)? == 1,
            "KR_EMU_AGENTS" => self.agents = within(1, MAX_AGENTS.into())? as u32,
            "KR_EMU_COMPUTE_UNITS" => {
                self.compute_units =
                    within(8, 104).filter(|units| units % u64::from(SHADER_ENGINES) == 0)? as u32;
            }
            "KR_EMU_VRAM_MIB" => self.vram_bytes = within(64, 1 << 20)? << 20,
            "KR_EMU_BLITS" => {
                self.blits = match value {
                    "native" => Blits::Native,
                    "interpreted" => Blits::Interpreted,
                    _ => return None,
                };
            }
            "KR_EMU_QUEUE_ERRORS" => {
                self.queue_errors = match value {
                    "signal" => QueueErrors::Signal,
                    "exceptions" => QueueErrors::Exceptions,
                    _ => return None,
                };
            }
            "KR_EMU_BUDGET" => self.budget = NonZeroU64::new(value.parse().ok()?),
            "KR_EMU_NO_PROGRESS" => self.no_progress = NonZeroU32::new(value.parse().ok()?),
            "KR_EMU_LOG" => {
                self.log = match value {
                    "quiet" => Log::Quiet,
                    "errors" => Log::Errors,
                    "calls" => Log::Calls,
                    "packets" => Log::Packets,
                    _ => return None,
                };
            }
            "KR_EMU_TRACE" => {
                self.trace = match value {
                    "0" => Trace::Off,
                    "1" => Trace::StandardError,
                    // So that a slip of the pen does not become a file.
                    path if path.contains('/') => Trace::File(path.into()),
                    _ => return None,
                };
            }
            _ => return None,
        }
        Some(())
    }
}

/// What is not modelled, beside what the interpreter does not model.
const NOT_MODELLED: &str = include_str!("not-modelled.md");

/// What can be chosen and what can't be had, for a terminal.
pub(crate) fn help() -> String {
    let mut text = String::from("hsakmt-emu: an emulated gfx90a behind ROCr. Variables:\n");
    for Variable {
        name,
        default,
        values,
        meaning,
    } in &VARIABLES
    {
        writeln!(
            text,
            "  {name} (default {default}; {values})\n      {meaning}"
        )
        .expect("a string takes all text");
    }
    text + "Not modelled:\n" + amdgpu_emu::NOT_MODELLED + NOT_MODELLED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::from_vars(
            vars.iter()
                .map(|&(name, value)| (name.to_owned(), value.to_owned())),
        )
    }

    /// What the list says about a default is what the emulator does without the variable.
    #[test]
    fn stated_defaults_are_the_defaults() {
        for variable in &VARIABLES {
            assert_eq!(
                read(&[(variable.name, variable.default)]),
                Ok(Config::default()),
                "{}",
                variable.name
            );
        }
    }

    #[test]
    fn every_variable_is_read() {
        let changed = [
            "1",
            "2",
            "8",
            "64",
            "interpreted",
            "exceptions",
            "5",
            "6",
            "packets",
            "./trace",
        ];
        assert_eq!(changed.len(), VARIABLES.len());
        for (variable, value) in VARIABLES.iter().zip(changed) {
            let config = read(&[(variable.name, value)]).unwrap();
            assert_ne!(config, Config::default(), "{}", variable.name);
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (name, value) in [
            ("KR_EMU_AGENTS", "9"),
            ("KR_EMU_AGENTS", "0"),
            ("KR_EMU_AGENTS", "two"),
            ("KR_EMU_COMPUTE_UNITS", "12"),
            ("KR_EMU_BLITS", "fast"),
            ("KR_EMU_BUDGET", "-1"),
            ("KR_EMU_TRACE", "yes"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("{name}={value}: want ")),
                "{error}"
            );
        }
        assert_eq!(
            read(&[("KR_EMU_AGENT", "2")]),
            Err(ConfigError::Unknown("KR_EMU_AGENT".into()))
        );
        assert_eq!(read(&[("KR_LOG", "x")]), Ok(Config::default()));
    }

    /// The part of the page about the emulator below a headline.
    fn section(headline: &str) -> String {
        let page =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/emulated-gpu.md");
        let page = std::fs::read_to_string(page).expect("the page is in the repository");
        let mut parts = page.split("\n## ");
        let part = parts.find_map(|part| part.strip_prefix(headline)?.strip_prefix('\n'));
        part.expect("the page has that headline").to_owned()
    }

    /// The page has a row for each variable that says what the help says, and no other row.
    #[test]
    fn the_page_lists_every_variable() {
        let section = section("Variables");
        for Variable {
            name,
            default,
            values,
            meaning,
        } in &VARIABLES
        {
            let row = format!("| `{name}` | {default} | {values} | {meaning} |\n");
            assert!(section.contains(&row), "{row}");
        }
        assert_eq!(section.matches("\n| `").count(), VARIABLES.len());
    }

    /// What is not modelled stands on the page as in the help, and nothing else does.
    #[test]
    fn the_page_lists_what_is_not_modelled() {
        let list = format!("{}{NOT_MODELLED}", amdgpu_emu::NOT_MODELLED);
        assert!(help().ends_with(&list));
        assert_eq!(section("What is not modelled").trim(), list.trim());
    }
}
