//! Memory that serves the allocators of other libraries.
//!
//! The work of the other library is not seen. So an allocation names the stream on which the memory is used first, which waits for the
//! earlier uses of the memory; and at its end everything is noted that is on a stream by then, with an event at once, because the
//! stream may be gone when another one has to wait for it. Memory for unknown streams is idle, and its end is an event after
//! everything on the device, which is recorded when it is needed.

use crate::{
    Device,
    device::{Allocation, AllocationRef},
};
use gpumem_core::{
    Backend, DriverDevice, ErrorKind, MemoryKind, RawStream, Result, Stream as _, StreamKind, StreamOptions,
};
use gpumem_memory::track::Timeline;
use parking_lot::Mutex;
use std::{collections::HashMap, mem, sync::Arc};

const ALLOCATE: &str = "allocate";

/// Handles of streams that the driver has by name.
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

/// A stream of another library, as long as that keeps it alive.
#[derive(Debug)]
pub struct ServedStream<B: Backend> {
    /// The handle of the stream: a pool gives it memory of its own first.
    device: Device<B>,
    timeline: Arc<Timeline<B>>,
    raw: B::Stream,
}

impl<B: Backend> ServedStream<B> {
    /// A submission index after everything on the stream.
    fn note_work(&self) -> Result<u64> {
        match self.timeline.kind() {
            // It does not end, so the event can be recorded later.
            StreamKind::Legacy => self.timeline.reserve_index(),
            _ => self.timeline.note_work_of(&self.raw),
        }
    }
}

/// What the handle of a stream says.
#[derive(Debug)]
pub enum FoundStream<B: Backend> {
    /// A stream that is told from others.
    Known(ServedStream<B>),
    /// One that a graph is captured from: what is enqueued runs at times that are not known.
    Captured,
    /// One that the handle does not tell from others: 2, which is another stream on each thread, and without a
    /// [number](gpumem_core::Stream::unique_id).
    AnyStream,
}

/// The streams of other libraries that memory was served for: what one of them gives back, it gets again without a wait.
#[derive(Debug, Default)]
pub struct ServedStreams<B: Backend>(Mutex<HashMap<(u64, u64), Known<B>>>);

#[derive(Debug)]
struct Known<B: Backend> {
    /// By which a new stream is told from one that is gone and had its handle.
    id: u64,
    device: Device<B>,
    timeline: Arc<Timeline<B>>,
}

impl<B: Backend> ServedStreams<B> {
    /// More than a program has at a time. Those beyond are forgotten, which costs waits.
    const MOST: usize = 1024;

    /// Returns a stream by the driver's handle; 0 and 1 are the legacy default stream.
    ///
    /// # Safety
    /// The handle names a live stream of the device, as long as the returned value lives.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for a handle that the backend does not know, where it looks,
    /// and [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub unsafe fn find(&self, device: &Device<B>, handle: u64) -> Result<FoundStream<B>> {
        let core = device.core();
        core.check(ALLOCATE)?;
        let of_driver = |kind| {
            core.note_loss(core.raw.create_stream(&StreamOptions { kind, ..StreamOptions::default() }))
        };
        let legacy = || of_driver(StreamKind::Legacy);
        let (raw, id, handle) = match handle {
            0 | LEGACY => (legacy()?, 0, LEGACY),
            _ => {
                let raw = match handle {
                    PER_THREAD => of_driver(StreamKind::PerThread)?,
                    // SAFETY: the caller's promise.
                    _ => core.note_loss(unsafe { core.raw.wrap_stream(RawStream(handle)) })?,
                };
                if core.note_loss(raw.is_capturing())? {
                    return Ok(FoundStream::Captured);
                }
                let id = if handle == PER_THREAD { None } else { core.note_loss(raw.unique_id())? };
                match id {
                    Some(id) => (raw, id, handle),
                    None => return Ok(FoundStream::AnyStream),
                }
            }
        };
        let key = (core.generation(), handle);
        let mut known = self.0.lock();
        if let Some(Known { device, timeline, .. }) = known.get(&key).filter(|known| known.id == id) {
            let (device, timeline) = (device.share(), timeline.clone());
            return Ok(FoundStream::Known(ServedStream { device, timeline, raw }));
        }
        let timeline = match handle {
            LEGACY => Timeline::new(core.context(), legacy()?, StreamKind::Legacy),
            _ => Timeline::of_others(core.context()),
        };
        let device = device.outside_recording().for_stream(&timeline);
        let new = Known { id, device: device.share(), timeline: timeline.clone() };
        let gone = if known.len() < Self::MOST { HashMap::new() } else { std::mem::take(&mut *known) };
        let before = known.insert(key, new);
        drop(known);
        // Without the lock.
        drop((gone, before));
        Ok(FoundStream::Known(ServedStream { device, timeline, raw }))
    }
}

/// Memory of a device that another library uses by its address, until this is dropped.
#[derive(Debug)]
pub struct ServedMemory<B: Backend> {
    /// `None` once the work that uses it is noted, or cannot be.
    memory: Option<AllocationRef<B>>,
    address: u64,
}

impl<B: Backend> ServedMemory<B> {
    /// Bytes to which the memory is aligned, as the driver's own allocations are.
    const ALIGN: usize = 256;

    /// Allocates memory for work on a stream that is enqueued from now on. Without a stream it is for work on any stream, and the host
    /// waits until the memory is idle.
    ///
    /// # Errors
    /// Returns [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if there is none, and
    /// [`Unsupported`](gpumem_core::ErrorKind::Unsupported) for a stream that is captured: its graph could run when the memory is
    /// another's.
    pub fn allocate(device: &Device<B>, bytes: usize, stream: &FoundStream<B>) -> Result<Self> {
        let memory = match stream {
            FoundStream::AnyStream => {
                Allocation::for_host(device, ALLOCATE, bytes, Self::ALIGN, MemoryKind::Device)?.into_memory()
            }
            FoundStream::Captured => {
                let what = "memory for a stream that is captured into a graph";
                return Err(device.core().error(ALLOCATE, ErrorKind::Unsupported { what }));
            }
            FoundStream::Known(ServedStream { device, timeline, raw }) => {
                let memory = Allocation::new(device, ALLOCATE, bytes, Self::ALIGN)?;
                memory.make_owner_wait(ALLOCATE, timeline, raw)?;
                memory
            }
        };
        let address = if memory.len() == 0 { 0 } else { memory.address() };
        Ok(Self { memory: Some(memory), address })
    }

    /// Returns the address; 0 where there are no bytes.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Gives the memory back after the work that is on the stream now. Without a stream, and where the stream is captured, after the work
    /// that is on any stream of the device. Where the stream cannot be asked, as one of another device cannot, the memory is leaked and
    /// the device's errors tell why.
    pub fn free(mut self, stream: &FoundStream<B>) {
        let FoundStream::Known(stream) = stream else { return };
        if let Some(memory) = self.memory.take() {
            note(memory, &stream.timeline, stream.note_work());
        }
    }
}

impl<B: Backend> Drop for ServedMemory<B> {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            let others = memory.context().unknown_streams();
            let submission = others.reserve_index();
            note(memory, &others, submission);
        }
    }
}

/// Notes the last uses of memory, which goes back when they are over.
fn note<B: Backend>(memory: AllocationRef<B>, timeline: &Arc<Timeline<B>>, submission: Result<u64>) {
    const OPERATION: &str = "deallocate";
    // What is older than a reset, or a parent's, goes nowhere.
    if memory.check(OPERATION).is_err() {
        return;
    }
    let is_same = memory.context().is_same(&timeline.context);
    match submission {
        Ok(submission) if is_same => memory.record_import(OPERATION, timeline.clone(), submission),
        submission => {
            let why = "the stream belongs to another device";
            let wrong = || memory.core().error(OPERATION, ErrorKind::InvalidArgument { why });
            memory.core().errors.push(submission.err().unwrap_or_else(wrong));
            // Law 8: its uses are not known to be over.
            mem::forget(memory);
        }
    }
}
