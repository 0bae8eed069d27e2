//! The kernels, as Rust functions. All take packed arrays; `length` is that of the axis they work along, `inner` the number of
//! elements from one to the next along it.

#![allow(clippy::manual_div_ceil)] // kernels do not know `div_ceil`

mod index;
mod maps;
mod reduce;
mod scan;
#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)] // helpers of tests
mod tests;

pub(crate) use index::reduce_index;
pub(crate) use maps::{divide, map, zip_map};
pub(crate) use reduce::reduce;
pub(crate) use scan::{scan_columns, scan_tiles};

/// Work-items of every group.
pub(crate) const GROUP: u32 = 256;
/// Elements that one work-item of [`reduce()`] and [`scan_columns()`] takes.
pub(crate) const CHUNK: usize = 64;
/// Elements that one group of [`scan_tiles()`] takes.
pub(crate) const TILE: usize = 2048;
