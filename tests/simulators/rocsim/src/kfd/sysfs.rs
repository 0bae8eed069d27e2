//! The description of the machine, as the kernel driver has it in files.

use crate::{
    abi::{CacheProperties, IoLinkProperties, MemoryProperties, NodeProperties, heap},
    config::Config,
    topology,
};
use std::fmt::Write;

/// The folder of the description.
const FOLDER: &str = "/sys/devices/virtual/kfd/kfd/topology";

/// The parts of a path in the folder.
fn parts(path: &str) -> Option<Vec<&str>> {
    let rest = path.strip_prefix(FOLDER)?;
    Some(rest.split('/').filter(|part| !part.is_empty()).collect())
}

/// The contents of a file of the description; `None` for other paths.
pub fn text(path: &str) -> Option<String> {
    let parts = parts(path)?;
    let node = |text: &str| text.parse().ok().filter(|node: &u32| *node <= Config::get().gpus);
    Some(match parts.as_slice() {
        ["generation_id"] => "1\n".to_owned(),
        ["system_properties"] => lines(&[("platform_oem", 0), ("platform_id", 0), ("platform_rev", 0)]),
        ["nodes", number, "gpu_id"] => format!("{}\n", node(number)?),
        ["nodes", number, "name"] => match node(number)? {
            0 => "\n".to_owned(),
            _ => format!("{}\n", Config::get().model.name),
        },
        ["nodes", number, "properties"] => {
            let number = node(number)?;
            properties(number, &topology::node(number)?)
        }
        ["nodes", number, kind, index, "properties"] => {
            let (number, index) = (node(number)?, index.parse::<usize>().ok()?);
            match *kind {
                "mem_banks" => bank(banks(number).get(index)?),
                "caches" => cache((index == 0 && number != 0).then(|| topology::cache(number))?),
                "io_links" => link(topology::links(number).get(index)?),
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// The names in a folder of the description; `None` for other paths.
pub fn folder(path: &str) -> Option<Vec<String>> {
    let parts = parts(path)?;
    let count = match parts.as_slice() {
        ["nodes"] => 1 + Config::get().gpus as usize,
        ["nodes", number, kind] => {
            let number = number.parse().ok().filter(|node: &u32| *node <= Config::get().gpus)?;
            match *kind {
                "mem_banks" => banks(number).len(),
                "caches" => usize::from(number != 0),
                "io_links" => topology::links(number).len(),
                "p2p_links" => 0,
                _ => return None,
            }
        }
        _ => return None,
    };
    Some((0..count).map(|index| index.to_string()).collect())
}

/// The banks that the driver knows; the thunk adds those of apertures.
fn banks(node: u32) -> Vec<MemoryProperties> {
    let known = [heap::SYSTEM, heap::FRAME_BUFFER_PUBLIC, heap::FRAME_BUFFER_PRIVATE];
    let is_known = |bank: &MemoryProperties| known.contains(&{ bank.heap_type });
    topology::memory_banks(node).into_iter().filter(is_known).collect()
}

fn lines(values: &[(&str, u64)]) -> String {
    let mut text = String::new();
    for (name, value) in values {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name} {value}");
    }
    text
}

fn properties(node: u32, of: &NodeProperties) -> String {
    let (major, minor, stepping) = Config::get().model.isa;
    let is_gpu = u64::from(node != 0);
    let caches = if node == 0 { 0 } else { of.num_caches };
    lines(&[
        ("cpu_cores_count", of.num_cpu_cores.into()),
        ("simd_count", of.num_fcompute_cores.into()),
        ("mem_banks_count", banks(node).len() as u64),
        ("caches_count", caches.into()),
        ("io_links_count", of.num_io_links.into()),
        ("p2p_links_count", 0),
        ("cpu_core_id_base", of.ccompute_id_lo.into()),
        ("simd_id_base", of.fcompute_id_lo.into()),
        ("max_waves_per_simd", of.max_waves_per_simd.into()),
        ("lds_size_in_kb", of.lds_size_in_kb.into()),
        ("gds_size_in_kb", of.gds_size_in_kb.into()),
        ("num_gws", of.num_gws.into()),
        ("wave_front_size", of.wave_front_size.into()),
        ("array_count", of.num_shader_banks.into()),
        ("simd_arrays_per_engine", of.num_arrays.into()),
        ("cu_per_simd_array", of.num_cu_per_array.into()),
        ("simd_per_cu", of.num_simd_per_cu.into()),
        ("max_slots_scratch_cu", of.max_slots_scratch_cu.into()),
        ("gfx_target_version", is_gpu * u64::from(major * 10_000 + minor * 100 + stepping)),
        ("vendor_id", of.vendor_id.into()),
        ("device_id", of.device_id.into()),
        ("location_id", of.location_id.into()),
        ("domain", of.domain.into()),
        ("drm_render_minor", of.drm_render_minor.max(0) as u64),
        ("hive_id", of.hive_id),
        ("num_sdma_engines", of.num_sdma_engines.into()),
        ("num_sdma_xgmi_engines", of.num_sdma_xgmi_engines.into()),
        ("num_sdma_queues_per_engine", of.num_sdma_queues_per_engine.into()),
        ("num_cp_queues", of.num_cp_queues.into()),
        ("max_engine_clk_fcompute", of.max_engine_clock_mhz_fcompute.into()),
        ("local_mem_size", 0),
        ("fw_version", u64::from(of.engine_id & 0x3ff)),
        ("capability", of.capability.into()),
        ("debug_prop", of.debug_properties),
        ("sdma_fw_version", of.ucode_engine_versions.into()),
        ("unique_id", of.unique_id),
        ("num_xcc", is_gpu),
        ("max_engine_clk_ccompute", of.max_engine_clock_mhz_ccompute.into()),
    ])
}

fn bank(of: &MemoryProperties) -> String {
    lines(&[
        ("heap_type", of.heap_type.into()),
        ("size_in_bytes", of.size_in_bytes),
        ("flags", of.flags.into()),
        ("width", of.width.into()),
        ("mem_clk_max", of.memory_clock_max.into()),
    ])
}

fn cache(of: CacheProperties) -> String {
    let mut text = lines(&[
        ("processor_id_low", of.processor_id_low.into()),
        ("level", of.cache_level.into()),
        ("size", of.cache_size.into()),
        ("cache_line_size", of.cache_line_size.into()),
        ("cache_lines_per_tag", of.cache_lines_per_tag.into()),
        ("association", of.cache_associativity.into()),
        ("latency", of.cache_latency.into()),
        ("type", of.cache_type.into()),
    ]);
    text.push_str("sibling_map 1\n");
    text
}

fn link(of: &IoLinkProperties) -> String {
    lines(&[
        ("type", of.io_link_type.into()),
        ("version_major", of.version_major.into()),
        ("version_minor", of.version_minor.into()),
        ("node_from", of.node_from.into()),
        ("node_to", of.node_to.into()),
        ("weight", of.weight.into()),
        ("min_latency", of.minimum_latency.into()),
        ("max_latency", of.maximum_latency.into()),
        ("min_bandwidth", of.minimum_bandwidth.into()),
        ("max_bandwidth", of.maximum_bandwidth.into()),
        ("recommended_transfer_size", of.rec_transfer_size.into()),
        ("recommended_sdma_engine_id_mask", 0),
        ("flags", 1),
    ])
}
