//! Copy engines: queues of SDMA packets, as ROCr builds them for gfx9.
//!
//! Indices count bytes and never wrap; the ring does. A packet starts with an operation in bits 7:0 and a variant in
//! bits 15:8 of its first dword; zero dwords fill the ring up to its end.
//!
//! | packet | dwords | done as |
//! | --- | --- | --- |
//! | copy (1), linear (0) | 7 | `count` + 1 bytes, a field of 30 bits on gfx90a |
//! | copy (1), sub-window (4) | 13 | rows of elements, offsets and pitches in elements |
//! | fence (5) | 4 | stores 4 bytes |
//! | trap (6) | 2 | raises the event of that number |
//! | poll (8) | 6 | waits for `value == word & mask`; a poll of a register, which flushes a host path, does nothing |
//! | atomic (10), 64-bit add | 8 | adds 8 bytes |
//! | constant fill (11) | 5 | repeats 4 bytes |
//! | timestamp (13) | 3 | stores the agent's clock |
//!
//! Anything else stops the engine and is reported as a memory fault at the packet: a copy engine has no other way to
//! be heard.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use amdgpu_emu::{AccessFault, Memory};

use super::doorbell::Doorbell;
use super::{Engine, Request, Step};
use crate::abi::QueueResource;
use crate::agent::Agent;
use crate::error::{Error, chain};
use crate::log;
use crate::space::{Region, Space};
use crate::topology::agent_clock;
use crate::view::View;

const COPY: u32 = 1;
const FENCE: u32 = 5;
const TRAP: u32 = 6;
const POLL: u32 = 8;
const ATOMIC: u32 = 10;
const FILL: u32 = 11;
const TIMESTAMP: u32 = 13;

/// Operation of an atomic: add 8 bytes.
const ADD64: u32 = 47;

/// Dwords of the longest packet.
const LONGEST: usize = 13;

/// A packet, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packet {
    Nothing,
    Copy { to: u64, from: u64, len: u64 },
    Window(Window),
    Fence { to: u64, value: u32 },
    Trap { event: u32 },
    Poll { at: u64, value: u32, mask: u32 },
    Add { to: u64, value: u64 },
    Fill { to: u64, pattern: u32, len: u64 },
    Timestamp { to: u64 },
}

/// A copy of a sub-window: lengths and pitches in bytes, counts of rows and layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    from: Side,
    to: Side,
    row: u64,
    rows: u64,
    layers: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Side {
    start: u64,
    pitch: u64,
    layer_pitch: u64,
}

/// Reads the packet that `words` start with, and says how many of them it has.
fn decode(words: &[u32; LONGEST]) -> Option<(Packet, usize)> {
    let address = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
    let variant = words[0] >> 8 & 0xff;
    Some(match (words[0] & 0xff, variant) {
        _ if words[0] == 0 => (Packet::Nothing, 1),
        (COPY, 0) => {
            let len = u64::from(words[1] & 0x3fff_ffff) + 1;
            (
                Packet::Copy {
                    from: address(3),
                    to: address(5),
                    len,
                },
                7,
            )
        }
        (COPY, 4) => (Packet::Window(window(words)), 13),
        (FENCE, 0) => (
            Packet::Fence {
                to: address(1),
                value: words[3],
            },
            4,
        ),
        (TRAP, 0) => (
            Packet::Trap {
                event: words[1] & 0x0fff_ffff,
            },
            2,
        ),
        (POLL, 0) => {
            let (flush, memory, compare) = (words[0] >> 26 & 1, words[0] >> 31, words[0] >> 28 & 7);
            match (flush, memory, compare) {
                (1, _, _) | (_, 0, _) => (Packet::Nothing, 6),
                (_, _, 3) => (
                    Packet::Poll {
                        at: address(1),
                        value: words[3],
                        mask: words[4],
                    },
                    6,
                ),
                _ => return None,
            }
        }
        (ATOMIC, 0) if words[0] >> 25 == ADD64 => (
            Packet::Add {
                to: address(1),
                value: address(3),
            },
            8,
        ),
        (FILL, 0) if words[0] >> 30 == 2 => {
            let len = u64::from(words[4] & 0x3f_fffc) + 4;
            (
                Packet::Fill {
                    to: address(1),
                    pattern: words[3],
                    len,
                },
                5,
            )
        }
        (TIMESTAMP, 2) => (Packet::Timestamp { to: address(1) }, 3),
        _ => return None,
    })
}

fn window(words: &[u32; LONGEST]) -> Window {
    let element = words[0] >> 29;
    let bytes = |elements: u32| u64::from(elements) << element;
    let side = |at: usize| {
        let (xy, z_pitch, layer) = (words[at + 2], words[at + 3], words[at + 4]);
        let (pitch, layer_pitch) = (bytes((z_pitch >> 13) + 1), bytes((layer & 0x0fff_ffff) + 1));
        let base = u64::from(words[at]) | u64::from(words[at + 1]) << 32;
        let offset = bytes(xy & 0x3fff)
            + u64::from(xy >> 16 & 0x3fff) * pitch
            + u64::from(z_pitch & 0x7ff) * layer_pitch;
        Side {
            start: base.wrapping_add(offset),
            pitch,
            layer_pitch,
        }
    };
    let (xy, z) = (words[11], words[12]);
    Window {
        from: side(1),
        to: side(6),
        row: bytes((xy & 0x3fff) + 1),
        rows: u64::from(xy >> 16 & 0x3fff) + 1,
        layers: u64::from(z & 0x7ff) + 1,
    }
}

/// A copy engine's queue.
#[derive(Debug)]
pub(super) struct Sdma {
    agent: Arc<Agent>,
    view: View,
    id: u64,
    ring: u64,
    ring_bytes: u64,
    doorbell: Doorbell,
    rung: bool,
    indices: Indices,
    /// Bytes taken.
    next: u64,
    halted: bool,
}

/// The page with the write index and the read index, which the emulator provides for this kind of queue.
#[derive(Debug)]
struct Indices {
    space: Arc<Space>,
    page: Arc<Region>,
}

impl Indices {
    fn write(&self) -> u64 {
        self.page.base()
    }

    fn read(&self) -> u64 {
        self.page.base() + 64
    }
}

impl Drop for Indices {
    fn drop(&mut self) {
        self.space.disown(&self.page);
    }
}

impl Sdma {
    pub(super) fn new(
        agent: Arc<Agent>,
        request: &Request,
    ) -> Result<(Self, QueueResource), Error> {
        let &Request {
            id,
            ring,
            ring_bytes,
            ..
        } = request;
        if ring_bytes < 4096 || !ring_bytes.is_power_of_two() {
            return Err(Error::Argument {
                what: "size of an SDMA ring",
                value: ring_bytes,
                want: "a power of two of at least 4096",
            });
        }
        let doorbell = Doorbell::new(&agent.space)?;
        let indices = Indices {
            space: agent.space.clone(),
            page: agent.space.own(128)?,
        };
        let resource = QueueResource {
            queue_id: id,
            doorbell: doorbell.address(),
            write_ptr: indices.write(),
            read_ptr: indices.read(),
            ..request.resource
        };
        let view = agent.view();
        Ok((
            Self {
                agent,
                view,
                id,
                ring,
                ring_bytes,
                doorbell,
                rung: false,
                indices,
                next: 0,
                halted: false,
            },
            resource,
        ))
    }

    /// Reads what lies at the read index, around the end of the ring.
    fn words(&self) -> Result<[u32; LONGEST], AccessFault> {
        let mut words = [0; LONGEST];
        for (n, word) in words.iter_mut().enumerate() {
            *word = self
                .view
                .load32(self.ring + (self.next + 4 * n as u64) % self.ring_bytes)?;
        }
        Ok(words)
    }

    fn take(&mut self) -> Result<Step, AccessFault> {
        let written = self.view.load64(self.indices.write())?;
        if self.next >= written {
            self.rung = false;
            return Ok(Step::Waiting);
        }
        let words = self.words()?;
        let Some((packet, dwords)) = decode(&words) else {
            log::error!(
                "agent {}, copy queue {}: {words:08x?} is no SDMA packet that is emulated",
                self.agent.node,
                self.id
            );
            self.halted = true;
            self.agent
                .raise_fault(self.ring + self.next % self.ring_bytes);
            return Ok(Step::Halted);
        };
        log::packet!(
            "agent {}, copy queue {}, byte {}: {packet:x?}",
            self.agent.node,
            self.id,
            self.next
        );
        if !self.run(packet)? {
            return Ok(Step::Waiting);
        }
        // Whoever sees the end may free what the packet used, and expects it to be free.
        self.view.forget();
        self.next += 4 * dwords as u64;
        self.view.store64(self.indices.read(), self.next)?;
        Ok(Step::Taken)
    }

    /// Does what a packet asks for; false if it has to wait.
    fn run(&self, packet: Packet) -> Result<bool, AccessFault> {
        let view = &self.view;
        match packet {
            Packet::Nothing => {}
            Packet::Copy { to, from, len } => view.copy(to, from, len)?,
            Packet::Window(Window {
                from,
                to,
                row,
                rows,
                layers,
            }) => {
                for (layer, line) in
                    (0..layers).flat_map(|layer| (0..rows).map(move |line| (layer, line)))
                {
                    let at = |side: Side| {
                        side.start
                            .wrapping_add(layer * side.layer_pitch + line * side.pitch)
                    };
                    view.copy(at(to), at(from), row)?;
                }
            }
            Packet::Fence { to, value } => view.write(to, &value.to_le_bytes())?,
            Packet::Trap { event } => {
                // An event that is gone by now has nobody who waits for it.
                let _ = self.agent.events.raise(event);
            }
            Packet::Poll { at, value, mask } => return Ok(view.load32(at)? & mask == value),
            Packet::Add { to, value } => {
                view.update64(to, &mut |old| old.wrapping_add(value))?;
            }
            Packet::Fill { to, pattern, len } => view.fill(to, pattern, len)?,
            Packet::Timestamp { to } => view.store64(to, agent_clock())?,
        }
        Ok(true)
    }
}

impl Engine for Sdma {
    fn step(&mut self, _cancel: &AtomicBool) -> Step {
        if self.halted {
            return Step::Halted;
        }
        self.rung |= self.doorbell.rang();
        if !self.rung {
            return Step::Waiting;
        }
        self.take().unwrap_or_else(|fault| {
            log::error!(
                "agent {}, copy queue {}: {}",
                self.agent.node,
                self.id,
                chain(&fault)
            );
            self.halted = true;
            self.agent.raise_fault(fault.address);
            Step::Halted
        })
    }

    fn rest(&mut self) {
        self.view.forget();
    }

    fn panicked(&mut self) {
        self.agent.raise_fault(self.ring);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(words: &[u32]) -> Option<(Packet, usize)> {
        let mut all = [0; LONGEST];
        all[..words.len()].copy_from_slice(words);
        decode(&all)
    }

    #[test]
    fn counts_are_what_the_engine_means() {
        let copy = |count| packet(&[1, count, 0, 0x10, 1, 0x20, 2]);
        let want = |len| {
            Some((
                Packet::Copy {
                    from: 0x1_0000_0010,
                    to: 0x2_0000_0020,
                    len,
                },
                7,
            ))
        };
        assert_eq!(copy(0), want(1));
        assert_eq!(copy(0x3f_ffff), want(4 << 20));
        assert_eq!(
            copy(0x3fff_ffff),
            want(1 << 30),
            "30 bits, not the 22 of older processors"
        );
        let fill = packet(&[11 | 2 << 30, 0x10, 0, 7, 4 * (16 - 1)]);
        assert_eq!(
            fill,
            Some((
                Packet::Fill {
                    to: 0x10,
                    pattern: 7,
                    len: 64
                },
                5
            ))
        );
    }

    #[test]
    fn a_flush_is_no_poll() {
        assert_eq!(packet(&[8, 0, 0x8000_0000]), Some((Packet::Nothing, 6)));
        assert_eq!(packet(&[8 | 1 << 26 | 1 << 31]), Some((Packet::Nothing, 6)));
        let poll = packet(&[8 | 3 << 28 | 1 << 31, 0x40, 0, 5, 0xff]);
        assert_eq!(
            poll,
            Some((
                Packet::Poll {
                    at: 0x40,
                    value: 5,
                    mask: 0xff
                },
                6
            ))
        );
    }

    #[test]
    fn windows_count_elements() {
        // 3 elements of 4 bytes in each of 2 rows, from (1, 0) of a pitch of 8 to (0, 1) of a pitch of 16.
        let words = [
            1 | 4 << 8 | 2 << 29,
            0x1000,
            0,
            1,
            7 << 13,
            0,
            0x2000,
            0,
            1 << 16,
            15 << 13,
            0,
            2 | 1 << 16,
            0,
        ];
        let (Packet::Window(window), 13) = packet(&words).unwrap() else {
            panic!("want a window")
        };
        assert_eq!((window.row, window.rows, window.layers), (12, 2, 1));
        assert_eq!((window.from.start, window.from.pitch), (0x1004, 32));
        assert_eq!((window.to.start, window.to.pitch), (0x2040, 64));
    }

    #[test]
    fn unknown_packets_are_not_guessed_at() {
        for word in [
            2,
            1 | 1 << 8,
            10 | 1 << 25,
            11,
            13,
            8 | 5 << 28 | 1 << 31,
            17,
        ] {
            assert_eq!(packet(&[word]), None, "{word:#x}");
        }
    }
}
