//! Owners of memory of the host that a device has been told of, page by page.

use crate::{
    Device,
    device::DeviceCore,
    memory::{Allocation, Counted, ForeignMemory, Lock, Release},
};
use gpumem_core::{Backend, Error, ErrorKind, MemoryKind, RegisterOptions, Result};
use std::{
    any::Any,
    ptr::NonNull,
    sync::{Arc, atomic::Ordering},
};

/// Pages that are locked for an array, until this is dropped.
struct Held<B: Backend> {
    core: Arc<DeviceCore<B>>,
    generation: u64,
    lock: Option<Lock>,
}

impl<B: Backend> Drop for Held<B> {
    fn drop(&mut self) {
        let Some(lock) = self.lock.take() else { return };
        if self.core.origin.is_usable() && self.generation == self.core.generation() {
            self.core.host_memory.fetch_sub(1, Ordering::AcqRel);
            // SAFETY: owners are dropped, or asked for what they hold, after the last use of their memory.
            unsafe { self.core.pages.unlock(&self.core, lock) };
        }
    }
}

/// The owner of memory that is locked.
pub(crate) struct LockedOwner<B: Backend, O> {
    /// Dropped first: the memory is unlocked while it is alive.
    held: Held<B>,
    owner: O,
}

impl<B: Backend, O> LockedOwner<B, O> {
    /// Unlocks the memory, and gives back what keeps it alive.
    pub(crate) fn unlock(self) -> O {
        drop(self.held);
        self.owner
    }
}

/// Memory of the host that the device has been told of.
pub(crate) struct Locked<B: Backend, O> {
    /// The device's address, where all of it is reachable from there.
    address: Option<u64>,
    host: usize,
    len: usize,
    cuts: Vec<u64>,
    owner: LockedOwner<B, O>,
}

/// Tells a device of `bytes` bytes of the host's at `address`, page by page, until the owner is dropped.
///
/// # Safety
/// `owner` keeps the bytes alive and valid for writes, unless `options` says that they are only read.
///
/// # Errors
/// Of the driver, with the owner.
pub(crate) unsafe fn lock<B: Backend, O>(
    device: &Device<B>,
    operation: &'static str,
    address: u64,
    bytes: usize,
    options: RegisterOptions,
    owner: O,
) -> Result<Locked<B, O>, (O, Error)> {
    let core = device.core();
    let held = Held { core: core.clone(), generation: core.generation(), lock: None };
    let mut owner = LockedOwner { held, owner };
    let host = address as usize;
    if bytes == 0 {
        return Ok(Locked { address: Some(address), host, len: 0, cuts: Vec::new(), owner });
    }
    let Some(first) = NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(host)) else {
        let error = gpumem_core::DescriptorError::NullAddress { bytes };
        return Err((owner.unlock(), device.core().error(operation, ErrorKind::from(error))));
    };
    // Pages are shared with neighbours that may be written, so they are locked for both.
    let pages = RegisterOptions { read_only: false, ..options };
    // SAFETY: the owner keeps the memory alive, and is dropped after it is unlocked.
    let lock = match unsafe { core.pages.lock(core, operation, first, bytes, pages) } {
        Ok(lock) => lock,
        Err(error) => return Err((owner.unlock(), error)),
    };
    core.host_memory.fetch_add(1, Ordering::AcqRel);
    let (address, cuts) = (lock.address, lock.cuts.clone());
    owner.held.lock = Some(lock);
    Ok(Locked { address, host, len: bytes, cuts, owner })
}

impl<B: Backend, O: Any + Send + Sync> Locked<B, O> {
    /// Whether the device reaches all of it from one address.
    pub(crate) fn has_address(&self) -> bool {
        self.address.is_some()
    }

    /// The memory as an allocation. What a drop leaves goes back at once where that costs no driver call, else with the
    /// next flush.
    pub(crate) fn into_allocation(
        self,
        device: &Device<B>,
        options: RegisterOptions,
        read_only: bool,
    ) -> Counted<Allocation<B>> {
        let Self { address, host, len, cuts, owner } = self;
        let address = address.unwrap_or(host as u64);
        let release = match owner.held.lock.is_some() && !device.capabilities().pageable_direct {
            true => Release::ByFlush,
            false => Release::AtOnce,
        };
        let (kind, owner) = (MemoryKind::Registered(options), Box::new(owner));
        let memory = ForeignMemory { address, host, len, kind, read_only, owner };
        Allocation::locked(device, memory, cuts, release)
    }

    /// Unlocks the memory, and gives back what keeps it alive.
    pub(crate) fn unlock(self) -> O {
        self.owner.unlock()
    }
}
