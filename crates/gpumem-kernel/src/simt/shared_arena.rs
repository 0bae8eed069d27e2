//! The shared memory of the group that a thread is running.

use crate::simt::{Fault, fault, name::SiteName};
use std::{
    cell::{Cell, RefCell, UnsafeCell},
    mem::MaybeUninit,
    ops::Range,
};

/// Bytes to which arrays are aligned. Elements that need more do not compile in shared memory.
pub(crate) const ALIGN: usize = 16;

/// Shared memory: one block, from which arrays are cut in the order in which they are first named.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    block: Box<[UnsafeCell<MaybeUninit<u128>>]>,
    bytes: usize,
    named: RefCell<Vec<Named>>,
    /// The position of the array that is likely named next: all work-items name the same ones in the same order.
    likely: Cell<usize>,
    /// Bytes that are taken; dynamic memory comes first.
    taken: Cell<usize>,
    /// Bytes that have been taken by any group so far: those are initialised. Most kernels use a small part of what a
    /// device has, and zeroing all of it takes longer than a short launch.
    initialised: Cell<usize>,
    dynamic: usize,
}

#[derive(Debug, Clone, Copy)]
struct Named {
    name: SiteName,
    offset: usize,
    bytes: usize,
}

impl Named {
    fn is(&self, name: SiteName, bytes: usize) -> bool {
        self.name.is(name) && self.bytes == bytes
    }
}

impl Arena {
    /// Memory of `bytes` bytes, the first `dynamic` of which are the launch's dynamic shared memory.
    pub(crate) fn new(bytes: usize, dynamic: usize) -> Result<Self, Fault> {
        let block = fault::list(bytes.div_ceil(ALIGN), || UnsafeCell::new(MaybeUninit::uninit()))?;
        let arena = Self {
            block: block.into(),
            bytes,
            named: RefCell::default(),
            likely: Cell::new(0),
            taken: Cell::new(0),
            initialised: Cell::new(0),
            dynamic,
        };
        arena.take(dynamic);
        Ok(arena)
    }

    /// Makes all arrays of the last group unknown. Their bytes stay, as they do on a GPU.
    pub(crate) fn clear(&self) {
        self.named.borrow_mut().clear();
        self.likely.set(0);
        self.taken.set(self.dynamic.next_multiple_of(ALIGN));
    }

    /// Takes the bytes below `end`, which is at most `bytes`.
    fn take(&self, end: usize) {
        let end = end.next_multiple_of(ALIGN);
        self.taken.set(end);
        let (from, to) = (self.initialised.get() / ALIGN, end / ALIGN);
        for element in self.block.get(from..to).unwrap_or_default() {
            // SAFETY: only the thread that runs the group uses the block, and holds no array there yet.
            unsafe { element.get().write(MaybeUninit::zeroed()) };
        }
        self.initialised.set(self.initialised.get().max(end));
    }

    /// Bytes of dynamic shared memory.
    pub(crate) fn dynamic(&self) -> usize {
        self.dynamic
    }

    /// The addresses of the dynamic shared memory.
    pub(crate) fn dynamic_addresses(&self) -> Range<usize> {
        self.at(0).addr()..self.at(self.dynamic).addr()
    }

    /// The bytes at an offset. Those of arrays and of the dynamic memory are initialised.
    #[inline(always)]
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        self.block.as_ptr().cast::<u8>().cast_mut().wrapping_add(offset)
    }

    /// Where the array of that name lies.
    /// Returns the bytes that the group would need, if it has fewer.
    #[inline]
    pub(crate) fn named(&self, name: SiteName, bytes: usize) -> Result<usize, usize> {
        let named = self.named.borrow();
        let likely = self.likely.get();
        if let Some(array) = named.get(likely).filter(|array| array.is(name, bytes)) {
            self.likely.set(if likely + 1 < named.len() { likely + 1 } else { 0 });
            return Ok(array.offset);
        }
        drop(named);
        self.find(name, bytes)
    }

    #[inline(never)]
    fn find(&self, name: SiteName, bytes: usize) -> Result<usize, usize> {
        let mut named = self.named.borrow_mut();
        if let Some(index) = named.iter().position(|array| array.is(name, bytes)) {
            self.likely.set((index + 1) % named.len());
            return Ok(named[index].offset);
        }
        let offset = self.taken.get();
        let end = offset.saturating_add(bytes);
        if end > self.bytes {
            return Err(end);
        }
        named.push(Named { name, offset, bytes });
        self.likely.set(0);
        self.take(end);
        Ok(offset)
    }

    /// Bytes in all.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
