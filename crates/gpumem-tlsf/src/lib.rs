//! Two-level segregated fit (TLSF) over any range of addresses or offsets.
//!
//! A [`Tlsf`] allocates from the ranges that [`add_region`](Tlsf::add_region) adds, and keeps track of what is
//! allocated and free. It touches none of the bytes, so it serves memory that the host cannot see, and plain offsets.
//! It uses no lock and no driver.
//!
//! * Allocating and freeing cost the same however many blocks there are. Free blocks are in lists by size class, 32 to
//!   each power of two; two levels of bitmaps find the next list that is not empty (Masmano et al., 2004).
//! * Neighbours that are free are one block at once. Nothing has to be compacted later.
//! * **Sets.** Free blocks belong to a set. Set 0 is *idle*: the bytes are not in use. The pool makes a set for each
//!   stream, of blocks that the stream may still be using: the stream itself may reuse them at once, and others skip
//!   them. Only blocks of one set are joined, so a hole that is idle does not have to wait because of its neighbour. A
//!   block of such a set carries a *stamp*; a joint block carries the later one.
//!
//! ```
//! use gpumem_tlsf::Tlsf;
//!
//! let mut tlsf = Tlsf::new(256);
//! tlsf.add_region(0, 1 << 20).unwrap();
//! let a = tlsf.allocate(Tlsf::IDLE, 1000, 256).unwrap();
//! let b = tlsf.allocate(Tlsf::IDLE, 5000, 4096).unwrap();
//! assert_eq!((a.start, a.len), (0, 1024)); // whole granules
//! assert_eq!(b.start % 4096, 0);
//! tlsf.free(a.block, Tlsf::IDLE, 0);
//! assert!(tlsf.free(b.block, Tlsf::IDLE, 0)); // the region is whole again
//! ```

#![forbid(unsafe_code)]

mod allocator;

pub use allocator::{AllocatedBlock, BlockId, BlockInfo, Inconsistent, RegionId, SetId, Tlsf};
