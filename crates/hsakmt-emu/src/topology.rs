//! What the emulated machine says that it is: nodes, memory banks, caches, links.
//!
//! Node 0 is the host's CPU, node 1 and up are agents. The numbers of an agent are those of a gfx90a board; ROCr
//! derives sizes of queues, scratch memory and its own kernels from them, but nothing here has any speed.
//!
//! Some values are load-bearing. ROCr divides by the SIMDs of a compute unit and by the shader engines; it takes a
//! node with CPU cores for an APU; it wants a data cache on the CPU, an LDS bank and slots for scratch on an agent;
//! and doorbells must be of the 64-bit kind, which the queues here have.

use crate::abi::{
    CacheProperties, ClockCounters, IoLinkProperties, MemoryProperties, NodeProperties,
    SystemProperties, VersionInfo, cache, capability, heap, link,
};
use crate::config::{Config, SHADER_ENGINES};
use crate::host;

/// Version of the kernel interface: the newest that the runtimes in question know.
pub(crate) const VERSION: VersionInfo = VersionInfo { major: 1, minor: 9 };

/// First address of the window on LDS in the flat address space; only bits 63:32 count.
pub(crate) const LDS_APERTURE: u64 = 0x1_0000_0000_0000;

/// First address of the window on private memory.
pub(crate) const SCRATCH_APERTURE: u64 = 0x2_0000_0000_0000;

/// Nanoseconds of a tick of an agent's clock, which has 100 MHz.
const NANOSECONDS_PER_TICK: u64 = 10;

/// Compute units that ROCr counts per SIMD.
const SIMDS_PER_CU: u32 = 4;

/// Now, on an agent's clock. Dispatches and copies are stamped with it.
pub(crate) fn agent_clock() -> u64 {
    host::nanoseconds() / NANOSECONDS_PER_TICK
}

/// The clocks of any node, read at one moment.
pub(crate) fn clocks() -> ClockCounters {
    let now = host::nanoseconds();
    ClockCounters {
        gpu: now / NANOSECONDS_PER_TICK,
        cpu: now,
        system: now,
        system_frequency_hz: 1_000_000_000,
    }
}

/// The system: how many nodes there are.
pub(crate) fn system(config: &Config) -> SystemProperties {
    SystemProperties {
        num_nodes: 1 + config.agents,
        platform_oem: 0,
        platform_id: 0,
        platform_rev: 0,
    }
}

/// Everything about the nodes of a machine.
pub(crate) struct Topology<'a> {
    pub(crate) config: &'a Config,
    pub(crate) cpu_cores: u32,
    pub(crate) system_bytes: u64,
}

impl Topology<'_> {
    fn is_agent(&self, node: u32) -> bool {
        node != 0
    }

    /// What a node is, banks, caches and links counted.
    pub(crate) fn node(&self, node: u32) -> NodeProperties {
        let nothing = NodeProperties {
            num_cpu_cores: 0,
            num_f_compute_cores: 0,
            num_memory_banks: self.banks(node).len() as u32,
            num_caches: self.caches(node).len() as u32,
            num_io_links: self.links(node).len() as u32,
            c_compute_id_lo: 0,
            f_compute_id_lo: 0,
            capability: 0,
            max_waves_per_simd: 0,
            lds_size_in_kb: 0,
            gds_size_in_kb: 0,
            wave_front_size: 0,
            num_shader_banks: 0,
            num_arrays: 0,
            num_cu_per_array: 0,
            num_simd_per_cu: 0,
            max_slots_scratch_cu: 0,
            engine_id: 0,
            vendor_id: 0,
            device_id: 0,
            location_id: 0,
            local_mem_size: 0,
            max_engine_clock_mhz_f_compute: 0,
            max_engine_clock_mhz_c_compute: 2000,
            drm_render_minor: -1,
            marketing_name: utf16("Host CPU"),
            amd_name: [0; 64],
            ucode_engine_versions: 0,
            debug_properties: 0,
            hive_id: 0,
            num_sdma_engines: 0,
            num_sdma_xgmi_engines: 0,
            num_sdma_queues_per_engine: 0,
            num_cp_queues: 0,
            num_gws: 0,
            reserved2: 0,
            domain: 0,
            unique_id: 0,
            vgpr_size_per_cu: 0,
            sgpr_size_per_cu: 0,
            num_xcc: 0,
            kfd_gpu_id: 0,
            family_id: 0,
        };
        if !self.is_agent(node) {
            return NodeProperties {
                num_cpu_cores: self.cpu_cores,
                ..nothing
            };
        }
        let units = self.config.compute_units;
        let several = self.config.agents > 1;
        NodeProperties {
            num_f_compute_cores: units * SIMDS_PER_CU,
            f_compute_id_lo: 0x8000_0000 + 0x1000 * node,
            capability: capability::DOORBELL_64BIT
                | capability::QUEUE_SIZE_POWER_OF_TWO
                | capability::QUEUE_SIZE_32BIT
                | capability::SRAM_EDC
                | capability::SVM_API,
            max_waves_per_simd: 8,
            lds_size_in_kb: 64,
            wave_front_size: 64,
            num_shader_banks: SHADER_ENGINES,
            num_arrays: 1,
            num_cu_per_array: units / SHADER_ENGINES,
            num_simd_per_cu: SIMDS_PER_CU,
            max_slots_scratch_cu: 32,
            // Micro code 60 of a processor 9.0.10.
            engine_id: 60 | 9 << 10 | 10 << 24,
            vendor_id: 0x1002,
            device_id: 0x740f,
            location_id: 0x300 * node,
            local_mem_size: self.config.vram_bytes,
            max_engine_clock_mhz_f_compute: 1700,
            max_engine_clock_mhz_c_compute: 0,
            drm_render_minor: 127 + node as i32,
            marketing_name: utf16("Emulated gfx90a"),
            amd_name: ascii("emulated gfx90a"),
            hive_id: if several { 0x656d_756c_6174_6564 } else { 0 },
            num_sdma_engines: 2,
            num_sdma_xgmi_engines: if several { 3 } else { 0 },
            num_sdma_queues_per_engine: 8,
            num_cp_queues: 24,
            unique_id: 0x656d_7500_0000_0000 + u64::from(node),
            vgpr_size_per_cu: 512 << 10,
            sgpr_size_per_cu: 12_800,
            num_xcc: 1,
            kfd_gpu_id: node,
            ..nothing
        }
    }

    /// The memory banks of a node.
    pub(crate) fn banks(&self, node: u32) -> Vec<MemoryProperties> {
        let bank = |heap_type, size_in_bytes, virtual_base_address| MemoryProperties {
            heap_type,
            size_in_bytes,
            flags: 0,
            width: 0,
            memory_clock_max: 0,
            virtual_base_address,
        };
        if !self.is_agent(node) {
            return vec![bank(heap::SYSTEM, self.system_bytes, 0)];
        }
        vec![
            MemoryProperties {
                width: 4096,
                memory_clock_max: 1600,
                ..bank(heap::FRAME_BUFFER_PUBLIC, self.config.vram_bytes, 0)
            },
            bank(heap::GPU_LDS, 64 << 10, LDS_APERTURE),
            bank(heap::GPU_SCRATCH, 4 << 30, SCRATCH_APERTURE),
        ]
    }

    /// The caches of a node. Nothing caches anything; programs ask for their sizes.
    pub(crate) fn caches(&self, node: u32) -> Vec<CacheProperties> {
        let cache = |level, size, kind| CacheProperties {
            processor_id_low: 0,
            level,
            size,
            line_size: 64,
            lines_per_tag: 1,
            associativity: 16,
            latency: 0,
            kind: kind | cache::DATA,
            sibling_map: [0; 256],
        };
        if self.is_agent(node) {
            vec![cache(1, 16, cache::HSACU), cache(2, 8 << 10, cache::HSACU)]
        } else {
            vec![cache(1, 32, cache::CPU)]
        }
    }

    /// The links that start at a node.
    pub(crate) fn links(&self, from: u32) -> Vec<IoLinkProperties> {
        (0..=self.config.agents)
            .filter(|&to| to != from)
            .map(|to| {
                let agents = self.is_agent(from) && self.is_agent(to);
                IoLinkProperties {
                    kind: if agents {
                        link::XGMI
                    } else {
                        link::PCI_EXPRESS
                    },
                    version_major: 0,
                    version_minor: 0,
                    node_from: from,
                    node_to: to,
                    weight: if agents { 15 } else { 20 },
                    minimum_latency: 0,
                    maximum_latency: 0,
                    minimum_bandwidth: 0,
                    maximum_bandwidth: 0,
                    rec_transfer_size: 0,
                    flags: 0,
                }
            })
            .collect()
    }
}

fn utf16(text: &str) -> [u16; 64] {
    let mut out = [0; 64];
    out.iter_mut()
        .zip(text.encode_utf16())
        .for_each(|(to, from)| *to = from);
    out
}

fn ascii(text: &str) -> [u8; 64] {
    let mut out = [0; 64];
    out.iter_mut()
        .zip(text.bytes())
        .for_each(|(to, from)| *to = from);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What ROCr divides by, insists on, or mistakes for something else.
    #[test]
    fn load_bearing_values_hold() {
        let config = Config {
            agents: 3,
            compute_units: 8,
            ..Config::default()
        };
        let topology = Topology {
            config: &config,
            cpu_cores: 2,
            system_bytes: 1 << 30,
        };
        let (cpu, agent) = (topology.node(0), topology.node(2));
        assert_eq!((cpu.num_f_compute_cores, agent.num_cpu_cores), (0, 0));
        assert!(
            agent.num_simd_per_cu > 0
                && agent.num_shader_banks > 0
                && agent.max_slots_scratch_cu > 0
        );
        assert_eq!({ agent.num_f_compute_cores }, 8 * 4);
        assert!(
            topology
                .caches(0)
                .iter()
                .any(|cache| cache.kind == cache::DATA | cache::CPU)
        );
        assert!(
            topology
                .banks(2)
                .iter()
                .any(|bank| bank.heap_type == heap::GPU_LDS)
        );
        assert_eq!(
            agent.capability >> 12 & 3,
            2,
            "doorbells are 64-bit packet indices"
        );
    }

    #[test]
    fn every_pair_of_nodes_is_linked_both_ways() {
        let config = Config {
            agents: 3,
            ..Config::default()
        };
        let topology = Topology {
            config: &config,
            cpu_cores: 2,
            system_bytes: 1 << 30,
        };
        for from in 0..4 {
            let to: Vec<u32> = topology
                .links(from)
                .iter()
                .map(|link| link.node_to)
                .collect();
            assert_eq!(to, (0..4).filter(|&to| to != from).collect::<Vec<_>>());
            assert_eq!({ topology.node(from).num_io_links }, 3);
        }
        assert_eq!({ topology.links(1)[1].kind }, link::XGMI);
    }
}
