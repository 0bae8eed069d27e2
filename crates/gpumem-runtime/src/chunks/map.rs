//! Arrays to arrays: up, work, down.

use super::{ChunkIter, Chunks};
use crate::{
    Destination, Device, DeviceArray, FromDevice, Stream, ToDevice,
    array::{destination::WriteBack, rows},
    transfer::{ArrayRef, abort},
};
use gpumem_core::{
    Backend, Element, Error, ErrorKind, LayoutError, NotRecorded, Result, process::ProcessGuard,
};
use gpumem_memory::{may_block, memory::check_outside_resource};
use ndarray::Dimension;
use std::{
    io, mem,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::mpsc::{Receiver, SendError, SyncSender, sync_channel},
    thread,
};

const OPERATION: &str = "map_chunks";

impl<B: Backend> Device<B> {
    /// Calls `work` for each chunk of `input`, in order, and copies the array that it returns to the same rows of `output`. Uploads,
    /// work and downloads overlap; a thread of this call downloads. Everything has finished on return.
    ///
    /// `work` gets a stream to enqueue on, the rows, and an array with them (and their [halo](Chunks::halo)). It returns that array,
    /// or another one with as many rows as the chunk has without its halo: of any element type and any length of the other axes.
    /// The chunks are those of `input`: it is one chunk if its rows have no bytes, even if those of `output` have some.
    /// ```
    /// # use {gpumem_runtime::Chunks, ndarray::{Array1, Array2}};
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let (input, mut output) = (Array2::from_elem((1000, 4), 1.0f32), Array1::zeros(1000));
    /// device.map_chunks(&input, &mut output, Chunks::rows(300), |stream, rows, array| {
    ///     let mut column = stream.device_array::<f32, _>(rows.len())?;
    ///     stream.copy_to_device(&mut column, &array.slice(ndarray::s![.., 0])?)?;
    ///     Ok(column)
    /// })?;
    /// assert_eq!(output, Array1::from_elem(1000, 1.0));
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](LayoutError::ShapeMismatch) before anything moves if `output` has another number of rows than
    /// `input`. Returns [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback, and
    /// [`Unsupported`](gpumem_core::ErrorKind::Unsupported) inside a memory resource, and if the system has no thread for the
    /// downloads.
    ///
    /// Otherwise returns the error of the first chunk that fails: of its upload, as for [`chunks`](Self::chunks), of `work`, or of
    /// its download, for which a returned array of another shape is a `ShapeMismatch`. `output` has the chunks before it, and later
    /// ones are as they were. So they are if `work` panics: the panic goes on from here after the downloads. Failures of work on
    /// later chunks are told by the next [`synchronize`](Self::synchronize), other errors beside the first by
    /// [`take_errors`](Self::take_errors).
    pub fn map_chunks<S, X, W>(&self, input: &S, output: &mut X, options: Chunks, mut work: W) -> Result<()>
    where
        S: ToDevice<B> + ?Sized,
        X: FromDevice<B> + ?Sized,
        W: FnMut(
            &Stream<B>,
            Range<usize>,
            DeviceArray<S::Elem, S::Dim, B>,
        ) -> Result<DeviceArray<X::Elem, X::Dim, B>>,
    {
        let core = self.core();
        may_block(OPERATION)?;
        // Other threads take part, which a resource would have to serve meanwhile.
        check_outside_resource(OPERATION).map_err(|error| core.place(error))?;
        if self.recording().is_some() {
            return Err(core.not_recordable(OPERATION, NotRecorded::Wait));
        }
        let mut chunks = ChunkIter::new(self, OPERATION, input.source(), options)?;
        let mut output = output.destination();
        check_rows(&output, self, chunks.total)?;
        let (up, stream, down) = (chunks.stream.clone(), self.stream()?, self.stream()?);
        let drain = |chunks| drain(&mut output, chunks, &down, [&up, &stream]);
        // SAFETY: it is dropped below, and what it borrows is older.
        let drain = unsafe { Drain::spawn(core.origin, drain) }.map_err(|error| {
            gpumem_core::tell!(error: %error, "there is no thread for downloads");
            core.error(OPERATION, ErrorKind::Unsupported { what: "another thread" })
        })?;
        let worked = catch_unwind(AssertUnwindSafe(|| {
            chunks.try_for_each(|chunk| {
                let (rows, array) = chunk.map_err(Some)?;
                let result = work(&stream, rows.clone(), array).map_err(Some)?;
                // The work may have forked: nothing takes chunks in the child.
                core.check_process(OPERATION).map_err(Some)?;
                let ends = [&up, &stream].map(Stream::submission_index);
                // The error of the download is told below.
                drain.send((rows, result, ends)).map_err(|_| None)
            })
        }));
        let drained =
            drain.end().map_or(Ok(()), |drained| drained.unwrap_or_else(|panic| resume_unwind(panic)));
        let outcome = match worked {
            // Chunks come in order, so what failed to download is before what was not enqueued.
            Ok(worked) => core.errors.first_of(drained, worked.or_else(|error| error.map_or(Ok(()), Err))),
            Err(panic) => {
                drained.unwrap_or_else(|error| core.errors.push(error));
                resume_unwind(panic)
            }
        };
        if core.origin.is_forked() {
            // The thread of the parent may have held what a wait here would lock.
            return core.check_process(OPERATION);
        }
        let ends = [&down, &stream, &up].map(Stream::timeline);
        if outcome.is_err() {
            // Failures of later chunks are left to a wait for the device.
            return ends.into_iter().map(|end| end.finish()).fold(outcome, |outcome, end| match end.done {
                true => outcome,
                false => core.errors.first_of(outcome, end.result),
            });
        }
        let failed = Error::all_of(ends.into_iter().filter_map(|end| end.synchronize().err()));
        failed.map_or(Ok(()), |error| Err(error.in_operation(OPERATION)))
    }
}

/// Whether an array has so many rows, which may be written.
fn check_rows<T: Element, D: Dimension, B: Backend>(
    output: &Destination<'_, T, D, B>,
    device: &Device<B>,
    expected: usize,
) -> Result<()> {
    let core = device.core();
    output.check(device, OPERATION)?;
    let layout = output.as_source().layout(OPERATION).map_err(|error| core.place(error))?;
    let found = rows::row_count(&layout).map_err(|error| core.error(OPERATION, error))?;
    if found != expected {
        let mut wanted = layout.shape().to_vec();
        wanted.splice(..1, [expected]);
        let mismatch = LayoutError::ShapeMismatch { found: layout.shape().to_vec(), expected: wanted };
        return Err(core.error(OPERATION, mismatch));
    }
    Ok(())
}

/// A chunk that has been worked on, and the last submissions to the streams of the uploads and of the work by then.
type Worked<T, D, B> = (Range<usize>, DeviceArray<T, D, B>, [u64; 2]);

/// The thread that downloads, with what it borrows from its caller. Dropping it waits for the thread.
struct Drain<T, R> {
    sender: Option<SyncSender<T>>,
    thread: Option<thread::JoinHandle<R>>,
    origin: ProcessGuard,
}

impl<T, R> Drain<T, R> {
    /// # Safety
    /// The value is dropped, and what `drain` borrows outlives it.
    unsafe fn spawn(origin: ProcessGuard, drain: impl FnOnce(Receiver<T>) -> R + Send) -> io::Result<Self>
    where
        T: Send,
        R: Send,
    {
        // One chunk waits while another is downloaded and a third one is uploaded.
        let (sender, receiver) = sync_channel(1);
        let named = thread::Builder::new().name("gpumem:chunks".to_owned());
        // SAFETY: the thread has ended when the value is gone (the caller).
        let thread = unsafe { named.spawn_unchecked(move || drain(receiver)) }?;
        Ok(Self { sender: Some(sender), thread: Some(thread), origin })
    }

    /// Passes a chunk on. An error: the thread has ended.
    fn send(&self, chunk: T) -> Result<(), SendError<T>> {
        match &self.sender {
            Some(sender) => sender.send(chunk),
            None => Err(SendError(chunk)),
        }
    }

    /// Waits until all chunks have been downloaded. `None` in a forked child.
    fn end(mut self) -> Option<thread::Result<R>> {
        self.join()
    }

    /// Ends the thread, and waits for it. A forked child does not have it, and it may have held a lock of the channel.
    fn join(&mut self) -> Option<thread::Result<R>> {
        let (sender, thread) = (self.sender.take(), self.thread.take());
        if self.origin.is_forked() {
            mem::forget((sender, thread));
            return None;
        }
        drop(sender);
        thread.map(thread::JoinHandle::join)
    }
}

impl<T, R> Drop for Drain<T, R> {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

/// Downloads chunks until the last one, or until one fails: when the next one begins, all before it have arrived.
fn drain<T: Element, D: Dimension, B: Backend>(
    output: &mut Destination<'_, T, D, B>,
    chunks: Receiver<Worked<T, D, B>>,
    stream: &Stream<B>,
    before: [&Stream<B>; 2],
) -> Result<()> {
    let (timeline, device) = (stream.timeline(), stream.device());
    let fail = |error: Error| error.in_operation(OPERATION);
    for (rows, array, ends) in chunks {
        for (before, end) in before.into_iter().zip(ends) {
            before.timeline().synchronize_to(end).map_err(fail)?;
        }
        let ArrayRef { memory, layout } = array.place();
        // The work may have used other streams.
        memory.hand_out(OPERATION, &layout.extent())?;
        let part = output.rows(rows).map_err(|kind| device.core().error(OPERATION, kind))?;
        // SAFETY: it is no scope, and memory of a borrowed object is waited for below.
        let (copy, borrowed) =
            unsafe { part.copy_from(timeline, OPERATION, array.place(), device, WriteBack::Now)? };
        let copied = timeline.synchronize_to(copy).map_err(fail);
        if let Some(memory) = borrowed {
            let settled = memory.wait_until_unused();
            if !settled.done {
                // Law 3: the device may still be using memory that is about to go back to its owner.
                abort(OPERATION, settled.result);
            }
            device.core().errors.first_of(copied, settled.result)?;
        } else {
            copied?;
        }
    }
    Ok(())
}
