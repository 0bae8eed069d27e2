//! The memory that a wave shares with others: that of its group and of its GPU.

use super::{check::Checks, stop::Cause};
use crate::memory::{self, Fault, Span};

/// The environment of an instruction besides its wave.
#[derive(Debug)]
pub(super) struct Environment<'a> {
    /// The memory of the group.
    pub(super) shared: &'a mut [u8],
    pub(super) device: &'a mut DeviceMemory,
    pub(super) checks: Option<&'a mut Checks>,
}

const PAGE_BITS: u32 = 12;
const PAGE: u64 = 1 << PAGE_BITS;
const ENTRIES: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Entry {
    page: u64,
    host: *mut u8,
}

/// The memory of a GPU as one worker sees it during one dispatch: pages are looked up in rocsim's tables once, and
/// their objects stay alive until the dispatch has ended.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    node: u32,
    entries: Box<[Entry; ENTRIES]>,
    held: Vec<Span>,
}

impl DeviceMemory {
    pub(super) fn new(node: u32) -> Self {
        let nothing = Entry { page: u64::MAX, host: std::ptr::null_mut() };
        Self { node, entries: Box::new([nothing; ENTRIES]), held: Vec::new() }
    }

    /// Where the host finds so many bytes of the GPU.
    #[inline(always)]
    pub(super) fn host(&mut self, address: u64, bytes: u64) -> Result<*mut u8, Cause> {
        let (page, inside) = (address >> PAGE_BITS, address & (PAGE - 1));
        let entry = self.entries[page as usize % ENTRIES];
        if entry.page == page && inside + bytes <= PAGE {
            return Ok(entry.host.wrapping_add(inside as usize));
        }
        self.look_up(address, bytes)
    }

    #[cold]
    fn look_up(&mut self, address: u64, bytes: u64) -> Result<*mut u8, Cause> {
        let (page, inside) = (address >> PAGE_BITS, address & (PAGE - 1));
        if inside + bytes > PAGE {
            let span = memory::span(self.node, address, bytes).map_err(Cause::Fault)?;
            return Ok(self.hold(span));
        }
        // Memory is mapped in whole pages; the fault reports the address of the access itself.
        let span = memory::span(self.node, page << PAGE_BITS, PAGE)
            .map_err(|fault| Cause::Fault(Fault { address, bytes, ..fault }))?;
        let host = self.hold(span);
        self.entries[page as usize % ENTRIES] = Entry { page, host };
        Ok(host.wrapping_add(inside as usize))
    }

    fn hold(&mut self, span: Span) -> *mut u8 {
        let host = span.as_ptr();
        if !self.held.iter().any(|held| held.same_backing(&span)) {
            self.held.push(span);
        }
        host
    }
}
