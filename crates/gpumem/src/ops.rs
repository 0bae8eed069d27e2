//! Reductions, scans, sorts, casts, maps and random numbers, on every device.
//!
//! [`ArrayOps`] has the operations as methods of arrays, and the [prelude](crate::prelude) has it. `x.sum()` has finished on return;
//! `x.on(&stream).sum()` returns at once and leaves its result on the device. The names are those of ndarray and CuPy.
//!
//! ```
//! use gpumem::{Device, ndarray::array, prelude::*};
//!
//! let device = Device::open("host")?;
//! let x = device.to_device(&array![[3.0f32, 1.0, 2.0], [6.0, 5.0, 4.0]])?;
//! assert_eq!((x.sum()?, x.max()?, x.argmax()?), (21.0, 6.0, 3));
//! assert_eq!(x.mean_axis(1)?.copy_to_host()?, array![2.0, 5.0]);
//! assert_eq!(x.t().inclusive_scan(1)?.copy_to_host()?, array![[3.0, 9.0], [1.0, 6.0], [2.0, 6.0]]);
//! # Ok::<(), gpumem::Error>(())
//! ```
//!
//! # Layouts
//!
//! Arrays and views may have any layout. Packed ones, with their axes in any order and direction, are read in place; others are
//! copied to packed memory first. Results are packed, with their axes in the order of the operand's.
//!
//! # Accuracy
//!
//! The order of additions depends on the shape and the order of the axes alone, so a GPU and the host give the same bits; only
//! the bits of a NaN differ. Most additions of floats are in pairs. In units of the last place of the sum of absolute values,
//! with `u` the rounding of one addition:
//!
//! | operation | error of floats | integers |
//! |---|---|---|
//! | `sum`, `mean`, `map_sum`, `zip_map_sum` of `n` elements | at most 19 `u` up to `n` = 16 384, 38 `u` up to 2^28, 57 `u` beyond; a loop: `n` `u` | exact, 64 bits that wrap |
//! | `sum_axis`, `mean_axis`, `map_sum_axis`, `zip_map_sum_axis` with fewer than 32 elements after the axis in memory | the same, with the length of the axis as `n` | the same |
//! | the same else | 11 `u` for every factor of 64 of the length | the same |
//! | scans with fewer than 32 elements after the axis | at most 180 `u` up to a length of 2^28 | the same |
//! | scans else | 75 `u` for every factor of 64 of the length | the same |
//! | `f16`, `bf16` | the same in `f32`, and one rounding at the end | |
//! | `min`, `max`, `argmin`, `argmax`, `sort`, `argsort`, `cast`, `concatenate` | none | none |
//!
//! NaN is less and greater than all numbers: `min` and `max` return it, `argmin` and `argmax` its first place. Of equal elements
//! the first counts; `min` and `max` of `0.0` and `-0.0` may be either, the same on every device. `sort` and `argsort` have
//! a total order, with `-0.0` before `0.0` and NaN last, and leave equal elements in their order.
//!
//! # Random numbers
//!
//! [`Philox`] makes uniform and normal numbers. Each is a function of the seed, the sequence and its position, with the same bits on
//! every device, however an array is split or laid out.
//!
//! # Errors
//!
//! An axis that is not there, shapes that do not fit, and a least, greatest or mean element of none are refused before anything
//! is enqueued. The sum of no elements is 0.

pub use gpumem_ops::*;
