//! Nodes, their memory banks, caches and links.
#![allow(missing_docs)] // The fields carry AMD's names; AMD's header describes them.

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct VersionInfo {
    pub kernel_interface_major: u32,
    pub kernel_interface_minor: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct SystemProperties {
    pub num_nodes: u32,
    pub platform_oem: u32,
    pub platform_id: u32,
    pub platform_rev: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct NodeProperties {
    pub num_cpu_cores: u32,
    pub num_fcompute_cores: u32,
    pub num_memory_banks: u32,
    pub num_caches: u32,
    pub num_io_links: u32,
    pub ccompute_id_lo: u32,
    pub fcompute_id_lo: u32,
    pub capability: u32,
    pub max_waves_per_simd: u32,
    pub lds_size_in_kb: u32,
    pub gds_size_in_kb: u32,
    pub wave_front_size: u32,
    pub num_shader_banks: u32,
    pub num_arrays: u32,
    pub num_cu_per_array: u32,
    pub num_simd_per_cu: u32,
    pub max_slots_scratch_cu: u32,
    pub engine_id: u32,
    pub vendor_id: u16,
    pub device_id: u16,
    pub location_id: u32,
    pub local_mem_size: u64,
    pub max_engine_clock_mhz_fcompute: u32,
    pub max_engine_clock_mhz_ccompute: u32,
    pub drm_render_minor: i32,
    pub marketing_name: [u16; 64],
    pub amd_name: [u8; 64],
    pub ucode_engine_versions: u32,
    pub debug_properties: u64,
    pub hive_id: u64,
    pub num_sdma_engines: u32,
    pub num_sdma_xgmi_engines: u32,
    pub num_sdma_queues_per_engine: u8,
    pub num_cp_queues: u8,
    pub num_gws: u8,
    pub reserved2: u8,
    pub domain: u32,
    pub unique_id: u64,
    pub vgpr_size_per_cu: u32,
    pub sgpr_size_per_cu: u32,
    pub reserved: [u8; 12],
}

impl NodeProperties {
    /// All zero, the value from which properties are built.
    pub const ZERO: Self = {
        // SAFETY: the structure holds integers only, for which all-zero bytes are a value.
        unsafe { std::mem::zeroed() }
    };
}

/// Bits of [`NodeProperties::capability`] and their positions.
pub mod capability {
    pub const WATCH_POINTS_TOTAL_BITS_SHIFT: u32 = 8;
    pub const DOORBELL_TYPE_SHIFT: u32 = 12;
    pub const ASIC_REVISION_SHIFT: u32 = 22;
    pub const SRAM_EDC_SUPPORT: u32 = 1 << 26;
    pub const SVM_API_SUPPORTED: u32 = 1 << 27;
}

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct MemoryProperties {
    pub heap_type: u32,
    pub size_in_bytes: u64,
    pub flags: u32,
    pub width: u32,
    pub memory_clock_max: u32,
    pub virtual_base_address: u64,
}

/// Values of [`MemoryProperties::heap_type`].
pub mod heap {
    pub const SYSTEM: u32 = 0;
    pub const FRAME_BUFFER_PUBLIC: u32 = 1;
    pub const FRAME_BUFFER_PRIVATE: u32 = 2;
    pub const GPU_LDS: u32 = 4;
    pub const GPU_SCRATCH: u32 = 5;
    pub const MMIO_REMAP: u32 = 7;
}

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct CacheProperties {
    pub processor_id_low: u32,
    pub cache_level: u32,
    pub cache_size: u32,
    pub cache_line_size: u32,
    pub cache_lines_per_tag: u32,
    pub cache_associativity: u32,
    pub cache_latency: u32,
    pub cache_type: u32,
    pub sibling_map: [u32; 256],
}

/// Bits of [`CacheProperties::cache_type`].
pub mod cache {
    pub const DATA: u32 = 1;
    pub const CPU: u32 = 4;
    pub const HSACU: u32 = 8;
}

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct IoLinkProperties {
    pub io_link_type: u32,
    pub version_major: u32,
    pub version_minor: u32,
    pub node_from: u32,
    pub node_to: u32,
    pub weight: u32,
    pub minimum_latency: u32,
    pub maximum_latency: u32,
    pub minimum_bandwidth: u32,
    pub maximum_bandwidth: u32,
    pub rec_transfer_size: u32,
    pub flags: u32,
}

/// [`IoLinkProperties::io_link_type`] for PCI Express.
pub const IO_LINK_PCI_EXPRESS: u32 = 2;

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct ClockCounters {
    pub gpu_clock_counter: u64,
    pub cpu_clock_counter: u64,
    pub system_clock_counter: u64,
    pub system_clock_frequency_hz: u64,
}

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct GpuTileConfig {
    pub tile_config: *mut u32,
    pub macro_tile_config: *mut u32,
    pub num_tile_configs: u32,
    pub num_macro_tile_configs: u32,
    pub gb_addr_config: u32,
    pub num_banks: u32,
    pub num_ranks: u32,
    pub reserved: [u32; 7],
}
