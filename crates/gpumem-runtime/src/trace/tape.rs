//! Where events are written: chunks that one thread each fills, of which there is a bounded number.

#[cfg(test)]
mod tests;

use super::{
    clock::clock,
    code::{MOST, Words, entries},
    note::{Asked, Entry, Note},
    recording::{Overflow, RecorderOptions},
};
use gpumem_core::process::Origin;
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
pub(super) struct Chunk {
    words: [UnsafeCell<MaybeUninit<u64>>; WORDS],
    /// So many are written, and do not change until the chunk is wiped.
    len: AtomicUsize,
}

// SAFETY: a word is written once, by the pen that holds the chunk, before `len` says that it is there; from then on it is
// only read, until the tape wipes the chunk, which it does under its lock and when no pen holds the chunk.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            words: [const { UnsafeCell::new(MaybeUninit::uninit()) }; WORDS],
            len: AtomicUsize::new(0),
        })
    }

    /// Writes the next event. Whether there was room.
    ///
    /// # Safety
    /// Nobody else writes to the chunk.
    #[inline(always)]
    pub(super) unsafe fn push(&self, words: &[u64]) -> bool {
        let at = self.len.load(Ordering::Relaxed);
        let Some(places) = self.words.get(at..at + words.len()) else { return false };
        for (place, word) in places.iter().zip(words) {
            // SAFETY: nobody reads a word at or behind `len`, and nobody else writes.
            unsafe { (*place.get()).write(*word) };
        }
        self.len.store(at + words.len(), Ordering::Release);
        true
    }

    /// What is written so far, each event with the position of its first word. Only under the lock of the tape, which keeps
    /// the chunk from being wiped.
    fn written(&self) -> impl Iterator<Item = (usize, Entry)> + '_ {
        let len = self.len.load(Ordering::Acquire);
        // SAFETY: words before `len` are written and do not change, and a cell lies as its content does.
        entries(unsafe { slice::from_raw_parts(self.words.as_ptr().cast::<u64>(), len) })
    }
}

/// A chunk with the threads that have filled it, each from an index on.
struct Reel {
    chunk: Arc<Chunk>,
    threads: Vec<(usize, u32)>,
    /// Whether a pen holds it.
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

/// What is known of events that are not kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Folded {
    /// Allocated, and not freed.
    pub(super) held: ByNumber<Asked>,
    /// Freed, with bytes and kind, though the allocation was not seen: it is older than the tape, or still to come in the
    /// chunk of another thread.
    pub(super) ended: ByNumber<(u64, u8)>,
    /// The last event that is not kept.
    pub(super) until: Option<u64>,
    pub(super) reserved: HashMap<u8, i64>,
}

impl Folded {
    pub(super) fn fold(&mut self, entry: &Entry) {
        self.until = self.until.max(Some(entry.time));
        match entry.note {
            Note::Allocate { id, .. } if self.ended.remove(&id).is_some() => {}
            Note::Allocate { id, request } => {
                self.held.insert(id, request);
            }
            Note::Free { id, bytes, kind } => {
                if self.held.remove(&id).is_none() {
                    self.ended.insert(id, (bytes, kind));
                }
            }
            Note::Reserve { bytes, kind } => *self.reserved.entry(kind).or_default() += bytes,
            Note::Use { .. } | Note::Wait { .. } | Note::Fail { .. } => {}
        }
    }
}

/// A thread that has written something.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    pub(super) number: u64,
    pub(super) name: Option<String>,
}

#[derive(Default)]
struct Reels {
    all: VecDeque<Reel>,
    /// Chunks of threads that have ended, with room left.
    spare: Vec<Arc<Chunk>>,
    writers: Vec<Writer>,
    names: Vec<Arc<str>>,
    by_name: HashMap<Arc<str>, u32>,
    folded: Folded,
    /// When an event was first lost.
    full: Option<u64>,
    /// For events of threads whose own storage is gone.
    last: Option<Arc<Chunk>>,
}

/// What is true of the device when the recording starts.
#[derive(Debug, Clone)]
pub(super) struct Beginning {
    pub(super) device: String,
    pub(super) total: usize,
    /// By slot of the kind: bytes held by its resource, bytes lent, and the unit that they are lent in.
    pub(super) kinds: Vec<(u8, usize, usize, usize)>,
}

/// One recording of one device.
pub(crate) struct Tape {
    pub(super) session: u64,
    pub(super) beginning: Beginning,
    pub(super) start: u64,
    /// In a forked child nobody may take the locks here: a thread that is not there may hold them.
    pub(super) origin: Origin,
    options: RecorderOptions,
    most: usize,
    lost: AtomicU64,
    reels: Mutex<Reels>,
}

/// Everything on a tape, copied at one moment.
#[derive(Debug)]
pub(super) struct Copied {
    /// (number of the writer, entry), by time.
    pub(super) entries: Vec<(u32, Entry)>,
    pub(super) folded: Folded,
    pub(super) writers: Vec<Writer>,
    pub(super) names: Vec<Arc<str>>,
    pub(super) lost: u64,
    pub(super) end: u64,
}

impl Tape {
    pub(super) fn new(options: RecorderOptions, beginning: Beginning) -> Arc<Self> {
        let most = (options.limit_bytes / mem::size_of::<Chunk>()).max(1);
        let (session, start) = (crate::unique_id(), clock().now());
        let (lost, reels) = (AtomicU64::new(0), Mutex::default());
        Arc::new(Self { session, beginning, start, origin: Origin::here(), options, most, lost, reels })
    }

    #[inline]
    pub(super) fn keeps_uses(&self) -> bool {
        self.options.uses
    }

    /// The number of a name.
    pub(super) fn name(&self, name: &Arc<str>) -> u32 {
        let reels = &mut *self.reels.lock();
        let next = reels.names.len() as u32 + 1;
        let number = *reels.by_name.entry(name.clone()).or_insert(next);
        if number == next {
            reels.names.push(name.clone());
        }
        number
    }

    /// The number of a thread on this tape.
    pub(super) fn writer(&self, writer: Writer) -> u32 {
        let mut reels = self.reels.lock();
        reels.writers.push(writer);
        reels.writers.len() as u32 - 1
    }

    /// A chunk for the pen of a thread, in place of the one that it has filled. `None` when the tape is full.
    pub(super) fn next(&self, writer: u32, filled: Option<&Arc<Chunk>>) -> Option<Arc<Chunk>> {
        self.next_of(&mut self.reels.lock(), writer, filled)
    }

    fn next_of(&self, reels: &mut Reels, writer: u32, filled: Option<&Arc<Chunk>>) -> Option<Arc<Chunk>> {
        if let Some(filled) = filled {
            release(reels, filled);
        }
        if let Some(spare) = reels.spare.pop() {
            let at = spare.len.load(Ordering::Relaxed);
            if let Some(reel) = reels.all.iter_mut().find(|reel| Arc::ptr_eq(&reel.chunk, &spare)) {
                reel.threads.push((at, writer));
                reel.held = true;
            }
            return Some(spare);
        }
        let chunk = if reels.all.len() < self.most {
            Chunk::new()
        } else if self.options.overflow == Overflow::KeepOldest {
            reels.full.get_or_insert_with(|| clock().now());
            return None;
        } else {
            // None of them is spare: those have gone first.
            match reels.all.iter().position(|reel| !reel.held) {
                Some(oldest) => self.wipe(reels, oldest),
                // Each thread has at least one, or its events would be missing among the others'.
                None => Chunk::new(),
            }
        };
        reels.all.push_back(Reel { chunk: chunk.clone(), threads: vec![(0, writer)], held: true });
        Some(chunk)
    }

    /// Takes the events of a chunk off the tape.
    fn wipe(&self, reels: &mut Reels, at: usize) -> Arc<Chunk> {
        let Some(reel) = reels.all.remove(at) else { return Chunk::new() };
        let mut gone = 0;
        for (_, entry) in reel.chunk.written() {
            reels.folded.fold(&entry);
            gone += 1;
        }
        self.lost.fetch_add(gone, Ordering::Relaxed);
        reel.chunk.len.store(0, Ordering::Relaxed);
        reel.chunk
    }

    /// Takes a chunk back from a thread that ends.
    pub(super) fn give_back(&self, chunk: &Arc<Chunk>) {
        let mut reels = self.reels.lock();
        release(&mut reels, chunk);
        if chunk.len.load(Ordering::Relaxed) + MOST <= WORDS {
            reels.spare.push(chunk.clone());
        }
    }

    /// Writes for a thread that has no pen any more.
    pub(super) fn write_late(&self, words: &Words) {
        let reels = &mut *self.reels.lock();
        let mut chunk = reels.last.take();
        // SAFETY: only this function writes to the chunk, under the lock.
        let is_written = chunk.as_ref().is_some_and(|chunk| unsafe { chunk.push(words.as_slice()) });
        if !is_written {
            reels.writers.push(Writer { number: 0, name: Some("threads that end".to_owned()) });
            let writer = reels.writers.len() as u32 - 1;
            chunk = self.next_of(reels, writer, chunk.as_ref());
            // SAFETY: as above.
            if !chunk.as_ref().is_some_and(|chunk| unsafe { chunk.push(words.as_slice()) }) {
                self.lose();
            }
        }
        reels.last = chunk;
    }

    pub(super) fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Everything that is there, by time. Recording goes on meanwhile; threads that need a new chunk wait.
    pub(super) fn copy(&self) -> Copied {
        let mut copied = {
            let reels = self.reels.lock();
            let end = reels.full.unwrap_or_else(|| clock().now());
            let mut entries = Vec::with_capacity(reels.all.len() * WORDS / 4);
            for reel in &reels.all {
                let mut threads = reel.threads.iter().peekable();
                let mut writer = 0;
                for (at, entry) in reel.chunk.written() {
                    while let Some((_, next)) = threads.next_if(|(from, _)| *from <= at) {
                        writer = *next;
                    }
                    entries.push((writer, entry));
                }
            }
            Copied {
                entries,
                folded: reels.folded.clone(),
                writers: reels.writers.clone(),
                names: reels.names.clone(),
                lost: self.lost.load(Ordering::Relaxed),
                end,
            }
        };
        // A thread's own events stay in their order where the clock does not tell them apart.
        copied.entries.sort_by_key(|(_, entry)| entry.time);
        // Threads do not fill their chunks at one speed: what is kept is kept of all of them, from and to one moment.
        let from = copied.folded.until;
        let first = copied.entries.partition_point(|(_, entry)| Some(entry.time) <= from);
        for (_, entry) in copied.entries.drain(..first) {
            copied.folded.fold(&entry);
        }
        let last = copied.entries.partition_point(|(_, entry)| entry.time <= copied.end);
        copied.lost += (first + copied.entries.len() - last) as u64;
        copied.entries.truncate(last);
        copied
    }
}

fn release(reels: &mut Reels, chunk: &Arc<Chunk>) {
    if let Some(reel) = reels.all.iter_mut().rev().find(|reel| Arc::ptr_eq(&reel.chunk, chunk)) {
        reel.held = false;
    }
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape")
            .field("device", &self.beginning.device)
            .field("options", &self.options)
            .finish()
    }
}
