//! Captures of streams into graphs, and which calls end them.
//!
//! The rules are those of the driver's documentation ("Stream Management": `cuStreamBeginCapture`, `cuStreamIsCapturing`,
//! `cuThreadExchangeStreamCaptureMode`; "Event Management": `cuCtxRecordEvent`) and of the programming guide ("Prohibited
//! and Unhandled Operations"). Which functions are unsafe it does not list: they are those that wait, allocate, free, load
//! or destroy. That forks have been joined is not checked.

use crate::{INVALID_VALUE, Outcome, Status, context, driver};
use cudarc::driver::sys::*;
use std::{
    cell::Cell,
    collections::BTreeMap,
    ffi::{c_int, c_ulonglong},
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
};

const ILLEGAL_STATE: Status = 401;
pub(crate) const UNSUPPORTED: Status = 900;
pub(crate) const INVALIDATED: Status = 901;
const MERGE: Status = 902;
const UNMATCHED: Status = 903;
const ISOLATION: Status = 905;
const IMPLICIT: Status = 906;
const CAPTURED_EVENT: Status = 907;
const WRONG_THREAD: Status = 908;

/// What a function is to captures that are under way. Each function of the double has a rule, and is called only if the rule
/// lets it.
pub(crate) enum Rule {
    /// No capture minds it.
    Free,
    /// "Potentially unsafe": a capture minds it, unless the mode of the thread is relaxed.
    Unsafe,
    /// Enqueues on a stream, and becomes a part of its capture.
    On(CUstream),
    /// Enqueues on a stream what no graph can have.
    Never(CUstream),
    /// Waits for the work of a stream, asks for its state or ends it: a captured stream has none. It is unsafe, too.
    State(CUstream),
    /// The same of an event.
    Reached(CUevent),
    /// Waits for all streams of the current context, or stands for them.
    Context,
}

/// Work of a stream. A graph runs it again and again.
pub(crate) type Work = Box<dyn Fn() + Send + Sync>;

struct Capture {
    mode: CUstreamCaptureMode,
    thread: ThreadId,
    /// The handle of the stream that it began on.
    origin: usize,
    is_valid: bool,
    work: Vec<Arc<Work>>,
}

/// A stream that is captured.
#[derive(Clone, Copy)]
struct Member {
    capture: u64,
    device: c_int,
    is_blocking: bool,
}

/// Streams and events are known by their handles, which are never used twice.
#[derive(Default)]
struct Captures {
    begun: u64,
    under_way: BTreeMap<u64, Capture>,
    streams: BTreeMap<usize, Member>,
    /// Events that were recorded last in a capture, which may have ended.
    events: BTreeMap<usize, u64>,
}

static CAPTURES: Mutex<Option<Captures>> = Mutex::new(None);

thread_local! {
    static MODE: Cell<CUstreamCaptureMode> = const { Cell::new(CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_GLOBAL) };
}

/// The null stream by its own name. Functions that wait enqueue there.
pub(crate) const LEGACY: CUstream = std::ptr::without_provenance_mut(1);

/// The null stream, also by its other name: it waits for all blocking streams.
pub(crate) fn is_legacy(stream: CUstream) -> bool {
    stream.addr() <= 1
}

/// The null stream, and the one of each thread.
pub(crate) fn is_built_in(stream: CUstream) -> bool {
    stream.addr() <= 2
}

fn with<R>(work: impl FnOnce(&mut Captures) -> R) -> R {
    work(CAPTURES.lock().unwrap().get_or_insert_default())
}

impl Captures {
    /// Ends the captures, as far as the caller that has begun them will learn.
    fn invalidate(&mut self, which: impl Fn(u64, &Capture) -> bool) -> bool {
        let found = self.under_way.iter_mut().filter(|(id, capture)| which(**id, capture));
        found.map(|(_, capture)| capture.is_valid = false).count() > 0
    }

    fn refuse(&mut self, status: Status, which: impl Fn(u64, &Capture) -> bool) -> Outcome {
        if self.invalidate(which) { Err(status) } else { Ok(()) }
    }

    /// Refuses an unsafe call of this thread.
    fn refuse_unsafe(&mut self) -> Outcome {
        use CUstreamCaptureMode_enum as M;
        let (mode, here) = (MODE.get(), thread::current().id());
        self.refuse(UNSUPPORTED, |_, capture| match mode {
            M::CU_STREAM_CAPTURE_MODE_RELAXED => false,
            _ if capture.thread == here => capture.mode != M::CU_STREAM_CAPTURE_MODE_RELAXED,
            M::CU_STREAM_CAPTURE_MODE_GLOBAL => capture.mode == M::CU_STREAM_CAPTURE_MODE_GLOBAL,
            M::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL => false,
        })
    }

    /// Refuses a call that is about streams of the current context which are captured.
    fn refuse_members(&mut self, status: Status, which: impl Fn(&Member) -> bool) -> Outcome {
        let Ok(device) = context::current() else { return Ok(()) };
        let members = self.streams.values().filter(|member| member.device == device && which(member));
        let conflicting: Vec<u64> = members.map(|member| member.capture).collect();
        self.refuse(status, |id, _| conflicting.contains(&id))
    }

    /// The capture of a stream, which has not been invalidated. The legacy stream encompasses the blocking ones.
    fn of(&mut self, stream: CUstream) -> Result<Option<u64>, Status> {
        if is_legacy(stream) {
            return self.refuse_members(IMPLICIT, |member| member.is_blocking).map(|()| None);
        }
        let id = self.streams.get(&stream.addr()).map(|member| member.capture);
        match id.and_then(|id| self.under_way.get(&id)) {
            Some(capture) if !capture.is_valid => Err(INVALIDATED),
            _ => Ok(id),
        }
    }

    fn admit(&mut self, rule: Rule) -> Outcome {
        match rule {
            Rule::Free => Ok(()),
            Rule::Unsafe => self.refuse_unsafe(),
            Rule::On(stream) => self.of(stream).map(drop),
            Rule::Never(stream) => {
                let own = self.of(stream)?;
                self.refuse(UNSUPPORTED, |id, _| Some(id) == own)
            }
            Rule::State(stream) => {
                self.admit(Rule::Never(stream))?;
                self.refuse_unsafe()
            }
            Rule::Reached(event) => {
                if let Some(own) = self.events.get(&event.addr()).copied() {
                    self.invalidate(|id, _| id == own);
                    return Err(CAPTURED_EVENT);
                }
                self.refuse_unsafe()
            }
            Rule::Context => self.refuse_members(UNSUPPORTED, |_| true),
        }
    }
}

/// Whether a function may be called now. A refused call invalidates the captures that mind it.
pub(crate) fn admit(rule: Rule) -> Outcome {
    with(|captures| captures.admit(rule))
}

pub(crate) fn begin(
    stream: CUstream,
    device: c_int,
    is_blocking: bool,
    mode: CUstreamCaptureMode,
) -> Outcome {
    with(|captures| {
        if captures.of(stream)?.is_some() {
            return Err(ILLEGAL_STATE);
        }
        captures.begun += 1;
        let (id, origin, thread) = (captures.begun, stream.addr(), thread::current().id());
        captures.under_way.insert(id, Capture { mode, thread, origin, is_valid: true, work: Vec::new() });
        captures.streams.insert(origin, Member { capture: id, device, is_blocking });
        Ok(())
    })
}

/// Ends a capture. `None` if it has been invalidated.
pub(crate) fn end(stream: CUstream) -> Result<Option<Vec<Arc<Work>>>, Status> {
    with(|captures| {
        let id = captures.streams.get(&stream.addr()).ok_or(UNMATCHED)?.capture;
        let capture = captures.under_way.get_mut(&id).ok_or(UNMATCHED)?;
        if capture.origin != stream.addr() {
            capture.is_valid = false;
            return Err(UNMATCHED);
        }
        let is_relaxed = capture.mode == CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
        if !is_relaxed && capture.thread != thread::current().id() {
            return Err(WRONG_THREAD);
        }
        let (is_valid, work) = (capture.is_valid, std::mem::take(&mut capture.work));
        captures.under_way.remove(&id);
        captures.streams.retain(|_, member| member.capture != id);
        Ok(is_valid.then_some(work))
    })
}

/// Takes work of a captured stream into the graph, or gives it back.
pub(crate) fn take(stream: CUstream, work: Arc<Work>) -> Result<Option<Arc<Work>>, Status> {
    with(|captures| match captures.of(stream)?.and_then(|id| captures.under_way.get_mut(&id)) {
        Some(capture) => {
            capture.work.push(work);
            Ok(None)
        }
        None => Ok(Some(work)),
    })
}

/// Records an event in the capture of a stream. `false` if there is none.
pub(crate) fn record(event: CUevent, stream: CUstream) -> Result<bool, Status> {
    with(|captures| {
        let id = captures.of(stream)?;
        match id {
            Some(id) => captures.events.insert(event.addr(), id),
            None => captures.events.remove(&event.addr()),
        };
        Ok(id.is_some())
    })
}

/// Lets a stream wait for an event within a capture, which it joins. `false` if neither is captured.
pub(crate) fn wait(
    stream: CUstream,
    device: c_int,
    is_blocking: bool,
    event: CUevent,
) -> Result<bool, Status> {
    with(|captures| {
        let (own, theirs) = (captures.of(stream)?, captures.events.get(&event.addr()).copied());
        let status = match (own, theirs) {
            (None, None) => return Ok(false),
            (Some(own), Some(theirs)) if own == theirs => return Ok(true),
            (Some(_), Some(_)) => MERGE,
            (Some(_), None) => ISOLATION,
            (None, Some(theirs)) => match captures.under_way.get(&theirs) {
                Some(capture) if !capture.is_valid => return Err(INVALID_VALUE),
                None => return Err(CAPTURED_EVENT),
                Some(_) if is_built_in(stream) => UNSUPPORTED,
                Some(_) => {
                    captures.streams.insert(stream.addr(), Member { capture: theirs, device, is_blocking });
                    return Ok(true);
                }
            },
        };
        captures.invalidate(|id, _| [own, theirs].contains(&Some(id)));
        Err(status)
    })
}

driver! {
    #[Free]
    fn cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode) {
        // SAFETY: the caller's mode.
        unsafe { mode.write(MODE.replace(mode.read())) };
        Ok(())
    }

    // Handles are never used twice.
    #[Free]
    fn cuStreamGetId(stream: CUstream, id: *mut c_ulonglong) {
        // SAFETY: the caller has room.
        unsafe { id.write(stream.addr() as c_ulonglong) };
        Ok(())
    }

    // Asking for the legacy stream invalidates nothing.
    #[Free]
    in device fn cuStreamIsCapturing(stream: CUstream, status: *mut CUstreamCaptureStatus) {
        use CUstreamCaptureStatus_enum as S;
        let found = with(|captures| {
            let is_hidden = |member: &Member| member.is_blocking && member.device == device;
            if is_legacy(stream) && captures.streams.values().any(is_hidden) {
                return Err(IMPLICIT);
            }
            let own = captures.streams.get(&stream.addr());
            Ok(match own.and_then(|member| captures.under_way.get(&member.capture)) {
                None => S::CU_STREAM_CAPTURE_STATUS_NONE,
                Some(capture) if capture.is_valid => S::CU_STREAM_CAPTURE_STATUS_ACTIVE,
                Some(_) => S::CU_STREAM_CAPTURE_STATUS_INVALIDATED,
            })
        })?;
        if status.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller has room.
        unsafe { status.write(found) };
        Ok(())
    }
}
