//! Sorting by digits of four bits, from the lowest on: each pass leaves elements of equal digits in their order.

use crate::kernel::{BinaryFunction, DeviceType, Own, Slice, SliceMut};
use gpumem_core::{BarrierScope::Local, Element};
use gpumem_macros::{device, kernel};

/// Counts the digits of each tile of 4096 elements, for groups of 256, one for each tile. `counts` has those of digit 0 of all tiles,
/// then those of digit 1, and so on.
// SAFETY: each lane counts in a column of its own, barriers separate the uses of shared arrays, and each group writes its own counts.
// Indices of `x`, which is not empty, are compared with its length, and the caller gives `counts` for as many tiles as groups.
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
    let first = group_id(0) * 4096 + lane;
    for digit in 0..16 {
        columns[digit * 272 + own] = 0;
    }
    // Without branches, so that the elements are on their way together: past the end, the last one is read and not counted.
    let last = x.len() - 1;
    for j in 0..16 {
        let at = first + j * 256;
        let digit = Digit(x[if at < last { at } else { last }], (shift, length, inner)) as usize;
        columns[digit * 272 + own] += (at <= last) as u32;
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
///
/// A group sorts its tile in shared memory, so that neighbours in `out` are written by neighbours.
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
    // The elements as they are in memory, with one place between 16, as between the columns.
    let tile = shared::<T>([4352]);
    // First the counts of each digit and lane, then the elements in order: the digit, and in the lower 12 bits where it is in the tile.
    let columns = shared::<u16>([4352]);
    let parts = shared::<u32>([272]);
    // Where the elements of each digit begin in the tile, then how many they are; and where they begin in `out`.
    let starts = shared::<u32>([32]);
    let bases = shared::<u64>([16]);
    let lane = local_id(0);
    let own = lane + lane / 16;
    let first = group_id(0) * 4096;
    // As in `count_digits`, past the end.
    let last = x.len() - 1;
    for j in 0..16 {
        let at = j * 256 + lane;
        tile[at + at / 16] = x[if first + at < last { first + at } else { last }];
    }
    for j in 0..17 {
        columns[j * 256 + lane] = 0;
    }
    barrier(Local);
    let mut digits = local::<u32>([16]);
    for j in 0..16 {
        digits[j] = Digit(tile[lane * 17 + j], (shift, length, inner));
        columns[digits[j] as usize * 272 + own] += (first + lane * 16 + j <= last) as u16;
    }
    barrier(Local);
    // Each lane scans 16 columns of one digit, one lane the sums of all columns of a digit, and those of all digits before it.
    let mut sum = 0u16;
    for j in 0..16 {
        let count = columns[lane * 17 + j];
        columns[lane * 17 + j] = sum;
        sum += count;
    }
    parts[own] = sum as u32;
    barrier(Local);
    if lane < 16 {
        let mut all = 0u32;
        for j in 0..16 {
            let part = parts[lane * 17 + j];
            parts[lane * 17 + j] = all;
            all += part;
        }
        starts[16 + lane] = all;
        bases[lane] = before[lane * groups(0) + group_id(0)];
    }
    barrier(Local);
    if lane < 16 {
        let mut start = 0u32;
        for digit in 0..lane {
            start += starts[16 + digit];
        }
        starts[lane] = start;
    }
    barrier(Local);
    for j in 0..16 {
        let at = lane * 16 + j;
        let (digit, is_there) = (digits[j] as usize, (first + at <= last) as u32);
        let column = digit * 272 + own;
        let rank = starts[digit] + parts[digit * 17 + lane / 16] + columns[column] as u32;
        columns[column] += is_there as u16;
        digits[j] = (is_there << 31) | (rank << 16) | (digits[j] << 12) | at as u32;
    }
    barrier(Local);
    for j in 0..16 {
        if digits[j] >> 31 == 1 {
            columns[((digits[j] >> 16) & 4095) as usize] = digits[j] as u16;
        }
    }
    barrier(Local);
    for j in 0..16 {
        let rank = j * 256 + lane;
        let digit = (columns[rank] >> 12) as usize;
        let at = (columns[rank] & 4095) as usize;
        let to = bases[digit] as usize + rank - starts[digit] as usize;
        let value = tile[at + at / 16];
        if first + rank <= last {
            out[to] = value;
            if !places_out.is_empty() {
                places_out[to] = if places.is_empty() { (first + at) as u64 } else { places[first + at] };
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
