//! The engines' accesses to memory: each is checked against the GPU's mappings.

use super::{
    MEMORY, Memory,
    object::{Backing, Kind},
};
use crate::abi::PAGE;
use std::{fmt, sync::Arc};

/// Bytes that a GPU may use, alive for as long as this is held.
#[derive(Debug)]
pub(crate) struct Span {
    start: *mut u8,
    bytes: u64,
    /// Absent for the program's own memory, which only the program can keep alive.
    backing: Option<Arc<Backing>>,
}

impl Span {
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// Length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// Copies as many bytes as both have. They may overlap.
    pub(crate) fn copy_from(&self, source: &Span) {
        let bytes = self.bytes().min(source.bytes());
        // SAFETY: both spans have that many bytes. If the program uses them meanwhile, the race is its own, as on
        // hardware.
        unsafe { std::ptr::copy(source.start, self.start, bytes) };
    }

    /// Writes the pattern again and again from the start to the end; the last one may be cut off.
    pub(crate) fn fill(&self, pattern: &[u8]) {
        let mut filled = pattern.len().min(self.bytes());
        // SAFETY: that many bytes lie in the span, and `pattern` does not overlap them.
        unsafe { std::ptr::copy_nonoverlapping(pattern.as_ptr(), self.start, filled) };
        while filled != 0 && filled < self.bytes() {
            let next = filled.min(self.bytes() - filled);
            // SAFETY: the second part begins where the first one ends, and both lie in the span.
            unsafe { std::ptr::copy_nonoverlapping(self.start, self.start.wrapping_add(filled), next) };
            filled += next;
        }
    }

    /// Whether both keep the same memory alive.
    pub(crate) fn same_backing(&self, other: &Span) -> bool {
        match (&self.backing, &other.backing) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (None, None) => true,
            _ => false,
        }
    }
}

/// An access that a GPU may not make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) node: u32,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) cause: Cause,
}

/// Why an access is a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Nothing is known at the address: never allocated, freed, or host memory that is not registered.
    Unknown,
    /// It is host memory that is registered, but GPUs have another address for it.
    HostAddress,
    /// The memory exists, but not for this GPU.
    NotMapped { mapped: Vec<u32> },
    /// The access begins inside of known memory and leaves it.
    BeyondEnd { start: u64, bytes: u64 },
    /// The program has given registered memory back to the operating system.
    Gone,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, address, bytes, cause } = self;
        write!(f, "GPU node {node} touches {bytes} bytes at {address:#x}: ")?;
        match cause {
            Cause::Unknown => f.write_str(
                "nothing is mapped there (never allocated, freed, or host memory that is not registered)",
            ),
            Cause::HostAddress => {
                f.write_str("this is the host's address of registered memory, GPUs have another one for it")
            }
            Cause::NotMapped { mapped } if mapped.is_empty() => {
                f.write_str("the memory exists, but no GPU was given access")
            }
            Cause::NotMapped { mapped } => write!(f, "only the GPUs of nodes {mapped:?} were given access"),
            Cause::BeyondEnd { start, bytes } => write!(f, "the memory at {start:#x} has {bytes} bytes"),
            Cause::Gone => f.write_str("the program has unmapped this registered memory"),
        }
    }
}

/// Lets a GPU reach bytes, if they are mapped for it.
pub(crate) fn span(node: u32, address: u64, bytes: u64) -> Result<Span, Fault> {
    let fault = |cause| Fault { node, address, bytes, cause };
    let memory = MEMORY.read();
    let Some(object) = memory.table.usable(node, address, bytes) else {
        if memory.svm.usable(node, address, bytes) {
            return if is_present(address, bytes) {
                Ok(Span { start: address as *mut u8, bytes, backing: None })
            } else {
                Err(fault(Cause::Gone))
            };
        }
        return Err(fault(cause(&memory, node, address)));
    };
    let start = object.host.wrapping_add((address - object.address) as usize);
    if matches!(object.kind, Kind::Registered { .. }) && !is_present(start as u64, bytes) {
        return Err(fault(Cause::Gone));
    }
    Ok(Span { start, bytes, backing: object.backing.clone() })
}

fn cause(memory: &Memory, node: u32, address: u64) -> Cause {
    match memory.table.at(address) {
        Some(object) if object.is_mapped_for(node) => {
            Cause::BeyondEnd { start: object.address, bytes: object.bytes }
        }
        Some(object) => Cause::NotMapped { mapped: object.mapped.clone() },
        None if memory.table.is_registered(address) => Cause::HostAddress,
        None => Cause::Unknown,
    }
}

/// Whether the process can still read every page of the range. The driver notices when registered memory is unmapped;
/// here the question is asked before each use, by reading a byte of each page through the kernel, which answers
/// instead of faulting.
fn is_present(address: u64, bytes: u64) -> bool {
    const PAGES: usize = 256;
    let first = address & !(PAGE - 1);
    let last = address + bytes.max(1) - 1;
    let mut addresses = (first..=last).step_by(PAGE as usize).peekable();
    while addresses.peek().is_some() {
        let mut bytes = [0u8; PAGES];
        let mut remote = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 1 }; PAGES];
        let mut count = 0;
        for (vector, page) in remote.iter_mut().zip(&mut addresses) {
            vector.iov_base = page as *mut libc::c_void;
            count += 1;
        }
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: count };
        // SAFETY: the local side is our buffer of at least `count` bytes; the kernel checks the other side.
        let read = unsafe {
            libc::process_vm_readv(libc::getpid(), &local, 1, remote.as_ptr(), count as libc::c_ulong, 0)
        };
        if read != count as isize {
            // A sandbox may forbid the question; then nothing can be said against the memory.
            let error = std::io::Error::last_os_error().raw_os_error();
            return read < 0 && matches!(error, Some(libc::EPERM | libc::ENOSYS));
        }
    }
    true
}
