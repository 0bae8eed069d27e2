//! Divisions of numbers whose upper bits are known to be equal: a compiler may divide in fewer bits only where these are zeros.

use gpumem::kernel::prelude::*;

#[gpumem::kernel(unsafe)]
pub(crate) fn divisions(out: SliceMut<i64>) {
    let i = global_id(0);
    let (byte, half, word) = (i as i8 - 40, i as i16 - 40, i as i32 - 40);
    let by = i as u8 + 3;
    let mut long = word as u64 % 1000;
    long ^= word as u64 / 1000;
    long ^= byte as u64 % 10;
    long ^= byte as u64 / by as u64;
    long ^= half as u64 / (byte as u64 | 1);
    let mut short = byte as u32 / by as u32;
    short ^= half as u32 % (by as u32 + 500);
    short ^= (byte as u32).rem_euclid(by as u32);
    let mut place = (byte as u32 as usize) / group_size(1);
    place ^= (byte as u32 as usize) / 3;
    place ^= (!group_id(1)) % 3;
    let mut rest = half as usize;
    rest %= 7;
    let is_multiple = (byte as u64).is_multiple_of(6) as i64;
    out[i] = (long ^ short as u64 ^ (place + rest) as u64) as i64 ^ is_multiple;
}

/// What it gives for a work-item.
pub(crate) fn of_divisions(i: i64) -> i64 {
    let (byte, half, word) = (i as i8 - 40, i as i16 - 40, i as i32 - 40);
    let by = i as u8 + 3;
    let long = [
        word as u64 % 1000,
        word as u64 / 1000,
        byte as u64 % 10,
        byte as u64 / u64::from(by),
        half as u64 / (byte as u64 | 1),
    ];
    let short =
        [byte as u32 / u32::from(by), half as u32 % (u32::from(by) + 500), byte as u32 % u32::from(by)];
    let place = byte as u32 ^ (byte as u32 / 3) ^ (usize::MAX % 3) as u32;
    let rest = half as usize % 7;
    let all = long.into_iter().chain(short.map(u64::from)).fold(0, |all, one| all ^ one);
    (all ^ (place as usize + rest) as u64) as i64 ^ i64::from((byte as u64).is_multiple_of(6))
}
