//! What all queues of one emulated agent share.

use std::sync::Arc;

use amdgpu_emu::Counters;
use amdgpu_emu::counters::Selection;
use parking_lot::Mutex;

use crate::abi::MemoryAccessFault;
use crate::config::Config;
use crate::events::Events;
use crate::host::PAGE;
use crate::pages::Agents;
use crate::space::Space;
use crate::trace::Trace;
use crate::view::View;

/// One agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) node: u32,
    pub(crate) config: Config,
    pub(crate) space: Arc<Space>,
    pub(crate) events: Arc<Events>,
    pub(crate) trace: Option<Arc<Trace>>,
    counting: Mutex<Counting>,
}

/// The counters of an agent since they were started.
#[derive(Debug, Default)]
struct Counting {
    on: bool,
    selected: Selection,
    totals: Counters,
}

impl Agent {
    pub(crate) fn new(
        node: u32,
        config: Config,
        space: Arc<Space>,
        events: Arc<Events>,
        trace: Option<Arc<Trace>>,
    ) -> Self {
        Self {
            node,
            config,
            space,
            events,
            trace,
            counting: Mutex::default(),
        }
    }

    /// The agent's memory, for the calling thread.
    pub(crate) fn view(&self) -> View {
        View::new(self.space.clone(), Agents::of(self.node))
    }

    /// Reports an access that hit nothing. As with hardware, the process hears about it, not the queue.
    pub(crate) fn raise_fault(&self, address: u64) {
        self.events.raise_fault(MemoryAccessFault {
            node_id: self.node,
            virtual_address: address & !(PAGE - 1),
            failure: MemoryAccessFault::NOT_PRESENT,
            flags: MemoryAccessFault::FATAL_PROCESS,
        });
    }

    /// Sets counters to zero and lets them count.
    pub(crate) fn start_counting(&self, selected: Selection) {
        *self.counting.lock() = Counting {
            on: true,
            selected,
            totals: Counters::default(),
        };
    }

    /// Holds all counters at what they are.
    pub(crate) fn stop_counting(&self) {
        self.counting.lock().on = false;
    }

    /// What was counted since the start, for each counter that was started.
    pub(crate) fn counted(&self) -> Vec<u64> {
        let counting = self.counting.lock();
        let values = counting.selected.iter();
        values.map(|counter| counting.totals[counter]).collect()
    }

    /// Adds a dispatch, if counters are on.
    pub(crate) fn count(&self, dispatch: &Counters) {
        let mut counting = self.counting.lock();
        if counting.on {
            for (counter, value) in dispatch.iter() {
                counting.totals[counter] += value;
            }
        }
    }
}
