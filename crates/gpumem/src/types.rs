//! The types that users write, with the run-time choice as their default backend.
//!
//! A device is made by a function (`Device::open("cuda:0")`), and in such a place Rust does not look at the defaults of
//! type parameters. So [`Device`] has none, and [`BackendDevice`] is the one for experts.
//!
//! Every alias names a `struct`, never another alias: rustdoc follows one step, and the page of an alias that ends at a
//! second alias shows no methods.

use crate::any::AnyBackend;
use gpumem_runtime as rt;
use ndarray::{Ix0, Ix1};
use rt::{
    ArrayBase, Exclusive, Frozen, HostArray, Imported, Managed, Mapped, Owned, Pinned, Registered, Shared,
};

/// A device of the backend that was chosen when the program ran. Start here: [`Device::open`](rt::Device::open).
/// ```
/// use gpumem::Device;
///
/// let device = Device::open("host")?; // or "cuda:0", "roc:1"
/// let array = device.to_device(&[1, 2, 3])?;
/// assert_eq!(array.copy_to_host()?.to_vec(), [1, 2, 3]);
/// # Ok::<(), gpumem::Error>(())
/// ```
pub type Device = rt::Device<AnyBackend>;
/// A device of the backend `B`, which is known when the program is compiled.
/// ```
/// use gpumem::{BackendDevice, host::Host};
///
/// let device = BackendDevice::<Host>::open("host")?;
/// assert_eq!(device.name(), "host:0");
/// # Ok::<(), gpumem::Error>(())
/// ```
pub type BackendDevice<B> = rt::Device<B>;
/// A queue of work on one device, made by [`Device::stream`](rt::Device::stream).
/// ```
/// use gpumem::{Device, Stream};
///
/// let stream: Stream = Device::open("host")?.stream()?;
/// let mut array = stream.device_array::<f32, _>(1000)?;
/// stream.fill(&mut array, 1.5)?; // returns at once
/// stream.synchronize()?;
/// # Ok::<(), gpumem::Error>(())
/// ```
pub type Stream<B = AnyBackend> = rt::Stream<B>;
/// A point in the work of a stream that others can wait for, made by
/// [`Stream::record_event`](rt::Stream::record_event).
/// ```
/// use gpumem::{Device, Event};
///
/// let stream = Device::open("host")?.stream()?;
/// let array = stream.to_device(&[1, 2, 3])?;
/// let event: Event = stream.record_event()?;
/// event.synchronize()?;
/// # drop(array);
/// # Ok::<(), gpumem::Error>(())
/// ```
pub type Event<B = AnyBackend> = rt::Event<B>;
/// A scope in which borrowed host memory takes part in asynchronous copies, made by
/// [`Stream::scope`](rt::Stream::scope).
pub type Scope<'scope, 'env, B = AnyBackend> = rt::Scope<'scope, 'env, B>;
/// Work that was recorded once and is launched often, made by [`Device::record`](rt::Device::record).
pub type Graph<P, R, B = AnyBackend> = rt::Graph<P, R, B>;
/// One block for the temporaries of several graphs: [`Device::record_in`](rt::Device::record_in).
pub type GraphMemory<B = AnyBackend> = rt::GraphMemory<B>;
/// A number that each launch of a graph gives anew, as the body of the graph sees it.
pub type Varying<T, B = AnyBackend> = rt::Varying<T, B>;
/// A recording of the memory operations of a device, until it is [finished](rt::trace::Recording::finish).
pub type Recording<B = AnyBackend> = rt::trace::Recording<B>;
/// An array that owns its device memory.
/// ```
/// use gpumem::{Device, DeviceArray, ndarray::{Ix2, array}, s};
///
/// let device = Device::open("host")?;
/// let mut matrix: DeviceArray<f32, Ix2> = device.to_device(&array![[1.0, 2.0], [3.0, 4.0]])?;
/// matrix.slice_mut(s![.., 0])?.fill(0.0)?;
/// assert_eq!(matrix.copy_to_host()?, array![[0.0, 2.0], [0.0, 4.0]]);
/// # Ok::<(), gpumem::Error>(())
/// ```
pub type DeviceArray<T, D = Ix1, B = AnyBackend> = ArrayBase<Owned<T, B>, D>;
/// A shared view of device memory; it borrows the array.
/// ```
/// use gpumem::{Device, DeviceView, s};
///
/// fn sum(view: DeviceView<'_, i32>) -> gpumem::Result<i32> {
///     Ok(view.copy_to_host()?.sum())
/// }
///
/// let array = Device::open("host")?.to_device(&[1, 2, 3, 4])?;
/// assert_eq!(sum(array.view())?, 10);
/// assert_eq!(sum(array.slice(s![..;2])?)?, 4);
/// # Ok::<(), gpumem::Error>(())
/// ```
pub type DeviceView<'a, T, D = Ix1, B = AnyBackend> = ArrayBase<Shared<'a, T, B>, D>;
/// A mutable view of device memory; it borrows the array mutably.
pub type DeviceViewMut<'a, T, D = Ix1, B = AnyBackend> = ArrayBase<Exclusive<'a, T, B>, D>;
/// An array that nothing writes any more, made by [`DeviceArray::freeze`](rt::ArrayBase::freeze): graphs keep it. Cloning it shares the
/// memory.
pub type FrozenArray<T, D = Ix1, B = AnyBackend> = ArrayBase<Frozen<T, B>, D>;
/// One value in device memory, usually a record: read and written whole or by field.
/// ```
/// use gpumem::{Device, DeviceRecord, Scalar};
///
/// let mut value: DeviceRecord<f64> = Device::open("host")?.to_device(&Scalar(1.5))?;
/// value.write(2.5)?;
/// assert_eq!(value.read()?, 2.5);
/// # Ok::<(), gpumem::Error>(())
/// ```
pub type DeviceRecord<T, B = AnyBackend> = ArrayBase<Owned<T, B>, Ix0>;
/// An array over memory of another library, which it keeps alive.
pub type ImportedArray<T, D = Ix1, B = AnyBackend> = ArrayBase<Imported<T, B>, D>;
/// Memory of this library that another library uses.
pub type Loan<B = AnyBackend> = rt::Loan<B>;
/// An array whose elements have yet to be written.
/// ```
/// use gpumem::{Device, UninitArray};
///
/// let empty: UninitArray<f32> = Device::open("host")?.uninit_array(3)?;
/// let array = empty.copy_from(&[1.0, 2.0, 3.0])?; // now a `DeviceArray`
/// assert_eq!(array.get(2)?, 3.0);
/// # Ok::<(), gpumem::Error>(())
/// ```
pub type UninitArray<T, D = Ix1, B = AnyBackend> = rt::UninitArray<T, D, B>;
/// The chunks of an array that is larger than the device, made by [`Device::chunks`](rt::Device::chunks).
pub type ChunkIter<'a, T, D = Ix1, B = AnyBackend> = rt::ChunkIter<'a, T, D, B>;
/// Arrays that leave their device when its memory is short, and come back when they are used.
pub type SpillManager<B = AnyBackend> = rt::SpillManager<B>;
/// An array that may leave its device, made by [`SpillManager::add`](rt::SpillManager::add) and
/// [`SpillManager::open`](rt::SpillManager::open).
/// ```
/// use gpumem::{Device, SpillManager, SpillOptions, Spillable};
///
/// let device = Device::open("host")?;
/// let (spilling, stream) = (SpillManager::new(&device, SpillOptions::new())?, device.stream()?);
/// let weights: Spillable<f32> = spilling.add(device.to_device(&[1.0, 2.0])?).map_err(|(_, error)| error)?;
/// weights.evict()?; // or by itself, when an allocation finds no memory
/// assert_eq!(weights.get(&stream)?.get(1)?, 2.0);
/// # Ok::<(), gpumem::Error>(())
/// ```
pub type Spillable<T, D = Ix1, B = AnyBackend> = rt::Spillable<T, D, B>;
/// A page-locked array of the host, for copies that are truly asynchronous.
/// ```
/// use gpumem::{Device, PinnedArray};
///
/// let device = Device::open("host")?;
/// let mut pinned: PinnedArray<f32> = device.pinned_array(1000)?;
/// pinned.view_mut()?.fill(2.0);
/// let array = device.stream()?.to_device(&pinned)?; // enqueued, without a staging block
/// assert_eq!(array.get(999)?, 2.0);
/// # Ok::<(), gpumem::Error>(())
/// ```
pub type PinnedArray<T, D = Ix1, B = AnyBackend> = HostArray<Pinned, T, D, B>;
/// A page-locked array of the host that kernels can use too.
/// ```
/// use gpumem::{Device, MappedArray, MappedOptions};
///
/// let device = Device::open("host")?;
/// let mut mapped: MappedArray<u8> = device.mapped_array(4, MappedOptions::default())?;
/// device.stream()?.fill(&mut mapped.device_view_mut(), 7)?; // by the device
/// assert_eq!(mapped.view()?.to_vec(), [7; 4]); // waits, then reads on the host
/// # Ok::<(), gpumem::Error>(())
/// ```
pub type MappedArray<T, D = Ix1, B = AnyBackend> = HostArray<Mapped, T, D, B>;
/// An array that migrates between host and device.
/// ```
/// use gpumem::{Attach, Device, ManagedArray};
///
/// let mut managed: ManagedArray<i32> = Device::open("host")?.managed_array(3, Attach::Global)?;
/// managed.view_mut()?[0] = 5;
/// assert_eq!(managed.device_view().copy_to_host()?.to_vec(), [5, 0, 0]);
/// # Ok::<(), gpumem::Error>(())
/// ```
pub type ManagedArray<T, D = Ix1, B = AnyBackend> = HostArray<Managed, T, D, B>;
/// A [`PinnedArray`] that a graph reads, in its body.
pub type PinnedView<'g, T, D = Ix1, B = AnyBackend> = rt::PinnedView<'g, T, D, B>;
/// An array of the caller that is page-locked while a scope lasts; see [`Scope::pinned`](rt::Scope::pinned).
pub type PinnedHost<'scope, T, D = Ix1, B = AnyBackend> = HostArray<Registered<'scope, Pinned>, T, D, B>;
/// An array of the caller that is page-locked and has a device address while a scope lasts; see
/// [`Scope::mapped`](rt::Scope::mapped).
pub type MappedHost<'scope, T, D = Ix1, B = AnyBackend> = HostArray<Registered<'scope, Mapped>, T, D, B>;
/// An array that the library has taken over from the caller and page-locked; see
/// [`Device::register`](rt::Device::register).
pub type RegisteredArray<T, D = Ix1, B = AnyBackend> = HostArray<Registered<'static, Pinned>, T, D, B>;
/// A [`RegisteredArray`] with a device address; see [`Device::register_mapped`](rt::Device::register_mapped).
pub type MappedRegisteredArray<T, D = Ix1, B = AnyBackend> = HostArray<Registered<'static, Mapped>, T, D, B>;
/// An array that work of another library is going to use; see [`Stream::raw_scope`](rt::Stream::raw_scope).
pub type RawAccess<'a, B = AnyBackend> = rt::RawAccess<'a, B>;
/// An array of another process; see [`Device::open_ipc`](rt::Device::open_ipc).
pub type IpcArray<T, D = Ix1, B = AnyBackend> = rt::IpcArray<T, D, B>;
/// A kernel that is loaded on a device; see [`kernel`](mod@crate::kernel).
pub type Kernel<P, B = AnyBackend> = gpumem_kernel::Kernel<P, B>;
