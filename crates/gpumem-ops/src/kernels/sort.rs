//! Sorting by digits of four bits, from the lowest on: each pass leaves elements of equal digits in their order.

use crate::kernel::{BinaryFunction, DeviceType, Own, Slice, SliceMut};
use gpumem_core::{BarrierScope::Local, Element};
use gpumem_macros::{device, kernel};

/// Counts the digits of each tile of 4096 elements, for groups of 256, one for each tile. `counts` has those of digit 0 of all tiles,
/// then those of digit 1, and so on.
// SAFETY: each lane counts in a column of its own, barriers separate the uses of shared arrays, and each group writes its own counts.
// Indices of `x` are compared with its length, and the caller gives `counts` for as many tiles as groups.
#[kernel(unsafe, unchecked, crate = crate)]
pub(crate) fn count_digits<T, Digit>(x: Slice<T>, counts: SliceMut<u32>, shift: u32, length: u64, inner: u64)
where
    T: Element + DeviceType,
    Digit: BinaryFunction<T, (u32, u64, u64), Output = u32> + 'static,
{
    // Of each digit a column for each lane; with one place between 16 columns, the lanes that sum them read different banks.
    let columns = shared::<u32>([4352]);
    let parts = shared::<u32>([272]);
    let lane = local_id(0);
    let own = lane + lane / 16;
    let first = group_id(0) * 4096 + lane * 16;
    for digit in 0..16 {
        columns[digit * 272 + own] = 0;
    }
    for j in 0..16 {
        if first + j < x.len() {
            let digit = Digit(x[first + j], (shift, length, inner)) as usize;
            columns[digit * 272 + own] += 1;
        }
    }
    barrier(Local);
    let mut sum = 0u32;
    for j in 0..16 {
        sum += columns[lane * 17 + j];
    }
    parts[own] = sum;
    barrier(Local);
    if lane < 16 {
        let mut all = 0u32;
        for j in 0..16 {
            all += parts[lane * 17 + j];
        }
        counts[lane * groups(0) + group_id(0)] = all;
    }
}

/// Moves elements to their places by one digit, for groups as those of [`count_digits`]. `before` has the sums of all counts before
/// each. Unless `places_out` is empty, the places of the elements move with them, from `places`, which is empty at first.
// SAFETY: as for `count_digits`; the elements of all lanes and groups have different places, below their number. That rests on `x` being
// as it was when its digits were counted: it is memory that nothing else writes meanwhile.
#[kernel(unsafe, unchecked, crate = crate)]
pub(crate) fn move_by_digit<T, Digit>(
    x: Slice<T>,
    places: Slice<u64>,
    before: Slice<u64>,
    out: SliceMut<T>,
    places_out: SliceMut<u64>,
    shift: u32,
    length: u64,
    inner: u64,
) where
    T: Element + DeviceType,
    Digit: BinaryFunction<T, (u32, u64, u64), Output = u32> + 'static,
{
    let columns = shared::<u32>([4352]);
    let parts = shared::<u32>([272]);
    let lane = local_id(0);
    let own = lane + lane / 16;
    let first = group_id(0) * 4096 + lane * 16;
    for digit in 0..16 {
        columns[digit * 272 + own] = 0;
    }
    for j in 0..16 {
        if first + j < x.len() {
            let digit = Digit(x[first + j], (shift, length, inner)) as usize;
            columns[digit * 272 + own] += 1;
        }
    }
    barrier(Local);
    // Each lane scans 16 columns of one digit, one lane the sums of all columns of a digit.
    let mut sum = 0u32;
    for j in 0..16 {
        let count = columns[lane * 17 + j];
        columns[lane * 17 + j] = sum;
        sum += count;
    }
    parts[own] = sum;
    barrier(Local);
    if lane < 16 {
        let mut all = 0u32;
        for j in 0..16 {
            let part = parts[lane * 17 + j];
            parts[lane * 17 + j] = all;
            all += part;
        }
    }
    barrier(Local);
    for j in 0..16 {
        if first + j < x.len() {
            let value = x[first + j];
            let digit = Digit(value, (shift, length, inner)) as usize;
            let rank = parts[digit * 17 + lane / 16] + columns[digit * 272 + own];
            columns[digit * 272 + own] += 1;
            let to = before[digit * groups(0) + group_id(0)] as usize + rank as usize;
            out[to] = value;
            if !places_out.is_empty() {
                places_out[to] = if places.is_empty() { (first + j) as u64 } else { places[first + j] };
            }
        }
    }
}

/// Where the element of a sorted array is that lies at `at` in memory: the lines are sorted one behind the other.
#[device(crate = crate)]
fn sorted_place(at: usize, length: usize, inner: usize) -> usize {
    let rest = at % (length * inner);
    (at / (length * inner) * inner + rest % inner) * length + rest / inner
}

/// Takes the elements of sorted lines, for groups along x that cover `out`.
#[kernel(crate = crate)]
pub(crate) fn sorted_elements<T>(x: Slice<T>, places: Slice<u64>, out: Own<T>, length: u64, inner: u64)
where
    T: Element + DeviceType,
{
    let at = own();
    if at[0] < out.len() {
        out[at] = x[places[sorted_place(at[0], length as usize, inner as usize)] as usize];
    }
}

/// As [`sorted_elements`], of the positions of the elements in their lines.
#[kernel(crate = crate)]
pub(crate) fn sorted_positions(places: Slice<u64>, out: Own<u64>, length: u64, inner: u64) {
    let at = own();
    if at[0] < out.len() {
        out[at] = places[sorted_place(at[0], length as usize, inner as usize)] / inner % length;
    }
}
