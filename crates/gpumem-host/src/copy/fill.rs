//! Fills with a repeated pattern.

use super::pointer;
use gpumem_core::{Fill, Pattern};
use std::ops::Range;

/// Bytes that a fill writes, or `None` if the number does not fit.
pub(crate) fn fill_bytes(fill: &Fill) -> Option<usize> {
    fill.count.checked_mul(fill.pattern.bytes())?.checked_mul(fill.rows)
}

/// The number of bytes that a fill spans, gaps included, or `None` if it overflows.
pub(crate) fn extent_of_fill(fill: &Fill) -> Option<usize> {
    let row = fill.count.checked_mul(fill.pattern.bytes())?;
    fill.pitch.checked_mul(fill.rows.checked_sub(1)?)?.checked_add(row)
}

/// Writes the patterns of `part`, counted through all rows.
///
/// # Safety
/// The rows are valid for writes and as aligned as the pattern; `part` lies within `rows * count`.
pub(crate) unsafe fn run_fill(fill: &Fill, part: Range<usize>) {
    let item = fill.pattern.bytes();
    let mut at = part.start;
    while at < part.end {
        let (row, within) = (at / fill.count, at % fill.count);
        // Rows that touch are one row.
        let joined = fill.rows == 1 || fill.pitch == fill.count * item;
        let count = if joined { part.end - at } else { (fill.count - within).min(part.end - at) };
        // SAFETY: the offset lies inside the fill.
        let start = unsafe { pointer(fill.address).add(row * fill.pitch + within * item) };
        // SAFETY: `count` patterns from here on are part of the fill.
        unsafe {
            match fill.pattern {
                Pattern::U8(value) => start.write_bytes(value, count),
                Pattern::U16(value) => repeat(start.cast(), value, count),
                Pattern::U32(value) => repeat(start.cast(), value, count),
            }
        }
        at += count;
    }
}

/// # Safety
/// `count` values from `start` on are valid for writes and aligned.
unsafe fn repeat<T: Copy>(start: *mut T, value: T, count: usize) {
    for index in 0..count {
        // SAFETY: within the count.
        unsafe { start.add(index).write(value) };
    }
}
