//! The list of executed wave instructions that `KR_EMU_TRACE` asks for, a line for each:
//!
//! ```text
//! agent 1 queue 3 packet 0 group 0,0,0 wave 0 pc 0x7f2c0e001600 exec ffffffffffffffff s_load_dword s2, s[4:5], 0x4
//! ```
//!
//! `packet` counts the packets of the queue, `group` and `wave` count from the dispatch's and the workgroup's first, and
//! `exec` has a bit for each lane that is on. An instruction that ends the dispatch as an error is listed, since it is
//! counted too.
//!
//! Invariants
//! - Lines are whole, also when several queues run, and those of a dispatch are out before anybody hears of its end.
//! - A trace that can't be written any more is given up with a message; the program goes on.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};

use amdgpu_emu::Step;
use parking_lot::Mutex;

use crate::config;
use crate::error::Error;
use crate::log;

/// Bytes that are kept before they are written.
const CHUNK: usize = 16 << 10;

/// Where the lines of all queues go.
#[derive(Debug)]
pub(crate) struct Trace(Mutex<Option<Sink>>);

#[derive(Debug)]
enum Sink {
    StandardError,
    File(File),
}

impl Sink {
    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        match self {
            Self::StandardError => io::stderr().lock().write_all(text),
            Self::File(file) => file.write_all(text),
        }
    }
}

impl Trace {
    /// The trace that is asked for, if one is. A file is appended to, so that a program may open the driver again.
    pub(crate) fn open(wanted: &config::Trace) -> Result<Option<Self>, Error> {
        let sink = match wanted {
            config::Trace::Off => return Ok(None),
            config::Trace::StandardError => Sink::StandardError,
            config::Trace::File(path) => {
                let file = File::options().create(true).append(true).open(path);
                let refused = |source| Error::Host {
                    what: "the file that KR_EMU_TRACE names",
                    source,
                };
                Sink::File(file.map_err(refused)?)
            }
        };
        Ok(Some(Self(Mutex::new(Some(sink)))))
    }

    /// The lines of a dispatch, to be dropped at its end.
    pub(crate) fn dispatch(&self, agent: u32, queue: u64, packet: u64) -> Lines<'_> {
        Lines {
            trace: self,
            head: format!("agent {agent} queue {queue} packet {packet}"),
            text: String::new(),
        }
    }

    fn write(&self, text: &str) {
        let mut sink = self.0.lock();
        let Some(open) = sink.as_mut() else {
            return;
        };
        if let Err(error) = open.write(text.as_bytes()) {
            *sink = None;
            drop(sink);
            log::error!("the trace ends here, it can't be written: {error}");
        }
    }
}

/// The lines of one dispatch.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    trace: &'a Trace,
    head: String,
    text: String,
}

impl Lines<'_> {
    /// Adds an instruction.
    pub(crate) fn add(&mut self, step: &Step<'_>) {
        let [x, y, z] = step.place.workgroup;
        writeln!(
            self.text,
            "{} group {x},{y},{z} wave {} pc {:#x} exec {:016x} {}",
            self.head, step.place.wave, step.place.pc, step.exec, step.instruction
        )
        .expect("a string takes all text");
        if self.text.len() >= CHUNK {
            self.trace.write(&self.text);
            self.text.clear();
        }
    }
}

impl Drop for Lines<'_> {
    fn drop(&mut self) {
        if !self.text.is_empty() {
            self.trace.write(&self.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_made_is_an_error() {
        let nowhere = config::Trace::File("/nowhere/trace".into());
        let error = Trace::open(&nowhere).unwrap_err().to_string();
        assert_eq!(error, "the host refused the file that KR_EMU_TRACE names");
        assert!(Trace::open(&config::Trace::Off).unwrap().is_none());
    }

    /// A full disk ends the trace, not the program.
    #[test]
    fn a_trace_that_cannot_be_written_is_given_up() {
        let full = config::Trace::File("/dev/full".into());
        let trace = Trace::open(&full).unwrap().unwrap();
        trace.write("line\n");
        assert!(trace.0.lock().is_none());
        trace.write("line\n");
    }
}
