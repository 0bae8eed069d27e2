//! Placeholder memory, for what is made while a graph is recorded.

use super::{Allocation, AllocationRef, Owner, is_seen_by_host};
use crate::{
    device::Device,
    recording::{GraphRecording, Region},
};
use gpumem_core::{Backend, MemoryKind, Result};
use gpumem_memory::track::Tracked;

impl<B: Backend> Allocation<B> {
    /// Placeholder memory that belongs to a recording.
    #[cold]
    pub(crate) fn placeholder(
        device: &Device<B>,
        recording: &GraphRecording<B>,
        operation: &'static str,
        (bytes, align): (usize, usize),
        kind: MemoryKind,
    ) -> Result<AllocationRef<B>> {
        if bytes == 0 {
            return Self::empty(device, operation, align, kind);
        }
        let address = recording.reserve(operation, (bytes, align), kind)?;
        let memory = Self::placeholder_at(device, address, bytes, kind);
        recording.add(memory.id(), Region::new(address, (bytes, align), kind));
        Ok(memory)
    }

    /// As [`placeholder`](Self::placeholder), at an address that the recording has reserved.
    #[cold]
    pub(crate) fn placeholder_at(
        device: &Device<B>,
        address: u64,
        bytes: usize,
        kind: MemoryKind,
    ) -> AllocationRef<B> {
        let host = if is_seen_by_host(kind) { address as usize } else { 0 };
        let mut memory = Self::owned(Owner::Device(device.share()), (address, host, bytes), kind);
        // SAFETY: the owner keeps the context.
        memory.tracked = unsafe { Tracked::placeholder(device.core().context(), (address, bytes), kind) };
        AllocationRef::new(memory)
    }
}
