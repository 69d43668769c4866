//! Constants of `amd_hsa_elf.h` that say which processor and ABI a code object is for.
//!
//! The values of newer processors are LLVM's ("User Guide for AMDGPU Backend"); the header follows.
//!
//! Not here: sections, relocations and notes of code object versions 1 and 2.

/// ELF machine of code objects.
pub const EM_AMDGPU: u16 = 224;

/// ELF OS ABI of code objects for this runtime.
pub const ELFOSABI_AMDGPU_HSA: u8 = 64;

c_enum! {
    /// ELF ABI version byte: version of the code object, less two.
    elf_abi_version_amdgpu_hsa_t: u8;
    BASE "ELFABIVERSION_AMDGPU_HSA_" {
        /// Version 2.
        V2 = 0;
        /// Version 3.
        V3 = 1;
        /// Version 4.
        V4 = 2;
        /// Version 5.
        V5 = 3;
    }
    LATER "ELFABIVERSION_AMDGPU_HSA_" {
        /// Version 6: generic processors. Loaded since ROCr 6.2.
        V6 = 4;
    }
}

c_enum! {
    /// Processor: bits 0 to 7 of the ELF flags.
    elf_amdgpu_mach_t: u32;
    BASE "EF_AMDGPU_MACH_" {
        /// Not said.
        NONE = 0;
    }
    BASE "EF_AMDGPU_MACH_AMDGCN_" {
        /// `gfx600`.
        GFX600 = 0x20;
        /// `gfx601`.
        GFX601 = 0x21;
        /// `gfx700`.
        GFX700 = 0x22;
        /// `gfx701`.
        GFX701 = 0x23;
        /// `gfx702`.
        GFX702 = 0x24;
        /// `gfx703`.
        GFX703 = 0x25;
        /// `gfx704`.
        GFX704 = 0x26;
        /// `gfx801`.
        GFX801 = 0x28;
        /// `gfx802`.
        GFX802 = 0x29;
        /// `gfx803`.
        GFX803 = 0x2a;
        /// `gfx810`.
        GFX810 = 0x2b;
        /// `gfx900`.
        GFX900 = 0x2c;
        /// `gfx902`.
        GFX902 = 0x2d;
        /// `gfx904`.
        GFX904 = 0x2e;
        /// `gfx906`.
        GFX906 = 0x2f;
        /// `gfx908`.
        GFX908 = 0x30;
        /// `gfx909`.
        GFX909 = 0x31;
        /// `gfx90c`.
        GFX90C = 0x32;
        /// `gfx1010`.
        GFX1010 = 0x33;
        /// `gfx1011`.
        GFX1011 = 0x34;
        /// `gfx1012`.
        GFX1012 = 0x35;
        /// `gfx1030`.
        GFX1030 = 0x36;
        /// `gfx1031`.
        GFX1031 = 0x37;
        /// `gfx1032`.
        GFX1032 = 0x38;
        /// `gfx1033`.
        GFX1033 = 0x39;
        /// `gfx602`.
        GFX602 = 0x3a;
        /// `gfx705`.
        GFX705 = 0x3b;
        /// `gfx805`.
        GFX805 = 0x3c;
        /// `gfx1035`.
        GFX1035 = 0x3d;
        /// `gfx1034`.
        GFX1034 = 0x3e;
        /// `gfx90a`.
        GFX90A = 0x3f;
        /// `gfx1013`.
        GFX1013 = 0x42;
    }
    LATER "EF_AMDGPU_MACH_AMDGCN_" {
        /// `gfx940`.
        GFX940 = 0x40;
        /// `gfx1100`.
        GFX1100 = 0x41;
        /// `gfx1150`.
        GFX1150 = 0x43;
        /// `gfx1103`.
        GFX1103 = 0x44;
        /// `gfx1036`.
        GFX1036 = 0x45;
        /// `gfx1101`.
        GFX1101 = 0x46;
        /// `gfx1102`.
        GFX1102 = 0x47;
        /// `gfx1200`.
        GFX1200 = 0x48;
        /// `gfx1151`.
        GFX1151 = 0x4a;
        /// `gfx941`.
        GFX941 = 0x4b;
        /// `gfx942`.
        GFX942 = 0x4c;
        /// `gfx1201`.
        GFX1201 = 0x4e;
        /// `gfx950`.
        GFX950 = 0x4f;
        /// `gfx9-generic`.
        GFX9_GENERIC = 0x51;
        /// `gfx10-1-generic`.
        GFX10_1_GENERIC = 0x52;
        /// `gfx10-3-generic`.
        GFX10_3_GENERIC = 0x53;
        /// `gfx11-generic`.
        GFX11_GENERIC = 0x54;
        /// `gfx1152`.
        GFX1152 = 0x55;
        /// `gfx1153`.
        GFX1153 = 0x58;
        /// `gfx12-generic`.
        GFX12_GENERIC = 0x59;
        /// `gfx9-4-generic`.
        GFX9_4_GENERIC = 0x5f;
    }
}

c_enum! {
    /// Masks and values of the feature bits in the ELF flags since code object version 4.
    elf_amdgpu_feature_t: u32;
    BASE "EF_AMDGPU_" {
        /// Mask of the processor.
        MACH = 0x0ff;
    }
    BASE "EF_AMDGPU_FEATURE_" {
        /// Mask of the XNACK setting.
        XNACK_V4 = 0x300;
        /// The processor has no XNACK.
        XNACK_UNSUPPORTED_V4 = 0x000;
        /// Works with and without.
        XNACK_ANY_V4 = 0x100;
        /// Works without only.
        XNACK_OFF_V4 = 0x200;
        /// Works with it only.
        XNACK_ON_V4 = 0x300;
        /// Mask of the SRAM ECC setting.
        SRAMECC_V4 = 0xc00;
        /// The processor has no SRAM ECC.
        SRAMECC_UNSUPPORTED_V4 = 0x000;
        /// Works with and without.
        SRAMECC_ANY_V4 = 0x400;
        /// Works without only.
        SRAMECC_OFF_V4 = 0x800;
        /// Works with it only.
        SRAMECC_ON_V4 = 0xc00;
    }
}

enumerations! {
    elf_abi_version_amdgpu_hsa_t,
    elf_amdgpu_mach_t,
    elf_amdgpu_feature_t,
}
