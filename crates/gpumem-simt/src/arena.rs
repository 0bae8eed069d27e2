//! The shared memory of the group that a thread is running.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::panic::Location;

type Place = &'static Location<'static>;

/// Bytes to which arrays are aligned; no element needs more.
const ALIGN: usize = 16;

/// Shared memory: one block, from which arrays are cut in the order in which they are first named. Arrays are known by
/// the place in the source that names them, as they are on a GPU.
#[derive(Debug)]
pub(crate) struct Arena {
    block: Box<[UnsafeCell<u128>]>,
    bytes: usize,
    named: RefCell<Vec<Named>>,
    /// Bytes that are taken; dynamic memory comes first.
    taken: Cell<usize>,
    dynamic: usize,
}

#[derive(Debug, Clone, Copy)]
struct Named {
    place: Place,
    offset: usize,
    bytes: usize,
}

impl Arena {
    /// Memory of `bytes` bytes, the first `dynamic` of which are the launch's dynamic shared memory.
    pub(crate) fn new(bytes: usize, dynamic: usize) -> Self {
        let block = (0..bytes.div_ceil(16)).map(|_| UnsafeCell::new(0)).collect();
        let taken = Cell::new(dynamic.next_multiple_of(ALIGN));
        Self { block, bytes, named: RefCell::default(), taken, dynamic }
    }

    /// Makes all arrays of the last group unknown. Their bytes stay, as they do on a GPU.
    pub(crate) fn clear(&self) {
        self.named.borrow_mut().clear();
        self.taken.set(self.dynamic.next_multiple_of(ALIGN));
    }

    /// Bytes of dynamic shared memory.
    pub(crate) fn dynamic(&self) -> usize {
        self.dynamic
    }

    /// The bytes at an offset.
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        self.block.as_ptr().cast::<u8>().cast_mut().wrapping_add(offset)
    }

    /// Where the array of that place lies.
    ///
    /// # Errors
    /// The bytes that the group would need, if it has fewer.
    pub(crate) fn named(&self, place: Place, bytes: usize) -> Result<usize, usize> {
        let mut named = self.named.borrow_mut();
        // The same place usually has the same address, but may have several.
        let same = |array: &&Named| {
            (std::ptr::eq(array.place, place) || array.place == place) && array.bytes == bytes
        };
        if let Some(array) = named.iter().find(same) {
            return Ok(array.offset);
        }
        let offset = self.taken.get();
        let end = offset.saturating_add(bytes);
        if end > self.bytes {
            return Err(end);
        }
        named.push(Named { place, offset, bytes });
        self.taken.set(end.next_multiple_of(ALIGN));
        Ok(offset)
    }

    /// Bytes in all.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
