//! Memory that the host sees too: pinned, mapped, managed, and the caller's own while it is page-locked (law 4).
//!
//! These arrays are the library's, so transfers may go on while the caller does other work. The accessors return a
//! `Result`: reading waits for work that writes the array, writing waits for all work that uses it. There is no other
//! access.

mod array;
mod create;
mod lock_arrays;
mod pin_guard;
mod pin_scope;
mod pinned;
mod register;
mod register_foreign;
mod uninit;
mod uninit_buffer;
mod view;

pub use array::HostArray;
pub use lock_arrays::LockArrays;
pub(crate) use pin_guard::lock;
pub use pin_scope::PinScope;
pub use register::{MappedRegisteredArray, RegisterError, RegisteredArray};
pub use uninit::UninitHostArray;
pub(crate) use uninit_buffer::{UninitBuffer, packed_shape};
pub use view::{view_at, view_mut_at};

use std::marker::PhantomData;

mod sealed {
    pub trait SealedHostKind {}
}

/// The kind of a [`HostArray`].
pub trait HostKind: sealed::SealedHostKind + Send + Sync {
    /// The word for it.
    const NAME: &'static str;
}

/// Kinds of host memory that the library keeps alive by itself: all but the caller's that is locked for a scope.
pub trait OwnedKind: HostKind {}

/// Kinds of host memory that a kernel can use by a device address.
pub trait DeviceVisible: HostKind {}

/// Page-locked memory.
#[derive(Debug, Clone, Copy)]
pub struct Pinned;
/// Page-locked memory with a device address.
#[derive(Debug, Clone, Copy)]
pub struct Mapped;
/// Memory that migrates between the host and the device.
#[derive(Debug, Clone, Copy)]
pub struct Managed;
/// Memory of the caller, page-locked as `K` while the scope `'scope` lasts; `'static` for memory that the library has
/// taken over. The lifetime is invariant: arrays of two scopes are of two types and cannot be exchanged.
#[derive(Debug, Clone, Copy)]
pub struct Registered<'scope, K>(PhantomData<(Invariant<'scope>, K)>);

type Invariant<'scope> = fn(&'scope ()) -> &'scope ();

impl sealed::SealedHostKind for Pinned {}
impl sealed::SealedHostKind for Mapped {}
impl sealed::SealedHostKind for Managed {}
impl<K> sealed::SealedHostKind for Registered<'_, K> {}

impl HostKind for Pinned {
    const NAME: &'static str = "pinned";
}
impl HostKind for Mapped {
    const NAME: &'static str = "mapped";
}
impl HostKind for Managed {
    const NAME: &'static str = "managed";
}
impl<K: HostKind> HostKind for Registered<'_, K> {
    const NAME: &'static str = K::NAME;
}

impl OwnedKind for Pinned {}
impl OwnedKind for Mapped {}
impl OwnedKind for Managed {}
impl<K: HostKind> OwnedKind for Registered<'static, K> {}

impl DeviceVisible for Mapped {}
impl DeviceVisible for Managed {}
impl DeviceVisible for Registered<'_, Mapped> {}

/// A page-locked array: source and destination of truly asynchronous copies. Numba's `pinned_array`.
pub type PinnedArray<T, D, B> = HostArray<Pinned, T, D, B>;
/// A page-locked array that kernels can use. Numba's `mapped_array`.
pub type MappedArray<T, D, B> = HostArray<Mapped, T, D, B>;
/// An array that migrates between host and device. Numba's `managed_array`.
pub type ManagedArray<T, D, B> = HostArray<Managed, T, D, B>;
/// An array of the caller that is page-locked while a scope lasts.
pub type PinnedHost<'scope, T, D, B> = HostArray<Registered<'scope, Pinned>, T, D, B>;
/// An array of the caller that is page-locked and has a device address while a scope lasts.
pub type MappedHost<'scope, T, D, B> = HostArray<Registered<'scope, Mapped>, T, D, B>;
