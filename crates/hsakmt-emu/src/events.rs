//! Events: how agents wake the host.
//!
//! An event has a number and a mailbox, a word to which whoever raises it writes the number first.
//!
//! Every thread that waits for an event sees each raise once, also one from just before it began to wait; a thread
//! that never waited for the event sees at once that it was ever raised. With the kernel driver only one of the
//! threads that come too late sees a raise. ROCr lets all queues share an event, whose raise by one thread that
//! thread's own next wait then takes from another, which waits for ever: a matter of a few instructions with a driver,
//! and of one run in ten here. Woken once too often does no harm, as ROCr looks at its signals again after each wait.
//!
//! Not here: signals, whose values ROCr looks at after it was woken.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::abi::{EVENT_TYPE_MEMORY, MemoryAccessFault};
use crate::error::Error;
use crate::space::{Region, Space};

/// Events of a process.
const EVENTS: u32 = 4096;

/// Threads whose latest wait is remembered for each event. One that is forgotten is woken once too often.
const THREADS: usize = 64;

/// Raises of an event that was never raised.
const NEVER: u64 = 0;

#[derive(Debug)]
struct State {
    /// Stays raised for ever once it was, as nobody resets events.
    manual: bool,
    memory: bool,
    raises: u64,
    /// How many of the raises a thread has seen, the latest thread last.
    seen: Vec<(ThreadId, u64)>,
    fault: MemoryAccessFault,
}

/// All events of the process.
#[derive(Debug)]
pub(crate) struct Events {
    /// By number, which starts at 1.
    states: Mutex<BTreeMap<u32, State>>,
    raised: Condvar,
    mailboxes: Arc<Region>,
}

impl Events {
    /// No events yet; their mailboxes are mapped to all agents.
    pub(crate) fn new(space: &Space) -> Result<Self, Error> {
        let mailboxes = space.own(u64::from(EVENTS + 1) * 8)?;
        Ok(Self {
            states: Mutex::default(),
            raised: Condvar::new(),
            mailboxes,
        })
    }

    /// Makes an event. Returns its number and the address of its mailbox.
    pub(crate) fn create(
        &self,
        event_type: u32,
        manual: bool,
        raised: bool,
    ) -> Result<(u32, u64), Error> {
        let mut states = self.states.lock();
        let id = (1..=EVENTS)
            .find(|id| !states.contains_key(id))
            .ok_or(Error::NoEventLeft(EVENTS))?;
        let memory = event_type == EVENT_TYPE_MEMORY;
        let raises = if raised { NEVER + 1 } else { NEVER };
        let (seen, fault) = (Vec::new(), MemoryAccessFault::default());
        states.insert(
            id,
            State {
                manual,
                memory,
                raises,
                seen,
                fault,
            },
        );
        Ok((id, self.mailboxes.base() + u64::from(id) * 8))
    }

    /// Ends an event, and whoever waits for it.
    pub(crate) fn destroy(&self, id: u32) -> Result<(), Error> {
        let removed = self.states.lock().remove(&id);
        self.raised.notify_all();
        removed.map(drop).ok_or(Error::NoEvent(id))
    }

    /// Raises an event.
    pub(crate) fn raise(&self, id: u32) -> Result<(), Error> {
        let mut states = self.states.lock();
        states.get_mut(&id).ok_or(Error::NoEvent(id))?.raises += 1;
        self.raised.notify_all();
        Ok(())
    }

    /// Raises all events for memory faults.
    pub(crate) fn raise_fault(&self, fault: MemoryAccessFault) {
        let mut states = self.states.lock();
        for state in states.values_mut().filter(|state| state.memory) {
            state.fault = fault;
            state.raises += 1;
        }
        self.raised.notify_all();
    }

    /// The fault that an event for memory faults reports.
    pub(crate) fn fault(&self, id: u32) -> Option<MemoryAccessFault> {
        self.states
            .lock()
            .get(&id)
            .filter(|state| state.memory)
            .map(|state| state.fault)
    }

    /// Waits until one of `ids`, or all of them, were raised. No limit means for ever.
    pub(crate) fn wait(
        &self,
        ids: &[u32],
        all: bool,
        limit: Option<Duration>,
    ) -> Result<(), Error> {
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        let me = thread::current().id();
        let mut done = vec![false; ids.len()];
        let mut states = self.states.lock();
        loop {
            for (id, done) in ids.iter().zip(&mut done) {
                *done |= states.get_mut(id).ok_or(Error::NoEvent(*id))?.see(me);
            }
            let enough = if all {
                done.iter().all(|&done| done)
            } else {
                done.contains(&true)
            };
            if enough {
                return Ok(());
            }
            let Some(until) = until else {
                self.raised.wait(&mut states);
                continue;
            };
            if Instant::now() >= until {
                return Err(Error::Timeout);
            }
            self.raised.wait_until(&mut states, until);
        }
    }
}

impl State {
    /// Whether there are raises that a thread has not seen. After this it has.
    fn see(&mut self, thread: ThreadId) -> bool {
        let known = self.seen.iter().position(|&(known, _)| known == thread);
        let before = known.map_or(NEVER, |at| self.seen.remove(at).1);
        if self.seen.len() == THREADS {
            self.seen.remove(0);
        }
        self.seen.push((thread, self.raises));
        self.raises > if self.manual { NEVER } else { before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Option<Duration> = Some(Duration::from_millis(5));

    fn events() -> Events {
        Events::new(&Space::new(1, 1 << 20, 1 << 20).unwrap()).unwrap()
    }

    #[test]
    fn a_raised_event_waits_for_its_waiter_once() {
        let events = events();
        let (id, mailbox) = events.create(0, false, false).unwrap();
        assert_ne!(mailbox, 0);
        assert!(matches!(
            events.wait(&[id], false, SOON),
            Err(Error::Timeout)
        ));
        events.raise(id).unwrap();
        events.wait(&[id], false, SOON).unwrap();
        assert!(matches!(
            events.wait(&[id], false, SOON),
            Err(Error::Timeout)
        ));
    }

    #[test]
    fn one_that_is_reset_by_hand_stays_raised() {
        let events = events();
        let (id, _) = events.create(0, true, true).unwrap();
        events.wait(&[id], true, SOON).unwrap();
        events.wait(&[id], true, SOON).unwrap();
    }

    /// Lets a thread wait, and gives it time to get there.
    fn waiting<'a>(
        scope: &'a thread::Scope<'a, '_>,
        events: &'a Events,
        ids: &'a [u32],
        all: bool,
    ) -> thread::ScopedJoinHandle<'a, Result<(), Error>> {
        let waiter = scope.spawn(move || events.wait(ids, all, Some(Duration::from_secs(10))));
        thread::sleep(Duration::from_millis(20));
        assert!(!waiter.is_finished());
        waiter
    }

    #[test]
    fn raising_wakes_all_who_wait() {
        let events = events();
        let ids = [
            events.create(0, false, false).unwrap().0,
            events.create(0, false, false).unwrap().0,
        ];
        thread::scope(|scope| {
            let waiters = [(); 3].map(|()| waiting(scope, &events, &ids, false));
            events.raise(ids[1]).unwrap();
            for waiter in waiters {
                waiter.join().unwrap().unwrap();
            }
        });
    }

    /// What one thread has seen is not taken from another that is a little late.
    #[test]
    fn a_late_waiter_sees_a_raise_that_another_saw() {
        let events = events();
        let (id, _) = events.create(0, false, false).unwrap();
        events.raise(id).unwrap();
        events.wait(&[id], false, SOON).unwrap();
        thread::scope(|scope| {
            let late = scope.spawn(|| {
                (
                    events.wait(&[id], false, SOON),
                    events.wait(&[id], false, SOON),
                )
            });
            assert!(matches!(
                late.join().unwrap(),
                (Ok(()), Err(Error::Timeout))
            ));
        });
    }

    #[test]
    fn many_threads_are_forgotten_but_never_missed() {
        let events = events();
        let (id, _) = events.create(0, false, true).unwrap();
        for _ in 0..2 * THREADS {
            thread::scope(|scope| drop(scope.spawn(|| events.wait(&[id], false, SOON).unwrap())));
        }
        assert_eq!(events.states.lock()[&id].seen.len(), THREADS);
    }

    #[test]
    fn all_are_waited_for_when_all_are_asked_for() {
        let events = events();
        let ids = [
            events.create(0, false, false).unwrap().0,
            events.create(0, false, true).unwrap().0,
        ];
        thread::scope(|scope| {
            let waiter = waiting(scope, &events, &ids, true);
            events.raise(ids[0]).unwrap();
            waiter.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_destroyed_event_ends_its_wait_and_gives_its_number_back() {
        let events = events();
        let (id, _) = events.create(0, false, false).unwrap();
        let ids = [id];
        thread::scope(|scope| {
            let waiter = waiting(scope, &events, &ids, false);
            events.destroy(id).unwrap();
            assert!(matches!(waiter.join().unwrap(), Err(Error::NoEvent(_))));
        });
        assert_eq!(events.create(0, false, false).unwrap().0, id);
        for _ in 1..EVENTS {
            events.create(0, false, false).unwrap();
        }
        assert!(matches!(
            events.create(0, false, false),
            Err(Error::NoEventLeft(_))
        ));
    }

    #[test]
    fn a_fault_reaches_events_for_faults() {
        let events = events();
        let (plain, _) = events.create(0, true, false).unwrap();
        let (memory, _) = events.create(EVENT_TYPE_MEMORY, true, false).unwrap();
        events.raise_fault(MemoryAccessFault {
            node_id: 1,
            virtual_address: 0x5000,
            ..Default::default()
        });
        events.wait(&[memory], false, SOON).unwrap();
        assert_eq!({ events.fault(memory).unwrap().virtual_address }, 0x5000);
        assert!(events.fault(plain).is_none());
        assert!(matches!(
            events.wait(&[plain], false, SOON),
            Err(Error::Timeout)
        ));
    }
}
