//! Taking DLPack tensors in.

use super::DlpackTensor;
use crate::{
    ArrayBase, Device, ImportedArray, Stream,
    array::host::lock,
    device::{Allocation, ForeignMemory},
    foreign::{ForeignElements, check_rank, own},
};
use gpumem_core::{
    Attach, Backend, DescriptorError, DlpackDevice, DriverDevice, Element, ErrorKind, MemoryKind,
    RegisterOptions, Result,
};
use ndarray::Dimension;

impl<B: Backend> Device<B> {
    /// Takes a DLPack tensor as an array, without a copy. It is deleted after the last use of the array on any stream.
    ///
    /// `stream` is the one that was passed to the producer; the elements are ready after its work, and other streams
    /// wait for it by an event. `None` if the elements are ready already.
    ///
    /// Memory of the library's own that comes back is shared, as [`as_cuda_array`](Self::as_cuda_array) says.
    ///
    /// The memory is this device's: of the device itself, managed, or page-locked by its driver. A host device takes any
    /// memory of the host.
    ///
    /// # Errors
    /// Returns [`Descriptor`](gpumem_core::ErrorKind::Descriptor) or [`Layout`](gpumem_core::ErrorKind::Layout) for a
    /// tensor that cannot be taken, with the reason: another element type or rank, an unknown version, memory of
    /// somewhere else. Returns [`Stale`](gpumem_core::ErrorKind::Stale) for one that an array of before a reset was lent as, and
    /// [`ForkedChild`](gpumem_core::ErrorKind::ForkedChild) for one of the process that this one was forked from. The tensor is deleted then.
    pub fn from_dlpack<T: Element, D: Dimension>(
        &self,
        tensor: DlpackTensor,
        stream: Option<&Stream<B>>,
    ) -> Result<ImportedArray<T, D, B>> {
        const OPERATION: &str = "from_dlpack";
        let fail = |kind: ErrorKind| self.core().error(OPERATION, kind);
        self.core().check(OPERATION)?;
        if tensor.is_of_parent() {
            // The table of the library's own memory is the parent's, so that its arrays would have a second owner here.
            return Err(fail(ErrorKind::ForkedChild));
        }
        if own::OwnTensor::is_stale(tensor.context()) {
            return Err(fail(ErrorKind::Stale { what: "tensor" }));
        }
        let elements = tensor.elements::<T>().map_err(fail)?;
        check_rank::<D, B>(self.core(), OPERATION, &elements.layout)?;
        if let Some((memory, layout)) = own::find(self, OPERATION, &elements)? {
            if let Some(stream) = stream {
                memory.note_work_on(OPERATION, &layout.extent(), stream.timeline())?;
            }
            return Ok(ArrayBase::over(memory, layout));
        }
        let place = tensor.device().map_err(|error| fail(error.into()))?;
        let kind = self.kind_of(place, &elements).map_err(|error| fail(error.into()))?;
        let ForeignElements { layout, address, bytes: len, read_only } = elements.clone();
        let mut memory = match kind {
            MemoryKind::Registered(options) if len > 0 => {
                // SAFETY: the tensor is kept until the last use, and unlocked with it.
                let locked = unsafe { lock(self, OPERATION, address, len, options, tensor) };
                locked.map_err(|(_, error)| error)?.into_allocation(self, options, read_only)
            }
            _ => {
                let host = if kind == MemoryKind::Device { 0 } else { address as usize };
                if kind == MemoryKind::Device {
                    elements.check_place(self, OPERATION)?;
                }
                let owner = Box::new(tensor);
                Allocation::imported(self, ForeignMemory { address, host, len, kind, read_only, owner })
            }
        };
        if let Some(stream) = stream.filter(|_| len > 0) {
            stream.timeline().check_owns(OPERATION, &memory)?;
            Allocation::note_given(&mut memory, OPERATION, stream.timeline())?;
        }
        Ok(ArrayBase::over(memory, layout))
    }

    /// Whether memory of the host is a host device's own. Memory of the caller that is locked at this moment is not.
    fn knows(&self, address: u64) -> bool {
        let known = self.raw().pointer_info(address).is_ok_and(|found| found.is_some());
        known && !self.core().pages.holds(address as usize)
    }

    /// Which kind of memory of this device that place is.
    fn kind_of(
        &self,
        place: DlpackDevice,
        elements: &ForeignElements,
    ) -> Result<MemoryKind, DescriptorError> {
        let name = |kind| self.raw().dlpack_device(kind);
        let on_host = place.device_type == DlpackDevice::CPU && self.capabilities().pageable_direct;
        if on_host && !self.knows(elements.address) {
            // A host device reaches all memory of the host, and must be told of it.
            let options = RegisterOptions {
                mapped: self.capabilities().mapped,
                read_only: elements.read_only,
                ..RegisterOptions::default()
            };
            return Ok(MemoryKind::Registered(options));
        }
        if name(MemoryKind::Device) == Some(place) {
            return Ok(MemoryKind::Device);
        }
        let managed = MemoryKind::Managed(Attach::Global);
        if name(managed) == Some(place) {
            return Ok(managed);
        }
        // Page-locked memory is every device's.
        if name(MemoryKind::Pinned).is_some_and(|pinned| pinned.device_type == place.device_type) {
            return Ok(MemoryKind::Pinned);
        }
        let DlpackDevice { device_type, device_id } = place;
        Err(DescriptorError::Place {
            address: elements.address,
            found: format!("the DLPack device ({device_type}, {device_id})"),
            expected: format!("memory of {}", self.name()),
        })
    }
}
