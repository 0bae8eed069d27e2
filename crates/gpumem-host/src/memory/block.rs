//! One allocation.

use gpumem_core::MemoryKind;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

/// The byte that released memory is filled with, so that a late reader sees nonsense.
pub(crate) const POISON: u8 = 0xDD;

/// The alignment that every allocation has at least: a cache line.
pub(crate) const MIN_ALIGN: usize = 64;

/// The alignment that is asked of the allocator: its own and no more, because only then it returns fresh zero pages
/// without touching them.
const BASE_ALIGN: usize = 16;

/// An allocation. It is freed when the table and all running commands have dropped it.
#[derive(Debug)]
pub(crate) struct Block {
    backing: (NonNull<u8>, Layout),
    start: NonNull<u8>,
    bytes: usize,
    kind: MemoryKind,
    owner: usize,
    serial: u64,
    poison: bool,
    released: AtomicBool,
}

// SAFETY: a block only owns memory; it is reached through raw pointers by commands that their callers have ordered.
unsafe impl Send for Block {}
// SAFETY: as above; all fields but the atomic are constant.
unsafe impl Sync for Block {}

/// Whom a block belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner {
    /// Ordinal of the device.
    pub(crate) ordinal: usize,
    /// A number that no other block of this process has.
    pub(crate) serial: u64,
    /// Whether the memory is poisoned when it is freed.
    pub(crate) poison: bool,
}

impl Block {
    /// Zeroed memory, or `None` where the system has none of that size and alignment.
    pub(crate) fn allocate(bytes: usize, align: usize, kind: MemoryKind, owner: Owner) -> Option<Self> {
        let align = align.max(MIN_ALIGN);
        let layout =
            Layout::from_size_align(bytes.max(1).checked_add(align - BASE_ALIGN)?, BASE_ALIGN).ok()?;
        // SAFETY: the layout's size is not zero.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let offset = base.as_ptr().align_offset(align);
        if offset > align - BASE_ALIGN {
            // SAFETY: allocated above with this layout.
            unsafe { dealloc(base.as_ptr(), layout) };
            return None;
        }
        // SAFETY: the allocation is `align - BASE_ALIGN` bytes longer than `bytes`, and the offset is not greater.
        let start = unsafe { base.add(offset) };
        // Commands come with addresses; this lets them reach the memory.
        start.as_ptr().expose_provenance();
        let Owner { ordinal, serial, poison } = owner;
        let released = AtomicBool::new(false);
        let backing = (base, layout);
        Some(Self { backing, start, bytes, kind, owner: ordinal, serial, poison, released })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn address(&self) -> usize {
        self.start.as_ptr().addr()
    }

    /// End address (exclusive).
    pub(crate) fn end(&self) -> usize {
        self.address() + self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// Ordinal of the device that made it.
    pub(crate) fn owner(&self) -> usize {
        self.owner
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    pub(crate) fn is_released(&self) -> bool {
        self.released.load(Ordering::Relaxed)
    }

    /// Marks the block as released. With `unused`, it is not in use and its contents are overwritten at once.
    pub(crate) fn set_released(&self, unused: bool) {
        self.released.store(true, Ordering::Relaxed);
        if self.poison && unused {
            // SAFETY: the memory belongs to this block and is not in use.
            unsafe { self.start.as_ptr().write_bytes(POISON, self.bytes) };
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let (base, layout) = self.backing;
        // SAFETY: allocated with this layout, and this is its last owner. A pool that is gone may have left parts of it watched.
        unsafe {
            crate::asan::set_poisoned(self.start.as_ptr().addr() as u64, self.bytes, true);
            if self.poison {
                self.start.as_ptr().write_bytes(POISON, self.bytes);
            }
            dealloc(base.as_ptr(), layout);
        }
    }
}
