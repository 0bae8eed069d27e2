//! Streams, each with a thread, and events.

use crate::{
    INVALID_HANDLE, INVALID_VALUE, NOT_READY, NOT_SUPPORTED, Outcome, Status,
    capture::{self, Work, is_built_in},
    context, driver, exports,
};
use cudarc::driver::sys::*;
use std::{
    collections::{BTreeMap, VecDeque},
    ffi::{c_int, c_uint, c_void},
    ptr::{with_exposed_provenance, without_provenance_mut},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Arc<Work>>,
    /// Work that is waiting or running.
    pending: usize,
    destroyed: bool,
    /// Whether its thread has ended.
    ended: bool,
}

pub(crate) struct Stream {
    pub(crate) device: c_int,
    flags: c_uint,
    priority: c_int,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Stream {
    pub(crate) fn is_blocking(&self) -> bool {
        self.flags == 0
    }

    fn push(&self, work: Arc<Work>) {
        let mut queue = self.queue.lock().unwrap();
        if queue.ended {
            // Another thread has destroyed the stream meanwhile: nothing is before this, and nothing runs it.
            drop(queue);
            return work();
        }
        queue.waiting.push_back(work);
        queue.pending += 1;
        self.changed.notify_all();
    }

    /// Runs work until the stream is destroyed and nothing is left.
    fn live(&self) {
        let mut queue = self.queue.lock().unwrap();
        loop {
            if let Some(work) = queue.waiting.pop_front() {
                drop(queue);
                work();
                queue = self.queue.lock().unwrap();
                queue.pending -= 1;
                self.changed.notify_all();
            } else if queue.destroyed {
                queue.ended = true;
                return;
            } else {
                queue = self.changed.wait(queue).unwrap();
            }
        }
    }

    fn drain(&self) {
        let queue = self.queue.lock().unwrap();
        drop(self.changed.wait_while(queue, |queue| queue.pending > 0).unwrap());
    }
}

/// When an event was recorded last and when that was reached, as counts.
#[derive(Default)]
struct Moment {
    recorded: u64,
    reached: u64,
    time: Option<Instant>,
}

struct Event {
    flags: c_uint,
    moment: Mutex<Moment>,
    changed: Condvar,
}

impl Event {
    /// Notes that it was recorded once more.
    fn record(&self) -> u64 {
        let mut moment = self.moment.lock().unwrap();
        moment.recorded += 1;
        moment.recorded
    }

    fn reach(&self, count: u64) {
        let mut moment = self.moment.lock().unwrap();
        // A later record, on another stream, may have been reached before.
        if moment.reached < count {
            (moment.reached, moment.time) = (count, Some(Instant::now()));
        }
        self.changed.notify_all();
    }

    fn wait(&self, count: u64) {
        let moment = self.moment.lock().unwrap();
        drop(self.changed.wait_while(moment, |moment| moment.reached < count).unwrap());
    }
}

/// The objects of handles, which are never used twice. The first are CUDA's own streams.
pub(crate) struct Handles<T>(Mutex<BTreeMap<usize, Arc<T>>>);

static NEXT: AtomicUsize = AtomicUsize::new(0x1_0000);
pub(crate) static STREAMS: Handles<Stream> = Handles::none();
static EVENTS: Handles<Event> = Handles::none();

impl<T> Handles<T> {
    pub(crate) const fn none() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    pub(crate) fn insert<H>(&self, thing: Arc<T>) -> *mut H {
        let handle = NEXT.fetch_add(16, Ordering::Relaxed);
        self.0.lock().unwrap().insert(handle, thing);
        without_provenance_mut(handle)
    }

    pub(crate) fn get<H>(&self, handle: *mut H) -> Result<Arc<T>, Status> {
        self.0.lock().unwrap().get(&handle.addr()).cloned().ok_or(INVALID_HANDLE)
    }

    pub(crate) fn remove<H>(&self, handle: *mut H) -> Result<Arc<T>, Status> {
        self.0.lock().unwrap().remove(&handle.addr()).ok_or(INVALID_HANDLE)
    }
}

/// Does work on the null stream, which waits for nothing here: the tests' streams do not wait for it either.
pub(crate) fn now(work: Work) -> Outcome {
    work();
    Ok(())
}

/// Does work in a stream's order.
pub(crate) fn enqueue(device: c_int, stream: CUstream, work: Work) -> Outcome {
    if is_built_in(stream) {
        return now(work);
    }
    // The driver lets copies of one device run on a stream of another; the tests should not need it.
    if STREAMS.get(stream)?.device != device {
        return Err(INVALID_HANDLE);
    }
    push(stream, Arc::new(work))
}

/// Enqueues work on a stream, or adds it to the stream's capture.
pub(crate) fn push(stream: CUstream, work: Arc<Work>) -> Outcome {
    let found = STREAMS.get(stream)?;
    if let Some(work) = capture::take(stream, work)? {
        found.push(work);
    }
    Ok(())
}

/// The streams of a device.
fn all(device: c_int) -> Vec<Arc<Stream>> {
    STREAMS.0.lock().unwrap().values().filter(|stream| stream.device == device).cloned().collect()
}

driver! {
    #[Free]
    in device fn cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int) {
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        let (queue, changed) = Default::default();
        let made = Arc::new(Stream { device, flags, priority: priority.clamp(-5, 0), queue, changed });
        let engine = Arc::clone(&made);
        thread::spawn(move || engine.live());
        // SAFETY: the caller has room.
        unsafe { stream.write(STREAMS.insert(made)) };
        Ok(())
    }

    #[State(stream)]
    in _device fn cuStreamDestroy_v2(stream: CUstream) {
        let stream = STREAMS.remove(stream)?;
        stream.queue.lock().unwrap().destroyed = true;
        stream.changed.notify_all();
        Ok(())
    }

    #[State(stream)]
    in _device fn cuStreamQuery(stream: CUstream) {
        if is_built_in(stream) {
            return Ok(());
        }
        if STREAMS.get(stream)?.queue.lock().unwrap().pending > 0 { Err(NOT_READY) } else { Ok(()) }
    }

    #[State(stream)]
    in _device fn cuStreamSynchronize(stream: CUstream) {
        if !is_built_in(stream) {
            STREAMS.get(stream)?.drain();
        }
        Ok(())
    }

    #[Context]
    in device fn cuCtxSynchronize() {
        all(device).iter().for_each(|stream| stream.drain());
        Ok(())
    }

    #[Free]
    in _device fn cuStreamGetFlags(stream: CUstream, flags: *mut c_uint) {
        // SAFETY: the caller has room.
        unsafe { flags.write(STREAMS.get(stream)?.flags) };
        Ok(())
    }

    #[Free]
    in _device fn cuStreamGetPriority(stream: CUstream, priority: *mut c_int) {
        // SAFETY: the caller has room.
        unsafe { priority.write(STREAMS.get(stream)?.priority) };
        Ok(())
    }

    #[On(stream)]
    in device fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        let found = EVENTS.get(event)?;
        let is_blocking = !is_built_in(stream) && STREAMS.get(stream)?.is_blocking();
        if capture::wait(stream, device, is_blocking, event)? {
            return Ok(());
        }
        let count = found.moment.lock().unwrap().recorded;
        enqueue(device, stream, Box::new(move || found.wait(count)))
    }

    #[Never(stream)]
    in device fn cuStreamAddCallback(
        stream: CUstream,
        callback: CUstreamCallback,
        data: *mut c_void,
        _flags: c_uint,
    ) {
        let (callback, data) = (callback.ok_or(INVALID_VALUE)?, data.expose_provenance());
        let handle = stream.expose_provenance();
        enqueue(device, stream, Box::new(move || {
            let data = std::ptr::with_exposed_provenance_mut(data);
            // SAFETY: the caller's function and data.
            unsafe { callback(without_provenance_mut(handle), CUresult::CUDA_SUCCESS, data) };
        }))
    }

    #[On(stream)]
    in device fn cuLaunchHostFunc(stream: CUstream, function: CUhostFn, data: *mut c_void) {
        let (function, data) = (function.ok_or(INVALID_VALUE)?, data.expose_provenance());
        // SAFETY: the caller's function and data.
        enqueue(device, stream, Box::new(move || unsafe {
            function(std::ptr::with_exposed_provenance_mut(data));
        }))
    }

    #[On(stream)]
    in device fn cuStreamWaitValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, flags: c_uint) {
        if flags != 0 {
            return Err(NOT_SUPPORTED);
        }
        enqueue(device, stream, Box::new(move || {
            // SAFETY: an aligned word of the caller's, which everybody uses as an atomic.
            let word = unsafe { &*with_exposed_provenance::<AtomicU32>(address as usize) };
            while word.load(Ordering::Acquire) < value {
                thread::sleep(Duration::from_micros(50));
            }
        }))
    }

    #[On(stream)]
    in device fn cuStreamWriteValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, _flags: c_uint) {
        enqueue(device, stream, Box::new(move || {
            // SAFETY: as above.
            unsafe { &*with_exposed_provenance::<AtomicU32>(address as usize) }.store(value, Ordering::Release);
        }))
    }

    #[Free]
    in _device fn cuEventCreate(event: *mut CUevent, flags: c_uint) {
        const FOR_OTHERS: c_uint = 4;
        const NO_TIME: c_uint = 2;
        if flags > 7 || flags & (FOR_OTHERS | NO_TIME) == FOR_OTHERS {
            return Err(INVALID_VALUE);
        }
        let (moment, changed) = Default::default();
        // SAFETY: the caller has room.
        unsafe { event.write(EVENTS.insert(Arc::new(Event { flags, moment, changed }))) };
        Ok(())
    }

    #[Unsafe]
    in _device fn cuEventDestroy_v2(event: CUevent) {
        EVENTS.remove(event).map(drop)
    }

    #[On(stream)]
    in device fn cuEventRecord(event: CUevent, stream: CUstream) {
        let found = EVENTS.get(event)?;
        if capture::record(event, stream)? {
            return Ok(());
        }
        let (count, reached) = (found.record(), found.clone());
        // A stream that is gone: nothing would reach it.
        enqueue(device, stream, Box::new(move || reached.reach(count))).inspect_err(|_| found.reach(count))
    }

    #[Reached(event)]
    in _device fn cuEventQuery(event: CUevent) {
        let event = EVENTS.get(event)?;
        let moment = event.moment.lock().unwrap();
        if moment.reached < moment.recorded { Err(NOT_READY) } else { Ok(()) }
    }

    #[Reached(event)]
    in _device fn cuEventSynchronize(event: CUevent) {
        let event = EVENTS.get(event)?;
        let count = event.moment.lock().unwrap().recorded;
        event.wait(count);
        Ok(())
    }

    #[Unsafe]
    in _device fn cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent) {
        const NO_TIME: c_uint = 2;
        let time = |event: CUevent| {
            let event = EVENTS.get(event)?;
            let moment = event.moment.lock().unwrap();
            match moment.time {
                _ if event.flags & NO_TIME != 0 || moment.recorded == 0 => Err(INVALID_HANDLE),
                _ if moment.reached < moment.recorded => Err(NOT_READY),
                time => time.ok_or(INVALID_HANDLE),
            }
        };
        let (start, end) = (time(start)?, time(end)?);
        // SAFETY: the caller has room.
        unsafe { milliseconds.write(end.saturating_duration_since(start).as_secs_f32() * 1000.0) };
        Ok(())
    }
}

// Newer than the bindings.
exports! {
    // After the work of all streams of the context.
    #[Context]
    fn cuCtxRecordEvent(context: CUcontext, event: CUevent) {
        let event = EVENTS.get(event)?;
        let (count, streams) = (event.record(), all(context::device_of(context)?));
        let left = Arc::new(AtomicUsize::new(streams.len() + 1));
        let reach = move || {
            if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                event.reach(count);
            }
        };
        streams.iter().for_each(|stream| stream.push(Arc::new(Box::new(reach.clone()))));
        reach();
        Ok(())
    }
}
