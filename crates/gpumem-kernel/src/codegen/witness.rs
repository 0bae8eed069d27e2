//! How a type is learnt from rustc: by being unified with it.

use super::{DeviceType, Language, TypeInfo};
use crate::simt::{Fault, LocalArray, WorkItemIds, fits_a_work_item};
use bytemuck::Zeroable;
use std::{
    fmt::Arguments,
    iter::{Rev, StepBy},
    marker::PhantomData,
};

/// Has the type of the value passed to it. The macro declares it before the closure that passes the value, with an
/// inferred type.
#[derive(Debug)]
pub struct Witness<T>(PhantomData<fn() -> T>);

impl<T> Clone for Witness<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Witness<T> {}

impl<T> Witness<T> {
    /// A witness that has seen nothing yet.
    #[allow(clippy::new_without_default)] // its type is inferred, which a default would not help
    #[inline(always)]
    pub fn new() -> Self {
        Self(PhantomData)
    }

    /// Sees a value, and gives it back. Takes the witness itself, so that rustc finds this method before any of a trait.
    pub fn see(self, value: T) -> T {
        value
    }

    /// Sees a value in its place.
    pub fn of(self, value: &T) -> &T {
        value
    }
}

impl Language {
    /// Returns the name in device code of the type that a witness has seen. Does not compile for one that a work-item has no room
    /// for: on the host it would overflow the stack, which ends the process.
    pub fn type_of<T: DeviceType>(_: &Witness<T>) -> TypeInfo {
        fits_a_work_item::<T>();
        T::device_type()
    }

    /// Bytes of a variable that a witness has seen.
    pub fn bytes_of<T>(_: &Witness<T>) -> usize {
        size_of::<T>()
    }

    /// The ids of a work-item, so that their methods come before any of a trait for the work-item.
    #[inline(always)]
    pub fn ids<'i, 'g>(ids: &'i WorkItemIds<'g>) -> &'i WorkItemIds<'g> {
        ids
    }

    /// A range from its end.
    #[inline(always)]
    pub fn rev<I: DoubleEndedIterator>(range: I) -> Rev<I> {
        range.rev()
    }

    /// A range in steps.
    #[inline(always)]
    #[track_caller]
    pub fn step_by<I: Iterator>(range: I, step: usize) -> StepBy<I> {
        range.step_by(step)
    }

    /// A list of these.
    pub fn list<T, const N: usize>(items: [T; N]) -> Vec<T> {
        Vec::from(items)
    }

    /// A value that a function is given. Never called.
    #[allow(clippy::empty_loop)]
    pub fn given<T>() -> T {
        loop {}
    }

    /// Gives the type of a future's output. Never called.
    #[allow(clippy::empty_loop)]
    pub fn finished<F: Future>(_: F) -> F::Output {
        loop {}
    }

    /// Ends the kernel where an `assert!` fails.
    #[cold]
    #[track_caller]
    #[allow(clippy::panic)]
    pub fn fail(message: impl FnOnce() -> String) -> ! {
        panic!("{}", message())
    }

    /// A message of an `assert!`.
    pub fn message(text: Arguments<'_>) -> String {
        text.to_string()
    }

    /// All groups have run.
    pub fn done() -> Result<(), Fault> {
        Ok(())
    }

    /// The end of a shared array of these extents, of which the memory before it ends there. One that would end beyond all memory
    /// ends at its last byte: no device has so much. C++ has no array without elements: it has one.
    pub fn shared_end<T, const N: usize>(bytes: usize, extents: [usize; N]) -> usize {
        let start = bytes.checked_next_multiple_of(align_of::<T>()).unwrap_or(usize::MAX);
        let all = |all: usize, extent: &usize| all.saturating_mul(*extent.max(&1));
        start.saturating_add(extents.iter().fold(size_of::<T>(), all))
    }

    /// An extent, as its type has it.
    pub fn extent(extent: usize) -> usize {
        extent
    }

    /// Sees a complex number, and gives it back.
    pub fn new_complex<T: NewComplex>(value: T) -> T {
        value
    }

    /// A local array of zeros; its extents are those of the nested array that it is made from.
    pub fn local_array<const N: usize, A: Copy>(zeros: A) -> LocalArray<A, N> {
        LocalArray(zeros)
    }

    /// A zero, of which local arrays are made.
    pub fn zero<T: Zeroable>() -> T {
        T::zeroed()
    }
}

/// A complex number, the result of `Complex::new`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is made by a function that kernels do not know",
    label = "kernels make a `Complex` with `new`",
    note = "write a record with its fields, or a function with `#[gpumem::device]`"
)]
pub trait NewComplex: sealed::IsComplex {}

impl<T> NewComplex for num_complex::Complex<T> {}

mod sealed {
    /// A type with the parts of C++.
    pub trait IsComplex {}
    impl<T> IsComplex for num_complex::Complex<T> {}
}
