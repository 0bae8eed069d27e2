//! Functions that only ROCm has.

use crate::{
    Agent, Grain, Pinning, Pool, Registered, RegisteredRange, Roc, RocBuffer, RocDevice, RocEvent, RocModule,
    buffer::Found,
    hsa, pin,
    pointer::{self, Pointer},
    provenance::Provenance,
};
use gpumem_core::{
    AllocationRequest, Backend, Barrier, BarrierPoint, DriverDevice, DriverModule, EventOptions, Lowering,
    MappedOptions, MemoryKind, Result,
};
use std::ptr::{NonNull, with_exposed_provenance_mut};

/// How the lanes of a wavefront work together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wavefront {
    /// Work-items in a wavefront: 64 on GCN and CDNA, 32 on RDNA.
    pub size: u32,
    /// Returns what `wavebarrier()` becomes. Every AMD GPU has it.
    pub barrier: Lowering,
}

/// Powers of ROCm that no other backend has: agents and their pools, registration by agents, the grain of memory.
///
/// Functions about agents need the HSA runtime. Without it, as on a HIP over another driver, they return
/// [`ErrorKind::Load`](gpumem_core::ErrorKind::Load).
pub trait RocExt: Backend {
    /// Architecture of the device with its features, as `gfx90a:sramecc+:xnack-`.
    fn isa(device: &Self::Device) -> &str;

    /// How the lanes of a wavefront work together on this device.
    fn wavefront(device: &Self::Device) -> Wavefront;

    /// Allocates device or mapped memory of a grain. [`DriverDevice::allocate`](gpumem_core::DriverDevice::allocate)
    /// takes coarse device memory and fine mapped memory; managed and pinned memory have no choice.
    ///
    /// # Safety
    /// As for [`DriverDevice::allocate`](gpumem_core::DriverDevice::allocate).
    ///
    /// # Errors
    /// As for [`DriverDevice::allocate`](gpumem_core::DriverDevice::allocate).
    unsafe fn allocate_grained(
        device: &Self::Device,
        request: &AllocationRequest,
        grain: Grain,
    ) -> Result<Self::Buffer>;

    /// The grain of the allocation that an address lies in, as the HSA runtime knows it; `None` for other memory.
    ///
    /// # Errors
    /// Returns the error of the HSA runtime.
    fn grain_of(device: &Self::Device, address: u64) -> Result<Option<Grain>>;

    /// The agents of this machine, in the runtime's order.
    ///
    /// # Errors
    /// Returns the error of the HSA runtime.
    fn agents() -> Result<Vec<Agent>>;

    /// The agent that a device is.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Unsupported`](gpumem_core::ErrorKind::Unsupported) if the runtime does not know the
    /// device.
    fn agent(device: &Self::Device) -> Result<Agent>;

    /// The pools of memory of an agent, in the runtime's order.
    ///
    /// # Errors
    /// Returns the error of the HSA runtime.
    fn pools(agent: &Agent) -> Result<Vec<Pool>>;

    /// Allocates from a pool, for the agents named and the pool's own.
    /// [`DriverDevice::release`](gpumem_core::DriverDevice::release) gives it back.
    ///
    /// # Safety
    /// * The contents are not read before they were written.
    /// * HIP does not know memory of pools: only kernels and the HSA runtime may use such memory of a GPU. HIP's copies
    ///   treat such memory of the host as ordinary memory.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if there is no room,
    /// [`ErrorKind::InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for a pool that does not allocate, or
    /// the error of the HSA runtime. Nothing is allocated then.
    unsafe fn allocate_in(
        device: &Self::Device,
        pool: &Pool,
        bytes: usize,
        access: &[Agent],
    ) -> Result<Self::Buffer>;

    /// Lets exactly these agents, and the owner, reach an allocation: others no longer.
    ///
    /// # Safety
    /// The address is the first of a live allocation, and no other agent is using it.
    ///
    /// # Errors
    /// Returns the error of the HSA runtime.
    unsafe fn allow_access(device: &Self::Device, address: u64, agents: &[Agent]) -> Result<()>;

    /// Registers memory of the caller: Numba's `roc.register`, or page-locking for agents. If one range fails, the
    /// earlier ones are undone.
    ///
    /// # Safety
    /// The ranges are valid for reads and writes until they are deregistered, and are used on no device after that.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Registration`](gpumem_core::ErrorKind::Registration) for memory that is locked already or
    /// that the runtime does not take.
    unsafe fn register_memory(
        device: &Self::Device,
        ranges: &[(NonNull<u8>, usize)],
        pinning: Pinning<'_>,
    ) -> Result<Registered>;

    /// Undoes [`register_memory`](Self::register_memory).
    ///
    /// # Errors
    /// Returns the first failure. The other ranges are undone all the same.
    fn deregister(mut registered: Registered) -> Result<()> {
        registered.undo()
    }

    /// Registers slices while `body` runs. However it is left, by a panic too, the device is waited for, and the
    /// slices are deregistered. The wait ends captures of streams, as HIP has it; the streams that the device has made
    /// are waited for then, and work that uses the slices on others must be over by itself. Where the work cannot be
    /// waited for, the process ends, because it may still use the slices.
    ///
    /// # Errors
    /// As for [`register_memory`](Self::register_memory); `body` has not run then. Failures of waiting and
    /// deregistering come after it.
    fn with_registered<R>(
        device: &Self::Device,
        arrays: &mut [&mut [u8]],
        pinning: Pinning<'_>,
        body: impl FnOnce(&[RegisteredRange]) -> R,
    ) -> Result<R>;

    /// Takes device memory of another library without owning it: releasing the buffer does nothing.
    ///
    /// # Safety
    /// The `bytes` bytes at `address` are memory that the device can reach, and stay so for as long as the buffer
    /// is used.
    unsafe fn wrap_memory(device: &Self::Device, address: u64, bytes: usize) -> Self::Buffer;

    /// Makes an event for which a waiting host thread sleeps instead of spinning.
    ///
    /// # Errors
    /// Returns HIP's error.
    fn create_blocking_event(device: &Self::Device, options: EventOptions) -> Result<Self::Event>;

    /// Beginning and length in bytes of the allocation that an address lies in.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if it lies in none.
    fn allocation_of(device: &Self::Device, address: u64) -> Result<(u64, usize)>;

    /// Returns HIP's information about an address, or `None` for ordinary memory.
    ///
    /// # Errors
    /// Returns HIP's error.
    fn pointer(device: &Self::Device, address: u64) -> Result<Option<Pointer>>;

    /// Address and length in bytes of a module's variable in global or constant memory.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if there is none of that name.
    fn global(module: &Self::Module, name: &str) -> Result<(u64, usize)>;
}

impl RocExt for Roc {
    fn isa(device: &RocDevice) -> &str {
        &device.inner().isa
    }

    fn wavefront(device: &RocDevice) -> Wavefront {
        let barrier = device.barrier();
        Wavefront { size: barrier.wave_size(), barrier: barrier.lowering(BarrierPoint::Wave) }
    }

    unsafe fn allocate_grained(
        device: &RocDevice,
        request: &AllocationRequest,
        grain: Grain,
    ) -> Result<RocBuffer> {
        // SAFETY: passed on to the caller.
        unsafe { RocBuffer::allocate(device, request, grain) }
    }

    fn grain_of(device: &RocDevice, address: u64) -> Result<Option<Grain>> {
        device.check_alive("hsa_amd_pointer_info")?;
        hsa::grain(address)
    }

    fn agents() -> Result<Vec<Agent>> {
        hsa::agents()
    }

    fn agent(device: &RocDevice) -> Result<Agent> {
        hsa::agent(device)
    }

    fn pools(agent: &Agent) -> Result<Vec<Pool>> {
        hsa::pools(agent)
    }

    unsafe fn allocate_in(
        device: &RocDevice,
        pool: &Pool,
        bytes: usize,
        access: &[Agent],
    ) -> Result<RocBuffer> {
        device.check_alive("hsa_amd_memory_pool_allocate")?;
        let place = hsa::allocate(pool, bytes, access)?;
        let address = place.as_ptr().expose_provenance() as u64;
        let (host, kind) = if pool.on_host {
            (Some(place), MemoryKind::Mapped(MappedOptions { portable: true, write_combined: false }))
        } else {
            (None, MemoryKind::Device)
        };
        Ok(RocBuffer::take(device, Found { address, host, bytes, kind, origin: Provenance::Pool(address) }))
    }

    unsafe fn allow_access(device: &RocDevice, address: u64, agents: &[Agent]) -> Result<()> {
        const OPERATION: &str = "hsa_amd_agents_allow_access";
        device.check_alive(OPERATION)?;
        // SAFETY: passed on to the caller.
        unsafe { hsa::grant(agents, with_exposed_provenance_mut(address as usize)) }
            .map_err(|status| status.error(OPERATION))
    }

    unsafe fn register_memory(
        device: &RocDevice,
        ranges: &[(NonNull<u8>, usize)],
        pinning: Pinning<'_>,
    ) -> Result<Registered> {
        // SAFETY: passed on to the caller.
        unsafe { Registered::new(device, ranges, pinning) }
    }

    fn with_registered<R>(
        device: &RocDevice,
        arrays: &mut [&mut [u8]],
        pinning: Pinning<'_>,
        body: impl FnOnce(&[RegisteredRange]) -> R,
    ) -> Result<R> {
        pin::scope(device, arrays, pinning, body)
    }

    unsafe fn wrap_memory(device: &RocDevice, address: u64, bytes: usize) -> RocBuffer {
        let (kind, origin) = (MemoryKind::Device, Provenance::Foreign);
        RocBuffer::take(device, Found { address, host: None, bytes, kind, origin })
    }

    fn create_blocking_event(device: &RocDevice, options: EventOptions) -> Result<RocEvent> {
        RocEvent::create(device, options, true)
    }

    fn allocation_of(device: &RocDevice, address: u64) -> Result<(u64, usize)> {
        let _current = device.enter("hipMemGetAddressRange")?;
        device.allocation(address)
    }

    fn pointer(device: &RocDevice, address: u64) -> Result<Option<Pointer>> {
        pointer::find(device, address)
    }

    fn global(module: &RocModule, name: &str) -> Result<(u64, usize)> {
        module.variable(name)
    }
}
