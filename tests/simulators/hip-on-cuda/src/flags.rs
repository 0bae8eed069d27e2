//! Translates HIP's flags to the CUDA driver's.

use crate::{error::Outcome, types::hipError_t, version::Version};
use cudarc::driver::sys::{
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_WRITECOMBINED,
    CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE,
};

const PORTABLE: u32 = 1;
const MAPPED: u32 = 2;
const WRITE_COMBINED: u32 = 4;
const IO_MEMORY: u32 = 4;
const COARSE_GRAINED: u32 = 8;
const UNCACHED: u32 = 0x1000_0000;
const NUMA_USER: u32 = 0x2000_0000;
const COHERENT: u32 = 0x4000_0000;
const NON_COHERENT: u32 = 0x8000_0000;

fn only(flags: u32, known: u32) -> Outcome {
    if flags & !known == 0 { Ok(()) } else { Err(hipError_t::INVALID_VALUE) }
}

/// Flags of `hipHostMalloc`. HIP's host memory is always portable and mapped; grain and NUMA policy have no
/// counterpart, because NVIDIA's host memory is coherent.
pub(crate) fn host_allocation(flags: u32) -> Outcome<u32> {
    let grains = COHERENT | NON_COHERENT;
    only(flags, PORTABLE | MAPPED | WRITE_COMBINED | UNCACHED | NUMA_USER | grains)?;
    if flags & grains == grains {
        return Err(hipError_t::INVALID_VALUE);
    }
    let write_combined = if flags & WRITE_COMBINED == 0 { 0 } else { CU_MEMHOSTALLOC_WRITECOMBINED };
    Ok(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | write_combined)
}

/// Flags of `hipHostRegister`. HIP always maps for every device. 8 is coarse-grained to HIP and read-only to CUDA, so
/// it must not be passed on; I/O memory is not supported by HIP either.
pub(crate) fn host_registration(flags: u32) -> Outcome<u32> {
    only(flags, PORTABLE | MAPPED | IO_MEMORY | COARSE_GRAINED | NON_COHERENT)?;
    Ok(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)
}

/// Flags of `hipMallocManaged`: one of global and host, which have the same numbers.
pub(crate) fn managed(flags: u32) -> Outcome<u32> {
    if matches!(flags, 1 | 2) { Ok(flags) } else { Err(hipError_t::INVALID_VALUE) }
}

/// Flags of streams: 1, not to wait for the null stream.
pub(crate) fn stream(flags: u32) -> Outcome<u32> {
    only(flags, 1).map(|()| flags)
}

/// Flags of events: sleeping waits (1), no time (2), for other processes (4). CUDA decides what an event of HIP
/// flushes. Events for other processes know no time in CUDA; HIP's flags do not say so.
pub(crate) fn event(flags: u32) -> Outcome<u32> {
    const INTERPROCESS: u32 = 4;
    const NO_TIME: u32 = 2;
    const RELEASES: u32 = 0x4000_0000 | 0x8000_0000;
    only(flags, 1 | NO_TIME | INTERPROCESS | RELEASES)?;
    if flags & RELEASES == RELEASES {
        return Err(hipError_t::INVALID_VALUE);
    }
    let flags = flags & !RELEASES;
    Ok(if flags & INTERPROCESS == 0 { flags } else { flags | NO_TIME })
}

/// Flags of `hipIpcOpenMemHandle`: CUDA knows one, which it wants. HIP's had the number 0 and has 1 since ROCm 6.
pub(crate) fn ipc(flags: u32, version: Version) -> Outcome<u32> {
    let known = u32::from(version >= Version::V6);
    only(flags, known).map(|()| 1)
}

/// Advice has the same numbers, but for the grain, which has no counterpart: `None`.
pub(crate) fn advice(advice: u32) -> Outcome<Option<u32>> {
    match advice {
        1..=6 => Ok(Some(advice)),
        100 | 101 => Ok(None),
        _ => Err(hipError_t::INVALID_VALUE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVALID: Outcome<u32> = Err(hipError_t::INVALID_VALUE);

    #[test]
    fn host_memory_is_portable_and_mapped() {
        assert_eq!(host_allocation(0), Ok(1 | 2));
        assert_eq!(host_allocation(WRITE_COMBINED | NON_COHERENT), Ok(1 | 2 | 4));
        assert_eq!(host_allocation(COHERENT | NON_COHERENT), INVALID);
        assert_eq!(host_allocation(0x100), INVALID);
    }

    #[test]
    fn coarse_grain_is_not_read_as_read_only() {
        assert_eq!(host_registration(0), Ok(1 | 2));
        assert_eq!(host_registration(COARSE_GRAINED | IO_MEMORY), Ok(1 | 2));
        assert_eq!(host_registration(0x100), INVALID);
    }

    #[test]
    fn streams_and_events_take_what_hip_knows() {
        assert_eq!((stream(0), stream(1), stream(5)), (Ok(0), Ok(1), INVALID));
        assert_eq!((event(0), event(3), event(0x100)), (Ok(0), Ok(3), INVALID));
        assert_eq!(event(2 | 0x8000_0000), Ok(2));
        assert_eq!(event(4), Ok(4 | 2));
        assert_eq!(event(0xc000_0000), INVALID);
    }

    #[test]
    fn the_flag_of_shared_memory_has_changed_its_number() {
        assert_eq!((ipc(0, Version::V5), ipc(1, Version::V5)), (Ok(1), INVALID));
        assert_eq!((ipc(0, Version::V6), ipc(1, Version::V6), ipc(2, Version::V6)), (Ok(1), Ok(1), INVALID));
    }

    #[test]
    fn managed_memory_and_its_advice() {
        assert_eq!((managed(1), managed(2)), (Ok(1), Ok(2)));
        assert_eq!((managed(0), managed(4)), (INVALID, INVALID));
        assert_eq!((advice(6), advice(100)), (Ok(Some(6)), Ok(None)));
        assert_eq!(advice(7), Err(hipError_t::INVALID_VALUE));
    }
}
