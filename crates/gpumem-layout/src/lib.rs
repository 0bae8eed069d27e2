//! Layouts of n-d arrays, the plans of copies between them, and of temporaries in a block. No memory, no driver and no device.
//!
//! * [`layout`]: shapes, byte strides, slices; [`CopyNest`](layout::CopyNest), the loops of a copy between two layouts.
//! * [`region_loop`]: such loops as the fewest [`CopyRegion`](gpumem_core::CopyRegion)s.
//! * [`arena`]: temporaries whose lives do not meet, in the same bytes of one block.
//! * [`chunks`]: such loops, cut into chunks of a limited size.
//! * [`registration_boundaries`]: regions, cut where page-locked memory was registered in several parts.
//! * [`driver_calls`]: a region as calls of a driver for GPUs.
//! * [`pack`]: kernels that copy between any two layouts on the device, and their launches.

// Not forbidden: the expansion of `ndarray::s!` allows it.
#![deny(unsafe_code)]

pub mod arena;
pub mod chunks;
pub mod driver_calls;
pub mod layout;
pub mod pack;
pub mod region_loop;
pub mod registration_boundaries;
