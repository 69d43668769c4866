//! Decoded code of one dispatch.
//!
//! Each instruction is fetched and decoded when a wave first comes to it, bound to the kernel's registers, and kept
//! until the dispatch ends. Code that changes under a running kernel is not seen, as on an agent without an
//! instruction cache invalidate.

use std::collections::HashMap;

use crate::descriptor::Kernel;
use crate::isa::{Instruction, Undecodable};
use crate::{AccessFault, Fault, Memory, Place};

/// Dwords of a page of the lookup table.
const PAGE: u64 = 1024;

/// Why there is no instruction at an address.
#[derive(Debug)]
pub(crate) enum CodeError {
    Fetch(AccessFault),
    Undecodable { words: [u32; 2], error: Undecodable },
}

impl CodeError {
    pub(crate) fn at(self, place: Place) -> Fault {
        match self {
            Self::Fetch(fault) => Fault::Memory {
                place,
                mnemonic: "fetch",
                fault,
            },
            Self::Undecodable { words, error } => Fault::Instruction {
                place,
                words,
                mnemonic: error.mnemonic,
                illegal: error.illegal,
            },
        }
    }
}

/// The instructions met so far.
pub(crate) struct Code {
    vgprs: u16,
    accum_offset: u16,
    ops: Vec<Instruction>,
    /// For each dword of a page, one more than the index in `ops`, or 0 where nothing is decoded yet.
    pages: Vec<[u32; PAGE as usize]>,
    index: HashMap<u64, usize>,
    /// Number of the page used last, and its index in `pages`.
    last: (u64, usize),
}

impl Code {
    pub(crate) fn new(kernel: &Kernel) -> Self {
        Self {
            vgprs: kernel.vgprs,
            accum_offset: kernel.accum_offset,
            ops: Vec::new(),
            pages: Vec::new(),
            index: HashMap::new(),
            last: (u64::MAX, 0),
        }
    }

    /// The instruction at `pc`, which is a multiple of 4.
    pub(crate) fn at(&mut self, pc: u64, memory: &dyn Memory) -> Result<&Instruction, CodeError> {
        let page = pc / 4 / PAGE;
        if page != self.last.0 {
            let pages = &mut self.pages;
            let at = *self.index.entry(page).or_insert_with(|| {
                pages.push([0; PAGE as usize]);
                pages.len() - 1
            });
            self.last = (page, at);
        }
        let entry = &mut self.pages[self.last.1][(pc / 4 % PAGE) as usize];
        if *entry == 0 {
            let mut op = decode(pc, memory)?;
            op.bind(self.vgprs, self.accum_offset)
                .map_err(|illegal| CodeError::Undecodable {
                    words: op.words,
                    error: Undecodable {
                        mnemonic: Some(op.mnemonic()),
                        illegal,
                    },
                })?;
            self.ops.push(op);
            *entry = self.ops.len() as u32;
        }
        Ok(&self.ops[*entry as usize - 1])
    }
}

/// Decodes the instruction at `pc`. The last one of a mapping may be short, so its second dword is only fetched where
/// it has one.
fn decode(pc: u64, memory: &dyn Memory) -> Result<Instruction, CodeError> {
    let fetch = |address: u64| {
        let mut bytes = [0; 4];
        memory
            .fetch(address, &mut bytes)
            .map(|()| u32::from_le_bytes(bytes))
    };
    let first = fetch(pc).map_err(CodeError::Fetch)?;
    let second = fetch(pc.wrapping_add(4));
    let words = [first, second.unwrap_or(0)];
    match (Instruction::decode(words), second) {
        (Ok(op), Err(fault)) if op.len > 4 => Err(CodeError::Fetch(fault)),
        (Ok(op), _) => Ok(op),
        (Err(error), _) => Err(CodeError::Undecodable { words, error }),
    }
}
