//! Streams, each with a thread, and events.

use crate::{INVALID_HANDLE, INVALID_VALUE, NOT_READY, NOT_SUPPORTED, Outcome, Status, driver};
use cudarc::driver::sys::*;
use std::{
    collections::{BTreeMap, VecDeque},
    ffi::{c_int, c_uint, c_ulonglong, c_void},
    ptr::{with_exposed_provenance, without_provenance_mut},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Work of a stream. A graph runs it again and again.
pub(crate) type Work = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Arc<Work>>,
    /// Work that is waiting or running.
    pending: usize,
    captured: Option<Vec<Arc<Work>>>,
    destroyed: bool,
}

struct Stream {
    device: c_int,
    flags: c_uint,
    priority: c_int,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Stream {
    fn push(&self, work: Arc<Work>) {
        let mut queue = self.queue.lock().unwrap();
        if let Some(captured) = &mut queue.captured {
            captured.push(work);
            return;
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
    fn wait(&self, count: u64) {
        let moment = self.moment.lock().unwrap();
        drop(self.changed.wait_while(moment, |moment| moment.reached < count).unwrap());
    }
}

type Graph = Vec<Arc<Work>>;

/// The objects of handles, which are never used twice. The first are CUDA's own streams.
struct Handles<T>(Mutex<BTreeMap<usize, Arc<T>>>);

static NEXT: AtomicUsize = AtomicUsize::new(0x1_0000);
static STREAMS: Handles<Stream> = Handles(Mutex::new(BTreeMap::new()));
static EVENTS: Handles<Event> = Handles(Mutex::new(BTreeMap::new()));
static GRAPHS: Handles<Graph> = Handles(Mutex::new(BTreeMap::new()));

impl<T> Handles<T> {
    fn insert<H>(&self, thing: Arc<T>) -> *mut H {
        let handle = NEXT.fetch_add(16, Ordering::Relaxed);
        self.0.lock().unwrap().insert(handle, thing);
        without_provenance_mut(handle)
    }

    fn get<H>(&self, handle: *mut H) -> Result<Arc<T>, Status> {
        self.0.lock().unwrap().get(&handle.addr()).cloned().ok_or(INVALID_HANDLE)
    }

    fn remove<H>(&self, handle: *mut H) -> Result<Arc<T>, Status> {
        self.0.lock().unwrap().remove(&handle.addr()).ok_or(INVALID_HANDLE)
    }
}

/// The null stream, also by its other name, and the one of each thread.
fn is_built_in(stream: CUstream) -> bool {
    stream.addr() <= 2
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
    let stream = STREAMS.get(stream)?;
    // The driver lets copies of one device run on a stream of another; the tests should not need it.
    if stream.device != device {
        return Err(INVALID_HANDLE);
    }
    stream.push(Arc::new(work));
    Ok(())
}

driver! {
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

    in _device fn cuStreamDestroy_v2(stream: CUstream) {
        let stream = STREAMS.remove(stream)?;
        stream.queue.lock().unwrap().destroyed = true;
        stream.changed.notify_all();
        Ok(())
    }

    in _device fn cuStreamQuery(stream: CUstream) {
        if is_built_in(stream) {
            return Ok(());
        }
        if STREAMS.get(stream)?.queue.lock().unwrap().pending > 0 { Err(NOT_READY) } else { Ok(()) }
    }

    in _device fn cuStreamSynchronize(stream: CUstream) {
        if !is_built_in(stream) {
            STREAMS.get(stream)?.drain();
        }
        Ok(())
    }

    in device fn cuCtxSynchronize() {
        let streams: Vec<_> = STREAMS.0.lock().unwrap().values().cloned().collect();
        streams.iter().filter(|stream| stream.device == device).for_each(|stream| stream.drain());
        Ok(())
    }

    in _device fn cuStreamGetFlags(stream: CUstream, flags: *mut c_uint) {
        // SAFETY: the caller has room.
        unsafe { flags.write(STREAMS.get(stream)?.flags) };
        Ok(())
    }

    in _device fn cuStreamGetPriority(stream: CUstream, priority: *mut c_int) {
        // SAFETY: the caller has room.
        unsafe { priority.write(STREAMS.get(stream)?.priority) };
        Ok(())
    }

    in device fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        let event = EVENTS.get(event)?;
        let count = event.moment.lock().unwrap().recorded;
        enqueue(device, stream, Box::new(move || event.wait(count)))
    }

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

    in device fn cuLaunchHostFunc(stream: CUstream, function: CUhostFn, data: *mut c_void) {
        let (function, data) = (function.ok_or(INVALID_VALUE)?, data.expose_provenance());
        // SAFETY: the caller's function and data.
        enqueue(device, stream, Box::new(move || unsafe {
            function(std::ptr::with_exposed_provenance_mut(data));
        }))
    }

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

    in device fn cuStreamWriteValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, _flags: c_uint) {
        enqueue(device, stream, Box::new(move || {
            // SAFETY: as above.
            unsafe { &*with_exposed_provenance::<AtomicU32>(address as usize) }.store(value, Ordering::Release);
        }))
    }

    in _device fn cuStreamBeginCapture_v2(stream: CUstream, _mode: CUstreamCaptureMode) {
        STREAMS.get(stream)?.queue.lock().unwrap().captured = Some(Vec::new());
        Ok(())
    }

    in _device fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph) {
        const UNMATCHED: Status = 903;
        let captured = STREAMS.get(stream)?.queue.lock().unwrap().captured.take().ok_or(UNMATCHED)?;
        // SAFETY: the caller has room.
        unsafe { graph.write(GRAPHS.insert(Arc::new(captured))) };
        Ok(())
    }

    fn cuThreadExchangeStreamCaptureMode(_mode: *mut CUstreamCaptureMode) {
        // No function of this driver minds a capture.
        Ok(())
    }

    in _device fn cuStreamIsCapturing(stream: CUstream, status: *mut CUstreamCaptureStatus) {
        use CUstreamCaptureStatus_enum as S;
        let active = !is_built_in(stream) && STREAMS.get(stream)?.queue.lock().unwrap().captured.is_some();
        let found = if active { S::CU_STREAM_CAPTURE_STATUS_ACTIVE } else { S::CU_STREAM_CAPTURE_STATUS_NONE };
        // SAFETY: the caller has room.
        unsafe { status.write(found) };
        Ok(())
    }

    in _device fn cuGraphInstantiateWithFlags(
        executable: *mut CUgraphExec,
        graph: CUgraph,
        flags: c_ulonglong,
    ) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller has room.
        unsafe { executable.write(GRAPHS.insert(GRAPHS.get(graph)?)) };
        Ok(())
    }

    in _device fn cuGraphLaunch(executable: CUgraphExec, stream: CUstream) {
        let (graph, stream) = (GRAPHS.get(executable)?, STREAMS.get(stream)?);
        graph.iter().for_each(|work| stream.push(Arc::clone(work)));
        Ok(())
    }

    in _device fn cuGraphExecDestroy(executable: CUgraphExec) {
        GRAPHS.remove(executable).map(drop)
    }

    in _device fn cuGraphDestroy(graph: CUgraph) {
        GRAPHS.remove(graph).map(drop)
    }

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

    in _device fn cuEventDestroy_v2(event: CUevent) {
        EVENTS.remove(event).map(drop)
    }

    in device fn cuEventRecord(event: CUevent, stream: CUstream) {
        let event = EVENTS.get(event)?;
        let count = {
            let mut moment = event.moment.lock().unwrap();
            moment.recorded += 1;
            moment.recorded
        };
        enqueue(device, stream, Box::new(move || {
            let mut moment = event.moment.lock().unwrap();
            (moment.reached, moment.time) = (count, Some(Instant::now()));
            event.changed.notify_all();
        }))
    }

    in _device fn cuEventQuery(event: CUevent) {
        let event = EVENTS.get(event)?;
        let moment = event.moment.lock().unwrap();
        if moment.reached < moment.recorded { Err(NOT_READY) } else { Ok(()) }
    }

    in _device fn cuEventSynchronize(event: CUevent) {
        let event = EVENTS.get(event)?;
        let count = event.moment.lock().unwrap().recorded;
        event.wait(count);
        Ok(())
    }

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
