//! The order of elements in memory, and contiguity.

use super::{Layout, Shape, Strides};
use smallvec::SmallVec;

/// Which axis varies fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// The last axis: row-major.
    #[default]
    C,
    /// The first axis: column-major, as in Fortran.
    F,
}

/// Axes that a shape holds without an allocation.
const INLINE: usize = 6;

/// Byte strides of elements side by side. Lengths of 0 count as 1, as in NumPy.
pub(super) fn packed_strides(shape: &[usize], item: usize, order: Order) -> Strides {
    // Without the loop that fills a vector of any length: this is on the way of every new array.
    let mut strides = SmallVec::from_buf_and_len([0; INLINE], shape.len().min(INLINE));
    if shape.len() > INLINE {
        strides.resize(shape.len(), 0);
    }
    let mut next = item;
    let mut place = |(stride, &length): (&mut isize, &usize)| {
        *stride = next as isize;
        next *= length.max(1);
    };
    match order {
        Order::C => strides.iter_mut().zip(shape).rev().for_each(&mut place),
        Order::F => strides.iter_mut().zip(shape).for_each(&mut place),
    }
    strides
}

/// Whether axes, fastest first, leave no gaps. Axes of length 1 are skipped, whatever their strides.
fn is_packed(axes: impl Iterator<Item = (usize, isize)>, item: usize) -> bool {
    let mut next = item as isize;
    for (length, stride) in axes.filter(|&(length, _)| length != 1) {
        if stride != next {
            return false;
        }
        next *= length as isize;
    }
    true
}

/// The number of elements, if those of these axes lie side by side in row-major order.
#[inline(never)]
fn packed_len_of(shape: &[usize], strides: &[isize], item: usize) -> Option<usize> {
    let (mut len, mut packed) = (1, true);
    for (&length, &stride) in shape.iter().zip(strides).rev() {
        packed &= length == 1 || stride == item.wrapping_mul(len) as isize;
        len *= length;
    }
    (packed || len == 0).then_some(len)
}

impl Layout {
    /// The number of elements, if they lie side by side in row-major order: [`is_c_contiguous`](Self::is_c_contiguous)
    /// and [`len`](Self::len) in one pass.
    #[inline]
    pub fn packed_len(&self) -> Option<usize> {
        match (&*self.shape, &*self.strides) {
            // Most arrays have one axis, and every launch asks.
            (&[length], &[stride]) if stride == self.item as isize => Some(length),
            (shape, strides) => packed_len_of(shape, strides, self.item),
        }
    }

    /// Whether the elements lie side by side in row-major order, by NumPy's relaxed rules: strides of axes of length
    /// 1 do not count, and an array without elements is contiguous in every order. A broadcast axis is not
    /// contiguous.
    pub fn is_c_contiguous(&self) -> bool {
        self.is_empty() || is_packed(self.axes().rev(), self.item)
    }

    /// Whether the elements lie side by side in column-major order, by the rules of
    /// [`is_c_contiguous`](Self::is_c_contiguous).
    pub fn is_f_contiguous(&self) -> bool {
        self.is_empty() || is_packed(self.axes(), self.item)
    }

    /// Whether the elements lie side by side in the given order.
    pub fn is_contiguous(&self, order: Order) -> bool {
        match order {
            Order::C => self.is_c_contiguous(),
            Order::F => self.is_f_contiguous(),
        }
    }

    /// The packed layout, from byte 0 on, that keeps the order of the axes: what `numpy.empty_like` gives.
    ///
    /// That is C or F order for contiguous arrays; else the axes are ordered by the size of their strides, whatever
    /// their sign, and ties stay in C order.
    pub fn like(&self) -> Layout {
        let strides = if self.is_c_contiguous() {
            packed_strides(&self.shape, self.item, Order::C)
        } else if self.is_f_contiguous() {
            packed_strides(&self.shape, self.item, Order::F)
        } else {
            // Slowest axis first; the sort is stable.
            let mut order: Shape = (0..self.ndim()).collect();
            order.sort_by_key(|&axis| std::cmp::Reverse(self.strides[axis].unsigned_abs()));
            let mut strides: Strides = SmallVec::from_elem(0, self.ndim());
            let mut next = self.item;
            for &axis in order.iter().rev() {
                strides[axis] = next as isize;
                next *= self.shape[axis];
            }
            strides
        };
        Layout { shape: self.shape.clone(), strides, offset: 0, item: self.item }
    }
}
