//! Queries of the HSA runtime that HIP lacks: agents, their pools of memory, and the owner of an address.

use crate::{
    NAME,
    buffer::Grain,
    device::RocDevice,
    hsa_runtime::{HsaStatus, Runtime},
    probe, provenance,
};
use gpumem_core::{Error, ErrorKind, MemoryInfo, PciAddress, Result, c_text};
use gpumem_sys::hsa::{
    Hsa, hsa_agent_info_t as Info, hsa_agent_t, hsa_amd_agent_info_s as AmdInfo,
    hsa_amd_memory_pool_info_t as PoolInfo, hsa_amd_memory_pool_t, hsa_amd_segment_t, hsa_device_type_t,
    hsa_status_t,
};
use std::{
    ffi::{c_char, c_void},
    ptr::NonNull,
};

/// The kind of processor of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AgentKind {
    /// A processor of the host.
    Cpu,
    /// A GPU.
    Gpu,
    /// Something else.
    Other,
}

/// A processor that takes part in HSA: a GPU, or a NUMA node of the host. It lives as long as the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub(crate) raw: hsa_agent_t,
    /// The runtime's name for it: the architecture of a GPU (`gfx90a`), the model of a host processor.
    pub name: String,
    /// What it is.
    pub kind: AgentKind,
    /// Number of its node in the driver's topology.
    pub node: u32,
    /// Place on the PCI bus, for a GPU.
    pub pci: Option<PciAddress>,
    /// Work-items of a wavefront, for a GPU.
    pub wave_size: Option<u32>,
}

impl Agent {
    /// The runtime's handle, for use with other libraries.
    pub fn handle(&self) -> u64 {
        self.raw.handle
    }
}

/// The purpose of a pool of memory. Chosen by exact flags: newer runtimes have fine-grained pools of further kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PoolKind {
    /// Ordinary memory of an agent, kept in caches while a kernel runs.
    Coarse,
    /// Memory that all agents see alike while a kernel runs.
    Fine,
    /// As [`Fine`](Self::Fine), and for the arguments of kernels.
    Kernarg,
    /// Fine-grained beyond one machine's devices (since ROCm 6.4).
    ExtendedFine,
    /// Memory of a group, which is allocated by launches only.
    Group,
    /// Something else.
    Other,
}

impl PoolKind {
    fn new(segment: u32, flags: u32) -> Self {
        match (segment, flags) {
            (0, 0b001..=0b011) if flags & 1 != 0 => Self::Kernarg,
            (0, 0b010) => Self::Fine,
            (0, 0b100) => Self::Coarse,
            (0, 0b1000) => Self::ExtendedFine,
            (3, _) => Self::Group,
            _ => Self::Other,
        }
    }
}

/// A pool of memory of an agent. It lives as long as the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    pub(crate) raw: hsa_amd_memory_pool_t,
    /// What it is for.
    pub kind: PoolKind,
    /// Whether it is memory of the host.
    pub on_host: bool,
    /// Bytes in all.
    pub bytes: usize,
    /// Whether memory can be allocated from it.
    pub allocates: bool,
    /// Alignment in bytes of every allocation.
    pub alignment: usize,
}

impl Pool {
    /// The runtime's handle, for use with other libraries.
    pub fn handle(&self) -> u64 {
        self.raw.handle
    }
}

/// All agents, in the runtime's order.
pub(crate) fn agents() -> Result<Vec<Agent>> {
    const OPERATION: &str = "hsa_iterate_agents";
    let Runtime { hsa } = probe::hsa(OPERATION)?;
    let mut found: Vec<hsa_agent_t> = Vec::new();
    // SAFETY: the callback gets the list, which is not used elsewhere meanwhile.
    let answer = unsafe { hsa.hsa_iterate_agents(Some(push::<hsa_agent_t>), (&raw mut found).cast()) };
    HsaStatus::from(answer).ok().map_err(|status| status.error(OPERATION))?;
    found.into_iter().map(|agent| describe(hsa, agent)).collect()
}

/// Adds each reported item to a list.
unsafe extern "C" fn push<T>(item: T, list: *mut c_void) -> hsa_status_t {
    // SAFETY: the list that `agents` or `pools` passes.
    unsafe { &mut *list.cast::<Vec<T>>() }.push(item);
    hsa_status_t::HSA_STATUS_SUCCESS
}

fn describe(hsa: &Hsa, raw: hsa_agent_t) -> Result<Agent> {
    const OPERATION: &str = "hsa_agent_get_info";
    let read = |what: u32, place: *mut c_void| {
        // SAFETY: each call passes a place of the attribute's own type.
        let answer = unsafe { hsa.hsa_agent_get_info(raw, Info(what), place) };
        HsaStatus::from(answer).ok().map_err(|status| status.error(OPERATION))
    };
    let number = |what: u32| {
        let mut value = 0u32;
        read(what, (&raw mut value).cast()).map(|()| value)
    };
    let mut name = [0 as c_char; 64];
    read(Info::HSA_AGENT_INFO_NAME.0, name.as_mut_ptr().cast())?;
    let kind = match hsa_device_type_t(number(Info::HSA_AGENT_INFO_DEVICE.0)?) {
        hsa_device_type_t::HSA_DEVICE_TYPE_CPU => AgentKind::Cpu,
        hsa_device_type_t::HSA_DEVICE_TYPE_GPU => AgentKind::Gpu,
        _ => AgentKind::Other,
    };
    let is_gpu = kind == AgentKind::Gpu;
    let pci = if is_gpu {
        let place = number(AmdInfo::HSA_AMD_AGENT_INFO_BDFID.0)?;
        let domain = number(AmdInfo::HSA_AMD_AGENT_INFO_DOMAIN.0).unwrap_or(0);
        Some(PciAddress {
            domain,
            bus: (place >> 8) as u8,
            device: (place >> 3 & 0x1f) as u8,
            function: (place & 7) as u8,
        })
    } else {
        None
    };
    Ok(Agent {
        raw,
        name: c_text::read(&name),
        kind,
        node: number(AmdInfo::HSA_AMD_AGENT_INFO_DRIVER_NODE_ID.0)?,
        pci,
        wave_size: if is_gpu { Some(number(Info::HSA_AGENT_INFO_WAVEFRONT_SIZE.0)?) } else { None },
    })
}

/// The agent that a HIP device is: the GPU at the same place of the PCI bus.
pub(crate) fn agent(device: &RocDevice) -> Result<Agent> {
    const OPERATION: &str = "agent";
    device.check_alive(OPERATION)?;
    let wanted = device.inner().info.pci;
    let same = |agent: &Agent| match (agent.pci, wanted) {
        // HIP does not tell the function.
        (Some(found), Some(wanted)) => {
            PciAddress { function: 0, ..found } == PciAddress { function: 0, ..wanted }
        }
        _ => false,
    };
    agents()?.into_iter().find(same).ok_or_else(|| {
        let what = "agents (the HSA runtime does not know this device)";
        Error::new(NAME, OPERATION, ErrorKind::Unsupported { what })
    })
}

/// The pools of an agent, in the runtime's order.
pub(crate) fn pools(agent: &Agent) -> Result<Vec<Pool>> {
    const OPERATION: &str = "hsa_amd_agent_iterate_memory_pools";
    let Runtime { hsa } = probe::hsa(OPERATION)?;
    let mut found: Vec<hsa_amd_memory_pool_t> = Vec::new();
    // SAFETY: the agent is the runtime's; the callback gets the list, which is not used elsewhere meanwhile.
    let answer = unsafe {
        hsa.hsa_amd_agent_iterate_memory_pools(
            agent.raw,
            Some(push::<hsa_amd_memory_pool_t>),
            (&raw mut found).cast(),
        )
    };
    HsaStatus::from(answer).ok().map_err(|status| status.error(OPERATION))?;
    found.into_iter().map(|pool| describe_pool(hsa, agent, pool)).collect()
}

fn describe_pool(hsa: &Hsa, agent: &Agent, raw: hsa_amd_memory_pool_t) -> Result<Pool> {
    const OPERATION: &str = "hsa_amd_memory_pool_get_info";
    fn get<T: Default>(hsa: &Hsa, pool: hsa_amd_memory_pool_t, what: PoolInfo) -> Result<T, HsaStatus> {
        let mut value = T::default();
        // SAFETY: each call names the type of the attribute.
        let answer = unsafe { hsa.hsa_amd_memory_pool_get_info(pool, what, (&raw mut value).cast()) };
        HsaStatus::from(answer).ok().map(|()| value)
    }
    let failed = |status: HsaStatus| status.error(OPERATION);
    let segment: u32 = get(hsa, raw, PoolInfo::HSA_AMD_MEMORY_POOL_INFO_SEGMENT).map_err(failed)?;
    let is_global = hsa_amd_segment_t(segment) == hsa_amd_segment_t::HSA_AMD_SEGMENT_GLOBAL;
    // Other segments have no such flags.
    let flags: u32 = if is_global {
        get(hsa, raw, PoolInfo::HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS).map_err(failed)?
    } else {
        0
    };
    let allocates: bool =
        get(hsa, raw, PoolInfo::HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED).map_err(failed)?;
    let alignment = if allocates {
        get(hsa, raw, PoolInfo::HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT).map_err(failed)?
    } else {
        1
    };
    Ok(Pool {
        raw,
        kind: PoolKind::new(segment, flags),
        on_host: agent.kind == AgentKind::Cpu,
        bytes: get(hsa, raw, PoolInfo::HSA_AMD_MEMORY_POOL_INFO_SIZE).map_err(failed)?,
        allocates,
        alignment,
    })
}

/// The grain of the allocation that an address lies in, or `None` for memory that the runtime does not know.
pub(crate) fn grain(address: u64) -> Result<Option<Grain>> {
    const OPERATION: &str = "hsa_amd_pointer_info";
    let Runtime { hsa } = probe::hsa(OPERATION)?;
    let mut info = gpumem_sys::hsa::hsa_amd_pointer_info_t {
        size: size_of::<gpumem_sys::hsa::hsa_amd_pointer_info_t>() as u32,
        ..Default::default()
    };
    let place = std::ptr::with_exposed_provenance(address as usize);
    // SAFETY: a place for the structure with its size; no list is asked for; the address is only looked up.
    let answer = unsafe {
        hsa.hsa_amd_pointer_info(place, &mut info, None, std::ptr::null_mut(), std::ptr::null_mut())
    };
    HsaStatus::from(answer).ok().map_err(|status| status.error(OPERATION))?;
    // The type 0 is memory that the runtime does not know.
    Ok(match (info.type_.0, info.global_flags) {
        (0, _) => None,
        (_, flags) if flags & 0b1011 != 0 => Some(Grain::Fine),
        (_, flags) if flags & 0b100 != 0 => Some(Grain::Coarse),
        _ => None,
    })
}

/// Allocates from a pool, for the agents named.
pub(crate) fn allocate(pool: &Pool, bytes: usize, access: &[Agent]) -> Result<NonNull<u8>> {
    const OPERATION: &str = "hsa_amd_memory_pool_allocate";
    let Runtime { hsa } = probe::hsa(OPERATION)?;
    if !pool.allocates || bytes == 0 {
        let why =
            if bytes == 0 { "no bytes are asked for" } else { "nothing can be allocated from this pool" };
        return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
    }
    let mut place = std::ptr::null_mut();
    // SAFETY: the pool is the runtime's; no flags; a place for an address.
    let answer = unsafe { hsa.hsa_amd_memory_pool_allocate(pool.raw, bytes, 0, &mut place) };
    HsaStatus::from(answer).ok().map_err(|status| match status {
        // More than the pool has is an invalid allocation.
        HsaStatus::OUT_OF_RESOURCES | HsaStatus::INVALID_ALLOCATION => {
            let memory = MemoryInfo { free: 0, total: pool.bytes };
            let kind = ErrorKind::out_of_memory(bytes, "pool", memory);
            Error::new(NAME, OPERATION, kind)
        }
        status => status.error(OPERATION),
    })?;
    let granted = if access.is_empty() {
        Ok(())
    } else {
        // SAFETY: allocated above, and not in use yet.
        unsafe { grant(access, place) }
    };
    let failed = match (granted, NonNull::new(place.cast::<u8>())) {
        (Ok(()), Some(place)) => return Ok(place),
        (Ok(()), None) => HsaStatus::INVALID_ALLOCATION.error(OPERATION),
        (Err(status), _) => status.error("hsa_amd_agents_allow_access"),
    };
    // SAFETY: allocated above, and never used.
    let _ = unsafe { provenance::free(place) };
    Err(failed)
}

/// Lets agents reach an allocation.
///
/// # Safety
/// The address is that of a live allocation of the runtime's.
pub(crate) unsafe fn grant(agents: &[Agent], address: *const c_void) -> Result<(), HsaStatus> {
    let Ok(Runtime { hsa }) = probe::hsa("hsa_amd_agents_allow_access") else {
        return Err(HsaStatus::Missing("hsa_amd_agents_allow_access"));
    };
    let handles: Vec<hsa_agent_t> = agents.iter().map(|agent| agent.raw).collect();
    let count = handles.len() as u32;
    // SAFETY: as many agents as are counted; no flags; the allocation is alive, says the caller.
    let answer =
        unsafe { hsa.hsa_amd_agents_allow_access(count, handles.as_ptr(), std::ptr::null(), address) };
    HsaStatus::from(answer).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_sys::hsa::hsa_amd_memory_pool_global_flag_s as Flag;

    #[test]
    fn pools_are_told_apart_by_their_exact_flags() {
        let global = hsa_amd_segment_t::HSA_AMD_SEGMENT_GLOBAL.0;
        let fine = Flag::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED.0;
        let kernarg = Flag::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT.0;
        let coarse = Flag::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED.0;
        assert_eq!(PoolKind::new(global, fine), PoolKind::Fine);
        assert_eq!(PoolKind::new(global, fine | kernarg), PoolKind::Kernarg);
        assert_eq!(PoolKind::new(global, coarse), PoolKind::Coarse);
        assert_eq!(PoolKind::new(global, 8), PoolKind::ExtendedFine);
        assert_eq!(PoolKind::new(global, fine | coarse), PoolKind::Other);
        assert_eq!(PoolKind::new(hsa_amd_segment_t::HSA_AMD_SEGMENT_GROUP.0, 0), PoolKind::Group);
    }
}
