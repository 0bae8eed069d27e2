//! One block of memory that a GPU can know about.

use super::mapping::{Mapping, memory_file};
use crate::abi::{MemFlags, PAGE};
use std::{fs::File, io, sync::Arc};

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Allocated by the thunk: device memory, or host memory of the driver.
    Allocated,
    /// Address space for the private memory of kernels. The simulator does not use it.
    Scratch,
    /// The program's own memory, registered.
    Registered { address: u64, bytes: u64 },
    /// Memory of another process.
    Shared,
    /// Memory that the simulator itself lets every GPU reach: event mailboxes, registers.
    Internal,
}

/// Keeps the bytes of an object alive. A working engine holds it, so that freeing memory that is still in use is a lost
/// write, as on hardware, and not a crash of the simulator.
#[derive(Debug)]
pub(crate) struct Backing {
    /// The addresses that the GPU uses; present until it is dropped.
    address: Option<Mapping>,
    /// The same bytes where the host can reach them, if it cannot at `address`.
    alias: Option<Mapping>,
    file: Option<File>,
}

impl Backing {
    /// Memory in a memory file, under its GPU address visible to the host or not.
    pub(super) fn in_file(file: File, bytes: usize, host_visible: bool) -> io::Result<Self> {
        let (address, alias) = if host_visible {
            (Mapping::of_file(&file, bytes)?, None)
        } else {
            (Mapping::reserve(bytes)?, Some(Mapping::of_file(&file, bytes)?))
        };
        Ok(Self { address: Some(address), alias, file: Some(file) })
    }

    pub(super) fn new_file(bytes: u64, node: u32, host_visible: bool) -> io::Result<Self> {
        Self::in_file(memory_file(bytes, node)?, bytes as usize, host_visible)
    }

    /// Memory in a memory file, which only the engines have mapped.
    pub(super) fn of_file(file: File, bytes: usize) -> io::Result<Self> {
        let alias = Mapping::of_file(&file, bytes)?;
        Ok(Self { address: None, alias: Some(alias), file: Some(file) })
    }

    /// No memory and no addresses: others hold both.
    pub(super) fn nothing() -> Self {
        Self { address: None, alias: None, file: None }
    }

    pub(super) fn anonymous(bytes: u64, executable: bool) -> io::Result<Self> {
        let address = Some(Mapping::anonymous(bytes as usize, executable)?);
        Ok(Self { address, alias: None, file: None })
    }

    /// Addresses of the GPU that the host has no memory under.
    pub(super) fn address_only(bytes: u64) -> io::Result<Self> {
        Ok(Self { address: Some(Mapping::reserve(bytes as usize)?), alias: None, file: None })
    }

    pub(super) fn address(&self) -> u64 {
        self.address.as_ref().map_or(0, |address| address.start() as u64)
    }

    /// Where the host finds the bytes.
    pub(super) fn host(&self) -> *mut u8 {
        self.alias.as_ref().or(self.address.as_ref()).map_or(std::ptr::null_mut(), Mapping::start)
    }

    pub(super) fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        if let Some(address) = self.address.take() {
            address.retire();
        }
    }
}

/// One block of memory that a GPU can know about.
#[derive(Debug)]
pub(crate) struct Object {
    /// The first address under which GPUs reach it, on a page boundary.
    pub(super) address: u64,
    /// Length in bytes, whole pages.
    pub(super) bytes: u64,
    /// Where the simulator finds the first byte.
    pub(super) host: *mut u8,
    /// Absent for registered memory that keeps its own address.
    pub(super) backing: Option<Arc<Backing>>,
    pub(super) kind: Kind,
    /// Where the memory lies: 0 for host memory, else the node of a GPU.
    pub(super) node: u32,
    pub(super) flags: MemFlags,
    /// The nodes of the GPUs that may use it. The thunk's pointer information points into this list.
    pub(super) mapped: Vec<u32>,
    /// How often registered memory was mapped: it stays so until it was unmapped as often.
    pub(super) mappings: u32,
    /// How often the same memory was registered.
    pub(super) registrations: u32,
    /// Data that the runtime attached to it.
    pub(super) user_data: usize,
}

// SAFETY: the pointer is only an address; its bytes are reached through the engines' checked accesses.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

impl Object {
    pub(super) fn new(kind: Kind, node: u32, bytes: u64, flags: MemFlags, backing: Backing) -> Self {
        Self {
            address: backing.address(),
            bytes,
            host: backing.host(),
            backing: Some(Arc::new(backing)),
            kind,
            node,
            flags,
            mapped: Vec::new(),
            mappings: 0,
            registrations: 1,
            user_data: 0,
        }
    }

    /// The program's own memory. Without `backing` GPUs reach it under its own address.
    pub(super) fn registered(address: u64, bytes: u64, flags: MemFlags, backing: Option<Backing>) -> Self {
        let first_page = address & !(PAGE - 1);
        let pages = (address - first_page + bytes).next_multiple_of(PAGE);
        Self {
            address: backing.as_ref().map_or(first_page, Backing::address),
            bytes: pages,
            host: first_page as *mut u8,
            backing: backing.map(Arc::new),
            kind: Kind::Registered { address, bytes },
            node: 0,
            flags,
            mapped: Vec::new(),
            mappings: 0,
            registrations: 1,
            user_data: 0,
        }
    }

    /// The address under which GPUs reach the caller's memory: for registered memory its first byte.
    pub(super) fn gpu_address(&self) -> u64 {
        match self.kind {
            Kind::Registered { address, .. } => self.address + (address & (PAGE - 1)),
            _ => self.address,
        }
    }

    /// Whether all of a range of GPU addresses lies inside.
    pub(super) fn contains(&self, address: u64, bytes: u64) -> bool {
        address >= self.address && bytes <= self.bytes && address - self.address <= self.bytes - bytes
    }

    /// Whether a host address lies in memory of the program that this registers.
    pub(super) fn contains_registered(&self, host: u64) -> bool {
        matches!(self.kind, Kind::Registered { address, bytes } if host >= address && host - address < bytes)
    }

    pub(super) fn is_mapped_for(&self, node: u32) -> bool {
        self.kind == Kind::Internal || self.mapped.contains(&node)
    }
}
