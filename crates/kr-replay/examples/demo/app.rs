//! The side of the application: where programs get memory and launch kernels. Nothing here knows
//! that dispatches are profiled.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::io::Write;

use kr_replay::host::{HostBuffer, HostQueue, HostRuntime, KernelLaunch};

/// One runtime and one queue, shared by the programs that run one after the other.
pub(crate) struct App<'a> {
    runtime: HostRuntime,
    queue: HostQueue,
    launched: Cell<u64>,
    progress: Progress<'a>,
}

impl<'a> App<'a> {
    pub(crate) fn new(runtime: HostRuntime, progress: Progress<'a>) -> Self {
        Self {
            queue: runtime.queue(),
            runtime,
            launched: Cell::new(0),
            progress,
        }
    }

    /// Device memory that holds `values`.
    pub(crate) fn upload<T: bytemuck::Pod>(
        &self,
        values: &[T],
    ) -> Result<HostBuffer, Box<dyn Error>> {
        let buffer = self.runtime.alloc(size_of_val(values) as u64)?;
        buffer.write(values)?;
        Ok(buffer)
    }

    /// Runs one kernel and waits for it.
    pub(crate) fn launch(&self, launch: &KernelLaunch) -> Result<(), Box<dyn Error>> {
        self.launched.set(self.launched.get() + 1);
        self.progress.show(&format!(
            "dispatch {}: {}",
            self.launched.get(),
            launch.kernel.name()
        ));
        Ok(self.queue.launch(launch).wait()?)
    }

    /// Launches so far.
    pub(crate) fn launched(&self) -> u64 {
        self.launched.get()
    }

    pub(crate) fn progress(&self) -> &Progress<'a> {
        &self.progress
    }
}

/// One line on a terminal that says what runs now.
pub(crate) struct Progress<'a> {
    terminal: Option<RefCell<&'a mut dyn Write>>,
}

impl<'a> Progress<'a> {
    /// `None` shows nothing: a file or a pipe has no line that could be overwritten.
    pub(crate) fn new(terminal: Option<&'a mut dyn Write>) -> Self {
        Self {
            terminal: terminal.map(RefCell::new),
        }
    }

    /// Replaces the line.
    fn show(&self, text: &str) {
        if let Some(terminal) = &self.terminal {
            let mut terminal = terminal.borrow_mut();
            // Progress that cannot be shown is no reason to stop.
            let _ = write!(terminal, "\r\x1b[K{text}").and_then(|()| terminal.flush());
        }
    }

    /// Makes room for output.
    pub(crate) fn clear(&self) {
        self.show("");
    }
}
