//! Described elements as an allocation and a layout.

use super::{CudaArrayInterface, ForeignElements, InterchangeStream, own};
use crate::{
    device::{Allocation, AllocationRef, Device, ForeignMemory},
    layout::Layout,
    transfer::abort,
};
use gpumem_core::{
    AddressRange, Backend, DeviceSelector, DriverDevice, Element, Error, ErrorKind, LayoutError, MemoryKind,
    Result,
};
use gpumem_memory::track::DeviceContext;
use ndarray::{Dimension, IxDyn};
use std::any::Any;

/// Elements of another library, as memory that the library tracks.
pub(crate) struct ImportedElements<B: Backend> {
    pub(crate) memory: AllocationRef<B>,
    pub(crate) layout: Layout,
}

impl<B: Backend> ImportedElements<B> {
    /// Gives memory back that an object has lent for one call. The call has waited for a copy that succeeded; one that failed
    /// may still be using the memory.
    pub(crate) fn give_back<R>(&self, operation: &'static str, copied: Result<R>) -> Result<R> {
        // Memory of the library's own is kept by its access log.
        if copied.is_ok() || self.memory.is_shared() {
            return copied;
        }
        let all: Vec<_> = self.memory.log().all().map(|entry| (entry.by.clone(), entry.submission)).collect();
        // The object looks after the work that it has enqueued itself.
        for (timeline, submission) in all.iter().filter(|(timeline, _)| !timeline.is_foreign_snapshot()) {
            let wait_outcome = timeline.wait_for_use(*submission);
            if !wait_outcome.done {
                abort(operation, wait_outcome.result);
            }
        }
        copied
    }
}

/// The layout that a descriptor describes.
pub(crate) fn described_layout<T: Element>(
    descriptor: &CudaArrayInterface,
    operation: &'static str,
) -> Result<Layout> {
    let elements = descriptor.elements::<T>().map_err(|error| Error::new("", operation, error))?;
    Ok(elements.layout)
}

/// The described elements on the device that they lie on.
///
/// # Safety
/// The descriptor is true until the last use of the memory is over.
pub(crate) unsafe fn described<T: Element, B: Backend>(
    near: &Device<B>,
    descriptor: &CudaArrayInterface,
    operation: &'static str,
) -> Result<ImportedElements<B>> {
    let elements = descriptor.elements::<T>().map_err(|error| near.core().error(operation, error))?;
    let own = near.info().ordinal;
    let found = match elements.bytes {
        0 => Ok(None),
        _ => near.core().note_loss(near.raw().pointer_info(elements.address)),
    };
    let device = match found {
        Ok(Some(AddressRange { ordinal, .. })) if ordinal != own => {
            Device::select(DeviceSelector::ordinal(near.info().backend, ordinal))?
        }
        Ok(_) => near.clone(),
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. }) => near.clone(),
        Err(error) => return Err(error.in_operation(operation)),
    };
    // SAFETY: the caller's promise.
    if let Some(own) = unsafe { find_own::<T, IxDyn, B>(&device, operation, descriptor)? } {
        return Ok(own);
    }
    // SAFETY: the caller's promise.
    unsafe { import_cuda_array::<T, IxDyn, B>(&device, operation, descriptor, Box::new(())) }
}

/// The library's own memory, as its borrower describes it: another handle of the allocation, after the work on the
/// borrower's stream.
///
/// # Safety
/// The stream that the descriptor names is alive.
pub(crate) unsafe fn find_own<T: Element, D: Dimension, B: Backend>(
    device: &Device<B>,
    operation: &'static str,
    descriptor: &CudaArrayInterface,
) -> Result<Option<ImportedElements<B>>> {
    let fail = |kind: ErrorKind| device.core().error(operation, kind);
    let elements = descriptor.elements::<T>().map_err(fail)?;
    let stream = descriptor.stream_handle().map_err(|error| fail(error.into()))?;
    let Some((memory, layout)) = own::find(device, operation, &elements)? else { return Ok(None) };
    check_rank::<D, B>(device.core(), operation, &layout)?;
    if let Some(stream) = stream {
        // SAFETY: the caller's promise; it is not used after this.
        let stream = unsafe { stream.stream(device, operation)? };
        memory.note_borrowers_work(operation, &layout.extent(), &stream)?;
    }
    Ok(Some(ImportedElements { memory, layout }))
}

/// Takes in elements that a descriptor describes.
///
/// # Safety
/// The descriptor is true for as long as `owner` lives.
pub(crate) unsafe fn import_cuda_array<T: Element, D: Dimension, B: Backend>(
    device: &Device<B>,
    operation: &'static str,
    descriptor: &CudaArrayInterface,
    owner: Box<dyn Any + Send + Sync>,
) -> Result<ImportedElements<B>> {
    let fail = |kind: ErrorKind| device.core().error(operation, kind);
    device.core().check(operation)?;
    let elements = descriptor.elements::<T>().map_err(fail)?;
    let stream = descriptor.stream_handle().map_err(|error| fail(error.into()))?;
    // SAFETY: the caller's promise.
    unsafe { import::<D, B>(device, operation, elements, stream, MemoryKind::Device, owner) }
}

/// Takes elements whose description has been checked, except for their place and their rank.
///
/// # Safety
/// The elements and the stream match their description while `owner` lives.
pub(crate) unsafe fn import<D: Dimension, B: Backend>(
    device: &Device<B>,
    operation: &'static str,
    elements: ForeignElements,
    stream: Option<InterchangeStream>,
    kind: MemoryKind,
    owner: Box<dyn Any + Send + Sync>,
) -> Result<ImportedElements<B>> {
    check_rank::<D, B>(device.core(), operation, &elements.layout)?;
    elements.check_place(device, operation)?;
    let ForeignElements { layout, address, bytes: len, read_only } = elements;
    let memory = ForeignMemory { address, host: 0, len, kind, read_only, owner };
    let memory = Allocation::imported(device, memory);
    if let Some(stream) = stream.filter(|_| len > 0) {
        // SAFETY: the caller's promise; it is not used after this.
        let stream = unsafe { stream.stream(device, operation)? };
        // Later uses of the memory wait for the work that is on that stream now.
        memory.note_import(operation, &stream)?;
    }
    Ok(ImportedElements { memory, layout })
}

/// Whether a layout has the rank of a type.
pub(crate) fn check_rank<D: Dimension, B: Backend>(
    context: &DeviceContext<B>,
    operation: &'static str,
    layout: &Layout,
) -> Result<()> {
    match D::NDIM {
        Some(expected) if expected != layout.ndim() => {
            let error = LayoutError::RankMismatch { found: layout.ndim(), expected };
            Err(context.error(operation, error))
        }
        _ => Ok(()),
    }
}
