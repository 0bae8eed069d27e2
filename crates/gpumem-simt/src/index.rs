//! Indices of n-d arrays.

/// An index into an array of `N` axes: `[y, x]`, or a number for one axis.
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
pub(crate) fn row_major<const N: usize>(at: [usize; N], extents: &[usize; N]) -> Option<usize> {
    let (mut linear, mut axis) = (0, 0);
    // Not with iterators, of which unoptimised programs make calls: nothing runs as often as this.
    while axis < N {
        if at[axis] >= extents[axis] {
            return None;
        }
        linear = linear * extents[axis] + at[axis];
        axis += 1;
    }
    Some(linear)
}
