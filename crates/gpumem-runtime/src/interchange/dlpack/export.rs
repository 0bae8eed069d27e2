//! Loans as DLPack tensors.

use super::{
    DlpackTensor,
    abi::{DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor, READ_ONLY, VERSION},
    element,
};
use crate::{foreign::own::OwnTensor, interchange::Loan};
use gpumem_core::{Backend, DescriptorError, DlpackDevice, DriverDevice, Error, ErrorKind, Result};
use gpumem_memory::memory::DeviceCore;
use smallvec::SmallVec;
use std::{ffi::c_void, ptr, ptr::NonNull};

/// A tensor and the arrays that it points to, in one block. The deleter drops it, and with it the loan.
#[repr(C)]
struct Block<H, B: Backend> {
    head: H,
    /// Lengths, then strides.
    numbers: SmallVec<[i64; 12]>,
    /// Set once the block has its address. It ends before the loan does.
    own: Option<OwnTensor>,
    loan: Loan<B>,
}

unsafe extern "C" fn delete_versioned<B: Backend>(tensor: *mut DLManagedTensorVersioned) {
    if let Some(tensor) = NonNull::new(tensor) {
        // SAFETY: made from a box of that type by `into_dlpack`, and deleted once by its consumer.
        drop(unsafe {
            Box::from_raw((*tensor.as_ptr()).manager_ctx.cast::<Block<DLManagedTensorVersioned, B>>())
        });
    }
}

unsafe extern "C" fn delete_unversioned<B: Backend>(tensor: *mut DLManagedTensor) {
    if let Some(tensor) = NonNull::new(tensor) {
        // SAFETY: made from a box of that type by `into_dlpack_unversioned`, and deleted once by its consumer.
        drop(unsafe { Box::from_raw((*tensor.as_ptr()).manager_ctx.cast::<Block<DLManagedTensor, B>>()) });
    }
}

impl<B: Backend> Loan<B> {
    /// Returns DLPack's device of the memory, for `__dlpack_device__`.
    ///
    /// # Errors
    /// Returns [`Inexpressible`](gpumem_core::DescriptorError::Inexpressible) if DLPack has no name for it.
    pub fn dlpack_device(&self) -> Result<DlpackDevice> {
        let memory = self.memory();
        memory
            .core()
            .raw
            .dlpack_device(memory.kind())
            .ok_or_else(|| inexpressible(self.memory().core(), "this memory"))
    }

    /// Makes the loan a DLPack tensor of the form since version 1.0. The loan ends when the tensor is deleted.
    /// ```
    /// # use ndarray::Ix1; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.to_device(&[1.0f32, 2.0, 3.0])?;
    /// let tensor = array.lend_to_host()?.into_dlpack()?; // for another library
    /// let imported = device.from_dlpack::<f32, Ix1>(tensor, None)?;
    /// assert_eq!(imported.get(2)?, 3.0);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Inexpressible`](gpumem_core::DescriptorError::Inexpressible) for elements that are no numbers,
    /// strides that are no multiple of the element, memory without a name, and a loan on a stream of memory of the
    /// host, whose readers know no streams: lend that with [`lend_to_host`](crate::ArrayBase::lend_to_host).
    pub fn into_dlpack(self) -> Result<DlpackTensor> {
        let (tensor, numbers) = self.dl_tensor()?;
        let flags = if self.is_read_only() { READ_ONLY } else { 0 };
        let head = DLManagedTensorVersioned {
            version: VERSION,
            manager_ctx: ptr::null_mut(),
            deleter: Some(delete_versioned::<B>),
            flags,
            dl_tensor: tensor,
        };
        let block = Box::into_raw(Box::new(Block { head, numbers, own: None, loan: self }));
        // SAFETY: this value owns the block; the pointers into it stay valid, because it does not move any more.
        unsafe {
            (*block).head.manager_ctx = block.cast::<c_void>();
            point(&mut (*block).head.dl_tensor, &mut (*block).numbers);
            (*block).own = Some(OwnTensor::note(block.addr(), (*block).loan.memory()));
            // The pointer to the head reaches the whole block.
            Ok(DlpackTensor::from_versioned(NonNull::new_unchecked(block.cast())))
        }
    }

    /// As [`into_dlpack`](Self::into_dlpack), of the form before version 1.0.
    ///
    /// # Errors
    /// Returns [`Inexpressible`](gpumem_core::DescriptorError::Inexpressible) for a loan that may only be read, which
    /// that form cannot express. Otherwise as [`into_dlpack`](Self::into_dlpack).
    pub fn into_dlpack_unversioned(self) -> Result<DlpackTensor> {
        if self.is_read_only() {
            return Err(inexpressible(self.memory().core(), "read-only memory before version 1.0"));
        }
        let (tensor, numbers) = self.dl_tensor()?;
        let deleter = Some(delete_unversioned::<B> as unsafe extern "C" fn(_));
        let head = DLManagedTensor { dl_tensor: tensor, manager_ctx: ptr::null_mut(), deleter };
        let block = Box::into_raw(Box::new(Block { head, numbers, own: None, loan: self }));
        // SAFETY: as above.
        unsafe {
            (*block).head.manager_ctx = block.cast::<c_void>();
            point(&mut (*block).head.dl_tensor, &mut (*block).numbers);
            (*block).own = Some(OwnTensor::note(block.addr(), (*block).loan.memory()));
            Ok(DlpackTensor::from_unversioned(NonNull::new_unchecked(block.cast())))
        }
    }

    fn dl_tensor(&self) -> Result<(DLTensor, SmallVec<[i64; 12]>)> {
        let (memory, layout) = (self.memory(), self.layout());
        memory.check("dlpack")?;
        memory.check_written("dlpack", &layout.extent())?;
        let place = self.dlpack_device()?;
        if place.device_type == DlpackDevice::CPU && self.stream().is_some() {
            return Err(inexpressible(self.memory().core(), "the stream of memory of the host"));
        }
        let dtype = element::write(self.element())
            .map_err(|error| memory.core().error("dlpack", ErrorKind::from(error)))?;
        let mut numbers: SmallVec<[i64; 12]> = layout.shape().iter().map(|&length| length as i64).collect();
        let item = layout.item() as isize;
        for (&stride, &length) in layout.strides().iter().zip(layout.shape()) {
            if stride % item != 0 && length > 1 && !layout.is_empty() {
                return Err(inexpressible(
                    self.memory().core(),
                    "strides that are no multiple of the element",
                ));
            }
            numbers.push((stride / item) as i64);
        }
        // Page-locked memory goes by its host address, as everybody else's.
        let (base, _) = memory.endpoint();
        let address = if layout.packed_bytes() == 0 { 0 } else { base + layout.offset() as u64 };
        let tensor = DLTensor {
            data: ptr::with_exposed_provenance_mut(address as usize),
            device: DLDevice { device_type: place.device_type, device_id: place.device_id },
            ndim: layout.ndim() as i32,
            dtype,
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            byte_offset: 0,
        };
        Ok((tensor, numbers))
    }
}

/// Points a tensor at its lengths and strides. Strides are written always: newer versions ask for them.
fn point(tensor: &mut DLTensor, numbers: &mut SmallVec<[i64; 12]>) {
    let axes = numbers.len() / 2;
    // Called once: a second mutable borrow would invalidate the first pointer.
    let first = numbers.as_mut_ptr();
    tensor.shape = first;
    tensor.strides = first.wrapping_add(axes);
}

fn inexpressible<B: Backend>(core: &DeviceCore<B>, what: &'static str) -> Error {
    let error = DescriptorError::Inexpressible { protocol: "DLPack", what };
    core.error("dlpack", ErrorKind::from(error))
}
