//! The writer of one thread: it has its own chunk for each recording, so that threads do not contend.

use super::{
    clock::clock,
    encode::EncodedEvent,
    event::LogEvent,
    event_log::{EventBuffer, EventLog, ThreadInfo},
};
use gpumem_core::process::ProcessGuard;
use std::{
    cell::{Cell, RefCell},
    ptr,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

struct ThreadWriter {
    session: u64,
    /// Weak, so that a recording that has ended does not live on in idle threads.
    log: Weak<EventLog>,
    chunk: Option<Arc<EventBuffer>>,
    writer: u32,
    /// The last name that was written, with its number.
    name: Option<(Arc<str>, u32)>,
    origin: ProcessGuard,
}

/// The writers of a thread, one for each recording that it takes part in.
struct ThreadWriters(Vec<ThreadWriter>);

/// The chunk of the writer that was used last. It needs no destructor, so that looking at it costs a load, also while a
/// thread ends.
struct CurrentSegment {
    /// The recording, or 0.
    session: Cell<u64>,
    chunk: Cell<*const EventBuffer>,
}

impl CurrentSegment {
    /// Puts a writer down that is about to let its chunk go.
    fn release(&self, session: u64) {
        if self.session.get() == session {
            self.session.set(0);
            self.chunk.set(ptr::null());
        }
    }
}

thread_local! {
    static CURRENT_SEGMENT: CurrentSegment = const { CurrentSegment { session: Cell::new(0), chunk: Cell::new(ptr::null()) } };
    static WRITERS: RefCell<ThreadWriters> = const { RefCell::new(ThreadWriters(Vec::new())) };
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

/// A number that no other thread of the process has had.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    THREAD.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// Writes a note to the log of a session. `log` is called the first time that the thread writes there.
#[inline(always)]
pub(super) fn write(session: u64, note: &LogEvent, log: impl Fn() -> Option<Arc<EventLog>>) {
    let words = EncodedEvent::of(clock().now(), note);
    let written = CURRENT_SEGMENT.with(|current| {
        current.session.get() == session
            // SAFETY: the writer of that session holds the chunk and clears it here before releasing it. The log gave
            // the chunk to this writer and this thread alone.
            && unsafe { (*current.chunk.get()).push(words.as_slice()) }
    });
    if !written {
        // A copy, so that only this way needs the words in memory: stores that are read back at once in wider pieces make
        // the processor wait.
        let words = { words };
        write_on(session, &words, &log);
    }
}

/// As [`write`], about an allocation that goes by a name.
#[cold]
pub(super) fn write_named(
    session: u64,
    mut note: LogEvent,
    name: &Arc<str>,
    log: impl Fn() -> Option<Arc<EventLog>>,
) {
    if let LogEvent::Allocate { request, .. } | LogEvent::Fail { request } = &mut note {
        let of_writer = WRITERS.try_with(|writers| {
            let mut writers = writers.try_borrow_mut().ok()?;
            writers.0.iter_mut().find(|writer| writer.session == session).map(|writer| writer.name(name))
        });
        let of_log = || log().filter(|log| log.session == session).map_or(0, |log| log.name(name));
        request.name = of_writer.ok().flatten().unwrap_or_else(of_log);
    }
    write(session, &note, log);
}

/// Writes with a writer that is not the current one, or whose chunk is full.
#[cold]
#[inline(never)]
fn write_on(session: u64, words: &EncodedEvent, log: &dyn Fn() -> Option<Arc<EventLog>>) {
    let written = WRITERS.try_with(|writers| {
        let Ok(mut writers) = writers.try_borrow_mut() else { return false };
        let writers = &mut writers.0;
        let at = match writers.iter().position(|writer| writer.session == session) {
            Some(at) => at,
            None => match log() {
                Some(log) if log.session == session => {
                    writers.retain(|writer| writer.log.strong_count() > 0);
                    writers.push(ThreadWriter::new(&log));
                    writers.len() - 1
                }
                // The recording has ended in this moment.
                _ => return true,
            },
        };
        writers[at].write(words);
        true
    });
    if !matches!(written, Ok(true))
        && let Some(log) = log().filter(|log| log.session == session)
    {
        // Destructors of a thread's own variables run after its writers are gone.
        log.write_late(words);
    }
}

impl ThreadWriter {
    fn new(log: &Arc<EventLog>) -> Self {
        let name = std::thread::current().name().map(ToOwned::to_owned);
        let writer = log.writer(ThreadInfo { number: thread_number(), name });
        let chunk = log.next(writer, None);
        let (log, session) = (Arc::downgrade(log), log.session);
        Self { session, log, chunk, writer, name: None, origin: ProcessGuard::current() }
    }

    fn name(&mut self, name: &Arc<str>) -> u32 {
        match &self.name {
            Some((last, number)) if Arc::ptr_eq(last, name) => *number,
            _ => {
                let number = self.log.upgrade().map_or(0, |log| log.name(name));
                self.name = Some((name.clone(), number));
                number
            }
        }
    }

    fn write(&mut self, words: &EncodedEvent) {
        // SAFETY: the log gave the chunk to this writer and this thread alone.
        if !self.chunk.as_ref().is_some_and(|chunk| unsafe { chunk.push(words.as_slice()) }) {
            self.turn(words);
        }
        let chunk = self.chunk.as_ref().map(Arc::as_ptr);
        CURRENT_SEGMENT.with(|current| {
            current.session.set(if chunk.is_some() { self.session } else { 0 });
            current.chunk.set(chunk.unwrap_or(ptr::null()));
        });
    }

    /// Goes on in another chunk.
    fn turn(&mut self, words: &EncodedEvent) {
        let Some(log) = self.log.upgrade() else { return };
        CURRENT_SEGMENT.with(|current| current.release(self.session));
        self.chunk = match self.chunk.take() {
            Some(filled) => log.next(self.writer, Some(&filled)),
            // The log is full, and stays so.
            None => None,
        };
        // SAFETY: as in `write`.
        if !self.chunk.as_ref().is_some_and(|chunk| unsafe { chunk.push(words.as_slice()) }) {
            log.lose();
        }
    }
}

impl Drop for ThreadWriter {
    fn drop(&mut self) {
        CURRENT_SEGMENT.with(|current| current.release(self.session));
        if !self.origin.is_valid() {
            // In a forked child a thread that is not there may hold the lock for ever.
            std::mem::forget((std::mem::take(&mut self.log), self.chunk.take()));
            return;
        }
        if let (Some(log), Some(chunk)) = (self.log.upgrade(), self.chunk.take()) {
            log.give_back(&chunk);
        }
    }
}
