//! The nodes of the simulated machine: one CPU, and GPUs on PCI Express.

use crate::{
    abi::{
        CacheProperties, IO_LINK_PCI_EXPRESS, IoLinkProperties, MemoryProperties, NodeProperties, PAGE,
        cache, capability, heap,
    },
    config::Config,
    memory,
};
use std::{sync::OnceLock, thread};

/// Addresses that are never memory; kernels find their group and private memory through them.
pub(crate) const LDS_APERTURE: u64 = 1 << 48;
pub(crate) const SCRATCH_APERTURE: u64 = 2 << 48;
const LDS_KIB: u32 = 64;

/// Properties of a node, or `None` if there is no such node.
pub(crate) fn node(node: u32) -> Option<NodeProperties> {
    let config = Config::get();
    if node == 0 {
        return Some(NodeProperties {
            num_cpu_cores: thread::available_parallelism().map_or(1, |count| count.get() as u32),
            num_memory_banks: 1,
            num_caches: 1,
            num_io_links: links(0).len() as u32,
            max_engine_clock_mhz_ccompute: 2500,
            marketing_name: utf16("rocsim CPU"),
            ..NodeProperties::ZERO
        });
    }
    if !config.is_gpu(node) {
        return None;
    }
    let model = config.model;
    let (major, minor, stepping) = model.isa;
    let svm = if config.svm { capability::SVM_API_SUPPORTED } else { 0 };
    let mut amd_name = [0; 64];
    amd_name[..model.name.len()].copy_from_slice(model.name.as_bytes());
    Some(NodeProperties {
        num_fcompute_cores: config.compute_units * model.simds_per_cu,
        num_memory_banks: memory_banks(node).len() as u32,
        num_caches: 1,
        num_io_links: links(node).len() as u32,
        fcompute_id_lo: 0x8000_1000,
        capability: 2 << capability::DOORBELL_TYPE_SHIFT
            | 2 << capability::WATCH_POINTS_TOTAL_BITS_SHIFT
            | 1 << capability::ASIC_REVISION_SHIFT
            | capability::SRAM_EDC_SUPPORT
            | svm,
        max_waves_per_simd: 10,
        lds_size_in_kb: LDS_KIB,
        wave_front_size: model.wave_size,
        num_shader_banks: 4,
        num_arrays: 1,
        num_cu_per_array: config.compute_units / 4,
        num_simd_per_cu: model.simds_per_cu,
        max_slots_scratch_cu: 32,
        engine_id: 440 | major << 10 | minor << 16 | stepping << 24,
        vendor_id: 0x1002,
        device_id: model.device_id,
        location_id: 0x300 + (node << 8),
        local_mem_size: config.vram_bytes,
        max_engine_clock_mhz_fcompute: 1700,
        max_engine_clock_mhz_ccompute: 2500,
        drm_render_minor: 127 + node as i32,
        marketing_name: utf16("rocsim GPU"),
        amd_name,
        ucode_engine_versions: 145,
        num_sdma_engines: 2,
        num_sdma_queues_per_engine: 8,
        num_cp_queues: 24,
        unique_id: 0x726f_6373_0000 + u64::from(node),
        vgpr_size_per_cu: 256 << 10,
        sgpr_size_per_cu: 12800,
        ..NodeProperties::ZERO
    })
}

/// The memory banks of a node.
pub(crate) fn memory_banks(node: u32) -> Vec<MemoryProperties> {
    let config = Config::get();
    let bank = |heap_type, size_in_bytes, virtual_base_address| MemoryProperties {
        heap_type,
        size_in_bytes,
        flags: 0,
        width: 4096,
        memory_clock_max: 1000,
        virtual_base_address,
    };
    if node == 0 {
        return vec![bank(heap::SYSTEM, host_memory_bytes(), 0)];
    }
    let vram = if config.large_bar { heap::FRAME_BUFFER_PUBLIC } else { heap::FRAME_BUFFER_PRIVATE };
    let mut banks = vec![
        bank(vram, config.vram_bytes, 0),
        bank(heap::GPU_LDS, u64::from(LDS_KIB) << 10, LDS_APERTURE),
        bank(heap::GPU_SCRATCH, 1 << 32, SCRATCH_APERTURE),
    ];
    banks.extend(registers().map(|page| bank(heap::MMIO_REMAP, PAGE, page)));
    banks
}

/// The one cache that each node shows.
pub(crate) fn cache(node: u32) -> CacheProperties {
    CacheProperties {
        processor_id_low: 0,
        cache_level: 1,
        cache_size: 16,
        cache_line_size: 64,
        cache_lines_per_tag: 1,
        cache_associativity: 16,
        cache_latency: 0,
        cache_type: cache::DATA | if node == 0 { cache::CPU } else { cache::HSACU },
        sibling_map: [0; 256],
    }
}

/// The links that start at a node. As in AMD's kernel driver the CPU reaches a GPU, and a GPU its peers, only with a
/// large BAR; a GPU always reaches the host's memory.
pub(crate) fn links(node: u32) -> Vec<IoLinkProperties> {
    let config = Config::get();
    let reaches = |to: u32| to != node && (to == 0 || config.large_bar);
    (0..=config.gpus)
        .filter(|to| reaches(*to))
        .map(|to| IoLinkProperties {
            io_link_type: IO_LINK_PCI_EXPRESS,
            version_major: 0,
            version_minor: 0,
            node_from: node,
            node_to: to,
            weight: if node == 0 || to == 0 { 20 } else { 40 },
            minimum_latency: 0,
            maximum_latency: 0,
            minimum_bandwidth: 0,
            maximum_bandwidth: 0,
            rec_transfer_size: 0,
            flags: 0,
        })
        .collect()
}

/// The page of registers that the host and the GPUs write to flush the host's write buffers.
fn registers() -> Option<u64> {
    static REGISTERS: OnceLock<Option<u64>> = OnceLock::new();
    *REGISTERS.get_or_init(|| memory::allocate_internal(PAGE).ok())
}

fn host_memory_bytes() -> u64 {
    // SAFETY: asks for two numbers.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    (pages.max(0) as u64).saturating_mul(page.max(0) as u64) & !(PAGE - 1)
}

fn utf16(text: &str) -> [u16; 64] {
    let mut name = [0; 64];
    for (to, from) in name.iter_mut().take(63).zip(text.encode_utf16()) {
        *to = from;
    }
    name
}
