//! The packet processor of an AQL queue.
//!
//! Packets are taken in order, and each completes before the next one starts, which every combination of barrier bits
//! allows. What waits (barriers, a request for scratch memory) is looked at again later rather than waited for, so
//! that a queue can be paused or destroyed at any time.
//!
//! The end of a packet, in this order: its header becomes invalid, the read index moves, time stamps are written, the
//! completion signal drops. ROCr waits for the read index of some packets that have no signal.
//!
//! Offsets are those of `hsa.h`, `hsa_ext_amd.h` and `amd_hsa_queue.h`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use amdgpu_emu::{
    AccessFault, Apertures, Counter, Dispatch, Emulator, Fault, KernelError, Limits, Memory,
    Outcome, PACKET_BYTES,
};

use super::doorbell::Doorbell;
use super::pm4::{self, Command};
use super::problem::Problem;
use super::signal::Signal;
use super::{Engine, Request, Step, blit};
use crate::abi::QueueResource;
use crate::agent::Agent;
use crate::config::{Blits, QueueErrors};
use crate::error::{Error, chain};
use crate::log;
use crate::topology::{LDS_APERTURE, SCRATCH_APERTURE, agent_clock};
use crate::view::View;

/// Offsets in `amd_queue_t`.
mod queue {
    pub(super) const SIZE: u64 = 24;
    pub(super) const READ_INDEX: u64 = 128;
    pub(super) const SCRATCH_DESCRIPTOR: u64 = 144;
    pub(super) const SCRATCH_LANE_BYTES: u64 = 176;
    pub(super) const PROPERTIES: u64 = 180;
    pub(super) const INACTIVE_SIGNAL: u64 = 192;
    /// Property: time stamps are wanted.
    pub(super) const PROFILING: u32 = 1 << 3;
    /// Property: the scratch memory is to be given back after one dispatch.
    pub(super) const SCRATCH_ONCE: u32 = 1 << 4;
}

/// Values of the inactive signal that are requests, not errors.
const SCRATCH_WANTED: i64 = 1;
const SCRATCH_DONE: i64 = 512;

/// Packet types, bits 7:0 of the header.
const VENDOR: u8 = 0;
const INVALID: u8 = 1;
const DISPATCH: u8 = 2;
const BARRIER_AND: u8 = 3;
const BARRIER_OR: u8 = 5;

/// Formats of vendor packets, byte 2.
const VENDOR_PM4: u8 = 1;
const VENDOR_BARRIER_VALUE: u8 = 2;

/// Most dwords of a command buffer: the size field has 20 bits.
const COMMAND_DWORDS: u32 = 0xf_ffff;

/// What became of a packet.
enum Done {
    /// It is complete.
    Complete,
    /// It has to wait.
    Not,
    /// Its waves were discarded.
    Cut,
}

/// Why a packet ended the queue.
enum Stop {
    /// An access that hit nothing, at this address: reported to the process.
    Memory(u64, String),
    /// An error of the queue.
    Queue(Problem, String),
}

impl From<AccessFault> for Stop {
    fn from(fault: AccessFault) -> Self {
        Self::Memory(fault.address, chain(&fault))
    }
}

/// An AQL queue.
#[derive(Debug)]
pub(super) struct Aql {
    agent: Arc<Agent>,
    view: View,
    id: u64,
    ring: u64,
    packets: u64,
    /// The `amd_queue_t`.
    queue: u64,
    write_index: u64,
    /// The word for exceptions and the event to raise with it.
    exceptions: (u64, Option<u32>),
    doorbell: Doorbell,
    rung: bool,
    /// Packets taken.
    next: u64,
    /// A request to ROCr is out; its answer is a zero in the inactive signal.
    asked: bool,
    halted: bool,
    /// Cycles of the interpreter's model so far, for the clocks that kernels read.
    cycles: u64,
}

impl Aql {
    pub(super) fn new(
        agent: Arc<Agent>,
        request: &Request,
    ) -> Result<(Self, QueueResource), Error> {
        let &Request {
            id,
            ring,
            ring_bytes,
            event,
            resource,
            ..
        } = request;
        let view = agent.view();
        let queue = resource.read_ptr.wrapping_sub(queue::READ_INDEX);
        let size = view
            .load32(queue.wrapping_add(queue::SIZE))
            .map_err(|_| Error::NoBlock(queue))?;
        let packets = u64::from(size);
        if !packets.is_power_of_two() || packets * PACKET_BYTES as u64 > ring_bytes {
            return Err(Error::Argument {
                what: "packets of a queue",
                value: packets,
                want: "a power of two that the ring has room for",
            });
        }
        let doorbell = Doorbell::new(&agent.space)?;
        let resource = QueueResource {
            queue_id: id,
            doorbell: doorbell.address(),
            ..resource
        };
        let aql = Self {
            agent,
            view,
            id,
            ring,
            packets,
            queue,
            write_index: resource.write_ptr,
            exceptions: (resource.error_reason, event),
            doorbell,
            rung: false,
            next: 0,
            asked: false,
            halted: false,
            cycles: 0,
        };
        Ok((aql, resource))
    }

    /// Takes the next packet, if there is one and it need not wait.
    fn take(&mut self, cancel: &AtomicBool) -> Result<Step, Stop> {
        if self.asked {
            let signal = self.inactive_signal()?;
            if signal.map_or(Ok(0), |signal| signal.value(&self.view))? != 0 {
                return Ok(Step::Waiting);
            }
            self.asked = false;
        }
        let written = self.view.load64(self.write_index)?;
        let at = self.ring + (self.next & (self.packets - 1)) * PACKET_BYTES as u64;
        if self.next >= written || self.view.load32(at)? as u8 == INVALID {
            self.rung = false;
            return Ok(Step::Waiting);
        }
        let mut packet = [0; PACKET_BYTES];
        self.view.read(at, &mut packet)?;
        let start = agent_clock();
        match self.run(&packet, at, cancel)? {
            Done::Not => return Ok(Step::Waiting),
            Done::Cut => {
                self.halted = true;
                return Ok(Step::Halted);
            }
            Done::Complete => {}
        }
        self.complete(&packet, at, start)?;
        Ok(Step::Taken)
    }

    fn run(
        &mut self,
        packet: &[u8; PACKET_BYTES],
        at: u64,
        cancel: &AtomicBool,
    ) -> Result<Done, Stop> {
        let signals = || (0..5).filter_map(|n| Signal::new(u64_at(packet, 8 + 8 * n)));
        let wait = |open: bool| if open { Done::Complete } else { Done::Not };
        match packet[0] {
            DISPATCH => return self.dispatch(packet, at, cancel),
            BARRIER_AND => {
                for signal in signals() {
                    if signal.value(&self.view)? != 0 {
                        return Ok(Done::Not);
                    }
                }
            }
            BARRIER_OR => {
                for signal in signals() {
                    if signal.value(&self.view)? == 0 {
                        return Ok(Done::Complete);
                    }
                }
                return Ok(wait(signals().next().is_none()));
            }
            VENDOR => match packet[2] {
                VENDOR_PM4 => self.command_buffer(packet)?,
                VENDOR_BARRIER_VALUE => return Ok(wait(self.is_value_reached(packet)?)),
                format => {
                    return Err(Stop::Queue(
                        Problem::VendorFormat,
                        format!("vendor packets of format {format} are not emulated"),
                    ));
                }
            },
            kind => {
                return Err(Stop::Queue(
                    Problem::Format,
                    format!("packets of type {kind} are not emulated"),
                ));
            }
        }
        Ok(Done::Complete)
    }

    /// Whether `signal & mask` compares with the value of a barrier-value packet as it should. No signal is no wait.
    fn is_value_reached(&self, packet: &[u8; PACKET_BYTES]) -> Result<bool, Stop> {
        let Some(signal) = Signal::new(u64_at(packet, 8)) else {
            return Ok(true);
        };
        let (value, mask) = (u64_at(packet, 16) as i64, u64_at(packet, 24) as i64);
        let masked = signal.value(&self.view)? & mask;
        match u32_at(packet, 32) {
            0 => Ok(masked == value),
            1 => Ok(masked != value),
            2 => Ok(masked < value),
            3 => Ok(masked >= value),
            condition => Err(Stop::Queue(
                Problem::VendorFormat,
                format!("a barrier-value packet has condition {condition}"),
            )),
        }
    }

    fn command_buffer(&self, packet: &[u8; PACKET_BYTES]) -> Result<(), Stop> {
        let address = u64::from(u32_at(packet, 8) & !3) | u64::from(u32_at(packet, 12)) << 32;
        let dwords = u32_at(packet, 16) & COMMAND_DWORDS;
        let mut bytes = vec![0; 4 * dwords as usize];
        self.view.read(address, &mut bytes)?;
        let (words, _) = bytes.as_chunks();
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let commands = pm4::commands(&words)
            .map_err(|error| Stop::Queue(Problem::VendorFormat, chain(&error)))?;
        for command in commands {
            match command {
                Command::Start(counters) => self.agent.start_counting(counters),
                Command::Stop => self.agent.stop_counting(),
                Command::Read { to } => {
                    for (n, value) in self.agent.counted().into_iter().enumerate() {
                        let at = to.wrapping_add(8 * n as u64);
                        self.view.store64(at, value)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn dispatch(
        &mut self,
        packet: &[u8; PACKET_BYTES],
        at: u64,
        cancel: &AtomicBool,
    ) -> Result<Done, Stop> {
        let refuse = |error: amdgpu_emu::PacketError| {
            Stop::Queue(Problem::of_packet(&error), error.to_string())
        };
        let mut dispatch = Dispatch::from_packet(packet, at).map_err(refuse)?;
        if dispatch.kernel_object == 0 {
            return Err(Stop::Queue(
                Problem::Code,
                "a dispatch has no kernel object".into(),
            ));
        }
        if self.agent.config.blits == Blits::Native
            && let Some(blit) =
                blit::recognise(&self.view, dispatch.kernel_object, dispatch.kernarg_address)
        {
            blit::run(&self.view, blit)?;
            return Ok(Done::Complete);
        }
        if dispatch.private_segment_size
            > self.view.load32(self.queue + queue::SCRATCH_LANE_BYTES)?
        {
            self.ask(SCRATCH_WANTED)?;
            return Ok(Done::Not);
        }
        for (n, word) in dispatch.scratch.descriptor.iter_mut().enumerate() {
            *word = self
                .view
                .load32(self.queue + queue::SCRATCH_DESCRIPTOR + 4 * n as u64)?;
        }
        dispatch.queue_address = self.queue;
        dispatch.dispatch_id = self.next;
        dispatch.apertures = Apertures {
            shared: LDS_APERTURE,
            private: SCRATCH_APERTURE,
        };
        let Outcome { counters, result } = self.interpret(&dispatch, cancel);
        self.cycles += counters[Counter::GrbmCount];
        self.agent.count(&counters);
        match result {
            Ok(()) => {
                if self.view.load32(self.queue + queue::PROPERTIES)? & queue::SCRATCH_ONCE != 0 {
                    self.ask(SCRATCH_DONE)?;
                }
                Ok(Done::Complete)
            }
            Err(Fault::Cancelled { .. }) => Ok(Done::Cut),
            Err(fault) => Err(match (Problem::of(&fault), &fault) {
                (Some(problem), _) => Stop::Queue(problem, chain(&fault)),
                (
                    None,
                    Fault::Memory { fault: access, .. }
                    | Fault::Kernel(KernelError::Unreadable(access)),
                ) => Stop::Memory(access.address, chain(&fault)),
                (None, _) => Stop::Queue(Problem::Trap, chain(&fault)),
            }),
        }
    }

    fn interpret(&self, dispatch: &Dispatch, cancel: &AtomicBool) -> Outcome {
        let config = &self.agent.config;
        let limits = Limits {
            budget: config.budget,
            repeats: config.no_progress,
            ..Limits::default()
        };
        let events = &self.agent.events;
        let mut emulator = Emulator::new(&self.view)
            .limits(limits)
            .clock(self.cycles)
            .cancel(cancel)
            // An event that is gone by now has nobody who waits for it.
            .interrupt(|event| drop(events.raise(event)));
        if let Some(trace) = &self.agent.trace {
            let mut lines = trace.dispatch(self.agent.node, self.id, self.next);
            emulator = emulator.trace(move |step| lines.add(step));
        }
        emulator.run(dispatch)
    }

    fn complete(
        &mut self,
        packet: &[u8; PACKET_BYTES],
        at: u64,
        start: u64,
    ) -> Result<(), AccessFault> {
        log::packet!(
            "agent {}, queue {}, packet {}: type {} done",
            self.agent.node,
            self.id,
            self.next,
            packet[0]
        );
        // Whoever sees the end may free what the packet used, and expects it to be free.
        self.view.forget();
        self.view
            .update32(at, &mut |header| header & !0xffff | u32::from(INVALID))?;
        self.next += 1;
        self.view
            .store64(self.queue + queue::READ_INDEX, self.next)?;
        if let Some(signal) = Signal::new(u64_at(packet, 56)) {
            if self.view.load32(self.queue + queue::PROPERTIES)? & queue::PROFILING != 0 {
                signal.stamp(&self.view, start, agent_clock().max(start + 1))?;
            }
            signal.complete(&self.view, &self.agent.events)?;
        }
        Ok(())
    }

    fn inactive_signal(&self) -> Result<Option<Signal>, AccessFault> {
        Ok(Signal::new(
            self.view.load64(self.queue + queue::INACTIVE_SIGNAL)?,
        ))
    }

    /// Asks ROCr for something; no packet is taken until it has answered.
    fn ask(&mut self, code: i64) -> Result<(), AccessFault> {
        self.asked = true;
        match self.inactive_signal()? {
            Some(signal) => signal.store(&self.view, &self.agent.events, code),
            None => Ok(()),
        }
    }

    /// Tells ROCr about an error. The queue takes no packets any more.
    fn report(&mut self, problem: Problem) -> Result<(), AccessFault> {
        let (reason, event) = self.exceptions;
        if self.agent.config.queue_errors == QueueErrors::Exceptions && reason != 0 {
            self.view
                .update64(reason, &mut |mask| mask | problem.exception_bit())?;
            if let Some(event) = event {
                // ROCr made the event for this queue and destroys it after the queue.
                let _ = self.agent.events.raise(event);
            }
            return Ok(());
        }
        match self.inactive_signal()? {
            Some(signal) => signal.store(&self.view, &self.agent.events, problem.signal_code()),
            None => Ok(()),
        }
    }

    fn stop(&mut self, stop: Stop) {
        self.halted = true;
        let place = format_args!(
            "agent {}, queue {}, packet {}",
            self.agent.node, self.id, self.next
        )
        .to_string();
        let fault = match stop {
            Stop::Memory(address, text) => Some((address, text)),
            Stop::Queue(problem, text) => {
                log::error!("{place}: {text}");
                let unheard = self.report(problem).err();
                unheard.map(|fault| (fault.address, chain(&fault)))
            }
        };
        if let Some((address, text)) = fault {
            log::error!("{place}: {text}");
            self.agent.raise_fault(address);
        }
    }
}

impl Engine for Aql {
    fn step(&mut self, cancel: &AtomicBool) -> Step {
        if self.halted {
            return Step::Halted;
        }
        self.rung |= self.doorbell.rang();
        if !self.rung {
            return Step::Waiting;
        }
        self.take(cancel).unwrap_or_else(|stop| {
            self.stop(stop);
            Step::Halted
        })
    }

    fn rest(&mut self) {
        self.view.forget();
    }

    fn panicked(&mut self) {
        self.stop(Stop::Queue(
            Problem::Trap,
            "the packet processor panicked".into(),
        ));
    }
}

/// Four bytes of a packet.
fn u32_at(packet: &[u8; PACKET_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]])
}

/// Eight bytes of a packet.
fn u64_at(packet: &[u8; PACKET_BYTES], at: usize) -> u64 {
    u64::from(u32_at(packet, at)) | u64::from(u32_at(packet, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use hsa_sys::{
        amd_queue_properties_t, amd_queue_t, amd_signal_t, hsa_amd_barrier_value_packet_t,
        hsa_queue_t,
    };

    use super::*;

    /// The numbers in this folder are those of the headers.
    #[test]
    fn offsets_are_those_of_the_headers() {
        assert_eq!(
            queue::SIZE,
            (offset_of!(amd_queue_t, hsa_queue) + offset_of!(hsa_queue_t, size)) as u64
        );
        assert_eq!(
            queue::READ_INDEX,
            offset_of!(amd_queue_t, read_dispatch_id) as u64
        );
        assert_eq!(
            queue::SCRATCH_DESCRIPTOR,
            offset_of!(amd_queue_t, scratch_resource_descriptor) as u64
        );
        assert_eq!(
            queue::SCRATCH_LANE_BYTES,
            offset_of!(amd_queue_t, scratch_wave64_lane_byte_size) as u64
        );
        assert_eq!(
            queue::PROPERTIES,
            offset_of!(amd_queue_t, queue_properties) as u64
        );
        assert_eq!(
            queue::INACTIVE_SIGNAL,
            offset_of!(amd_queue_t, queue_inactive_signal) as u64
        );
        assert_eq!(
            queue::PROFILING,
            amd_queue_properties_t::ENABLE_PROFILING.mask()
        );
        assert_eq!(
            queue::SCRATCH_ONCE,
            amd_queue_properties_t::USE_SCRATCH_ONCE.mask()
        );
        assert_eq!(8, offset_of!(hsa_amd_barrier_value_packet_t, signal));
        assert_eq!(16, offset_of!(hsa_amd_barrier_value_packet_t, value));
        assert_eq!(24, offset_of!(hsa_amd_barrier_value_packet_t, mask));
        assert_eq!(32, offset_of!(hsa_amd_barrier_value_packet_t, cond));
        assert_eq!(
            56,
            offset_of!(hsa_amd_barrier_value_packet_t, completion_signal)
        );
        assert_eq!(
            crate::queue::signal::OFFSETS,
            [
                offset_of!(amd_signal_t, value) as u64,
                offset_of!(amd_signal_t, event_mailbox_ptr) as u64,
                offset_of!(amd_signal_t, event_id) as u64,
                offset_of!(amd_signal_t, start_ts) as u64,
                offset_of!(amd_signal_t, end_ts) as u64,
            ]
        );
    }
}
