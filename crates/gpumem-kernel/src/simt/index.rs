//! Indices of n-d arrays.

use crate::simt::{FaultKind, fault};
use std::panic::Location;

/// An index into an array of `N` axes: `[y, x]`, or a number for one axis.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no index of an array of {N} axes",
    note = "an array of `N` axes takes `[usize; N]`, an array of one axis also a `usize`"
)]
pub trait Indices<const N: usize>: Copy {
    /// The positions along the axes.
    fn positions(self) -> [usize; N];
}

impl<const N: usize> Indices<N> for [usize; N] {
    #[inline(always)]
    fn positions(self) -> [usize; N] {
        self
    }
}

impl Indices<1> for usize {
    #[inline(always)]
    fn positions(self) -> [usize; 1] {
        [self]
    }
}

/// The row-major position, or `None` if it is outside.
#[inline(always)]
pub(crate) fn row_major<const N: usize>(at: [usize; N], extents: &[u32; N]) -> Option<usize> {
    let (mut linear, mut axis) = (0, 0);
    // Not with iterators, of which unoptimised programs make calls: nothing runs as often as this.
    while axis < N {
        let extent = extents[axis] as usize;
        if at[axis] >= extent {
            return None;
        }
        linear = linear * extent + at[axis];
        axis += 1;
    }
    Some(linear)
}

/// Raises the fault of an index outside an array of these extents. Returns as [`fault::raise`] does.
#[inline(always)]
pub(crate) fn outside(index: &[usize], extents: &[usize], at: &'static Location<'static>) {
    if cfg!(panic = "unwind") {
        unwind_outside(index, extents, at);
    }
    note_outside(index, extents, at);
}

#[cold]
#[inline(never)]
fn unwind_outside(index: &[usize], extents: &[usize], at: &'static Location<'static>) -> ! {
    fault::unwind(FaultKind::OutOfBounds { index: index.to_vec(), extents: extents.to_vec(), at })
}

#[cold]
#[inline(never)]
fn note_outside(index: &[usize], extents: &[usize], at: &'static Location<'static>) {
    fault::note(FaultKind::OutOfBounds { index: index.to_vec(), extents: extents.to_vec(), at });
}

/// The same in other memory, so that an index which only a cold call needs there is not put into memory before it.
#[inline(always)]
pub(crate) fn copied<const N: usize>(at: [usize; N]) -> [usize; N] {
    std::array::from_fn(|axis| at[axis])
}
