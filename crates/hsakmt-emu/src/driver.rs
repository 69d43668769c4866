//! The emulated kernel driver: what exists between opening and closing it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::agent::Agent;
use crate::config::{self, Config, QueueErrors};
use crate::error::Error;
use crate::events::Events;
use crate::log;
use crate::queue::{Queue, Request};
use crate::space::Space;
use crate::topology::Topology;
use crate::trace::Trace;
use crate::{abi, host};

/// The driver while it is open.
static DRIVER: RwLock<Option<Arc<Driver>>> = RwLock::new(None);

/// This process is a fork: what `DRIVER` holds has lost its threads, and its lock may be held for ever.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Everything that the driver knows.
pub(crate) struct Driver {
    pub(crate) config: Config,
    pub(crate) space: Arc<Space>,
    pub(crate) events: Arc<Events>,
    agents: Vec<Arc<Agent>>,
    queues: Mutex<BTreeMap<u64, Arc<Queue>>>,
    next_queue: AtomicU64,
    cpu_cores: u32,
}

extern "C" fn forked() {
    FORKED.store(true, Ordering::Relaxed);
}

impl Driver {
    /// Opens the driver.
    pub(crate) fn open(vars: impl IntoIterator<Item = (String, String)>) -> Result<(), Error> {
        not_forked()?;
        let mut open = DRIVER.write();
        if open.is_some() {
            return Err(Error::AlreadyOpen);
        }
        let config = Config::from_vars(vars)?;
        log::set(config.log);
        if config.help {
            eprint!("{}", config::help());
        }
        static TOLD_OF_FORKS: std::sync::Once = std::sync::Once::new();
        TOLD_OF_FORKS.call_once(|| host::at_fork_in_child(forked));
        *open = Some(Arc::new(Self::new(config)?));
        Ok(())
    }

    fn new(config: Config) -> Result<Self, Error> {
        let space = Arc::new(Space::new(
            config.agents,
            host::memory_bytes(),
            config.vram_bytes,
        )?);
        let events = Arc::new(Events::new(&space)?);
        let trace = Trace::open(&config.trace)?.map(Arc::new);
        let agent = |node| {
            Arc::new(Agent::new(
                node,
                config.clone(),
                space.clone(),
                events.clone(),
                trace.clone(),
            ))
        };
        let agents = (1..=config.agents).map(agent).collect();
        let cpu_cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        Ok(Self {
            config,
            space,
            events,
            agents,
            queues: Mutex::default(),
            next_queue: AtomicU64::new(1),
            cpu_cores,
        })
    }

    /// Closes the driver and stops whatever still runs.
    pub(crate) fn close() -> Result<(), Error> {
        not_forked()?;
        let driver = DRIVER.write().take().ok_or(Error::NotOpen)?;
        drop(driver);
        Ok(())
    }

    /// The open driver.
    pub(crate) fn current() -> Result<Arc<Self>, Error> {
        not_forked()?;
        DRIVER.read().clone().ok_or(Error::NotOpen)
    }

    /// Whether errors are reported as by a driver that supports exceptions.
    pub(crate) fn has_exceptions(&self) -> bool {
        self.config.queue_errors == QueueErrors::Exceptions
    }

    /// What the machine looks like.
    pub(crate) fn topology(&self) -> Topology<'_> {
        Topology {
            config: &self.config,
            cpu_cores: self.cpu_cores,
            system_bytes: host::memory_bytes(),
        }
    }

    /// Checks that a node exists.
    pub(crate) fn node(&self, node: u32) -> Result<u32, Error> {
        if node <= self.config.agents {
            Ok(node)
        } else {
            Err(Error::Node(node))
        }
    }

    fn agent(&self, node: u32) -> Result<&Arc<Agent>, Error> {
        node.checked_sub(1)
            .and_then(|at| self.agents.get(at as usize))
            .ok_or(Error::Node(node))
    }

    /// Makes a queue on an agent.
    pub(crate) fn create_queue(
        &self,
        node: u32,
        mut request: Request,
    ) -> Result<abi::QueueResource, Error> {
        let agent = self.agent(node)?;
        request.id = self.next_queue.fetch_add(1, Ordering::Relaxed);
        let (queue, resource) = Queue::new(agent.clone(), &request)?;
        self.queues.lock().insert(request.id, Arc::new(queue));
        Ok(resource)
    }

    /// A queue by its number.
    pub(crate) fn queue(&self, id: u64) -> Result<Arc<Queue>, Error> {
        self.queues
            .lock()
            .get(&id)
            .cloned()
            .ok_or(Error::NoQueue(id))
    }

    /// Stops a queue; what runs on it is discarded.
    pub(crate) fn destroy_queue(&self, id: u64) -> Result<(), Error> {
        let queue = self.queues.lock().remove(&id).ok_or(Error::NoQueue(id))?;
        drop(queue);
        Ok(())
    }
}

fn not_forked() -> Result<(), Error> {
    if FORKED.load(Ordering::Relaxed) {
        Err(Error::Forked)
    } else {
        Ok(())
    }
}
