//! An application's memory, and its kernel.

use std::fmt;
use std::ops::Range;

use kr_device::host::HostDevice;
use kr_replay::host::{HostBuffer, HostRuntime};
use kr_types::DeviceAddr;
use parking_lot::Mutex;

/// Lengths of the buffers in bytes: less than a word, one word and a piece, more than a page.
const LENS: [usize; 3] = [5, 100, 4100];

/// The bytes of all buffers. Printed as the first byte of each, which tells how often the kernel
/// ran.
#[derive(Clone, PartialEq, Eq)]
pub struct Contents(Vec<Vec<u8>>);

impl Contents {
    fn digest(&self) -> u64 {
        self.0.iter().flatten().fold(0, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first: Vec<_> = self.0.iter().map(|buffer| buffer[0]).collect();
        write!(f, "Contents({first:02x?}.., digest {:x})", self.digest())
    }
}

/// Buffers of a runtime, and a kernel that changes every byte of them in place.
///
/// One run takes each byte through one step of a cycle of length 256, so that after 0, 1, ... 255
/// runs every byte is different: memory tells how often the kernel has run.
pub struct AppMemory {
    device: HostDevice,
    addrs: Vec<DeviceAddr>,
    initial: Contents,
    buffers: Mutex<Vec<Option<HostBuffer>>>,
}

impl AppMemory {
    /// New buffers, filled with a pattern that depends on `salt`.
    pub fn new(runtime: &HostRuntime, salt: u8) -> Self {
        let device = runtime.device().clone();
        let (mut addrs, mut initial, mut buffers) = (Vec::new(), Vec::new(), Vec::new());
        for (i, len) in LENS.into_iter().enumerate() {
            let bytes: Vec<u8> = (0..len)
                .map(|j| (j as u8).wrapping_mul(37) ^ salt ^ (i as u8) << 6)
                .collect();
            let buffer = runtime
                .alloc(len as u64)
                .expect("the host has a few pages of memory");
            device
                .write_bytes(buffer.addr(), &bytes)
                .expect("the buffer was just made");
            addrs.push(buffer.addr());
            initial.push(bytes);
            buffers.push(Some(buffer));
        }
        Self {
            device,
            addrs,
            initial: Contents(initial),
            buffers: Mutex::new(buffers),
        }
    }

    /// Where the buffers start.
    pub fn addrs(&self) -> &[DeviceAddr] {
        &self.addrs
    }

    /// How many bytes they have together.
    pub fn len_bytes(&self) -> u64 {
        LENS.iter().sum::<usize>() as u64
    }

    /// Frees a buffer, as the application or a profiler's callback would.
    pub fn free(&self, index: usize) {
        let buffer = self.buffers.lock()[index].take();
        drop(buffer);
    }

    /// What the buffers hold.
    pub fn bytes(&self) -> Contents {
        let read = |(addr, initial): (&DeviceAddr, &Vec<u8>)| {
            let mut bytes = vec![0; initial.len()];
            self.device
                .read_bytes(*addr, &mut bytes)
                .expect("the buffer is alive");
            bytes
        };
        Contents(self.addrs.iter().zip(&self.initial.0).map(read).collect())
    }

    /// What they would hold after `runs` runs from their initial contents.
    pub fn after(&self, runs: u32) -> Contents {
        let mut contents = self.initial.clone();
        for byte in contents.0.iter_mut().flatten() {
            for _ in 0..runs {
                *byte = step(*byte);
            }
        }
        contents
    }

    /// What they would hold after one run that stopped half way.
    pub fn after_half_a_run(&self) -> Contents {
        let mut contents = self.initial.clone();
        for buffer in &mut contents.0 {
            let half = buffer.len() / 2;
            buffer[..half].iter_mut().for_each(|b| *b = step(*b));
        }
        contents
    }

    /// How many runs from the initial contents make them what they are, fewer than 256; `None` if
    /// no number of whole runs does.
    pub fn runs(&self) -> Option<u32> {
        let bytes = self.bytes();
        let (mut first, goal) = (self.initial.0[0][0], bytes.0[0][0]);
        let mut runs = 0;
        while first != goal {
            first = step(first);
            runs += 1;
        }
        (self.after(runs) == bytes).then_some(runs)
    }

    /// Runs the kernel.
    pub fn run(&self) {
        self.update(|len| 0..len);
    }

    /// Runs the kernel up to its middle.
    pub fn run_half(&self) {
        self.update(|len| 0..len / 2);
    }

    /// Runs what [`run_half`](Self::run_half) left out.
    pub fn run_rest(&self) {
        self.update(|len| len / 2..len);
    }

    /// A number that tells contents of the memory apart.
    pub fn digest(&self) -> u64 {
        self.bytes().digest()
    }

    /// The digest of the initial contents.
    pub fn initial_digest(&self) -> u64 {
        self.initial.digest()
    }

    fn update(&self, part: impl Fn(usize) -> Range<usize>) {
        for (addr, mut bytes) in self.addrs.iter().zip(self.bytes().0) {
            let part = part(bytes.len());
            let to = DeviceAddr(addr.0 + part.start as u64);
            let bytes = &mut bytes[part];
            bytes.iter_mut().for_each(|b| *b = step(*b));
            self.device
                .write_bytes(to, bytes)
                .expect("the buffer is alive");
        }
    }
}

/// A full cycle over all bytes: the multiplier is 1 modulo 4 and the increment is odd.
fn step(byte: u8) -> u8 {
    byte.wrapping_mul(5).wrapping_add(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kr_types::AgentId;

    /// Memory tells how often the kernel has run, up to 255 times, and half runs from whole ones.
    #[test]
    fn every_number_of_runs_leaves_other_bytes() {
        let memory = AppMemory::new(&HostRuntime::new(AgentId(0)), 0);
        let mut seen = vec![memory.after_half_a_run()];
        for runs in 0..256 {
            assert_eq!(memory.bytes(), memory.after(runs));
            assert_eq!(memory.runs(), Some(runs));
            assert!(!seen.contains(&memory.bytes()), "after {runs} runs");
            seen.push(memory.bytes());
            memory.run();
        }
        assert_eq!(memory.bytes(), memory.after(0));
        memory.run_half();
        assert_eq!(memory.bytes(), memory.after_half_a_run());
        assert_eq!(memory.runs(), None);
        memory.run_rest();
        assert_eq!(memory.runs(), Some(1));
    }
}
