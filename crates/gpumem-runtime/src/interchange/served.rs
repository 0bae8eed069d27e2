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
use std::{collections::HashMap, sync::Arc};

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

    /// Returns a stream by the driver's handle; 0 and 1 are the legacy default stream. `None` where the handle says too little to tell
    /// it from others: for 2, which is another stream on each thread, and without a [number](gpumem_core::Stream::unique_id).
    ///
    /// # Safety
    /// The handle names a live stream of the device, as long as the returned value lives.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for a handle that the backend does not know, where it looks,
    /// and [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub unsafe fn find(&self, device: &Device<B>, handle: u64) -> Result<Option<ServedStream<B>>> {
        let core = device.core();
        core.check(ALLOCATE)?;
        let options = StreamOptions { kind: StreamKind::Legacy, ..StreamOptions::default() };
        let legacy = || core.note_loss(core.raw.create_stream(&options));
        let (raw, id, handle) = match handle {
            0 | LEGACY => (legacy()?, 0, LEGACY),
            PER_THREAD => return Ok(None),
            _ => {
                // SAFETY: the caller's promise.
                let raw = core.note_loss(unsafe { core.raw.wrap_stream(RawStream(handle)) })?;
                match core.note_loss(raw.unique_id())? {
                    Some(id) => (raw, id, handle),
                    None => return Ok(None),
                }
            }
        };
        let key = (core.generation(), handle);
        let mut known = self.0.lock();
        if let Some(Known { device, timeline, .. }) = known.get(&key).filter(|known| known.id == id) {
            let (device, timeline) = (device.share(), timeline.clone());
            return Ok(Some(ServedStream { device, timeline, raw }));
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
        Ok(Some(ServedStream { device, timeline, raw }))
    }
}

/// Memory of a device that another library uses by its address, until this is dropped.
#[derive(Debug)]
pub struct ServedMemory<B: Backend> {
    memory: AllocationRef<B>,
    /// Whether the work that uses it is noted.
    is_noted: bool,
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
    pub fn allocate(device: &Device<B>, bytes: usize, stream: Option<&ServedStream<B>>) -> Result<Self> {
        let memory = match stream {
            None => {
                Allocation::for_host(device, ALLOCATE, bytes, Self::ALIGN, MemoryKind::Device)?.into_memory()
            }
            Some(ServedStream { device, timeline, raw }) => {
                let core = device.core();
                if timeline.kind() != StreamKind::Legacy && core.note_loss(raw.is_capturing())? {
                    let what = "memory for a stream that is captured into a graph";
                    return Err(core.error(ALLOCATE, ErrorKind::Unsupported { what }));
                }
                let memory = Allocation::new(device, ALLOCATE, bytes, Self::ALIGN)?;
                memory.make_owner_wait(ALLOCATE, timeline, raw)?;
                memory
            }
        };
        Ok(Self { memory, is_noted: false })
    }

    /// Returns the address; 0 where there are no bytes.
    pub fn address(&self) -> u64 {
        if self.memory.len() == 0 { 0 } else { self.memory.address() }
    }

    /// Gives the memory back after the work that is on the stream now. Without a stream, and where the stream is captured, after the work
    /// that is on any stream of the device.
    pub fn free(mut self, stream: Option<&ServedStream<B>>) {
        self.is_noted = stream.is_some_and(|stream| self.note(&stream.timeline, stream.note_work()));
    }

    fn note(&self, timeline: &Arc<Timeline<B>>, submission: Result<u64>) -> bool {
        let is_same = self.memory.context().is_same(&timeline.context);
        let Some(submission) = submission.ok().filter(|_| is_same) else { return false };
        self.memory.record_import("deallocate", timeline.clone(), submission);
        true
    }
}

impl<B: Backend> Drop for ServedMemory<B> {
    fn drop(&mut self) {
        if !self.is_noted && self.memory.check("deallocate").is_ok() {
            let others = self.memory.context().unknown_streams();
            let submission = others.reserve_index();
            self.note(&others, submission);
        }
    }
}
