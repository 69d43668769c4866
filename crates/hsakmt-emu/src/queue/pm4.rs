//! The command buffers that vendor packets point at.
//!
//! ROCr submits one after it loaded code, to invalidate caches; there are none here. Profiling libraries program
//! counter registers with them. The emulator has no registers: its counters are driven by a no-op packet with a
//! payload that no other program writes. Dwords of such a packet:
//!
//! | dword | content |
//! | --- | --- |
//! | 0 | PM4 type 3 header of a `NOP` (`0x10`) with 4 dwords of payload: `0xC003_1000` |
//! | 1 | [`COUNTERS`], "KREC" |
//! | 2 | 1 to start from zero, 2 to read, 3 to stop |
//! | 3, 4 | start: a bit for each counter to count, and 0; read: address to read to, low half first; stop: 0, 0 |
//!
//! Bit 0 stands for the first counter of [`amdgpu_emu::Counter::ALL`]. A block counts only as many at a time as it has
//! [registers](amdgpu_emu::counters::Block::registers); asking for more is an error of the queue. A read writes each
//! counter that was started as 8 bytes, in ascending order of the bits, to memory that the agent can reach; before the
//! first start that is nothing. Counters belong to the agent: dispatches of all its queues count. ROCr's own kernels,
//! where the host does their work, count nothing.

use amdgpu_emu::counters::{Selection, SelectionError};

/// Second dword of a packet for the counters.
pub(super) const COUNTERS: u32 = 0x4345_524b;

const NOP: u32 = 0x10;
const ACQUIRE_MEM: u32 = 0x58;

/// A command to the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Start(Selection),
    Read { to: u64 },
    Stop,
}

/// A command buffer that can't be executed. None of its commands were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Pm4Error {
    #[error("dword {at} of the command buffer, {word:#010x}, starts no packet that is emulated")]
    Unknown { at: usize, word: u32 },
    #[error("the packet at dword {at} of the command buffer ends behind the buffer")]
    Short { at: usize },
    #[error("the counter packet at dword {at} has operation {operation}, there are 1, 2 and 3")]
    Operation { at: usize, operation: u32 },
    #[error("the counter packet at dword {at} can't start")]
    Selection {
        at: usize,
        #[source]
        error: SelectionError,
    },
}

/// Reads a command buffer.
pub(super) fn commands(buffer: &[u32]) -> Result<Vec<Command>, Pm4Error> {
    let mut commands = Vec::new();
    let mut at = 0;
    while let Some(&word) = buffer.get(at) {
        if word >> 30 == 2 {
            // A packet of type 2 fills one dword.
            at += 1;
            continue;
        }
        let opcode = word >> 8 & 0xff;
        if word >> 30 != 3 || !matches!(opcode, NOP | ACQUIRE_MEM) {
            return Err(Pm4Error::Unknown { at, word });
        }
        let payload = (word >> 16 & 0x3fff) as usize + 1;
        let payload = buffer
            .get(at + 1..at + 1 + payload)
            .ok_or(Pm4Error::Short { at })?;
        if let (NOP, &[COUNTERS, operation, low, high]) = (opcode, payload) {
            commands.push(match operation {
                1 => Selection::from_bits(low)
                    .map(Command::Start)
                    .map_err(|error| Pm4Error::Selection { at, error })?,
                2 => Command::Read {
                    to: u64::from(low) | u64::from(high) << 32,
                },
                3 => Command::Stop,
                _ => return Err(Pm4Error::Operation { at, operation }),
            });
        }
        at += 1 + payload.len();
    }
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use amdgpu_emu::Counter;
    use amdgpu_emu::counters::Block;

    use super::*;

    #[test]
    fn counter_packets_are_found_among_others() {
        let buffer = [
            0xc005_5800,
            1,
            2,
            3,
            4,
            5,
            6,           // acquire memory
            0x8000_0000, // filler
            0xc003_1000,
            COUNTERS,
            1,
            0x405,
            0,
            0xc001_1000,
            COUNTERS,
            2, // a no-op that only looks like one
            0xc003_1000,
            COUNTERS,
            2,
            0x10,
            0x7f00,
            0xc003_1000,
            COUNTERS,
            3,
            0,
            0,
        ];
        let some = [Counter::Waves, Counter::InstsSalu, Counter::GrbmGuiActive];
        let some = Selection::new(&some).unwrap();
        let read = Command::Read {
            to: 0x7f00_0000_0010,
        };
        assert_eq!(
            commands(&buffer),
            Ok(vec![Command::Start(some), read, Command::Stop])
        );
        assert_eq!(commands(&[]), Ok(vec![]));
    }

    #[test]
    fn broken_buffers_are_refused() {
        assert_eq!(
            commands(&[0xc003_1000, COUNTERS, 1, 0]),
            Err(Pm4Error::Short { at: 0 })
        );
        assert_eq!(
            commands(&[0xc003_1000, COUNTERS, 9, 0, 0]),
            Err(Pm4Error::Operation {
                at: 0,
                operation: 9
            })
        );
        let error = SelectionError::Full {
            block: Block::Sq,
            wanted: 9,
        };
        assert_eq!(
            commands(&[0xc003_1000, COUNTERS, 1, 0x7ff, 0]),
            Err(Pm4Error::Selection { at: 0, error })
        );
        // A write to a register, and a packet of type 0.
        assert_eq!(
            commands(&[0xc001_7600, 1, 2]),
            Err(Pm4Error::Unknown {
                at: 0,
                word: 0xc001_7600
            })
        );
        assert_eq!(
            commands(&[0x8000_0000, 0]),
            Err(Pm4Error::Unknown { at: 1, word: 0 })
        );
    }
}
