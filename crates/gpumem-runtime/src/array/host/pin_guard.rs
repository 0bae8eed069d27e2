//! Owners of memory of the host that a device has been told of, page by page.

use crate::{
    Device,
    device::{Allocation, AllocationRef, ForeignMemory, Release},
    foreign::own::Registration,
};
use gpumem_core::{Backend, Error, ErrorKind, MemoryKind, RegisterOptions, Result};
use gpumem_memory::{memory::DeviceCore, memory::PagePin};
use std::{
    any::Any,
    ptr::NonNull,
    sync::{Arc, atomic::Ordering},
};

/// Pages that are locked for an array, until this is dropped.
struct HeldPin<B: Backend> {
    core: Arc<DeviceCore<B>>,
    generation: u64,
    lock: Option<PagePin>,
}

impl<B: Backend> Drop for HeldPin<B> {
    fn drop(&mut self) {
        let Some(lock) = self.lock.take() else { return };
        if self.core.origin.is_valid() && self.generation == self.core.generation() {
            self.core.host_memory.fetch_sub(1, Ordering::AcqRel);
            // SAFETY: owners are dropped, or their content is taken, after the last use of their memory.
            unsafe { self.core.pages.unlock(&self.core, lock) };
        }
    }
}

/// The owner of memory that is locked.
pub(crate) struct PinnedOwner<B: Backend, O> {
    /// Dropped first: the memory is unlocked while it is alive.
    held: HeldPin<B>,
    /// That the array has the memory for itself.
    registration: Option<Registration>,
    owner: O,
}

impl<B: Backend, O> PinnedOwner<B, O> {
    /// Unlocks the memory, and returns its owner.
    pub(crate) fn unlock(self) -> O {
        drop((self.held, self.registration));
        self.owner
    }
}

/// Memory of the host that the device has been told of.
pub(crate) struct PinGuard<B: Backend, O> {
    /// The device's address, where all of it is reachable from there.
    address: Option<u64>,
    host: usize,
    len: usize,
    boundaries: Vec<u64>,
    owner: PinnedOwner<B, O>,
}

/// Tells a device of `bytes` bytes of the host's at `address`, page by page, until the owner is dropped.
///
/// # Safety
/// `owner` keeps the bytes alive and valid for writes, unless `options` says that they are only read.
/// Returns the owner with the driver's error.
pub(crate) unsafe fn lock<B: Backend, O>(
    device: &Device<B>,
    operation: &'static str,
    address: u64,
    bytes: usize,
    options: RegisterOptions,
    owner: O,
) -> Result<PinGuard<B, O>, (O, Error)> {
    let core = device.core();
    let held = HeldPin { core: core.clone(), generation: core.generation(), lock: None };
    let mut owner = PinnedOwner { held, registration: None, owner };
    let host = address as usize;
    if bytes == 0 {
        return Ok(PinGuard { address: Some(address), host, len: 0, boundaries: Vec::new(), owner });
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
    let (address, boundaries) = (lock.address, lock.boundaries.clone());
    owner.held.lock = Some(lock);
    Ok(PinGuard { address, host, len: bytes, boundaries, owner })
}

/// As [`lock`], for an array that has the memory for itself.
///
/// # Safety
/// As for [`lock`].
/// Returns the owner with [`Registration`](ErrorKind::Registration) if the library has some of the memory already.
pub(crate) unsafe fn register<B: Backend, O>(
    device: &Device<B>,
    operation: &'static str,
    address: u64,
    bytes: usize,
    options: RegisterOptions,
    owner: O,
) -> Result<PinGuard<B, O>, (O, Error)> {
    let registration = match (bytes > 0).then(|| Registration::note(address, bytes)).transpose() {
        Ok(registration) => registration,
        Err(why) => return Err((owner, device.core().error(operation, ErrorKind::Registration { why }))),
    };
    // SAFETY: the caller's promise.
    let mut guard = unsafe { lock(device, operation, address, bytes, options, owner)? };
    guard.owner.registration = registration;
    Ok(guard)
}

impl<B: Backend, O: Any + Send + Sync> PinGuard<B, O> {
    /// Whether the device reaches all of it from one address.
    pub(crate) fn has_address(&self) -> bool {
        self.address.is_some()
    }

    /// The memory as an allocation. Dropping it frees memory at once if that needs no driver call, otherwise the next
    /// flush does.
    pub(crate) fn into_allocation(
        self,
        device: &Device<B>,
        options: RegisterOptions,
        read_only: bool,
    ) -> AllocationRef<B> {
        let Self { address, host, len, boundaries, owner } = self;
        let address = address.unwrap_or(host as u64);
        let release = match owner.held.lock.is_some() && !device.capabilities().pageable_direct {
            true => Release::ByFlush,
            false => Release::AtOnce,
        };
        let (kind, owner) = (MemoryKind::Registered(options), Box::new(owner));
        let memory = ForeignMemory { address, host, len, kind, read_only, owner };
        Allocation::locked(device, memory, boundaries, release)
    }

    /// Unlocks the memory, and returns its owner.
    pub(crate) fn unlock(self) -> O {
        self.owner.unlock()
    }
}
