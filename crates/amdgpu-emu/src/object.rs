//! Loads code objects, for use without a runtime.
//!
//! A code object is a shared ELF file, `amdgcn-amd-amdhsa` of version 4 or 5. [`CodeObject::parse`] checks it and
//! [`CodeObject::load`] puts its segments into memory and relocates them. What a runtime does beyond that (agents,
//! variables defined elsewhere, argument metadata) is not here.
//!
//! Format: LLVM's "User Guide for AMDGPU Backend", sections "ELF Code Object" and "Kernel Descriptor".

use object::elf::{EM_AMDGPU, PF_W, PT_LOAD};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{
    LittleEndian, Object, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget,
};

use crate::{AccessFault, Dispatch, Memory};

/// `e_ident[EI_OSABI]` of code objects for the HSA runtime.
const OSABI_HSA: u8 = 64;
/// The processor in the low byte of `e_flags`.
const GFX90A: u32 = 0x3f;
/// Relocation types: none, a symbol's address, an address in the object.
const R_AMDGPU_NONE: u32 = 0;
const R_AMDGPU_ABS64: u32 = 3;
const R_AMDGPU_RELATIVE64: u32 = 13;
/// Bytes of a kernel descriptor.
const DESCRIPTOR_BYTES: u64 = 64;
/// Most bytes that a code object may span in memory; more is a broken file.
const MAX_SPAN: u64 = 1 << 32;

/// Why a code object can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The file is not an ELF file, or breaks its rules.
    #[error("not a valid code object")]
    Elf(#[from] object::Error),
    /// It is an ELF file for something else.
    #[error("not a code object of the HSA runtime: machine {machine}, operating system {osabi}")]
    Foreign {
        /// `e_machine`.
        machine: u16,
        /// `e_ident[EI_OSABI]`.
        osabi: u8,
    },
    /// A version other than 4 and 5.
    #[error(
        "code object version {0} is not supported, only 4 and 5: compile with -mcode-object-version=4"
    )]
    Version(u8),
    /// It is for another processor.
    #[error("code object is for processor {0:#x} of LLVM's EF_AMDGPU_MACH, gfx90a is {GFX90A:#x}")]
    Processor(u32),
    /// Segments overlap each other's file bytes, are empty where they must not be, or span too much.
    #[error("segment at {0:#x} does not fit")]
    Segment(u64),
    /// A relocation that the loader does not know.
    #[error("relocation of type {r_type} at {offset:#x} is not supported")]
    Relocation {
        /// Its type, `R_AMDGPU_*`.
        r_type: u32,
        /// Where it applies, relative to the object.
        offset: u64,
    },
    /// A symbol that is used, but not defined here.
    #[error("symbol {0} is not defined in the code object")]
    Undefined(String),
    /// A kernel descriptor lies outside all segments.
    #[error("kernel {0} has no descriptor in the code object")]
    Descriptor(String),
    /// The memory to load into refused an access.
    #[error("cannot load the code object")]
    Memory(#[from] AccessFault),
}

/// A segment to load.
#[derive(Clone, Debug)]
struct Segment {
    offset: u64,
    bytes: Vec<u8>,
    /// Bytes in memory; those after `bytes` are zero.
    size: u64,
    writable: bool,
}

/// A checked code object.
#[derive(Clone, Debug)]
pub struct CodeObject {
    version: u8,
    span: u64,
    segments: Vec<Segment>,
    /// Where 8 bytes become the object's base plus an offset.
    pub(crate) relocations: Vec<(u64, u64)>,
    kernels: Vec<Kernel>,
    variables: Vec<Variable>,
}

/// A kernel of a code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name, without the suffix of the descriptor's symbol.
    pub name: String,
    /// Offset of the descriptor from the object's base; after loading, its address.
    pub descriptor: u64,
    /// Bytes of group memory that it always needs.
    pub group_segment_size: u32,
    /// Bytes of private memory of a work-item.
    pub private_segment_size: u32,
    /// Bytes of its arguments, hidden ones included.
    pub kernarg_size: u32,
}

/// A variable of a code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Offset from the object's base; after loading, its address.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Whether kernels may write it.
    pub writable: bool,
}

impl CodeObject {
    /// Checks a code object for gfx90a.
    ///
    /// # Errors
    ///
    /// The file is broken, or needs what the loader does not have; nothing is loaded.
    pub fn parse(file: &[u8]) -> Result<Self, ObjectError> {
        let elf = ElfFile64::<LittleEndian>::parse(file)?;
        let header = elf.elf_header();
        let (machine, osabi) = (header.e_machine(LittleEndian), header.e_ident().os_abi);
        if machine != EM_AMDGPU || osabi != OSABI_HSA {
            return Err(ObjectError::Foreign { machine, osabi });
        }
        let version = header.e_ident().abi_version.saturating_add(2);
        if !matches!(version, 4 | 5) {
            return Err(ObjectError::Version(version));
        }
        let processor = header.e_flags(LittleEndian) & 0xff;
        if processor != GFX90A {
            return Err(ObjectError::Processor(processor));
        }
        let segments = segments(&elf, file)?;
        let span = segments
            .iter()
            .map(|segment| segment.offset + segment.size)
            .max()
            .unwrap_or(0);
        let mut object = Self {
            version,
            span,
            segments,
            relocations: Vec::new(),
            kernels: Vec::new(),
            variables: Vec::new(),
        };
        object.relocations = object.relocations_of(&elf)?;
        for symbol in elf
            .dynamic_symbols()
            .filter(|symbol| !symbol.is_undefined())
        {
            let (name, address, size) = (symbol.name()?, symbol.address(), symbol.size());
            if let Some(name) = name.strip_suffix(".kd") {
                object.kernels.push(object.kernel_at(name, address)?);
            } else if symbol.kind() == object::SymbolKind::Data {
                let writable = object
                    .segment(address, size)
                    .is_some_and(|segment| segment.writable);
                object.variables.push(Variable {
                    name: name.to_owned(),
                    address,
                    size,
                    writable,
                });
            }
        }
        Ok(object)
    }

    /// Version of the code object format: 4 or 5.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// Bytes of memory that it takes, from its base.
    pub fn span_bytes(&self) -> u64 {
        self.span
    }

    /// Its kernels.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// Its variables.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Loads it at `base`, which is best a multiple of 4096, and returns it with addresses in place of offsets.
    ///
    /// # Errors
    ///
    /// `memory` refused a write; what was written before stays.
    pub fn load(&self, memory: &dyn Memory, base: u64) -> Result<Self, ObjectError> {
        for segment in &self.segments {
            let mut bytes = segment.bytes.clone();
            bytes.resize(segment.size as usize, 0);
            memory.write(base.wrapping_add(segment.offset), &bytes)?;
        }
        for &(at, target) in &self.relocations {
            memory.write(
                base.wrapping_add(at),
                &base.wrapping_add(target).to_le_bytes(),
            )?;
        }
        let mut loaded = self.clone();
        loaded
            .kernels
            .iter_mut()
            .for_each(|kernel| kernel.descriptor = kernel.descriptor.wrapping_add(base));
        loaded
            .variables
            .iter_mut()
            .for_each(|variable| variable.address = variable.address.wrapping_add(base));
        Ok(loaded)
    }

    /// The segment that holds `len` bytes at `offset`.
    fn segment(&self, offset: u64, len: u64) -> Option<&Segment> {
        self.segments.iter().find(|segment| {
            offset
                .checked_sub(segment.offset)
                .is_some_and(|at| at <= segment.size && len <= segment.size - at)
        })
    }

    fn kernel_at(&self, name: &str, offset: u64) -> Result<Kernel, ObjectError> {
        let missing = || ObjectError::Descriptor(name.to_owned());
        let segment = self.segment(offset, DESCRIPTOR_BYTES).ok_or_else(missing)?;
        let at = (offset - segment.offset) as usize;
        let bytes = segment
            .bytes
            .get(at..at + DESCRIPTOR_BYTES as usize)
            .ok_or_else(missing)?;
        let word =
            |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        Ok(Kernel {
            name: name.to_owned(),
            descriptor: offset,
            group_segment_size: word(0),
            private_segment_size: word(4),
            kernarg_size: word(8),
        })
    }

    fn relocations_of(
        &self,
        elf: &ElfFile64<'_, LittleEndian>,
    ) -> Result<Vec<(u64, u64)>, ObjectError> {
        let mut relocations = Vec::new();
        for (offset, relocation) in elf.dynamic_relocations().into_iter().flatten() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else {
                return Err(ObjectError::Relocation {
                    r_type: u32::MAX,
                    offset,
                });
            };
            let addend = relocation.addend() as u64;
            let target = match (r_type, relocation.target()) {
                (R_AMDGPU_NONE, _) => continue,
                (R_AMDGPU_RELATIVE64, _) => addend,
                (R_AMDGPU_ABS64, RelocationTarget::Symbol(index)) => {
                    let table = elf
                        .dynamic_symbol_table()
                        .ok_or(ObjectError::Relocation { r_type, offset })?;
                    let symbol = table.symbol_by_index(index)?;
                    if symbol.is_undefined() {
                        return Err(ObjectError::Undefined(symbol.name()?.to_owned()));
                    }
                    symbol.address().wrapping_add(addend)
                }
                _ => return Err(ObjectError::Relocation { r_type, offset }),
            };
            if self.segment(offset, 8).is_none() {
                return Err(ObjectError::Relocation { r_type, offset });
            }
            relocations.push((offset, target));
        }
        Ok(relocations)
    }
}

fn segments(elf: &ElfFile64<'_, LittleEndian>, file: &[u8]) -> Result<Vec<Segment>, ObjectError> {
    let mut segments = Vec::new();
    for header in elf
        .elf_program_headers()
        .iter()
        .filter(|header| header.p_type(LittleEndian) == PT_LOAD)
    {
        let (offset, size) = (header.p_vaddr(LittleEndian), header.p_memsz(LittleEndian));
        let misfit = || ObjectError::Segment(offset);
        let bytes = header.data(LittleEndian, file).map_err(|()| misfit())?;
        let end = offset.checked_add(size).ok_or_else(misfit)?;
        if bytes.len() as u64 > size || end > MAX_SPAN {
            return Err(misfit());
        }
        let writable = header.p_flags(LittleEndian) & PF_W != 0;
        segments.push(Segment {
            offset,
            bytes: bytes.to_vec(),
            size,
            writable,
        });
    }
    Ok(segments)
}

impl Kernel {
    /// A dispatch of this kernel, with its static group memory and without arguments.
    pub fn dispatch(&self, workgroup_size: [u16; 3], grid_size: [u32; 3]) -> Dispatch {
        Dispatch {
            workgroup_size,
            grid_size,
            private_segment_size: self.private_segment_size,
            group_segment_size: self.group_segment_size,
            kernel_object: self.descriptor,
            ..Dispatch::default()
        }
    }

    /// The argument block for `dispatch`: the `explicit` arguments, and after them those that a compiler adds for
    /// code object version 5, as far as they follow from the dispatch. Longer explicit arguments than the kernel
    /// takes are cut off.
    pub fn arguments(&self, explicit: &[u8], dispatch: &Dispatch) -> Vec<u8> {
        let mut block = explicit.to_vec();
        block.resize(explicit.len().next_multiple_of(8), 0);
        // Whole workgroups, then their size, then what the last partial one has. A size of 0 is refused at dispatch.
        let sizes = || {
            dispatch
                .grid_size
                .into_iter()
                .zip(dispatch.workgroup_size.map(|size| u32::from(size.max(1))))
        };
        sizes().for_each(|(grid, group)| block.extend((grid / group).to_le_bytes()));
        dispatch
            .workgroup_size
            .iter()
            .for_each(|size| block.extend(size.to_le_bytes()));
        sizes().for_each(|(grid, group)| block.extend(((grid % group) as u16).to_le_bytes()));
        // 16 reserved bytes, then a global offset per dimension, then their number.
        block.resize(block.len() + 16 + 3 * 8, 0);
        block.extend(3u16.to_le_bytes());
        block.resize(self.kernarg_size as usize, 0);
        block
    }
}
