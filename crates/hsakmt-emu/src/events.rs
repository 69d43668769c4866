//! Events: how agents wake the host.
//!
//! An event has a number and a mailbox, a word to which whoever raises it writes the number first. Waking follows the
//! kernel driver: raising an event wakes everybody who waits for it at that moment, and the event stays raised only
//! for later waiters if nobody did, or if it is one that has to be reset by hand.
//!
//! Not here: signals, whose values ROCr looks at after it was woken.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::abi::{EVENT_TYPE_MEMORY, MemoryAccessFault};
use crate::error::Error;
use crate::space::{Region, Space};

/// Events of a process.
const EVENTS: u32 = 4096;

#[derive(Debug)]
struct State {
    raised: bool,
    /// Stays raised until somebody resets it.
    manual: bool,
    memory: bool,
    waiting: u32,
    /// How often it was raised.
    age: u64,
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
        states.insert(
            id,
            State {
                raised,
                manual,
                memory,
                waiting: 0,
                age: 1,
                fault: MemoryAccessFault::default(),
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
        states.get_mut(&id).ok_or(Error::NoEvent(id))?.raise();
        self.raised.notify_all();
        Ok(())
    }

    /// Raises all events for memory faults.
    pub(crate) fn raise_fault(&self, fault: MemoryAccessFault) {
        let mut states = self.states.lock();
        for state in states.values_mut().filter(|state| state.memory) {
            state.fault = fault;
            state.raise();
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
        let mut states = self.states.lock();
        let mut ages = Vec::with_capacity(ids.len());
        let mut done = vec![false; ids.len()];
        for (id, done) in ids.iter().zip(&mut done) {
            let state = states.get_mut(id).ok_or(Error::NoEvent(*id))?;
            *done = state.raised;
            state.raised &= state.manual;
            ages.push(state.age);
        }
        let enough = |done: &[bool]| {
            if all {
                done.iter().all(|&done| done)
            } else {
                done.iter().any(|&done| done)
            }
        };
        if enough(&done) {
            return Ok(());
        }
        for id in ids {
            states
                .get_mut(id)
                .expect("looked up under the same lock")
                .waiting += 1;
        }
        let result = loop {
            let late = match until {
                Some(until) => self.raised.wait_until(&mut states, until).timed_out(),
                None => {
                    self.raised.wait(&mut states);
                    false
                }
            };
            let gone = ids.iter().find(|id| !states.contains_key(id));
            if let Some(&gone) = gone {
                break Err(Error::NoEvent(gone));
            }
            for ((id, age), done) in ids.iter().zip(&ages).zip(&mut done) {
                *done |= states[id].age != *age;
            }
            if enough(&done) {
                break Ok(());
            }
            if late {
                break Err(Error::Timeout);
            }
        };
        for id in ids {
            if let Some(state) = states.get_mut(id) {
                state.waiting = state.waiting.saturating_sub(1);
            }
        }
        result
    }
}

impl State {
    fn raise(&mut self) {
        self.age += 1;
        self.raised = self.manual || self.waiting == 0;
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

    #[test]
    fn raising_wakes_all_who_wait() {
        let events = events();
        let (first, _) = events.create(0, false, false).unwrap();
        let (second, _) = events.create(0, false, false).unwrap();
        std::thread::scope(|scope| {
            let waiters: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| events.wait(&[first, second], false, None)))
                .collect();
            while events.states.lock()[&second].waiting < 3 {
                std::thread::yield_now();
            }
            events.raise(second).unwrap();
            for waiter in waiters {
                waiter.join().unwrap().unwrap();
            }
        });
        assert!(
            matches!(events.wait(&[second], false, SOON), Err(Error::Timeout)),
            "its waiters have had it"
        );
    }

    #[test]
    fn all_are_waited_for_when_all_are_asked_for() {
        let events = events();
        let (first, _) = events.create(0, false, false).unwrap();
        let (second, _) = events.create(0, false, true).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| events.wait(&[first, second], true, None));
            while events.states.lock()[&first].waiting < 1 {
                std::thread::yield_now();
            }
            events.raise(first).unwrap();
            waiter.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_destroyed_event_ends_its_wait_and_gives_its_number_back() {
        let events = events();
        let (id, _) = events.create(0, false, false).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| events.wait(&[id], false, None));
            while events.states.lock()[&id].waiting < 1 {
                std::thread::yield_now();
            }
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
