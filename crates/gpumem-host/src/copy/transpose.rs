//! Two axes whose order differs between the sides.

use gpumem_core::Axis;
use std::mem::MaybeUninit;

/// Items along each side of a tile. A tile goes through a small buffer, so that both sides are touched in runs: with
/// strides that are powers of two, the lines of a tile would otherwise fall on the same few sets of the cache.
const TILE: usize = 32;

/// Copies the items of two axes: `across`, along which the source lies close, and `along`, where the destination does.
///
/// # Safety
/// Every pair of indices names an item of `N` bytes that is valid on both sides; the sides do not overlap.
pub(crate) unsafe fn transpose<const N: usize>(
    source: *const u8,
    destination: *mut u8,
    across: Axis,
    along: Axis,
) {
    let mut tile = [[MaybeUninit::<[u8; N]>::uninit(); TILE]; TILE];
    // The usual case has its strides and lengths as constants.
    let packed = across.src == N as isize && along.dst == N as isize;
    for top in (0..across.len).step_by(TILE) {
        let height = TILE.min(across.len - top);
        for left in (0..along.len).step_by(TILE) {
            let width = TILE.min(along.len - left);
            let offset = |across_step: isize, along_step: isize| {
                top as isize * across_step + left as isize * along_step
            };
            let from = source.wrapping_offset(offset(across.src, along.src));
            let to = destination.wrapping_offset(offset(across.dst, along.dst));
            // SAFETY: `height × width` items from here on are items of the copy.
            unsafe {
                if height == TILE && width == TILE && packed {
                    gather(from, &mut tile, N as isize, along.src, TILE, TILE);
                    scatter(to, &tile, across.dst, N as isize, TILE, TILE);
                } else {
                    gather(from, &mut tile, across.src, along.src, height, width);
                    scatter(to, &tile, across.dst, along.dst, height, width);
                }
            }
        }
    }
}

type Tile<const N: usize> = [[MaybeUninit<[u8; N]>; TILE]; TILE];

/// Reads a tile; `tile[i][j]` is item `i` across and `j` along.
///
/// # Safety
/// `height × width` items are valid for reads.
#[inline(always)]
unsafe fn gather<const N: usize>(
    from: *const u8,
    tile: &mut Tile<N>,
    across: isize,
    along: isize,
    height: usize,
    width: usize,
) {
    for j in 0..width {
        let column = from.wrapping_offset(j as isize * along);
        for (i, row) in tile.iter_mut().enumerate().take(height) {
            // SAFETY: an item of the tile; arrays of bytes have no alignment.
            row[j] =
                unsafe { column.wrapping_offset(i as isize * across).cast::<MaybeUninit<[u8; N]>>().read() };
        }
    }
}

/// Writes a tile.
///
/// # Safety
/// `height × width` items are valid for writes.
#[inline(always)]
unsafe fn scatter<const N: usize>(
    to: *mut u8,
    tile: &Tile<N>,
    across: isize,
    along: isize,
    height: usize,
    width: usize,
) {
    for (i, row) in tile.iter().enumerate().take(height) {
        let line = to.wrapping_offset(i as isize * across);
        for (j, item) in row.iter().enumerate().take(width) {
            // SAFETY: an item of the tile.
            unsafe { line.wrapping_offset(j as isize * along).cast::<MaybeUninit<[u8; N]>>().write(*item) };
        }
    }
}
