//! Lending memory to others.

use super::HasCudaArrayInterface;
use crate::{
    ArrayBase, CudaArrayInterface, Device, ElementType, HostArray, InterchangeStream, Layout, OwnedKind,
    Storage, StorageMut, Stream,
    device::AllocationRef,
    foreign::{VERSION, own},
    transfer::ArrayRef,
};
use gpumem_core::{
    Backend, DescriptorError, Element, ErrorKind, HostAccess, RawStream, Result, Stream as _, StreamKind,
};
use gpumem_memory::track::{Access, Timeline, Work};
use ndarray::Dimension;
use smallvec::SmallVec;
use std::{fmt, ops::Range, sync::Arc};

/// Memory that another library uses: an array with its stream, for as long as the loan lasts.
///
/// * The loan keeps the memory alive, also after the array is dropped.
/// * When it is made, its stream waits for everything pending that conflicts.
/// * While it lasts, the library's uses of the memory wait for the work on that stream by then, and the stream waits
///   for them. So the borrower enqueues its work there, or orders its own streams with it, before and after.
/// * When it ends, the enqueued work stays in the log: the memory is not reused or freed before that work is done.
///
/// Forgetting a loan costs waits, and no safety. Memory of the caller that is page-locked for a scope cannot be lent,
/// because a loan has no lifetime. Importing a loan returns another handle of the array's memory: it is ordered with
/// the array, and read-only while the array exists.
#[must_use = "the loan ends when this is dropped"]
pub struct Loan<B: Backend> {
    memory: AllocationRef<B>,
    layout: Layout,
    element: ElementType,
    write: bool,
    stream: Option<InterchangeStream>,
    /// The entries in the memory's list of loans.
    entries: SmallVec<[u64; 2]>,
    /// Keeps the stream alive that the descriptor names, if the library owns it.
    kept: Option<Stream<B>>,
}

/// The kinds of borrowers.
enum Borrower<'a, B: Backend> {
    /// A borrower that enqueues on a stream of the library.
    Stream(&'a Stream<B>),
    /// A borrower with its own stream, which is only known to be alive now.
    Handle(&'a Device<B>, InterchangeStream),
    /// The host itself.
    Host,
}

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// Lends the array for reading to work on `stream`. The descriptors of the loan say `read_only`.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let array = stream.to_device(&[1, 2, 3])?;
    /// let loan = array.lend(&stream)?; // ends when it is dropped
    /// let description = loan.describe(); // `__cuda_array_interface__`
    /// assert_eq!((description.shape, description.data.1), (vec![3], true));
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`WrongDevice`](gpumem_core::ErrorKind::WrongDevice) for a stream of another device,
    /// [`Stream`](gpumem_core::DescriptorError::Stream) for the per-thread default stream, whose name means another
    /// stream on every thread, and [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn lend(&self, stream: &Stream<S::Backend>) -> Result<Loan<S::Backend>> {
        self.loan(false, Borrower::Stream(stream))
    }

    /// Lends the array for reading to a library that works on its own stream. The stream waits for pending work; as its
    /// lifetime is unknown, the loan is one [on any stream](Loan::on_any_stream).
    ///
    /// # Safety
    /// A handle names a live stream of the device.
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub unsafe fn lend_to_handle(&self, stream: InterchangeStream) -> Result<Loan<S::Backend>> {
        self.loan(false, Borrower::Handle(self.device()?, stream))
    }

    /// Lends the array for reading to code of the host, after waiting for work that writes it. Only for memory that the
    /// host sees. The borrower itself waits for work that is enqueued while the loan lasts: the host knows no streams.
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) for memory that the host does not see. Returns
    /// [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) or
    /// [`Poisoned`](gpumem_core::ErrorKind::Poisoned) if work that was to write the elements failed.
    pub fn lend_to_host(&self) -> Result<Loan<S::Backend>> {
        self.loan(false, Borrower::Host)
    }

    fn loan(&self, write: bool, to: Borrower<'_, S::Backend>) -> Result<Loan<S::Backend>> {
        Loan::new(&self.memory, &self.layout, ElementType::of::<S::Elem>(), write, to)
    }
}

impl<S: StorageMut, D: Dimension> ArrayBase<S, D> {
    /// Lends the array for reading and writing to work on `stream`.
    ///
    /// # Errors
    /// As for [`lend`](Self::lend).
    pub fn lend_mut(&mut self, stream: &Stream<S::Backend>) -> Result<Loan<S::Backend>> {
        self.loan(true, Borrower::Stream(stream))
    }

    /// As [`lend_to_handle`](Self::lend_to_handle), for reading and writing.
    ///
    /// # Safety
    /// As for [`lend_to_handle`](Self::lend_to_handle).
    ///
    /// # Errors
    /// As for [`lend_to_handle`](Self::lend_to_handle).
    pub unsafe fn lend_mut_to_handle(&mut self, stream: InterchangeStream) -> Result<Loan<S::Backend>> {
        self.loan(true, Borrower::Handle(self.device()?, stream))
    }

    /// As [`lend_to_host`](Self::lend_to_host), for reading and writing, after waiting for readers too.
    ///
    /// # Errors
    /// As for [`lend_to_host`](Self::lend_to_host).
    pub fn lend_mut_to_host(&mut self) -> Result<Loan<S::Backend>> {
        self.loan(true, Borrower::Host)
    }
}

impl<K: OwnedKind, T: Element, D: Dimension, B: Backend> HostArray<K, T, D, B> {
    /// Lends the array for reading to code of the host, after waiting for work that writes it.
    ///
    /// # Errors
    /// Returns [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) or
    /// [`Poisoned`](gpumem_core::ErrorKind::Poisoned) if work that was to write the elements failed.
    pub fn lend_to_host(&self) -> Result<Loan<B>> {
        let ArrayRef { memory, layout } = self.place();
        Loan::new(memory, layout, ElementType::of::<T>(), false, Borrower::Host)
    }

    /// Lends the array for reading and writing to code of the host, after waiting for work that uses it.
    ///
    /// # Errors
    /// Returns [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) or
    /// [`Poisoned`](gpumem_core::ErrorKind::Poisoned) if work that was to write the elements failed.
    pub fn lend_mut_to_host(&mut self) -> Result<Loan<B>> {
        let ArrayRef { memory, layout } = self.place();
        Loan::new(memory, layout, ElementType::of::<T>(), true, Borrower::Host)
    }
}

/// Lends bytes to work on a stream, which waits for their uses before. Returns the driver's stream and the number of the loan.
///
/// The loan is noted first: a use of another thread that comes in between makes the stream wait, or is waited for.
pub(crate) fn lend_on<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    memory: &AllocationRef<B>,
    extent: &Range<usize>,
    write: bool,
) -> Result<(RawStream, u64)> {
    let access = [Access::new(memory, extent.clone(), write)];
    let admitted = timeline.admit(Work::Transfer, operation, &access)?;
    // Before others see the loan, and make its stream wait.
    timeline.refuse_capture(operation)?;
    let entry = memory.lend(timeline.clone(), extent.clone(), write);
    match admitted.submit(|sink, _| Ok(sink.stream(operation)?.raw())) {
        Ok(submitted) => Ok((submitted.value, entry)),
        Err(error) => {
            memory.take_back_loan(entry);
            Err(error)
        }
    }
}

impl<B: Backend> Loan<B> {
    fn new(
        memory: &AllocationRef<B>,
        layout: &Layout,
        element: ElementType,
        write: bool,
        to: Borrower<'_, B>,
    ) -> Result<Self> {
        const OPERATION: &str = "lend";
        let fail = |kind| memory.core().error(OPERATION, kind);
        if memory.is_of_scope() {
            // The loan could outlive the scope, and with it the caller's memory.
            return Err(fail(ErrorKind::Unsupported { what: "a loan of memory that is locked for a scope" }));
        }
        let extent = layout.extent();
        let mut entries = SmallVec::new();
        let (handle, kept) = match to {
            Borrower::Stream(stream) => {
                let timeline = stream.timeline();
                timeline.check_owns(OPERATION, memory)?;
                if timeline.kind() == StreamKind::PerThread {
                    let why = "it means another stream on every thread; lend on a stream that has a handle";
                    return Err(fail(DescriptorError::Stream { found: 2, why }.into()));
                }
                memory.hand_out(OPERATION, &extent)?;
                let (raw, entry) = lend_on(timeline, OPERATION, memory, &extent, write)?;
                entries.push(entry);
                (Some(InterchangeStream::of(timeline, raw)), Some(stream.clone()))
            }
            Borrower::Handle(device, handle) => {
                // SAFETY: alive now, by the promise of the caller; it is not used after this.
                let stream = unsafe { handle.stream(device, OPERATION)? };
                memory.hand_out(OPERATION, &extent)?;
                memory.make_stream_wait(OPERATION, &extent, write, &stream)?;
                // The borrower's later work there counts as work on unknown streams.
                entries.push(memory.lend(memory.context().unknown_streams(), extent, write));
                (Some(handle), None)
            }
            Borrower::Host => {
                if !memory.is_seen_by_host() {
                    return Err(fail(ErrorKind::Unsupported { what: "a loan of device memory to the host" }));
                }
                let access = if write { HostAccess::Write } else { HostAccess::Read };
                memory.show_to_host(OPERATION, &extent, access)?;
                (None, None)
            }
        };
        let (memory, layout) = (memory.clone(), layout.clone());
        own::note_loan(&memory);
        Ok(Self { memory, layout, element, write, stream: handle, entries, kept })
    }

    /// Returns the stream on which the borrower works; `None` for the host.
    pub fn stream(&self) -> Option<InterchangeStream> {
        self.stream
    }

    /// Returns whether the borrower may only read.
    pub fn is_read_only(&self) -> bool {
        !self.write
    }

    pub(super) fn memory(&self) -> &AllocationRef<B> {
        &self.memory
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(super) fn element(&self) -> ElementType {
        self.element
    }

    /// The same loan for a borrower that uses the memory on unnamed streams, without ordering them with this one. While
    /// it lasts, the library's uses of the memory wait for everything on the device, including work of other libraries.
    /// If the device cannot record an event after all streams
    /// ([`DriverDevice::record_device`](gpumem_core::DriverDevice::record_device)), the host waits. The borrower
    /// orders its own work after the library's.
    pub fn on_any_stream(mut self) -> Self {
        let others = self.memory.context().unknown_streams();
        self.entries.push(self.memory.lend(others, self.layout.extent(), self.write));
        self
    }

    /// Returns the descriptor. It is valid while the loan lasts.
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
            stream: self.stream.map(InterchangeStream::number),
        }
    }
}

// SAFETY: the loan keeps the memory and the stream that it names alive, and elements of arrays are initialised. The stream has waited
// for pending work, and later work of the library makes it wait. An import in this process finds the allocation itself.
unsafe impl<B: Backend> HasCudaArrayInterface for Loan<B> {
    fn cuda_array_interface(&self) -> Result<CudaArrayInterface> {
        self.memory.check("cuda_array_interface")?;
        self.memory.check_written("cuda_array_interface", &self.layout.extent())?;
        let described = self.describe();
        // Of a handle it is known that its stream was alive when the loan began.
        Ok(match self.stream {
            Some(InterchangeStream::Handle(_)) if self.kept.is_none() => {
                CudaArrayInterface { stream: None, ..described }
            }
            _ => described,
        })
    }
}

impl<B: Backend> Drop for Loan<B> {
    fn drop(&mut self) {
        if self.memory.core().origin.is_valid() {
            self.entries.iter().for_each(|entry| self.memory.end_loan(*entry));
            own::note_end(&self.memory);
        }
    }
}

/// Memory whose address other code has while this lives, for bindings that order that code with the library's work themselves.
#[derive(Debug)]
pub struct Noted<B: Backend>(AllocationRef<B>);

impl<B: Backend> Noted<B> {
    /// Notes the memory of an array.
    pub fn of<S: Storage<Backend = B>, D: Dimension>(array: &ArrayBase<S, D>) -> Self {
        own::note_loan(&array.memory);
        Self(array.memory.clone())
    }
}

impl<B: Backend> Drop for Noted<B> {
    fn drop(&mut self) {
        if self.0.core().origin.is_valid() {
            own::note_end(&self.0);
        }
    }
}

impl<B: Backend> fmt::Debug for Loan<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan").field("descriptor", &self.describe()).finish_non_exhaustive()
    }
}
