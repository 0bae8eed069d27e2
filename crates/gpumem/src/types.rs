//! The types that users write, with the run-time choice as their default backend.
//!
//! A device is made by a function (`Device::open("cuda:0")`), and in such a place Rust does not look at the defaults of
//! type parameters. So [`Device`] has none, and [`BackendDevice`] is the one for experts.

use crate::any::AnyBackend;
use gpumem_runtime as rt;
use ndarray::Ix1;

/// A device of whichever backend was chosen when the program ran.
pub type Device = rt::Device<AnyBackend>;
/// A device of the backend `B`.
pub type BackendDevice<B> = rt::Device<B>;
/// A queue of work.
pub type Stream<B = AnyBackend> = rt::Stream<B>;
/// A mark in a stream.
pub type Event<B = AnyBackend> = rt::Event<B>;
/// A stretch of a stream in which memory of the caller takes part in transfers.
pub type Scope<'scope, 'env, B = AnyBackend> = rt::Scope<'scope, 'env, B>;
/// A recording of a device's memory that is running.
pub type Recording<B = AnyBackend> = rt::trace::Recording<B>;
/// An array that owns its memory.
pub type DeviceArray<T, D = Ix1, B = AnyBackend> = rt::DeviceArray<T, D, B>;
/// A shared view of device memory.
pub type DeviceView<'a, T, D = Ix1, B = AnyBackend> = rt::DeviceView<'a, T, D, B>;
/// A mutable view of device memory.
pub type DeviceViewMut<'a, T, D = Ix1, B = AnyBackend> = rt::DeviceViewMut<'a, T, D, B>;
/// One value in device memory, usually a record.
pub type DeviceRecord<T, B = AnyBackend> = rt::DeviceRecord<T, B>;
/// An array over foreign memory.
pub type ImportedArray<T, D = Ix1, B = AnyBackend> = rt::ImportedArray<T, D, B>;
/// Memory of ours that another library uses.
pub type Loan<B = AnyBackend> = rt::Loan<B>;
/// An array whose elements have yet to be written.
pub type UninitArray<T, D = Ix1, B = AnyBackend> = rt::UninitArray<T, D, B>;
/// A page-locked array.
pub type PinnedArray<T, D = Ix1, B = AnyBackend> = rt::PinnedArray<T, D, B>;
/// A page-locked array that kernels can use.
pub type MappedArray<T, D = Ix1, B = AnyBackend> = rt::MappedArray<T, D, B>;
/// An array that migrates between host and device.
pub type ManagedArray<T, D = Ix1, B = AnyBackend> = rt::ManagedArray<T, D, B>;
/// An array of the caller that is page-locked while a scope lasts.
pub type PinnedHost<'scope, T, D = Ix1, B = AnyBackend> = rt::PinnedHost<'scope, T, D, B>;
/// An array of the caller that is page-locked and has a device address while a scope lasts.
pub type MappedHost<'scope, T, D = Ix1, B = AnyBackend> = rt::MappedHost<'scope, T, D, B>;
/// An array of the caller that the library has taken over, page-locked.
pub type RegisteredArray<T, D = Ix1, B = AnyBackend> = rt::RegisteredArray<T, D, B>;
/// As [`RegisteredArray`], with a device address.
pub type MappedRegisteredArray<T, D = Ix1, B = AnyBackend> = rt::MappedRegisteredArray<T, D, B>;
/// An array that work of another library is going to use.
pub type RawAccess<'a, B = AnyBackend> = rt::RawAccess<'a, B>;
/// An array of another process; see [`generic::IpcArray`](rt::IpcArray).
pub type IpcArray<T, D = Ix1, B = AnyBackend> = rt::IpcArray<T, D, B>;
/// A kernel of a device; see [`kernel`](mod@crate::kernel).
pub type Kernel<P, B = AnyBackend> = rt::kernel::Kernel<P, B>;
