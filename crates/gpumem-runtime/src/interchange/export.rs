//! Lending memory to others.

use super::{CudaArrayInterface, ElementType, HasCudaArrayInterface, StreamHandle, cuda_array::VERSION};
use crate::{
    ArrayBase, Layout, Storage, StorageMut, Stream,
    memory::Allocation,
    order::{Access, Timeline},
};
use gpumem_core::{Backend, DescriptorError, Error, ErrorKind, Result, Stream as _, StreamKind};
use ndarray::Dimension;
use std::{fmt, sync::Arc};

/// Memory of ours that another library uses: an array with its stream, for as long as the loan lasts.
///
/// * The loan keeps the memory alive, whatever becomes of the array.
/// * When it is made, its stream waits for everything pending that conflicts.
/// * While it lasts, our own uses of the memory wait for whatever stands on that stream by then, and the stream waits for
///   them. So the borrower enqueues its work there, or orders its own streams with it, before and after.
/// * When it ends, what has been enqueued stays remembered: the memory is not reused or given back before it is done.
///
/// Forgetting a loan costs waits, and no safety.
pub struct Loan<B: Backend> {
    memory: Arc<Allocation<B>>,
    layout: Layout,
    element: ElementType,
    write: bool,
    stream: StreamHandle,
    id: u64,
    /// The loan to whoever works on streams that are not named.
    others: Option<u64>,
    /// Keeps the stream alive that the descriptor names.
    _stream: Stream<B>,
}

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// Lends the array for reading, to whoever enqueues on `stream`. The descriptors of the loan say `read_only`.
    ///
    /// # Errors
    /// [`WrongDevice`](ErrorKind::WrongDevice) for a stream of another device, [`DescriptorError::Stream`] for the
    /// per-thread default stream, whose name means another stream on every thread; of the driver.
    pub fn lend(&self, stream: &Stream<S::Backend>) -> Result<Loan<S::Backend>> {
        lend::<S, D>(self, stream, false)
    }
}

impl<S: StorageMut, D: Dimension> ArrayBase<S, D> {
    /// Lends the array for reading and writing, to whoever enqueues on `stream`.
    ///
    /// # Errors
    /// As [`lend`](Self::lend).
    pub fn lend_mut(&mut self, stream: &Stream<S::Backend>) -> Result<Loan<S::Backend>> {
        lend::<S, D>(self, stream, true)
    }
}

fn lend<S: Storage, D: Dimension>(
    array: &ArrayBase<S, D>,
    stream: &Stream<S::Backend>,
    write: bool,
) -> Result<Loan<S::Backend>> {
    const OPERATION: &str = "lend";
    let (memory, timeline) = (&array.memory, stream.timeline());
    timeline.check_owns(OPERATION, memory)?;
    if timeline.kind() == StreamKind::PerThread {
        let why = "it means another stream on every thread; lend on a stream that has a handle";
        let error = ErrorKind::from(DescriptorError::Stream { found: 2, why });
        return Err(Error::new(S::Backend::NAME, OPERATION, error));
    }
    let extent = array.layout.extent();
    let access = [Access { memory, extent: extent.clone(), write }];
    let raw = timeline.submit(OPERATION, &access, |raw| Ok(raw.raw()))?.value;
    Ok(Loan {
        id: memory.lend(timeline.clone(), extent, write),
        others: None,
        memory: memory.clone(),
        layout: array.layout.clone(),
        element: ElementType::of::<S::Elem>(),
        write,
        stream: StreamHandle::of::<S::Backend>(timeline, raw),
        _stream: stream.clone(),
    })
}

impl<B: Backend> Loan<B> {
    /// The stream on which the borrower works.
    pub fn stream(&self) -> StreamHandle {
        self.stream
    }

    /// The same loan for a borrower who uses the memory on streams that it does not name, without ordering them with
    /// this one: while it lasts, our uses of the memory wait for everything on the device, whoever enqueued it. Devices
    /// without a mark behind all streams ([`Backend::record_device`]) are waited for by the host. What the borrower
    /// enqueues after our uses is its own to order.
    #[must_use]
    pub fn on_any_stream(mut self) -> Self {
        let others = Timeline::of_others(self.memory.core());
        self.others = Some(self.memory.lend(others, self.layout.extent(), self.write));
        self
    }

    /// The descriptor. It is valid while the loan lasts.
    ///
    /// Strides are left out only where the elements are packed in C order, an address is null where there are no
    /// elements, and the stream is never 0.
    pub fn describe(&self) -> CudaArrayInterface {
        let layout = &self.layout;
        let address = match layout.packed_bytes() {
            0 => 0,
            _ => self.memory.address().wrapping_add(layout.offset() as u64),
        };
        let strides = || layout.strides().iter().map(|&stride| stride as i64).collect();
        CudaArrayInterface {
            shape: layout.shape().iter().map(|&length| length as i64).collect(),
            typestr: self.element,
            data: (address, !self.write),
            strides: (!layout.is_c_contiguous()).then(strides),
            descr: None,
            mask: false,
            version: VERSION,
            stream: Some(self.stream.number()),
        }
    }
}

// SAFETY: the loan keeps the memory and the stream alive; elements of arrays are initialised; the stream has waited for
// what was pending, and later work of ours lets it wait.
unsafe impl<B: Backend> HasCudaArrayInterface for Loan<B> {
    fn cuda_array_interface(&self) -> Result<CudaArrayInterface> {
        self.memory.check("cuda_array_interface")?;
        Ok(self.describe())
    }
}

impl<B: Backend> Drop for Loan<B> {
    fn drop(&mut self) {
        if self.memory.core().origin.is_usable() {
            self.memory.end_loan(self.id);
            if let Some(others) = self.others {
                self.memory.end_loan(others);
            }
        }
    }
}

impl<B: Backend> fmt::Debug for Loan<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan").field("descriptor", &self.describe()).finish_non_exhaustive()
    }
}
