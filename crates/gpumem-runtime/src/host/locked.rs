//! Memory of the host that a host device uses as its own.

use crate::{Device, device::DeviceCore, memory::Lock};
use gpumem_core::{Backend, DescriptorError, Error, ErrorKind, RegisterOptions, Result};
use std::{
    any::Any,
    ptr::NonNull,
    sync::{Arc, atomic::Ordering},
};

/// The owner of memory of the host, which the device has been told of.
struct LockedOwner<B: Backend> {
    core: Arc<DeviceCore<B>>,
    generation: u64,
    lock: Option<Lock>,
    /// Dropped after the memory is unlocked.
    _owner: Box<dyn Any + Send + Sync>,
}

impl<B: Backend> Drop for LockedOwner<B> {
    fn drop(&mut self) {
        let Some(lock) = self.lock.take() else { return };
        if self.core.origin.is_usable() && self.generation == self.core.generation() {
            self.core.host_memory.fetch_sub(1, Ordering::AcqRel);
            // SAFETY: owners are dropped after the last use of their memory.
            unsafe { self.core.pages.unlock(&self.core, lock) };
        }
    }
}

/// The device's address of the memory, the host's, and the owner.
pub(super) type Locked = (u64, usize, Box<dyn Any + Send + Sync>);

/// Tells a host device of memory of the host, page by page, until its owner is dropped.
///
/// # Safety
/// `owner` keeps `bytes` bytes of the host's at `address` alive.
pub(super) unsafe fn lock<B: Backend>(
    device: &Device<B>,
    operation: &'static str,
    address: u64,
    bytes: usize,
    options: RegisterOptions,
    owner: Box<dyn Any + Send + Sync>,
) -> Result<Locked> {
    let core = device.core();
    let host = NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(address as usize));
    let Some(host) = host else {
        let error = DescriptorError::NullAddress { bytes };
        return Err(Error::new(B::NAME, operation, ErrorKind::from(error)));
    };
    // Pages are shared with neighbours that may be written, so they are locked for both.
    let pages = RegisterOptions { read_only: false, ..options };
    // SAFETY: the owner keeps the memory alive, and is dropped after it is unlocked.
    let lock = unsafe { core.pages.lock(core, operation, host, bytes, pages)? };
    core.host_memory.fetch_add(1, Ordering::AcqRel);
    let at = lock.address.unwrap_or(address);
    let (core, generation) = (core.clone(), core.generation());
    let owner = LockedOwner { core, generation, lock: Some(lock), _owner: owner };
    Ok((at, address as usize, Box::new(owner)))
}
