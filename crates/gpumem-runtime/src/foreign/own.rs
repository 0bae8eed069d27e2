//! Imports of the library's own memory: lent memory is recognised by its addresses while the loan lasts, and registered memory as long
//! as it is registered.
//!
//! An import of such memory must not make a second owner, whose uses would not be ordered with those of the first. It
//! becomes another handle of the same allocation, which is read-only as long as the first one exists.

use super::ForeignElements;
use crate::{
    Device, Layout,
    device::{Allocation, AllocationRef},
};
use gpumem_core::{
    Backend, ErrorKind, MemoryKind, Result,
    process::{PerProcess, ProcessGuard},
};
use gpumem_memory::track::unique_id;
use parking_lot::Mutex;
use std::{
    any::Any,
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

/// The memory that one process lends.
#[derive(Default)]
struct Table {
    /// Allocations that are lent at this moment, by address and number.
    lent: Mutex<BTreeMap<(u64, u64), Entry>>,
    /// How many entries there are: a program that lends nothing pays for one load.
    count: AtomicUsize,
    /// Where memory of the host ends that arrays of the library have registered, by where it begins and a number.
    registered: Mutex<BTreeMap<(u64, u64), u64>>,
    /// The memory of the library's own DLPack tensors that are alive, by their manager's context.
    tensors: Mutex<BTreeMap<usize, Box<dyn LoanedMemory>>>,
}

impl Table {
    /// Whether a registered array has some of these bytes.
    fn has_registered(&self, first: u64, end: u64) -> bool {
        self.registered.lock().range(..(end, 0)).any(|(_, last)| *last > first)
    }
}

/// A forked child gets a new table: the parent's lock may be held for ever there.
fn table() -> &'static Table {
    static TABLE: PerProcess<Table> = PerProcess::new(Table::default);
    TABLE.get()
}

struct Entry {
    end: u64,
    loans: usize,
    memory: Box<dyn LoanedMemory>,
}

/// An allocation of whichever backend.
trait LoanedMemory: Any + Send + Sync {
    /// Whether the device has not been reset since.
    fn is_fresh(&self) -> bool;
}

impl<B: Backend> LoanedMemory for AllocationRef<B> {
    fn is_fresh(&self) -> bool {
        (**self).is_fresh()
    }
}

/// Where memory can be met: by the device's address, and by the host's.
fn places<B: Backend>(memory: &Allocation<B>) -> impl Iterator<Item = (u64, u64)> + use<B> {
    let host = memory.host().map(|host| host.addr().get() as u64);
    let (address, len) = (memory.address(), memory.len() as u64);
    [Some(address), host.filter(|host| *host != address)]
        .into_iter()
        .flatten()
        .filter(move |_| len > 0)
        .map(move |start| (start, start.saturating_add(len)))
}

/// Notes that memory is lent once more.
pub(crate) fn note_loan<B: Backend>(memory: &AllocationRef<B>) {
    // Before it can be found: who enqueues work of others from here on announces it to the handles that an import makes.
    memory.note_loans();
    let table = table();
    let mut lent = table.lent.lock();
    for (start, end) in places(memory) {
        let new = || Entry { end, loans: 0, memory: Box::new(memory.clone()) };
        lent.entry((start, memory.id())).or_insert_with(new).loans += 1;
    }
    table.count.store(lent.len(), Ordering::Release);
}

/// Notes the end of one loan.
pub(crate) fn note_end<B: Backend>(memory: &Allocation<B>) {
    let (table, mut gone) = (table(), Vec::new());
    {
        let mut lent = table.lent.lock();
        for (start, _) in places(memory) {
            if let Some(entry) = lent.get_mut(&(start, memory.id())) {
                entry.loans = entry.loans.saturating_sub(1);
                if entry.loans == 0 {
                    gone.extend(lent.remove(&(start, memory.id())));
                }
            }
        }
        table.count.store(lent.len(), Ordering::Release);
    }
    // The handles are dropped without the lock.
    drop(gone);
}

/// Whether memory is lent at this moment, to whomever.
pub(crate) fn is_lent<B: Backend>(memory: &Allocation<B>) -> bool {
    let table = table();
    if table.count.load(Ordering::Acquire) == 0 {
        return false;
    }
    let lent = table.lent.lock();
    places(memory).any(|(start, _)| lent.contains_key(&(start, memory.id())))
}

/// A DLPack tensor of the library's own, as long as this lives. It is known by its manager's context, the address of a block that lives
/// as long: that of its elements may be another library's after a reset.
#[derive(Debug)]
pub(crate) struct OwnTensor {
    origin: ProcessGuard,
    context: usize,
}

impl OwnTensor {
    pub(crate) fn note<B: Backend>(context: usize, memory: &AllocationRef<B>) -> Self {
        table().tensors.lock().insert(context, Box::new(memory.clone()));
        Self { origin: ProcessGuard::current(), context }
    }

    /// Whether a tensor with that context is the library's own, and older than a reset of its device.
    pub(crate) fn is_stale(context: usize) -> bool {
        table().tensors.lock().get(&context).is_some_and(|memory| !memory.is_fresh())
    }
}

impl Drop for OwnTensor {
    fn drop(&mut self) {
        if ProcessGuard::current() == self.origin {
            let memory = table().tensors.lock().remove(&self.context);
            // Dropped without the lock.
            drop(memory);
        }
    }
}

/// Memory of the host that an array of the library has registered, as long as this lives: no import becomes its owner too.
#[derive(Debug)]
pub(crate) struct Registration {
    origin: ProcessGuard,
    key: (u64, u64),
}

impl Registration {
    /// Returns what stands in the way if the library has lent some of the bytes. The same array may be registered twice.
    pub(crate) fn note(start: u64, bytes: usize) -> Result<Self, &'static str> {
        let (table, end) = (table(), start.saturating_add(bytes as u64));
        let is_lent = |entry: &Entry| entry.end > start && entry.memory.is_fresh();
        if table.lent.lock().range(..(end, 0)).any(|(_, entry)| is_lent(entry)) {
            return Err("it is the library's own memory: use the array that it belongs to");
        }
        let key = (start, unique_id());
        table.registered.lock().insert(key, end);
        Ok(Self { origin: ProcessGuard::current(), key })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if ProcessGuard::current() == self.origin {
            table().registered.lock().remove(&self.key);
        }
    }
}

/// The allocation that described elements are part of, where they are memory of the library's own, with their layout in it.
/// Returns [`ErrorKind::Descriptor`] if a part of the elements is such memory and they do not lie on the device, and
/// [`ErrorKind::InvalidArgument`] if they do but cannot be shared: the host sees them, or a part of them is not the
/// allocation's, or they are registered.
pub(crate) fn find<B: Backend>(
    device: &Device<B>,
    operation: &'static str,
    elements: &ForeignElements,
) -> Result<Option<(AllocationRef<B>, Layout)>> {
    let table = table();
    let (first, end) = (elements.address, elements.address.saturating_add(elements.bytes as u64));
    if elements.bytes == 0 {
        return Ok(None);
    }
    let refuse = |why| Err(device.core().error(operation, ErrorKind::InvalidArgument { why }));
    let not_lent = || match table.has_registered(first, end) {
        true => refuse("the memory is registered: use the array that it belongs to"),
        false => Ok(None),
    };
    if table.count.load(Ordering::Acquire) == 0 {
        return not_lent();
    }
    let found = {
        let lent = table.lent.lock();
        // The addresses of memory that was lent before a reset may be anyone's by now.
        let is_found = |entry: &&Entry| entry.end > first && entry.memory.is_fresh();
        let Some(entry) = lent.range(..(end, 0)).map(|(_, entry)| entry).find(is_found) else {
            return not_lent();
        };
        (&*entry.memory as &dyn Any).downcast_ref::<AllocationRef<B>>().cloned()
    };
    let Some(memory) = found.filter(|memory| memory.core().is_same(device.core())) else {
        elements.check_place(device, operation)?;
        return refuse("the memory is the library's own, of another device or backend");
    };
    if memory.kind() != MemoryKind::Device {
        return refuse(
            "the memory is the library's own, and the host sees it: use the array that it belongs to",
        );
    }
    let offset = first.checked_sub(memory.address()).and_then(|offset| usize::try_from(offset).ok());
    let layout = offset.and_then(|offset| {
        let layout = elements.layout.clone();
        let all = offset.checked_add(layout.offset())?;
        layout.with_offset(all).ok().filter(|layout| layout.fits(memory.len()).is_ok())
    });
    let Some(layout) = layout else {
        elements.check_place(device, operation)?;
        return refuse("the elements are partly memory of the library's own");
    };
    memory.share();
    Ok(Some((memory, layout)))
}
