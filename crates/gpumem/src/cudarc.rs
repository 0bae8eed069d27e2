//! Memory to and from [cudarc]'s safe slices, without a copy (feature `cudarc`).
//!
//! * [`from_cudarc`] takes a `CudaSlice` as an array. The slice is freed after the array's last use.
//! * [`with_cudarc`] and [`with_cudarc_mut`] lend an array as a `CudaView` or `CudaViewMut` while a closure runs. The
//!   closure's work on its stream comes after this library's pending work and before its later work. The host never waits.
//!
//! Both sides use the primary context of the device, as both do by default.

use crate::generic::{ArrayBase, Device, ImportedArray, RawAccess, Storage, StorageMut, Stream};
use crate::{
    Backend, CudaArrayInterface, Element, ElementType, Error, ErrorKind, LayoutError, RawStream, Result,
};
use ::cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtrMut, DriverError, sys::CUdeviceptr,
};
use ndarray::{Dimension, Ix1};
use std::{mem::ManuallyDrop, sync::Arc};

pub use ::cudarc;

/// Takes a slice as an array, without a copy. The host waits for all work in cudarc's context: cudarc does not know every stream that
/// uses a slice.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use gpumem::{Device, cudarc::{cudarc::driver::CudaContext, from_cudarc, with_cudarc_mut}};
///
/// let (device, stream) = (Device::open("cuda:0")?, CudaContext::new(0)?.new_stream()?);
/// let array = from_cudarc(&device, stream.clone_htod(&[1.0f32, 2.0])?)?;
/// let mut ours = device.to_device(&array)?;
/// // SAFETY: the work goes to that stream.
/// unsafe { with_cudarc_mut(&mut ours, &stream, |view| stream.memset_zeros(view)) }??;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Place`](crate::DescriptorError::Place) for memory of another device,
/// [`InvalidArgument`](ErrorKind::InvalidArgument) for memory of a context that is not the primary one, what
/// [`Device::synchronize`] returns, and an error that cudarc has stored. The slice is freed then.
pub fn from_cudarc<T: Element, B: Backend>(
    device: &Device<B>,
    mut slice: CudaSlice<T>,
) -> Result<ImportedArray<T, Ix1, B>> {
    const OPERATION: &str = "from_cudarc";
    // cudarc binds its context to the thread, and frees in the current one.
    device.with_current(|| {
        let stream = slice.stream().clone();
        check_context(OPERATION, stream.context())?;
        // The device's wait, and not cudarc's: it is refused in callbacks and beside captures.
        device.synchronize().map_err(|error| error.in_operation(OPERATION))?;
        let (address, order) = slice.device_ptr_mut(&stream);
        drop(order);
        let descriptor = CudaArrayInterface {
            shape: vec![i64::try_from(slice.len()).unwrap_or(i64::MAX)],
            typestr: ElementType::of::<T>(),
            data: (address, false),
            strides: None,
            descr: None,
            mask: false,
            version: 3,
            stream: None,
        };
        // SAFETY: the slice owns so many elements at that address; there is no other reference to it, and no work that uses it.
        unsafe { device.from_cuda_array_interface(&descriptor, slice) }
            .map_err(|error| error.in_operation(OPERATION))
    })
}

/// Refuses a context in which the library does not work, and tells what cudarc has stored: its waits do nothing then.
fn check_context(operation: &'static str, context: &CudaContext) -> Result<()> {
    if !context.is_primary() {
        let why = "cudarc's context is not the device's primary one";
        return Err(Error::new("cuda", operation, ErrorKind::InvalidArgument { why }));
    }
    context.check_err().map_err(|DriverError(code)| {
        Error::new("cuda", operation, ErrorKind::Driver { code: code as i32, name: "an error of cudarc's" })
    })
}

/// Lends a packed array for reading, while `body` enqueues work.
///
/// # Safety
/// The work goes to `stream`, or to streams that wait for `stream` before it and that `stream` waits for before `body` returns. `body`
/// keeps no view and captures no work. cudarc itself orders one other stream of the same `CudaContext` at a time, while its event
/// tracking is on and the stream is not dropped.
///
/// # Errors
/// Returns [`NeedsCopy`](LayoutError::NeedsCopy) for an array that is not packed,
/// [`WrongDevice`](ErrorKind::WrongDevice) for a stream of another device, [`InvalidArgument`](ErrorKind::InvalidArgument) for one of
/// a context that is not the primary one, and the driver's error, also one that cudarc has stored. `body` has not run then.
pub unsafe fn with_cudarc<S: Storage, D: Dimension, R>(
    array: &ArrayBase<S, D>,
    stream: &Arc<CudaStream>,
    body: impl FnOnce(&CudaView<'_, S::Elem>) -> R,
) -> Result<R> {
    let (ours, len) = (checked(array, stream)?, array.len());
    // SAFETY: the caller's promise; the view is only read.
    unsafe {
        ours.raw_scope(&[RawAccess::read(array)], |parts| {
            let lent = Lent::new(stream, parts.addresses, len);
            body(&lent.0.as_view())
        })
    }
}

/// Lends a packed array for reading and writing, while `body` enqueues work.
///
/// # Safety
/// As for [`with_cudarc`].
///
/// # Errors
/// As for [`with_cudarc`].
pub unsafe fn with_cudarc_mut<S: StorageMut, D: Dimension, R>(
    array: &mut ArrayBase<S, D>,
    stream: &Arc<CudaStream>,
    body: impl FnOnce(&mut CudaViewMut<'_, S::Elem>) -> R,
) -> Result<R> {
    let (ours, len) = (checked(array, stream)?, array.len());
    // SAFETY: as above, and the array is borrowed for writing.
    unsafe {
        ours.raw_scope(&[RawAccess::write(array)], |parts| {
            let mut lent = Lent::new(stream, parts.addresses, len);
            body(&mut lent.0.as_view_mut())
        })
    }
}

/// Returns cudarc's stream as one of this library, for an array that can be lent there.
fn checked<S: Storage, D: Dimension>(
    array: &ArrayBase<S, D>,
    stream: &Arc<CudaStream>,
) -> Result<Stream<S::Backend>> {
    let fail = |kind| Error::new(S::Backend::NAME, "with_cudarc", kind);
    let device = array.device()?;
    let (info, ordinal) = (device.info(), stream.context().ordinal());
    if info.backend != "cuda" || info.ordinal != ordinal {
        let (has, wants) = (device.name(), format!("cuda:{ordinal}"));
        return Err(fail(ErrorKind::WrongDevice { what: "array", has, wants }));
    }
    if !array.is_c_contiguous() {
        let (shape, strides) = (array.shape().to_vec(), array.strides().to_vec());
        return Err(fail(LayoutError::NeedsCopy { shape, strides }.into()));
    }
    check_context("with_cudarc", stream.context())?;
    match stream.cu_stream().expose_provenance() {
        0 => device.legacy_stream(),
        // `CU_STREAM_PER_THREAD`, which is another stream on each thread.
        2 => device.per_thread_stream(),
        // SAFETY: the stream is alive, and kept by its owner.
        handle => unsafe { device.external_stream(RawStream(handle as u64), stream.clone()) },
    }
}

/// A slice of cudarc over this library's memory: cudarc never frees it, also if the closure panics.
struct Lent<T>(ManuallyDrop<CudaSlice<T>>);

impl<T> Lent<T> {
    /// # Safety
    /// There are so many elements at the first address, which the stream may use.
    unsafe fn new(stream: &Arc<CudaStream>, addresses: &[u64], len: usize) -> Self {
        let address: CUdeviceptr = addresses.first().copied().unwrap_or_default();
        // SAFETY: the caller's promise; the slice does not free the memory.
        let mut slice = ManuallyDrop::new(unsafe { stream.upgrade_device_ptr::<T>(address, len) });
        // Other streams of cudarc's wait for this one, which has waited for our pending work.
        drop(slice.device_ptr_mut(stream).1);
        Self(slice)
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        // SAFETY: taken once. The stream waits for the work of cudarc's other streams on the slice.
        let slice = unsafe { ManuallyDrop::take(&mut self.0) };
        let _ = slice.leak();
    }
}
