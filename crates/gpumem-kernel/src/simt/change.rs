//! Atomic changes by index.

use crate::simt::{Atomic, Indices, Position, Shared, SliceMut, ViewMut};

/// An array of `T` whose elements are changed atomically with the index `I`. Kernels written in Rust call these functions by their
/// path: a trait of the user's may have others of these names, for arrays that have none.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot change elements of `{Self}` atomically",
    label = "it is read only, or its elements or this index are of another type",
    note = "`SliceMut`, `ViewMut` and shared arrays of `u32`, `i32`, `f32`, `u64`, `i64` and `f64` have such elements"
)]
pub trait Change<I: Position, T: Atomic> {
    /// Replaces an element by `change` of it, and gives the old value.
    fn atomic_update(&self, at: I, change: impl Fn(T) -> T) -> T
    where
        Self: Sized;

    /// Adds to an element, and gives the old value.
    #[inline(always)]
    #[track_caller]
    fn atomic_add(&self, at: I, value: T) -> T
    where
        Self: Sized,
    {
        self.atomic_update(at, |old| old.plus(value))
    }

    /// Lowers an element to at most `value`, and gives the old value.
    #[inline(always)]
    #[track_caller]
    fn atomic_min(&self, at: I, value: T) -> T
    where
        Self: Sized,
    {
        self.atomic_update(at, |old| old.least(value))
    }

    /// Raises an element to at least `value`, and gives the old value.
    #[inline(always)]
    #[track_caller]
    fn atomic_max(&self, at: I, value: T) -> T
    where
        Self: Sized,
    {
        self.atomic_update(at, |old| old.greatest(value))
    }

    /// Replaces an element by `value`, and gives the old value.
    #[inline(always)]
    #[track_caller]
    fn atomic_exchange(&self, at: I, value: T) -> T
    where
        Self: Sized,
    {
        self.atomic_update(at, |_| value)
    }

    /// Replaces an element by `value` where it has the bits of `expected`, and gives the old value.
    #[inline(always)]
    #[track_caller]
    fn atomic_compare_exchange(&self, at: I, expected: T, value: T) -> T
    where
        Self: Sized,
    {
        self.atomic_update(at, |old| if same_bits(old, expected) { value } else { old })
    }
}

macro_rules! changes {
    ($([$($generics:tt)*] $type:ident $arguments:tt, $index:ty;)*) => {$(
        changes!(@ [$($generics)*] $type $arguments, $index);
    )*};
    (@ [$($generics:tt)*] $type:ident ($($argument:tt),*), $index:ty) => {
        #[diagnostic::do_not_recommend]
        impl<T: Atomic, $($generics)*> Change<$index, T> for $type<$($argument),*> {
            #[inline(always)]
            #[track_caller]
            fn atomic_update(&self, at: $index, change: impl Fn(T) -> T) -> T {
                // That of the type, which comes before the trait's.
                $type::atomic_update(self, at, change)
            }
        }
    };
}
changes! {
    [] SliceMut (T), usize;
    [I: Indices<N> + Position, const N: usize] ViewMut (T, N), I;
    [I: Indices<N> + Position, const N: usize] Shared ('_, T, N), I;
}

// References that a kernel passes on.
#[diagnostic::do_not_recommend]
impl<I: Position, T: Atomic, A: Change<I, T>> Change<I, T> for &A {
    #[inline(always)]
    #[track_caller]
    fn atomic_update(&self, at: I, change: impl Fn(T) -> T) -> T {
        (**self).atomic_update(at, change)
    }
}

/// Tells whether two numbers have the same bits, as a compare-exchange does, also for zeros and NaNs.
fn same_bits<T: Atomic>(a: T, b: T) -> bool {
    bytemuck::bytes_of(&a) == bytemuck::bytes_of(&b)
}
