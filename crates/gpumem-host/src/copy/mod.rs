//! What copies and fills do, once their turn has come. All of it goes through raw pointers: memory of a device is
//! shared with whoever else the caller has ordered against.

mod fill;
mod region;
mod strided;
mod transpose;

pub(crate) use fill::{extent_of_fill, fill_bytes, run_fill};
pub(crate) use region::{extent, run_region};
pub(crate) use strided::{Span, StridedPlan};

use std::ptr;

/// The pointer for an address that a command names.
pub(crate) fn pointer(address: u64) -> *mut u8 {
    // An address of this process fits.
    ptr::with_exposed_provenance_mut(address as usize)
}
