//! Conversions between values of one backend and the enums.

use gpumem_core::{Backend, Error, ErrorKind, Result};

/// Converts between a run-time choice and a backend's own type, for programs that call the driver.
///
/// ```
/// # #[cfg(feature = "host")]
/// fn is_host(device: &gpumem::any::AnyDevice) -> bool {
///     device.typed::<gpumem::host::Host>().is_some()
/// }
/// ```
pub trait Typed<B: Backend>: Sized {
    /// The backend's own type.
    type Of;

    /// Makes a run-time choice of a value of `B`.
    fn from_typed(typed: Self::Of) -> Self;

    /// The backend's own value, or `None` if this belongs to another backend.
    fn as_typed(&self) -> Option<&Self::Of>;

    /// Unwraps the backend's own value.
    ///
    /// # Errors
    /// Returns the value as it was if it belongs to another backend.
    fn into_typed(self) -> Result<Self::Of, Self>;
}

/// A type that knows the name of its backend.
pub(crate) trait Named {
    /// Name of the backend.
    fn backend(&self) -> &'static str;
}

/// `any` as a value of `B`, to which the other part of the call belongs.
#[inline]
pub(crate) fn same<'a, B: Backend, A: Typed<B> + Named>(
    operation: &'static str,
    any: &'a A,
) -> Result<&'a A::Of> {
    any.as_typed().ok_or_else(|| mismatch::<B>(operation, any))
}

/// As [`same`], by value.
#[inline]
pub(crate) fn into_same<B: Backend, A: Typed<B> + Named>(
    operation: &'static str,
    any: A,
) -> Result<A::Of, (A, Error)> {
    any.into_typed().map_err(|other| {
        let error = mismatch::<B>(operation, &other);
        (other, error)
    })
}

/// What a backend has made, as a run-time choice.
#[inline]
pub(crate) fn any<B: Backend, A: Typed<B>>(made: Result<A::Of>) -> Result<A> {
    made.map(A::from_typed)
}

/// Turns the value that a backend returned with an error back into the run-time choice.
pub(crate) fn come_back<B: Backend, A: Typed<B>>((typed, error): (A::Of, Error)) -> (A, Error) {
    (A::from_typed(typed), error)
}

#[cold]
fn mismatch<B: Backend>(operation: &'static str, other: &impl Named) -> Error {
    Error::new("", operation, ErrorKind::BackendMismatch { left: B::NAME, right: other.backend() })
}
