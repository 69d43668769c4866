//! The address space that the host and all agents share: blocks, registrations, and what is mapped to whom.
//!
//! A block is memory that the thunk allocated or attached; its address is the same for the host and for agents.
//! Memory of the application that is registered keeps its host address and gets a second one for agents, as with the
//! real driver, so that a program which mixes the two up is found out.
//!
//! Invariants
//! - Nothing but what `pages` holds can be reached by an agent.
//! - The generation rises with every change of `pages`, before the change returns; a [`View`](crate::view::View)
//!   forgets what it remembers when it sees another generation.
//! - A [`Region`] is unmapped when the last entry, block and view that holds it is gone, and only then does its part
//!   of a heap become free.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::abi::{MemFlags, SharedMemoryHandle, SvmAttribute, pointer};
use crate::error::Error;
use crate::heap::Heap;
use crate::host::{Mapping, PAGE, Source};
use crate::managed::Managed;
use crate::pages::{Agents, Entry, Pages};

/// Blocks of this size and more are aligned to it: ROCr cuts small allocations out of such blocks and finds the block
/// of an address by rounding down.
const LARGE: u64 = 2 << 20;

/// First word of a handle for another process.
const HANDLE_MAGIC: u32 = 0x4b52_4950;

/// Memory of ours that is mapped into this process.
#[derive(Debug)]
pub(crate) struct Region {
    /// Always there, except while the region is dropped.
    mapping: Option<Mapping>,
    /// The heap that the memory is part of, and where in it.
    from: Option<(Arc<Heap>, u64)>,
}

impl Region {
    fn new(mapping: Mapping, from: Option<(Arc<Heap>, u64)>) -> Arc<Self> {
        Arc::new(Self {
            mapping: Some(mapping),
            from,
        })
    }

    /// Address of the first byte.
    pub(crate) fn base(&self) -> u64 {
        self.mapping.as_ref().map_or(0, Mapping::base)
    }

    /// Bytes.
    pub(crate) fn len(&self) -> u64 {
        self.mapping.as_ref().map_or(0, Mapping::len)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let len = self.len();
        drop(self.mapping.take());
        if let Some((heap, offset)) = self.from.take() {
            heap.give_back(offset, len);
        }
    }
}

/// Memory that the thunk gave out.
#[derive(Debug)]
struct Block {
    region: Arc<Region>,
    node: u32,
    flags: MemFlags,
    /// `HSA_POINTER_TYPE`.
    kind: u32,
    user_data: u64,
}

/// Memory of the application that agents may be given access to.
#[derive(Debug)]
struct Registered {
    /// The address range for agents; nothing is behind it on the host.
    window: Arc<Region>,
    flags: MemFlags,
    /// How often it was registered.
    count: u32,
    user_data: u64,
}

/// What the thunk knows about an address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    pub(crate) kind: u32,
    pub(crate) node: u32,
    pub(crate) flags: MemFlags,
    pub(crate) host: u64,
    pub(crate) agent: u64,
    pub(crate) len: u64,
    pub(crate) mapped: Agents,
    pub(crate) user_data: u64,
}

#[derive(Debug, Default)]
struct Tables {
    /// By address.
    blocks: BTreeMap<u64, Block>,
    /// By host address and length.
    registered: BTreeMap<(u64, u64), Registered>,
    managed: Managed,
    pages: Pages,
}

/// The address space.
#[derive(Debug)]
pub(crate) struct Space {
    agents: u32,
    /// The memory of each node.
    heaps: Vec<Arc<Heap>>,
    tables: RwLock<Tables>,
    generation: AtomicU64,
}

fn refused(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Host { what, source }
}

fn page_floor(address: u64) -> u64 {
    address & !(PAGE - 1)
}

impl Space {
    /// Memory for the host's node and for `agents` agents.
    pub(crate) fn new(agents: u32, system_bytes: u64, vram_bytes: u64) -> Result<Self, Error> {
        let heaps = (0..=agents)
            .map(|node| Heap::new(if node == 0 { system_bytes } else { vram_bytes }).map(Arc::new))
            .collect::<Result<_, _>>()
            .map_err(refused("a file for a node's memory"))?;
        Ok(Self {
            agents,
            heaps,
            tables: RwLock::default(),
            generation: AtomicU64::new(0),
        })
    }

    /// All agents.
    pub(crate) fn all(&self) -> Agents {
        Agents::first(self.agents)
    }

    /// Number of the present state of the page tables.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Runs `look` on the page tables, and says of which generation they are.
    pub(crate) fn pages<T>(&self, look: impl FnOnce(u64, &Pages) -> T) -> T {
        let tables = self.tables.read();
        look(self.generation(), &tables.pages)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Tables) -> T) -> T {
        let mut tables = self.tables.write();
        let result = change(&mut tables);
        self.generation.fetch_add(1, Ordering::Release);
        result
    }

    fn heap(&self, node: u32) -> Result<&Arc<Heap>, Error> {
        self.heaps.get(node as usize).ok_or(Error::Node(node))
    }

    /// Allocates a block on a node and maps it to nobody.
    pub(crate) fn allocate(
        &self,
        node: u32,
        len: u64,
        flags: MemFlags,
        at: Option<u64>,
    ) -> Result<u64, Error> {
        if len == 0 || len > 1 << 46 {
            return Err(Error::Argument {
                what: "size of an allocation",
                value: len,
                want: "1 byte to 64 TiB",
            });
        }
        if let Some(at) = at.filter(|at| !at.is_multiple_of(PAGE)) {
            return Err(Error::Unaligned(at));
        }
        let len = len.next_multiple_of(PAGE);
        let align = if len >= LARGE { LARGE } else { PAGE };
        let heap = self.heap(node)?;
        let region = if flags.scratch() {
            // Far more than is ever used; it counts as address space, not as memory of the node.
            Region::new(
                Mapping::new(Source::Anonymous, len, align, at)
                    .map_err(refused("address space for scratch memory"))?,
                None,
            )
        } else {
            let offset = heap.take(len).ok_or_else(|| Error::NoMemory {
                node,
                bytes: len,
                free: heap.free_bytes(),
            })?;
            let mapped = Mapping::new(Source::File(heap.file(), offset), len, align, at);
            if mapped.is_err() {
                heap.give_back(offset, len);
            }
            Region::new(
                mapped.map_err(refused("a mapping"))?,
                Some((heap.clone(), offset)),
            )
        };
        let base = region.base();
        self.insert(Block {
            region,
            node,
            flags,
            kind: pointer::ALLOCATED,
            user_data: 0,
        });
        Ok(base)
    }

    fn insert(&self, block: Block) {
        let base = block.region.base();
        self.change(|tables| {
            // Managed memory that was unmapped without a word may have lain here.
            tables.pages.unmap(base, base + block.region.len());
            tables.blocks.insert(base, block);
        });
    }

    /// Frees a block by its first address.
    pub(crate) fn free(&self, base: u64) -> Result<(), Error> {
        let block = self.change(|tables| {
            let block = tables.blocks.remove(&base)?;
            tables.pages.unmap(base, base + block.region.len());
            Some(block)
        });
        block.map(drop).ok_or(Error::NoBlock(base))
    }

    /// Memory for the emulator itself, mapped to all agents: mailboxes and doorbells.
    pub(crate) fn own(&self, len: u64) -> Result<Arc<Region>, Error> {
        let mapping = Mapping::new(Source::Anonymous, len.next_multiple_of(PAGE), PAGE, None)
            .map_err(refused("a page"))?;
        let region = Region::new(mapping, None);
        let (base, end) = (region.base(), region.base() + region.len());
        let entry = Entry {
            end,
            host: base,
            agents: self.all(),
            region: Some(region.clone()),
        };
        self.change(|tables| tables.pages.map(base, entry));
        Ok(region)
    }

    /// Takes memory of [`own`](Self::own) away from the agents.
    pub(crate) fn disown(&self, region: &Region) {
        self.change(|tables| {
            tables
                .pages
                .unmap(region.base(), region.base() + region.len())
        });
    }

    /// Maps memory to `agents`, or to those that it is for by default, in place of those it was mapped to. Returns
    /// the address for agents.
    pub(crate) fn map(&self, address: u64, len: u64, agents: Option<Agents>) -> Result<u64, Error> {
        self.change(|tables| {
            let Tables {
                blocks,
                registered,
                pages,
                ..
            } = tables;
            if let Some((base, block)) = find_block(blocks, address) {
                let default = if block.node == 0 {
                    self.all()
                } else {
                    Agents::of(block.node)
                };
                let end = base + block.region.len();
                let end = if len == 0 {
                    end
                } else {
                    address.saturating_add(len).next_multiple_of(PAGE).min(end)
                };
                let start = page_floor(address);
                let region = Some(block.region.clone());
                pages.map(
                    start,
                    Entry {
                        end,
                        host: start,
                        agents: agents.unwrap_or(default),
                        region,
                    },
                );
                return Ok(address);
            }
            let (&(host, _), found) = registered
                .get_key_value(&(address, len))
                .or_else(|| find_registered(registered, address))
                .ok_or(Error::NoBlock(address))?;
            let (start, len) = (found.window.base(), found.window.len());
            let agents = agents.unwrap_or(self.all());
            // The window itself has nothing behind it: what the entry leads to is the application's memory.
            pages.map(
                start,
                Entry {
                    end: start + len,
                    host: page_floor(host),
                    agents,
                    region: None,
                },
            );
            Ok(start + (address - page_floor(host)))
        })
    }

    /// Takes what was mapped from `address` on away from all agents.
    pub(crate) fn unmap(&self, address: u64) -> Result<(), Error> {
        self.change(|tables| {
            let Tables {
                blocks,
                registered,
                pages,
                ..
            } = tables;
            let windows = registered
                .range((address, 0)..=(address, u64::MAX))
                .map(|(_, found)| found.window.clone());
            let windows: Vec<_> = windows.collect();
            if windows.is_empty() && find_block(blocks, address).is_none() {
                return Err(Error::NoBlock(address));
            }
            for window in windows {
                pages.unmap(window.base(), window.base() + window.len());
            }
            if let Some((start, entry)) = pages.find(address)
                && start == address
            {
                let end = entry.end;
                pages.unmap(start, end);
            }
            Ok(())
        })
    }

    /// Registers memory of the application. Memory of a block needs no registration and gets none.
    pub(crate) fn register(&self, host: u64, len: u64, flags: MemFlags) -> Result<(), Error> {
        if len == 0 || host.checked_add(len).is_none() {
            return Err(Error::Argument {
                what: "size of a registration",
                value: len,
                want: "a range of addresses",
            });
        }
        self.change(|tables| {
            if find_block(&tables.blocks, host).is_some() {
                return Ok(());
            }
            if let Some(found) = tables.registered.get_mut(&(host, len)) {
                found.count += 1;
                return Ok(());
            }
            let pages = (host + len).next_multiple_of(PAGE) - page_floor(host);
            let window = Mapping::new(Source::Nothing, pages, PAGE, None)
                .map_err(refused("address space for a registration"))?;
            let registered = Registered {
                window: Region::new(window, None),
                flags,
                count: 1,
                user_data: 0,
            };
            tables.registered.insert((host, len), registered);
            Ok(())
        })
    }

    /// Undoes one registration, by host address.
    pub(crate) fn deregister(&self, host: u64) -> Result<(), Error> {
        self.change(|tables| {
            let found = tables
                .registered
                .range_mut((host, 0)..=(host, u64::MAX))
                .next();
            let Some((&key, found)) = found else {
                // Attached memory goes this way too.
                return match tables.blocks.get(&host) {
                    Some(block) if block.kind == pointer::REGISTERED_SHARED => {
                        tables.pages.unmap(host, host + block.region.len());
                        tables.blocks.remove(&host);
                        Ok(())
                    }
                    Some(_) => Ok(()),
                    None if find_block(&tables.blocks, host).is_some() => Ok(()),
                    None => Err(Error::NoBlock(host)),
                };
            };
            found.count -= 1;
            if found.count == 0 {
                let (start, len) = (found.window.base(), found.window.len());
                tables.pages.unmap(start, start + len);
                tables.registered.remove(&key);
            }
            Ok(())
        })
    }

    /// What is known about an address, the host's or the agents'.
    pub(crate) fn pointer(&self, address: u64) -> Option<Pointer> {
        let tables = self.tables.read();
        let mapped = |at| {
            tables
                .pages
                .find(at)
                .map_or(Agents::default(), |(_, entry)| entry.agents)
        };
        if let Some((base, block)) = find_block(&tables.blocks, address) {
            return Some(Pointer {
                kind: block.kind,
                node: block.node,
                flags: block.flags,
                host: base,
                agent: base,
                len: block.region.len(),
                mapped: mapped(address),
                user_data: block.user_data,
            });
        }
        let (&(host, len), found) = find_registered(&tables.registered, address)?;
        let agent = found.window.base() + host % PAGE;
        Some(Pointer {
            kind: pointer::REGISTERED_USER,
            node: 0,
            flags: found.flags,
            host,
            agent,
            len,
            mapped: mapped(agent),
            user_data: found.user_data,
        })
    }

    /// Leaves a word with the block or registration of an address.
    pub(crate) fn set_user_data(&self, address: u64, user_data: u64) -> Result<(), Error> {
        let mut tables = self.tables.write();
        let base = find_block(&tables.blocks, address).map(|(base, _)| base);
        if let Some(block) = base.and_then(|base| tables.blocks.get_mut(&base)) {
            block.user_data = user_data;
            return Ok(());
        }
        let key = find_registered(&tables.registered, address).map(|(&key, _)| key);
        match key.and_then(|key| tables.registered.get_mut(&key)) {
            Some(found) => {
                found.user_data = user_data;
                Ok(())
            }
            None => Err(Error::NoBlock(address)),
        }
    }

    /// Bytes of a node's memory that are free.
    #[cfg(test)]
    pub(crate) fn free_bytes(&self, node: u32) -> Result<u64, Error> {
        Ok(self.heap(node)?.free_bytes())
    }

    /// A handle with which another process of the same user can attach a block: magic, process, descriptor of the
    /// node's file, node, offset and size.
    pub(crate) fn share(&self, base: u64) -> Result<SharedMemoryHandle, Error> {
        let tables = self.tables.read();
        let block = tables.blocks.get(&base).ok_or(Error::NoBlock(base))?;
        let (heap, offset) = block
            .region
            .from
            .as_ref()
            .ok_or(Error::NotSupported("sharing scratch or attached memory"))?;
        let len = block.region.len();
        let fd = heap.file().as_raw_fd() as u32;
        let halves = |value: u64| [value as u32, (value >> 32) as u32];
        let ([offset, offset_high], [len, len_high]) = (halves(*offset), halves(len));
        Ok([
            HANDLE_MAGIC,
            std::process::id(),
            fd,
            block.node,
            offset,
            offset_high,
            len,
            len_high,
        ])
    }

    /// Attaches a block of another process, or of this one once more. Returns address and size.
    pub(crate) fn attach(&self, handle: &SharedMemoryHandle) -> Result<(u64, u64), Error> {
        let &[magic, process, fd, node, offset, offset_high, len, len_high] = handle;
        if magic != HANDLE_MAGIC {
            return Err(Error::Argument {
                what: "first word of a shared handle",
                value: magic.into(),
                want: "a handle of the emulated driver",
            });
        }
        self.heap(node)?;
        let whole = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let (offset, len) = (whole(offset, offset_high), whole(len, len_high));
        let file: File = OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{process}/fd/{fd}"))
            .map_err(refused("the shared memory of another process"))?;
        let align = if len >= LARGE { LARGE } else { PAGE };
        let mapping = Mapping::new(Source::File(&file, offset), len, align, None)
            .map_err(refused("a mapping of shared memory"))?;
        let region = Region::new(mapping, None);
        let base = region.base();
        self.insert(Block {
            region,
            node,
            flags: MemFlags::default(),
            kind: pointer::REGISTERED_SHARED,
            user_data: 0,
        });
        Ok((base, len))
    }

    /// Sets attributes of managed memory.
    pub(crate) fn set_managed(
        &self,
        start: u64,
        len: u64,
        attributes: &[SvmAttribute],
    ) -> Result<(), Error> {
        let end = start.saturating_add(len);
        if !start.is_multiple_of(PAGE) || !end.is_multiple_of(PAGE) {
            return Err(Error::Unaligned(start | end));
        }
        self.change(|Tables { managed, pages, .. }| managed.set(pages, (start, end), attributes))
    }

    /// Answers questions about managed memory in place.
    pub(crate) fn get_managed(
        &self,
        start: u64,
        len: u64,
        attributes: &mut [SvmAttribute],
    ) -> Result<(), Error> {
        let tables = self.tables.read();
        tables.managed.get(
            &tables.pages,
            (start, start.saturating_add(len)),
            attributes,
        )
    }
}

fn find_block(blocks: &BTreeMap<u64, Block>, address: u64) -> Option<(u64, &Block)> {
    let (&base, block) = blocks.range(..=address).next_back()?;
    (address - base < block.region.len()).then_some((base, block))
}

/// A registration that holds an address, as the host or as agents know it.
fn find_registered(
    registered: &BTreeMap<(u64, u64), Registered>,
    address: u64,
) -> Option<(&(u64, u64), &Registered)> {
    registered.iter().find(|&(&(host, len), found)| {
        let inside = |start: u64, len: u64| address >= start && address - start < len;
        inside(host, len) || inside(found.window.base(), found.window.len())
    })
}
