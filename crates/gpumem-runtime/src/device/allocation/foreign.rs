//! Memory of others: of the caller, of another library, of another process.

use super::{Allocation, AllocationRef, Owner};
use crate::device::Device;
use crate::key::Key;
use gpumem_core::{Backend, DeviceBuffer, Error, MemoryKind, Result};
use std::{any::Any, ptr::NonNull};

/// Foreign memory, as it comes into an allocation.
pub(crate) struct ForeignMemory {
    /// The device's address of the lowest byte.
    pub(crate) address: u64,
    /// The host's address of the lowest byte, or 0.
    pub(crate) host: usize,
    pub(crate) len: usize,
    pub(crate) kind: MemoryKind,
    pub(crate) read_only: bool,
    pub(crate) owner: Box<dyn Any + Send + Sync>,
}

/// How the owner of foreign memory is dropped, after the last use of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Release {
    /// By the drop of the last array, where no use is left then.
    #[default]
    AtOnce,
    /// By a flush, because it calls the driver, which a drop must not.
    ByFlush,
    /// As a loaded program, by a flush.
    Program,
}

impl<B: Backend> Allocation<B> {
    /// Memory that `open` gets from the driver otherwise than by an allocation, and that is returned to it.
    pub(crate) fn opened(
        device: &Device<B>,
        operation: &'static str,
        open: impl FnOnce() -> Result<B::Buffer>,
    ) -> Result<AllocationRef<B>> {
        let core = device.core();
        core.deferred_frees.sweep_some(core);
        let (number, driver) = core.memory.external_owner(core);
        let buffer = core.note_loss(open()).map_err(|error| error.in_operation(operation))?;
        let kind = buffer.kind();
        let block = driver.adopt(core, buffer);
        let mut memory =
            Self::over(Owner::Device(device.outside_recording()), (block.address(), 0, block.bytes()), kind);
        (*memory.block, memory.resource) = (Some(block), number);
        memory.extra.get_or_insert_default().opened = true;
        Ok(AllocationRef::new(memory))
    }

    /// Foreign memory, kept alive by `owner`.
    pub(crate) fn foreign(
        device: &Device<B>,
        address: u64,
        len: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> AllocationRef<B> {
        let (kind, read_only) = (MemoryKind::Device, false);
        Self::imported(device, ForeignMemory { address, host: 0, len, kind, read_only, owner })
    }

    /// A loaded program, which launches use as they use memory. It is unloaded through the queue, never by a drop.
    /// `keeps_open` says whether it keeps the device open; a program that the device itself keeps does not.
    pub fn program(
        _: Key,
        device: &Device<B>,
        module: Box<dyn Any + Send + Sync>,
        keeps_open: bool,
    ) -> AllocationRef<B> {
        device.core().deferred_frees.sweep_some(device.core());
        let owner = match keeps_open {
            true => Owner::Device(device.outside_recording()),
            false => Owner::Core(device.core().clone()),
        };
        let mut allocation = Self::over(owner, (0, 0, 1), MemoryKind::Device);
        let extra = allocation.extra.get_or_insert_default();
        (extra.owner, extra.release) = (Some(module), Release::Program);
        allocation.tracked.set_program();
        AllocationRef::new(allocation)
    }

    /// Foreign memory, of any kind.
    pub(crate) fn imported(device: &Device<B>, memory: ForeignMemory) -> AllocationRef<B> {
        device.core().deferred_frees.sweep_some(device.core());
        device.core().arrivals.note();
        let place = (memory.address, memory.host, memory.len);
        let mut allocation = Self::over(Owner::Device(device.outside_recording()), place, memory.kind);
        let extra = allocation.extra.get_or_insert_default();
        (extra.owner, extra.read_only) = (Some(memory.owner), memory.read_only);
        AllocationRef::new(allocation)
    }

    /// Memory of the host that is page-locked until its owner is dropped: see [`Release`].
    pub(crate) fn locked(
        device: &Device<B>,
        memory: ForeignMemory,
        boundaries: Vec<u64>,
        release: Release,
    ) -> AllocationRef<B> {
        let mut allocation = Self::imported(device, memory);
        if let Some(extra) =
            AllocationRef::get_mut(&mut allocation).and_then(|allocation| allocation.extra.as_mut())
        {
            (extra.boundaries, extra.release) = (boundaries, release);
        }
        allocation
    }

    /// Takes the owner out of foreign memory, once `wait` has found that no work uses it any more. It is called with the only handle
    /// there is: one that went before may have left work.
    ///
    /// # Errors
    /// Returns the memory with the error of `wait`, and without one if it is referenced elsewhere or its owner has another type.
    #[allow(clippy::type_complexity, reason = "nothing is lost")]
    pub(crate) fn into_owner<O: Any>(
        memory: AllocationRef<B>,
        wait: impl FnOnce(&Self) -> Result<()>,
    ) -> std::result::Result<Box<O>, (AllocationRef<B>, Option<Error>)> {
        let mut memory = AllocationRef::try_unwrap(memory).map_err(|memory| (memory, None))?;
        if let Err(error) = wait(&memory) {
            return Err((AllocationRef::new(memory), Some(error)));
        }
        if let Some(extra) = memory.extra.as_mut()
            && let Some(owner) = extra.owner.take()
        {
            match owner.downcast() {
                Ok(owner) => {
                    memory.forget_poison();
                    return Ok(owner);
                }
                Err(owner) => extra.owner = Some(owner),
            }
        }
        Err((AllocationRef::new(memory), None))
    }

    /// Memory of the caller that is page-locked while a scope lasts.
    pub(crate) fn borrowed(
        device: &Device<B>,
        address: u64,
        host: NonNull<u8>,
        len: usize,
        kind: MemoryKind,
        boundaries: Vec<u64>,
    ) -> AllocationRef<B> {
        let place = (address, host.as_ptr() as usize, len);
        let mut memory = Self::over(Owner::Device(device.outside_recording()), place, kind);
        if !boundaries.is_empty() {
            memory.extra.get_or_insert_default().boundaries = boundaries;
        }
        AllocationRef::new(memory)
    }
}
