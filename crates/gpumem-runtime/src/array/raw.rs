//! Lending the native stream and addresses to other libraries (law 15).

use crate::{ArrayBase, Storage, StorageMut, Stream, transfer::ArrayRef};
use gpumem_core::{Backend, RawStream, Result, SubmissionId, with_uses};
use gpumem_memory::track::{Access, LentStream, Timeline, Uses, Work};
use ndarray::Dimension;
use smallvec::SmallVec;
use std::{marker::PhantomData, sync::Arc};

/// An array that work of another library is going to read or write.
#[derive(Debug)]
#[must_use = "an access does nothing until a raw scope has it"]
pub struct RawAccess<'a, B: Backend> {
    array: ArrayRef<'a, B>,
    address: u64,
    write: bool,
    /// An array that is named for writing is borrowed mutably for as long.
    borrow: PhantomData<&'a mut ()>,
}

impl<'a, B: Backend> RawAccess<'a, B> {
    /// Names an array that is going to be read.
    #[inline]
    pub fn read<S: Storage<Backend = B>, D: Dimension>(array: &'a ArrayBase<S, D>) -> Self {
        Self::of(array, false)
    }

    /// Names an array that is going to be written, and perhaps read.
    #[inline]
    pub fn write<S: StorageMut<Backend = B>, D: Dimension>(array: &'a mut ArrayBase<S, D>) -> Self {
        Self::of(array, true)
    }

    #[inline]
    fn of<S: Storage<Backend = B>, D: Dimension>(array: &'a ArrayBase<S, D>, write: bool) -> Self {
        Self { array: array.place(), address: array.address(), write, borrow: PhantomData }
    }
}

/// The data for another library: the stream, and the address of element `[0, 0, ..]` of each array, in the order in
/// which they were named.
#[derive(Debug, Clone, Copy)]
pub struct RawParts<'a> {
    /// The driver's stream.
    pub stream: RawStream,
    /// Device addresses.
    pub addresses: &'a [u64],
}

/// Notes the use of the arrays also if the code that enqueues the foreign work panics.
struct Noting<'a, 'b, B: Backend> {
    timeline: &'a Arc<Timeline<B>>,
    lent: Option<LentStream<'a, 'b, B>>,
}

impl<B: Backend> Drop for Noting<'_, '_, B> {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.lent.take().map(|lent| lent.note()) {
            self.timeline.context.errors.push(error);
        }
    }
}

impl<B: Backend> Stream<B> {
    /// Runs `body`, which enqueues work of another library on this stream: a cuBLAS or rocBLAS call, say. Before it
    /// runs, the stream waits for all work that conflicts with the named arrays; later uses of them wait for the work.
    /// ```
    /// # use gpumem_runtime::RawAccess; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let mut array = stream.device_array::<f32, _>(1000)?;
    /// let accesses = [RawAccess::write(&mut array)];
    /// // SAFETY: nothing is enqueued here; a library would be given `parts.stream` and the addresses.
    /// let address = unsafe { stream.raw_scope(&accesses, |parts| parts.addresses[0]) }?;
    /// assert_eq!(address, array.address());
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Safety
    /// * The work goes to the stream that `body` is given, and to no other.
    /// * It reads and writes no memory of this library but the arrays named, and writes only those named for writing.
    /// * `body` neither destroys nor captures the stream.
    ///
    /// # Errors
    /// Returns [`Stale`](gpumem_core::ErrorKind::Stale) for a stream or an array of before a reset,
    /// [`Overlap`](gpumem_core::ErrorKind::Overlap) for an array that is written and named by a second handle too, or that
    /// another thread lends to such work,
    /// [`Poisoned`](gpumem_core::ErrorKind::Poisoned) for an array that failed work was to write, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure. `body` has not run then, unless the failure came
    /// to light after it; the arrays named for writing are poisoned in that case.
    pub unsafe fn raw_scope<R>(
        &self,
        arrays: &[RawAccess<'_, B>],
        body: impl FnOnce(RawParts<'_>) -> R,
    ) -> Result<R> {
        let mut accesses: SmallVec<[Access<'_, B>; 4]> = SmallVec::new();
        let mut addresses: SmallVec<[u64; 8]> = SmallVec::new();
        for RawAccess { array, address, write, .. } in arrays {
            accesses.push(array.access(*write));
            addresses.push(*address);
        }
        let timeline = self.timeline();
        let lent = timeline.admit(Work::Foreign, "raw_scope", &accesses)?.lend()?;
        let parts = RawParts { stream: lent.handle, addresses: &addresses };
        let mut noting = Noting { timeline, lent: Some(lent) };
        // Work that is enqueued through the backend is checked as the library's own is. It is one submission: once part of
        // it has failed, the rest does not run.
        let survives_faults = timeline.survives_faults();
        let submission = if survives_faults { timeline.reserve_index()? } else { 0 };
        let submission = SubmissionId { stream: timeline.id(), submission };
        let uses = Uses { accesses: &accesses, submission };
        // SAFETY: the work uses the arrays named and no other memory of the library (the caller's promise).
        let value = unsafe { with_uses(survives_faults.then_some(&uses as _), || body(parts)) };
        match noting.lent.take().map(|lent| lent.note()) {
            Some(Err(error)) => Err(error),
            _ => Ok(value),
        }
    }
}
