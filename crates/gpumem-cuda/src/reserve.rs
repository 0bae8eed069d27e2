//! Memory that grows in place: addresses that are reserved, and memory that is mapped behind them piece by piece.
//!
//! A piece is made, mapped and let go: the mapping alone keeps it, and unmapping frees it. Mapped memory is open to no
//! device but those that `cuMemSetAccess` names. So a device knows its pieces and its peers, and each new one of either is
//! told of all of the other.

use crate::{NAME, api::VirtualApi, device::CudaDevice, error::Status, info, probe};
use cudarc::driver::sys::{
    CUdevice, CUdevice_attribute_enum as Attribute, CUmemAccess_flags_enum as AccessFlags, CUmemAccessDesc,
    CUmemAllocationGranularity_flags_enum as Granularity, CUmemAllocationProp,
    CUmemAllocationType_enum as AllocationType, CUmemLocation, CUmemLocationType_enum as LocationType,
};
use gpumem_core::{Error, ErrorKind, MemoryInfo, MemoryKind, Reservation, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// What of a device's memory is mapped, and who may use it.
#[derive(Debug, Default)]
pub(crate) struct Mapped(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Reservations: address and length.
    reserved: BTreeMap<u64, usize>,
    /// Pieces that are mapped: address and length.
    pieces: BTreeMap<u64, usize>,
    /// Other devices that reach the memory.
    peers: Vec<CUdevice>,
}

fn unsupported(operation: &'static str) -> Error {
    Error::new(NAME, operation, ErrorKind::Unsupported { what: "memory that grows in place" })
}

fn api(operation: &'static str) -> Result<&'static VirtualApi> {
    probe::driver(operation)?.virtual_memory.as_ref().ok_or_else(|| unsupported(operation))
}

fn location(device: CUdevice) -> CUmemLocation {
    CUmemLocation { type_: LocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: device }
}

fn access(device: CUdevice, enabled: bool) -> CUmemAccessDesc {
    let flags = match enabled {
        true => AccessFlags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        false => AccessFlags::CU_MEM_ACCESS_FLAGS_PROT_NONE,
    };
    CUmemAccessDesc { location: location(device), flags }
}

/// What a piece is made of: memory that stays on the device, and that network cards may reach where that is possible, as
/// they reach what `cuMemAlloc` gives.
fn properties(device: &CudaDevice) -> CUmemAllocationProp {
    let handle = device.inner().handle;
    let direct = Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED;
    let direct = info::attribute(device.api(), handle, direct).is_ok_and(|value| value != 0);
    // SAFETY: a plain C structure, in which zero stands for nothing everywhere.
    let mut properties: CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = AllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = location(handle);
    properties.allocFlags.gpuDirectRDMACapable = u8::from(direct);
    properties
}

pub(crate) fn reserve(device: &CudaDevice, bytes: usize) -> Result<Reservation> {
    const OPERATION: &str = "cuMemAddressReserve";
    let _current = device.enter(OPERATION)?;
    let api = api(OPERATION)?;
    let can = Attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    if !info::attribute(device.api(), device.inner().handle, can).is_ok_and(|value| value != 0) {
        return Err(unsupported(OPERATION));
    }
    let (mut page, properties) = (0, properties(device));
    let least = Granularity::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    // SAFETY: a place for a size; the properties are those of an allocation.
    let status = unsafe { api.cuMemGetAllocationGranularity(&mut page, &properties, least) };
    device.check(status, "cuMemGetAllocationGranularity")?;
    let page = page.max(1).next_power_of_two();
    let out = || out_of_memory(OPERATION, bytes, MemoryInfo::default());
    let bytes = bytes.max(1).checked_next_multiple_of(page).ok_or_else(out)?;
    let mut address = 0;
    // SAFETY: a place for an address; the length is a multiple of the page.
    match unsafe { api.cuMemAddressReserve(&mut address, bytes, page, 0, 0) } {
        Status::OUT_OF_MEMORY => return Err(out()),
        status => device.check(status, OPERATION)?,
    }
    device.inner().mapped.0.lock().reserved.insert(address, bytes);
    Ok(Reservation { address, bytes, page })
}

/// # Safety
/// As for [`Backend::commit`](gpumem_core::Backend::commit).
pub(crate) unsafe fn commit(
    device: &CudaDevice,
    place: &Reservation,
    from: usize,
    bytes: usize,
) -> Result<()> {
    const OPERATION: &str = "cuMemCreate";
    let _current = device.enter(OPERATION)?;
    let api = api(OPERATION)?;
    if from.checked_add(bytes).is_none_or(|end| end > place.bytes) {
        let why = "more memory than the reservation has addresses";
        return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
    }
    let address = place.address + from as u64;
    let (mut handle, properties) = (0, properties(device));
    // SAFETY: a place for a handle; the properties are those of an allocation, and the length is a multiple of the page.
    match unsafe { api.cuMemCreate(&mut handle, bytes, &properties, 0) } {
        Status::OUT_OF_MEMORY => {
            return Err(out_of_memory(OPERATION, bytes, device.memory().unwrap_or_default()));
        }
        status => device.check(status, OPERATION)?,
    }
    // SAFETY: addresses of a reservation behind which there is nothing, says the caller; a piece of the same length.
    let mapped = unsafe { api.cuMemMap(address, bytes, 0, handle, 0) };
    // SAFETY: made above. A mapping keeps it; where there is none, this frees it.
    let released = unsafe { api.cuMemRelease(handle) };
    match mapped {
        Status::OUT_OF_MEMORY => {
            return Err(out_of_memory("cuMemMap", bytes, device.memory().unwrap_or_default()));
        }
        status => device.check(status, "cuMemMap")?,
    }
    let mut state = device.inner().mapped.0.lock();
    let who: Vec<CUmemAccessDesc> =
        [device.inner().handle].iter().chain(&state.peers).map(|device| access(*device, true)).collect();
    // SAFETY: the piece that has just been mapped; a list of so many descriptions.
    let opened = unsafe { api.cuMemSetAccess(address, bytes, who.as_ptr(), who.len()) };
    let outcome =
        device.check(opened, "cuMemSetAccess").and_then(|()| device.check(released, "cuMemRelease"));
    if let Err(error) = outcome {
        // SAFETY: the piece, which is unused.
        let status = unsafe { api.cuMemUnmap(address, bytes) };
        if !status.is_success() {
            tracing::error!(%status, bytes, "memory that could not be opened to its device is leaked");
        }
        return Err(error);
    }
    state.pieces.insert(address, bytes);
    Ok(())
}

/// # Safety
/// As for [`Backend::decommit`](gpumem_core::Backend::decommit).
pub(crate) unsafe fn decommit(
    device: &CudaDevice,
    place: &Reservation,
    from: usize,
    bytes: usize,
) -> Result<()> {
    const OPERATION: &str = "cuMemUnmap";
    if device.is_lost() {
        return Ok(());
    }
    let _current = device.enter(OPERATION)?;
    let api = api(OPERATION)?;
    let address = place.address + from as u64;
    let mut state = device.inner().mapped.0.lock();
    if state.pieces.get(&address) != Some(&bytes) {
        let why = "the range is not one that memory was put in at once";
        return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
    }
    // SAFETY: a whole piece, which nothing uses any more, says the caller.
    let status = unsafe { api.cuMemUnmap(address, bytes) };
    device.check(status, OPERATION)?;
    state.pieces.remove(&address);
    Ok(())
}

/// # Safety
/// As for [`Backend::unreserve`](gpumem_core::Backend::unreserve).
pub(crate) unsafe fn unreserve(device: &CudaDevice, place: &Reservation) -> Result<()> {
    const OPERATION: &str = "cuMemAddressFree";
    if device.is_lost() {
        return Ok(());
    }
    let _current = device.enter(OPERATION)?;
    let api = api(OPERATION)?;
    // SAFETY: a whole reservation without memory behind it, says the caller.
    let status = unsafe { api.cuMemAddressFree(place.address, place.bytes) };
    device.check(status, OPERATION)?;
    device.inner().mapped.0.lock().reserved.remove(&place.address);
    Ok(())
}

/// Opens the mapped memory of `of` to `to`, or closes it. What is mapped later follows.
pub(crate) fn set_access(of: &CudaDevice, to: &CudaDevice, enabled: bool) -> Result<()> {
    const OPERATION: &str = "cuMemSetAccess";
    let mut state = of.inner().mapped.0.lock();
    let handle = to.inner().handle;
    if !state.pieces.is_empty() {
        let api = api(OPERATION)?;
        let who = access(handle, enabled);
        for (address, bytes) in &state.pieces {
            // SAFETY: a piece that is mapped, as long as the lock is held.
            let status = unsafe { api.cuMemSetAccess(*address, *bytes, &who, 1) };
            of.check(status, OPERATION)?;
        }
    }
    state.peers.retain(|peer| *peer != handle);
    if enabled {
        state.peers.push(handle);
    }
    Ok(())
}

/// Gives everything back. A reset does not: it takes what belongs to the context, and what is mapped does not.
///
/// # Safety
/// Nothing of it is used any more.
pub(crate) unsafe fn forget(device: &CudaDevice) {
    let state = std::mem::take(&mut *device.inner().mapped.0.lock());
    let Ok(api) = api("cuMemUnmap") else { return };
    for (address, bytes) in state.pieces {
        // SAFETY: the caller promises that the piece is unused.
        let status = unsafe { api.cuMemUnmap(address, bytes) };
        if !status.is_success() {
            tracing::warn!(%status, bytes, "memory that was mapped outlives a reset");
        }
    }
    for (address, bytes) in state.reserved {
        // SAFETY: a reservation without memory behind it.
        let status = unsafe { api.cuMemAddressFree(address, bytes) };
        if !status.is_success() {
            tracing::warn!(%status, bytes, "addresses outlive a reset");
        }
    }
}

fn out_of_memory(operation: &'static str, requested: usize, memory: MemoryInfo) -> Error {
    let (kind, MemoryInfo { free, total }) = (MemoryKind::Device.name(), memory);
    Error::new(NAME, operation, ErrorKind::OutOfMemory { requested, kind, free, total, pressure: None })
}
