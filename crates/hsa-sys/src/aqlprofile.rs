//! Types and constants of `hsa_ven_amd_aqlprofile.h` and of `aql_profile_v2.h`: packets that start,
//! read and stop hardware counters.
//!
//! The library is `libhsa-amd-aqlprofile64.so.1`. It makes packets and interprets what they left in
//! memory; it submits nothing. The first interface is also an extension of the runtime; the second
//! (`aqlprofile_*`, since ROCm 6.2) exists in the library only.

use core::ffi::{c_char, c_void};

use crate::{BitField, function, hsa_agent_t, hsa_ext_amd_aql_pm4_packet_t};

c_enum! {
    /// What is recorded.
    hsa_ven_amd_aqlprofile_event_type_t: u32;
    BASE "HSA_VEN_AMD_AQLPROFILE_EVENT_TYPE_" {
        /// Counters.
        PMC = 0;
        /// A trace.
        TRACE = 1;
    }
}

c_enum! {
    /// Hardware block. Ask for the number by the block's name; newer libraries have more.
    hsa_ven_amd_aqlprofile_block_name_t: u32;
    BASE "HSA_VEN_AMD_AQLPROFILE_BLOCK_NAME_" {
        /// CPC.
        CPC = 0;
        /// CPF.
        CPF = 1;
        /// GDS.
        GDS = 2;
        /// GRBM.
        GRBM = 3;
        /// GRBMSE.
        GRBMSE = 4;
        /// SPI.
        SPI = 5;
        /// SQ.
        SQ = 6;
        /// SQCS.
        SQCS = 7;
        /// SRBM.
        SRBM = 8;
        /// SX.
        SX = 9;
        /// TA.
        TA = 10;
        /// TCA.
        TCA = 11;
        /// TCC.
        TCC = 12;
        /// TCP.
        TCP = 13;
        /// TD.
        TD = 14;
        /// MCARB.
        MCARB = 15;
        /// MCHUB.
        MCHUB = 16;
        /// MCMCBVM.
        MCMCBVM = 17;
        /// MCSEQ.
        MCSEQ = 18;
        /// MCVML2.
        MCVML2 = 19;
        /// MCXBAR.
        MCXBAR = 20;
        /// ATC.
        ATC = 21;
        /// ATCL2.
        ATCL2 = 22;
        /// GCEA.
        GCEA = 23;
        /// RPB.
        RPB = 24;
        /// SDMA.
        SDMA = 25;
        /// GL1A.
        GL1A = 26;
        /// GL1C.
        GL1C = 27;
        /// GL2A.
        GL2A = 28;
        /// GL2C.
        GL2C = 29;
        /// GCR.
        GCR = 30;
        /// GUS.
        GUS = 31;
    }
}

/// A counter: what a register of one instance of a block counts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_ven_amd_aqlprofile_event_t {
    /// Block.
    pub block_name: hsa_ven_amd_aqlprofile_block_name_t,
    /// Instance of the block.
    pub block_index: u32,
    /// Event of the block.
    pub counter_id: u32,
}

c_enum! {
    /// Setting of a recording.
    hsa_ven_amd_aqlprofile_parameter_name_t: u32;
    BASE "HSA_VEN_AMD_AQLPROFILE_PARAMETER_NAME_" {
        /// Compute unit to trace.
        COMPUTE_UNIT_TARGET = 0;
        /// Address spaces to trace; bits.
        VM_ID_MASK = 1;
        /// What to trace; bits.
        MASK = 2;
        /// Tokens to trace; bits.
        TOKEN_MASK = 3;
        /// More tokens to trace; bits.
        TOKEN_MASK2 = 4;
        /// Shader engines; bits.
        SE_MASK = 5;
        /// Sampling rate.
        SAMPLE_RATE = 6;
        /// Concurrent kernels.
        K_CONCURRENT = 7;
    }
}

/// Setting and value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_ven_amd_aqlprofile_parameter_t {
    /// Setting.
    pub parameter_name: hsa_ven_amd_aqlprofile_parameter_name_t,
    /// Value.
    pub value: u32,
}

/// A buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_ven_amd_aqlprofile_descriptor_t {
    /// First byte.
    pub ptr: *mut c_void,
    /// Bytes.
    pub size: u32,
}

/// What to record where.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_ven_amd_aqlprofile_profile_t {
    /// The agent.
    pub agent: hsa_agent_t,
    /// Counters or trace.
    pub r#type: hsa_ven_amd_aqlprofile_event_type_t,
    /// Counters.
    pub events: *const hsa_ven_amd_aqlprofile_event_t,
    /// How many.
    pub event_count: u32,
    /// Settings.
    pub parameters: *const hsa_ven_amd_aqlprofile_parameter_t,
    /// How many.
    pub parameter_count: u32,
    /// Where the agent writes results.
    pub output_buffer: hsa_ven_amd_aqlprofile_descriptor_t,
    /// Where the commands lie that the packets point at.
    pub command_buffer: hsa_ven_amd_aqlprofile_descriptor_t,
}

/// Bytes that `hsa_ven_amd_aqlprofile_legacy_get_pm4` writes.
pub const HSA_VEN_AMD_AQLPROFILE_LEGACY_PM4_PACKET_SIZE: u32 = 192;

/// A counter and its value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_ven_amd_aqlprofile_pmc_data_t {
    /// Counter.
    pub event: hsa_ven_amd_aqlprofile_event_t,
    /// Value.
    pub result: u64,
}

/// What a callback gets; the kind of the recording says which. C has no name for it.
#[repr(C)]
#[derive(Clone, Copy)]
pub union hsa_ven_amd_aqlprofile_info_data_union {
    /// For counters.
    pub pmc_data: hsa_ven_amd_aqlprofile_pmc_data_t,
    /// For traces.
    pub trace_data: hsa_ven_amd_aqlprofile_descriptor_t,
}

impl core::fmt::Debug for hsa_ven_amd_aqlprofile_info_data_union {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("hsa_ven_amd_aqlprofile_info_data_union { .. }")
    }
}

/// What a callback gets.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hsa_ven_amd_aqlprofile_info_data_t {
    /// Which of several samples.
    pub sample_id: u32,
    /// The data; C has the union's members here directly.
    pub data: hsa_ven_amd_aqlprofile_info_data_union,
}

/// Question and answer of [`hsa_ven_amd_aqlprofile_info_type_t::BLOCK_ID`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_ven_amd_aqlprofile_id_query_t {
    /// In: name of the block, such as `SQ`.
    pub name: *const c_char,
    /// Out: [`hsa_ven_amd_aqlprofile_block_name_t`].
    pub id: u32,
    /// Out: instances.
    pub instance_count: u32,
}

c_enum! {
    /// Attribute of `hsa_ven_amd_aqlprofile_get_info` and `aqlprofile_get_pmc_info`.
    hsa_ven_amd_aqlprofile_info_type_t: u32;
    BASE "HSA_VEN_AMD_AQLPROFILE_INFO_" {
        /// `u32`: bytes that the command buffer needs.
        COMMAND_BUFFER_SIZE = 0;
        /// `u32`: bytes that the output buffer needs.
        PMC_DATA_SIZE = 1;
        /// [`hsa_ven_amd_aqlprofile_info_data_t`]: a counter's value.
        PMC_DATA = 2;
        /// [`hsa_ven_amd_aqlprofile_info_data_t`]: a trace.
        TRACE_DATA = 3;
        /// `u32`: registers of an instance of the first event's block.
        BLOCK_COUNTERS = 4;
        /// [`hsa_ven_amd_aqlprofile_id_query_t`].
        BLOCK_ID = 5;
        /// [`hsa_ext_amd_aql_pm4_packet_t`] that makes counters count for all queues.
        ENABLE_CMD = 6;
        /// [`hsa_ext_amd_aql_pm4_packet_t`] that undoes it.
        DISABLE_CMD = 7;
    }
}

/// [`hsa_ven_amd_aqlprofile_info_type_t`] in the second interface, with the same values.
pub type aqlprofile_pmc_info_type_t = hsa_ven_amd_aqlprofile_info_type_t;

/// The first interface as an extension table: see
/// [`AMD_AQLPROFILE`](crate::hsa_extension_t::AMD_AQLPROFILE). Later versions have more entries
/// behind these.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "each field is the function of that name")]
pub struct hsa_ven_amd_aqlprofile_1_00_pfn_t {
    pub hsa_ven_amd_aqlprofile_version_major:
        Option<function::hsa_ven_amd_aqlprofile_version_major>,
    pub hsa_ven_amd_aqlprofile_version_minor:
        Option<function::hsa_ven_amd_aqlprofile_version_minor>,
    pub hsa_ven_amd_aqlprofile_error_string: Option<function::hsa_ven_amd_aqlprofile_error_string>,
    pub hsa_ven_amd_aqlprofile_validate_event:
        Option<function::hsa_ven_amd_aqlprofile_validate_event>,
    pub hsa_ven_amd_aqlprofile_start: Option<function::hsa_ven_amd_aqlprofile_start>,
    pub hsa_ven_amd_aqlprofile_stop: Option<function::hsa_ven_amd_aqlprofile_stop>,
    pub hsa_ven_amd_aqlprofile_read: Option<function::hsa_ven_amd_aqlprofile_read>,
    pub hsa_ven_amd_aqlprofile_legacy_get_pm4:
        Option<function::hsa_ven_amd_aqlprofile_legacy_get_pm4>,
    pub hsa_ven_amd_aqlprofile_get_info: Option<function::hsa_ven_amd_aqlprofile_get_info>,
    pub hsa_ven_amd_aqlprofile_iterate_data: Option<function::hsa_ven_amd_aqlprofile_iterate_data>,
}

handles! {
    /// Packets and buffers made by `aqlprofile_pmc_create_packets`.
    aqlprofile_handle_t;
    /// An agent made known by `aqlprofile_register_agent`.
    aqlprofile_agent_handle_t;
}

c_enum! {
    /// Where a buffer should lie.
    aqlprofile_memory_hint_t: u32;
    LATER "AQLPROFILE_MEMORY_HINT_" {
        /// Anywhere.
        NONE = 0;
        /// On the host.
        HOST = 1;
        /// On the device, not cached.
        DEVICE_UNCACHED = 2;
        /// On the device, coherent.
        DEVICE_COHERENT = 3;
        /// On the device, not coherent.
        DEVICE_NONCOHERENT = 4;
    }
}

c_enum! {
    /// Form of the agent description.
    aqlprofile_agent_version_t: u32;
    LATER "AQLPROFILE_AGENT_VERSION_" {
        /// None.
        NONE = 0;
        /// [`aqlprofile_agent_info_t`].
        V0 = 1;
        /// [`aqlprofile_agent_info_v1_t`].
        V1 = 2;
    }
}

/// Who uses a buffer, and where it should lie.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct aqlprofile_buffer_desc_flags_t {
    /// All fields.
    pub raw: u32,
}

impl aqlprofile_buffer_desc_flags_t {
    /// The agent uses the buffer.
    pub const DEVICE_ACCESS: BitField = BitField { shift: 0, width: 1 };
    /// The host uses the buffer.
    pub const HOST_ACCESS: BitField = BitField { shift: 1, width: 1 };
    /// [`aqlprofile_memory_hint_t`].
    pub const MEMORY_HINT: BitField = BitField { shift: 2, width: 6 };
}

c_enum! {
    /// Whether an event is summed over time.
    aqlprofile_accumulation_type_t: u32;
    LATER "AQLPROFILE_ACCUMULATION_" {
        /// No.
        NONE = 0;
        /// Every fourth cycle.
        LO_RES = 1;
        /// Every cycle.
        HI_RES = 2;
    }
}

/// A counter in the second interface.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct aqlprofile_pmc_event_t {
    /// Instance of the block.
    pub block_index: u32,
    /// Event of the block.
    pub event_id: u32,
    /// Bits 0 to 2: [`aqlprofile_accumulation_type_t`], for block SQ.
    pub flags: u32,
    /// Block.
    pub block_name: hsa_ven_amd_aqlprofile_block_name_t,
}

/// Describes an agent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct aqlprofile_agent_info_t {
    /// Name, such as `gfx90a`.
    pub agent_gfxip: *const c_char,
    /// Accelerator dies.
    pub xcc_num: u32,
    /// Shader engines.
    pub se_num: u32,
    /// Compute units.
    pub cu_num: u32,
    /// Shader arrays of a shader engine.
    pub shader_arrays_per_se: u32,
}

/// Describes an agent and where it is; since ROCm 7.0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct aqlprofile_agent_info_v1_t {
    /// Name, such as `gfx90a`.
    pub agent_gfxip: *const c_char,
    /// Accelerator dies.
    pub xcc_num: u32,
    /// Shader engines.
    pub se_num: u32,
    /// Compute units.
    pub cu_num: u32,
    /// Shader arrays of a shader engine.
    pub shader_arrays_per_se: u32,
    /// PCI domain.
    pub domain: u32,
    /// PCI bus, device and function.
    pub location_id: u32,
}

/// What to count where.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct aqlprofile_pmc_profile_t {
    /// The agent.
    pub agent: aqlprofile_agent_handle_t,
    /// Counters.
    pub events: *const aqlprofile_pmc_event_t,
    /// How many.
    pub event_count: u32,
}

/// The packets of one set of counters. Their headers are the caller's to set.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct aqlprofile_pmc_aql_packets_t {
    /// Resets and starts.
    pub start_packet: hsa_ext_amd_aql_pm4_packet_t,
    /// Stops.
    pub stop_packet: hsa_ext_amd_aql_pm4_packet_t,
    /// Writes the values to memory; comes before `stop_packet`.
    pub read_packet: hsa_ext_amd_aql_pm4_packet_t,
}

layout! {
    LAYOUTS;
    BASE hsa_ven_amd_aqlprofile_event_t: 12, 4 { block_name: 0, block_index: 4, counter_id: 8 }
    BASE hsa_ven_amd_aqlprofile_parameter_t: 8, 4 { parameter_name: 0, value: 4 }
    BASE hsa_ven_amd_aqlprofile_descriptor_t: 16, 8 { ptr: 0, size: 8 }
    BASE hsa_ven_amd_aqlprofile_profile_t: 80, 8 {
        agent: 0, r#type: 8, events: 16, event_count: 24, parameters: 32, parameter_count: 40,
        output_buffer: 48, command_buffer: 64,
    }
    BASE hsa_ven_amd_aqlprofile_info_data_t: 32, 8 { sample_id: 0, data as "pmc_data": 8 }
    BASE hsa_ven_amd_aqlprofile_id_query_t: 16, 8 { name: 0, id: 8, instance_count: 12 }
    BASE hsa_ven_amd_aqlprofile_1_00_pfn_t: 80, 8 {
        hsa_ven_amd_aqlprofile_version_major: 0, hsa_ven_amd_aqlprofile_version_minor: 8,
        hsa_ven_amd_aqlprofile_error_string: 16, hsa_ven_amd_aqlprofile_validate_event: 24,
        hsa_ven_amd_aqlprofile_start: 32, hsa_ven_amd_aqlprofile_stop: 40,
        hsa_ven_amd_aqlprofile_read: 48, hsa_ven_amd_aqlprofile_legacy_get_pm4: 56,
        hsa_ven_amd_aqlprofile_get_info: 64, hsa_ven_amd_aqlprofile_iterate_data: 72,
    }
    LATER aqlprofile_handle_t: 8, 8 { handle: 0 }
    LATER aqlprofile_agent_handle_t: 8, 8 { handle: 0 }
    LATER aqlprofile_buffer_desc_flags_t: 4, 4 { raw: 0 }
    LATER aqlprofile_pmc_event_t: 16, 4 { block_index: 0, event_id: 4, flags: 8, block_name: 12 }
    LATER aqlprofile_agent_info_t: 24, 8 {
        agent_gfxip: 0, xcc_num: 8, se_num: 12, cu_num: 16, shader_arrays_per_se: 20,
    }
    LATER aqlprofile_agent_info_v1_t: 32, 8 {
        agent_gfxip: 0, xcc_num: 8, se_num: 12, cu_num: 16, shader_arrays_per_se: 20, domain: 24,
        location_id: 28,
    }
    LATER aqlprofile_pmc_profile_t: 24, 8 { agent: 0, events: 8, event_count: 16 }
    LATER aqlprofile_pmc_aql_packets_t: 192, 8 { start_packet: 0, stop_packet: 64, read_packet: 128 }
}

enumerations! {
    hsa_ven_amd_aqlprofile_event_type_t,
    hsa_ven_amd_aqlprofile_block_name_t,
    hsa_ven_amd_aqlprofile_parameter_name_t,
    hsa_ven_amd_aqlprofile_info_type_t,
    aqlprofile_memory_hint_t,
    aqlprofile_agent_version_t,
    aqlprofile_accumulation_type_t,
}
