//! Where events are written: chunks that one thread each fills, of which there is a bounded number.

#[cfg(test)]
mod tests;

use super::{
    clock::clock,
    encode::{EncodedEvent, MOST, entries},
    event::{AllocationInfo, LogEvent, TimedEvent},
    options::{Overflow, RecorderOptions},
};
use gpumem_core::process::ProcessGuard;
use parking_lot::Mutex;
use std::{
    cell::UnsafeCell,
    collections::{HashMap, VecDeque},
    fmt,
    hash::{BuildHasherDefault, Hasher},
    mem::{self, MaybeUninit},
    slice,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

/// Words of a chunk: 32 KiB, which is about a thousand events.
pub(super) const WORDS: usize = if cfg!(miri) { 512 } else { 4096 };

/// Room for events, filled by one thread at a time and from front to back.
pub(super) struct EventBuffer {
    words: [UnsafeCell<MaybeUninit<u64>>; WORDS],
    /// So many are written, and do not change until the chunk is wiped.
    len: AtomicUsize,
}

// SAFETY: a word is written once, by the writer that holds the chunk, before it raises `len`. After that the word is
// only read, until the log wipes the chunk. It wipes under its lock, and only when no writer holds the chunk.
unsafe impl Sync for EventBuffer {}

impl EventBuffer {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            words: [const { UnsafeCell::new(MaybeUninit::uninit()) }; WORDS],
            len: AtomicUsize::new(0),
        })
    }

    /// Writes the next event. Whether there was room.
    ///
    /// # Safety
    /// No other thread writes to the chunk.
    #[inline(always)]
    pub(super) unsafe fn push(&self, words: &[u64]) -> bool {
        let at = self.len.load(Ordering::Relaxed);
        let Some(places) = self.words.get(at..at + words.len()) else { return false };
        for (place, word) in places.iter().zip(words) {
            // SAFETY: no thread reads words from `len` on, and only this writer writes.
            unsafe { (*place.get()).write(*word) };
        }
        self.len.store(at + words.len(), Ordering::Release);
        true
    }

    /// Returns the events written so far, each with the position of its first word. Only under the lock of the log,
    /// which keeps the chunk from being wiped.
    fn written(&self) -> impl Iterator<Item = (usize, TimedEvent)> + '_ {
        let len = self.len.load(Ordering::Acquire);
        // SAFETY: words before `len` are written and do not change, and a cell has the layout of its content.
        entries(unsafe { slice::from_raw_parts(self.words.as_ptr().cast::<u64>(), len) })
    }
}

/// A chunk with the threads that have filled it, each from an index on.
struct Segment {
    chunk: Arc<EventBuffer>,
    threads: Vec<(usize, u32)>,
    /// Whether a writer holds it.
    held: bool,
}

/// By number of the allocation. The numbers rise, so that one multiplication spreads them; the usual hash takes longer than
/// the event took to record.
pub(super) type ByNumber<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// Summary of events that were dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct CompactedState {
    /// Allocated, and not freed.
    pub(super) held: ByNumber<AllocationInfo>,
    /// Freed, with bytes and kind, though the allocation was not seen: it is older than the log, or still to come in the
    /// chunk of another thread.
    pub(super) ended: ByNumber<(u64, u8)>,
    /// The last event that is not kept.
    pub(super) until: Option<u64>,
    pub(super) reserved: HashMap<u8, i64>,
}

impl CompactedState {
    pub(super) fn fold(&mut self, entry: &TimedEvent) {
        self.until = self.until.max(Some(entry.time));
        match entry.note {
            LogEvent::Allocate { id, .. } if self.ended.remove(&id).is_some() => {}
            LogEvent::Allocate { id, request } => {
                self.held.insert(id, request);
            }
            LogEvent::Free { id, bytes, kind } => {
                if self.held.remove(&id).is_none() {
                    self.ended.insert(id, (bytes, kind));
                }
            }
            LogEvent::Reserve { bytes, kind } => *self.reserved.entry(kind).or_default() += bytes,
            LogEvent::Use { .. }
            | LogEvent::Wait { .. }
            | LogEvent::Fail { .. }
            | LogEvent::Collective(_) => {}
        }
    }
}

/// A thread that has written something.
#[derive(Debug, Clone)]
pub(super) struct ThreadInfo {
    pub(super) number: u64,
    pub(super) name: Option<String>,
}

#[derive(Default)]
struct Segments {
    all: VecDeque<Segment>,
    /// Chunks of threads that have ended, with room left.
    spare: Vec<Arc<EventBuffer>>,
    writers: Vec<ThreadInfo>,
    names: Vec<Arc<str>>,
    by_name: HashMap<Arc<str>, u32>,
    compacted: CompactedState,
    /// When an event was first lost.
    full: Option<u64>,
    /// For events of threads whose thread-local storage is gone.
    last: Option<Arc<EventBuffer>>,
}

/// The device's state when the recording starts.
#[derive(Debug, Clone)]
pub struct InitialState {
    /// The name of the device.
    pub device: String,
    /// Bytes of its memory.
    pub total: usize,
    /// By index of the kind: bytes held by its resource, bytes allocated, and the unit of allocations.
    pub kinds: Vec<(u8, usize, usize, usize)>,
}

/// One recording of one device.
pub struct EventLog {
    pub(super) session: u64,
    pub(super) initial: InitialState,
    pub(super) start: u64,
    /// In a forked child the locks here must not be taken: a thread of the parent may hold them.
    pub(super) origin: ProcessGuard,
    options: RecorderOptions,
    most: usize,
    lost: AtomicU64,
    segments: Mutex<Segments>,
}

/// Everything on a log, copied at one moment.
#[derive(Debug)]
pub(super) struct Copied {
    /// (number of the writer, entry), by time.
    pub(super) entries: Vec<(u32, TimedEvent)>,
    pub(super) compacted: CompactedState,
    pub(super) writers: Vec<ThreadInfo>,
    pub(super) names: Vec<Arc<str>>,
    pub(super) lost: u64,
    pub(super) end: u64,
}

/// A number that no other recording of the process has.
fn session_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl EventLog {
    /// Makes an empty log of a recording that starts now.
    pub fn new(options: RecorderOptions, initial: InitialState) -> Arc<Self> {
        let most = (options.limit_bytes / mem::size_of::<EventBuffer>()).max(1);
        let (session, start) = (session_number(), clock().now());
        let (lost, segments) = (AtomicU64::new(0), Mutex::default());
        Arc::new(Self {
            session,
            initial,
            start,
            origin: ProcessGuard::current(),
            options,
            most,
            lost,
            segments,
        })
    }

    /// Returns whether this is the process that started the recording; a forked child must not touch its locks.
    pub fn is_of_this_process(&self) -> bool {
        self.origin.is_valid()
    }

    #[inline]
    pub(super) fn keeps_uses(&self) -> bool {
        self.options.uses
    }

    /// The number of a name.
    pub(super) fn name(&self, name: &Arc<str>) -> u32 {
        let segments = &mut *self.segments.lock();
        let next = segments.names.len() as u32 + 1;
        let number = *segments.by_name.entry(name.clone()).or_insert(next);
        if number == next {
            segments.names.push(name.clone());
        }
        number
    }

    /// The number of a thread in this log.
    pub(super) fn writer(&self, writer: ThreadInfo) -> u32 {
        let mut segments = self.segments.lock();
        segments.writers.push(writer);
        segments.writers.len() as u32 - 1
    }

    /// A chunk for the writer of a thread, in place of the one that it has filled. `None` when the log is
    /// full.
    pub(super) fn next(&self, writer: u32, filled: Option<&Arc<EventBuffer>>) -> Option<Arc<EventBuffer>> {
        self.next_of(&mut self.segments.lock(), writer, filled)
    }

    fn next_of(
        &self,
        segments: &mut Segments,
        writer: u32,
        filled: Option<&Arc<EventBuffer>>,
    ) -> Option<Arc<EventBuffer>> {
        if let Some(filled) = filled {
            release(segments, filled);
        }
        if let Some(spare) = segments.spare.pop() {
            let at = spare.len.load(Ordering::Relaxed);
            if let Some(segment) = segments.all.iter_mut().find(|segment| Arc::ptr_eq(&segment.chunk, &spare))
            {
                segment.threads.push((at, writer));
                segment.held = true;
            }
            return Some(spare);
        }
        let chunk = if segments.all.len() < self.most {
            EventBuffer::new()
        } else if self.options.overflow == Overflow::KeepOldest {
            segments.full.get_or_insert_with(|| clock().now());
            return None;
        } else {
            // None of them is spare: those have gone first.
            match segments.all.iter().position(|segment| !segment.held) {
                Some(oldest) => self.wipe(segments, oldest),
                // Each thread has at least one, or its events would be missing among the others'.
                None => EventBuffer::new(),
            }
        };
        segments.all.push_back(Segment { chunk: chunk.clone(), threads: vec![(0, writer)], held: true });
        Some(chunk)
    }

    /// Takes the events of a chunk off the log.
    fn wipe(&self, segments: &mut Segments, at: usize) -> Arc<EventBuffer> {
        let Some(segment) = segments.all.remove(at) else { return EventBuffer::new() };
        let mut gone = 0;
        for (_, entry) in segment.chunk.written() {
            segments.compacted.fold(&entry);
            gone += 1;
        }
        self.lost.fetch_add(gone, Ordering::Relaxed);
        segment.chunk.len.store(0, Ordering::Relaxed);
        segment.chunk
    }

    /// Takes a chunk back from a thread that ends.
    pub(super) fn give_back(&self, chunk: &Arc<EventBuffer>) {
        let mut segments = self.segments.lock();
        release(&mut segments, chunk);
        if chunk.len.load(Ordering::Relaxed) + MOST <= WORDS {
            segments.spare.push(chunk.clone());
        }
    }

    /// Writes for a thread that has no writer any more.
    pub(super) fn write_late(&self, words: &EncodedEvent) {
        let segments = &mut *self.segments.lock();
        let mut chunk = segments.last.take();
        // SAFETY: only this function writes to the chunk, under the lock.
        let is_written = chunk.as_ref().is_some_and(|chunk| unsafe { chunk.push(words.as_slice()) });
        if !is_written {
            segments.writers.push(ThreadInfo { number: 0, name: Some("threads that end".to_owned()) });
            let writer = segments.writers.len() as u32 - 1;
            chunk = self.next_of(segments, writer, chunk.as_ref());
            // SAFETY: as above.
            if !chunk.as_ref().is_some_and(|chunk| unsafe { chunk.push(words.as_slice()) }) {
                self.lose();
            }
        }
        segments.last = chunk;
    }

    pub(super) fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Everything that is there, by time. Recording goes on meanwhile; threads that need a new chunk wait.
    pub(super) fn copy(&self) -> Copied {
        let mut copied = {
            let segments = self.segments.lock();
            let end = segments.full.unwrap_or_else(|| clock().now());
            let mut entries = Vec::with_capacity(segments.all.len() * WORDS / 4);
            for segment in &segments.all {
                let mut threads = segment.threads.iter().peekable();
                let mut writer = 0;
                for (at, entry) in segment.chunk.written() {
                    while let Some((_, next)) = threads.next_if(|(from, _)| *from <= at) {
                        writer = *next;
                    }
                    entries.push((writer, entry));
                }
            }
            Copied {
                entries,
                compacted: segments.compacted.clone(),
                writers: segments.writers.clone(),
                names: segments.names.clone(),
                lost: self.lost.load(Ordering::Relaxed),
                end,
            }
        };
        // A thread's own events stay in their order where the clock does not tell them apart.
        copied.entries.sort_by_key(|(_, entry)| entry.time);
        // Threads fill their chunks at different speeds: events are kept for all threads from one common moment on.
        let from = copied.compacted.until;
        let first = copied.entries.partition_point(|(_, entry)| Some(entry.time) <= from);
        for (_, entry) in copied.entries.drain(..first) {
            copied.compacted.fold(&entry);
        }
        let last = copied.entries.partition_point(|(_, entry)| entry.time <= copied.end);
        copied.lost += (first + copied.entries.len() - last) as u64;
        copied.entries.truncate(last);
        copied
    }
}

fn release(segments: &mut Segments, chunk: &Arc<EventBuffer>) {
    if let Some(segment) = segments.all.iter_mut().rev().find(|segment| Arc::ptr_eq(&segment.chunk, chunk)) {
        segment.held = false;
    }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog")
            .field("device", &self.initial.device)
            .field("options", &self.options)
            .finish()
    }
}
