//! Queues without a runtime: what ROCr would write is written by hand.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amdgpu_emu::Memory;

use super::{Queue, Request};
use crate::abi::{MemFlags, QueueResource, queue_type};
use crate::agent::Agent;
use crate::config::{Config, QueueErrors};
use crate::error::Error;
use crate::events::Events;
use crate::pages::Agents;
use crate::space::Space;
use crate::view::View;

/// Where things are in the one block of host memory that a test has.
const QUEUE: u64 = 0;
const RING: u64 = 0x1000;
const SIGNALS: u64 = 0x2000;
const REASON: u64 = 0x3000;
const KERNEL: u64 = 0x4000;
const BLOCK: u64 = 0x1_0000;

/// Packets of the ring.
const PACKETS: u64 = 16;

/// A queue and the host's side of it.
struct Bench {
    agent: Arc<Agent>,
    host: View,
    base: u64,
    queue: Queue,
    doorbell: u64,
    written: u64,
}

impl Bench {
    fn new(queue_errors: QueueErrors) -> Self {
        let config = Config {
            queue_errors,
            ..Config::default()
        };
        let space = Arc::new(Space::new(1, 1 << 24, 1 << 24).unwrap());
        let events = Arc::new(Events::new(&space).unwrap());
        let agent = Arc::new(Agent::new(1, config, space.clone(), events, None));
        let base = space.allocate(0, BLOCK, MemFlags::default(), None).unwrap();
        space.map(base, BLOCK, None).unwrap();
        let host = View::new(space, Agents::of(1));
        host.write(base + QUEUE + 24, &(PACKETS as u32).to_le_bytes())
            .unwrap();
        for n in 0..PACKETS {
            host.write(base + RING + 64 * n, &1u32.to_le_bytes())
                .unwrap();
        }
        // The inactive signal is number 0, and the exception event is raised with the reason.
        host.store64(base + QUEUE + 192, base + SIGNALS).unwrap();
        let request = Request {
            id: 1,
            kind: queue_type::COMPUTE_AQL,
            ring: base + RING,
            ring_bytes: 64 * PACKETS,
            event: None,
            resource: QueueResource {
                queue_id: 0,
                doorbell: 0,
                write_ptr: base + QUEUE + 56,
                read_ptr: base + QUEUE + 128,
                error_reason: base + REASON,
            },
        };
        let (queue, resource) = Queue::new(agent.clone(), &request).unwrap();
        Self {
            agent,
            host,
            base,
            queue,
            doorbell: resource.doorbell,
            written: 0,
        }
    }

    /// Address of a signal. Number 0 is the queue's inactive signal.
    fn signal(&self, n: u64) -> u64 {
        self.base + SIGNALS + 64 * n
    }

    fn value(&self, n: u64) -> i64 {
        self.host.load64(self.signal(n) + 8).unwrap() as i64
    }

    fn set(&self, n: u64, value: i64) {
        self.host.store64(self.signal(n) + 8, value as u64).unwrap();
    }

    /// Waits until a signal has a value.
    fn expect(&self, n: u64, value: i64) {
        let until = Instant::now() + Duration::from_secs(10);
        while self.value(n) != value {
            assert!(
                Instant::now() < until,
                "signal {n} is {}, want {value}",
                self.value(n)
            );
            std::thread::yield_now();
        }
    }

    /// Checks that a signal keeps its value for a while.
    fn expect_still(&self, n: u64, value: i64) {
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(self.value(n), value);
    }

    fn submit(&mut self, packet: [u64; 8]) {
        self.write(packet);
        self.ring();
    }

    fn write(&mut self, packet: [u64; 8]) {
        let at = self.base + RING + 64 * (self.written % PACKETS);
        for (n, word) in packet.into_iter().enumerate().skip(1) {
            self.host.store64(at + 8 * n as u64, word).unwrap();
        }
        self.host
            .write(at + 4, &((packet[0] >> 32) as u32).to_le_bytes())
            .unwrap();
        self.host
            .write(at, &(packet[0] as u32).to_le_bytes())
            .unwrap();
        self.written += 1;
        self.host
            .store64(self.base + QUEUE + 56, self.written)
            .unwrap();
    }

    fn ring(&self) {
        self.host.store64(self.doorbell, self.written - 1).unwrap();
    }

    /// A barrier-AND that waits for one signal and completes another.
    fn barrier(&self, dep: Option<u64>, done: u64) -> [u64; 8] {
        [
            0x1503,
            dep.map_or(0, |n| self.signal(n)),
            0,
            0,
            0,
            0,
            0,
            self.signal(done),
        ]
    }

    /// A dispatch of a wave of a kernel that consists of these words.
    fn dispatch(&self, words: &[u32], private_bytes: u32, done: u64) -> [u64; 8] {
        let kernel = self.base + KERNEL;
        self.host.store64(kernel + 8, 64).unwrap();
        self.host.store64(kernel + 16, 256).unwrap();
        self.host
            .store64(
                kernel + 48,
                0x00ac_0000 | u64::from(u32::from(private_bytes > 0)) << 32,
            )
            .unwrap();
        for (n, word) in words.iter().enumerate() {
            self.host
                .write(kernel + 256 + 4 * n as u64, &word.to_le_bytes())
                .unwrap();
        }
        let sizes = 0x1502 | 1 << 16 | 64 << 32 | 1 << 48;
        [
            sizes,
            1 | 64 << 32,
            1 | 1 << 32,
            u64::from(private_bytes),
            kernel,
            0,
            0,
            self.signal(done),
        ]
    }
}

const END: u32 = 0xbf81_0000;
const ENDLESS: u32 = 0xbf82_ffff;
const ILLEGAL: u32 = 0xbfff_ffff;

#[test]
fn packets_are_taken_in_order_and_around_the_ring() {
    let mut bench = Bench::new(QueueErrors::Signal);
    bench.set(1, 3 * PACKETS as i64);
    for _ in 0..3 {
        for _ in 0..PACKETS {
            bench.submit(bench.barrier(None, 1));
        }
        bench.expect(1, 3 * PACKETS as i64 - bench.written as i64);
        assert_eq!(
            bench.host.load64(bench.base + QUEUE + 128).unwrap(),
            bench.written
        );
        assert_eq!(
            bench.host.load32(bench.base + RING).unwrap() as u16,
            1,
            "a packet that was taken is invalid"
        );
    }
}

#[test]
fn nothing_runs_before_the_doorbell_rings() {
    let mut bench = Bench::new(QueueErrors::Signal);
    bench.set(1, 2);
    bench.write(bench.barrier(None, 1));
    bench.write(bench.barrier(None, 1));
    bench.expect_still(1, 2);
    bench.ring();
    bench.expect(1, 0);
}

#[test]
fn a_packet_waits_for_its_signal_and_later_ones_for_it() {
    let mut bench = Bench::new(QueueErrors::Signal);
    (1..4).for_each(|n| bench.set(n, 1));
    bench.submit(bench.barrier(Some(1), 2));
    bench.submit(bench.barrier(None, 3));
    bench.expect_still(3, 1);
    bench.set(1, 0);
    bench.expect(3, 0);
    assert_eq!(bench.value(2), 0);
}

#[test]
fn scratch_is_asked_for_and_the_same_packet_runs_then() {
    let mut bench = Bench::new(QueueErrors::Signal);
    bench.set(1, 1);
    bench.submit(bench.dispatch(&[END], 16, 1));
    bench.expect(0, 1);
    assert_eq!(
        (
            bench.value(1),
            bench.host.load64(bench.base + QUEUE + 128).unwrap()
        ),
        (1, 0)
    );
    // What ROCr does: memory, what a lane may have of it, and a zero.
    let memory = bench
        .agent
        .space
        .allocate(1, 1 << 20, MemFlags::default(), None)
        .unwrap();
    let scratch = amdgpu_emu::Scratch::new(memory, 1 << 20);
    for (n, word) in scratch.descriptor.iter().enumerate() {
        bench
            .host
            .write(bench.base + QUEUE + 144 + 4 * n as u64, &word.to_le_bytes())
            .unwrap();
    }
    // Once granted, it is for one dispatch only.
    bench
        .host
        .store64(bench.base + QUEUE + 176, 16 | 1 << (32 + 4))
        .unwrap();
    bench.set(0, 0);
    bench.expect(1, 0);
    bench.expect(0, 512);
}

#[test]
fn errors_go_to_the_inactive_signal() {
    let mut bench = Bench::new(QueueErrors::Signal);
    bench.set(1, 1);
    bench.submit(bench.dispatch(&[ILLEGAL], 0, 1));
    bench.expect(0, 0x4000_0000);
    bench.submit(bench.barrier(None, 1));
    bench.expect_still(1, 1);
    assert_eq!(bench.host.load64(bench.base + REASON).unwrap(), 0);
}

#[test]
fn errors_go_to_the_exception_mask() {
    let mut bench = Bench::new(QueueErrors::Exceptions);
    bench.host.store64(bench.base + REASON, 1 << 40).unwrap();
    bench.submit([0x1504, 0, 0, 0, 0, 0, 0, 0]);
    let until = Instant::now() + Duration::from_secs(10);
    while bench.host.load64(bench.base + REASON).unwrap() != 1 << 40 | 1 << 19 {
        assert!(
            Instant::now() < until,
            "the bit of an unknown packet is not set"
        );
        std::thread::yield_now();
    }
    assert_eq!(bench.value(0), 0);
}

#[test]
fn a_paused_queue_takes_nothing_until_it_is_resumed() {
    let mut bench = Bench::new(QueueErrors::Signal);
    bench.set(1, 1);
    bench.queue.pause();
    bench.submit(bench.barrier(None, 1));
    bench.expect_still(1, 1);
    bench.queue.resume().unwrap();
    bench.expect(1, 0);
}

#[test]
fn pausing_cuts_off_a_kernel_for_good() {
    let mut bench = Bench::new(QueueErrors::Signal);
    bench.set(1, 1);
    bench.submit(bench.dispatch(&[ENDLESS], 0, 1));
    bench.expect_still(1, 1);
    bench.queue.pause();
    assert!(matches!(bench.queue.resume(), Err(Error::QueueStopped(1))));
    assert_eq!(
        (bench.value(0), bench.value(1)),
        (0, 1),
        "that is no error, and no completion"
    );
}

#[test]
fn what_a_packet_used_is_free_when_it_has_ended() {
    let mut bench = Bench::new(QueueErrors::Signal);
    let space = bench.agent.space.clone();
    for n in 1..20 {
        let block = space
            .allocate(1, 1 << 24, MemFlags::default(), None)
            .expect("the block before is free");
        space.map(block, 1 << 24, None).unwrap();
        // The packet waits for a signal that lies in the block.
        bench.host.store64(block + 8, 0).unwrap();
        bench.host.forget();
        bench.set(n, 1);
        let packet = [0x1503, block, 0, 0, 0, 0, 0, bench.signal(n)];
        bench.submit(packet);
        bench.expect(n, 0);
        space.free(block).unwrap();
    }
}

#[test]
fn what_no_queue_can_be_made_of_is_refused() {
    let bench = Bench::new(QueueErrors::Signal);
    let resource = QueueResource {
        queue_id: 0,
        doorbell: 0,
        write_ptr: bench.base + QUEUE + 56,
        read_ptr: bench.base + QUEUE + 128,
        error_reason: 0,
    };
    let good = Request {
        id: 2,
        kind: queue_type::COMPUTE_AQL,
        ring: bench.base + RING,
        ring_bytes: 1024,
        event: None,
        resource,
    };
    let make = |request: Request| Queue::new(bench.agent.clone(), &request).map(drop);
    make(good).unwrap();
    assert!(matches!(
        make(Request { kind: 1, ..good }),
        Err(Error::Argument { .. })
    ));
    assert!(matches!(
        make(Request {
            ring_bytes: 512,
            ..good
        }),
        Err(Error::Argument { .. })
    ));
    let resource = QueueResource {
        read_ptr: 64,
        ..resource
    };
    assert!(matches!(
        make(Request { resource, ..good }),
        Err(Error::NoBlock(_))
    ));
}
