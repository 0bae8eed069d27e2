//! Where events are written: each thread has a slot, and full slots go to the log, which is bounded.

// Safe code alone: Miri has nothing to find, and takes minutes.
#[cfg(test)]
#[cfg(not(any(miri, loom)))]
mod tests;

use super::{
    clock::clock,
    event::{AllocationInfo, LogEvent, TimedEvent},
    format::TraceKind,
    options::{Overflow, RecorderOptions},
};
use crate::sync::{PlainMutex, PlainMutexGuard, Rank};
use gpumem_core::process::ProcessGuard;
use std::{
    array,
    cell::Cell,
    collections::{BTreeMap, VecDeque},
    fmt, mem,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

/// Events of a full slot.
const BLOCK: usize = 512;

/// Threads beyond this many share slots.
const SLOTS: usize = 64;

thread_local! {
    /// The number of the thread, or 0. It needs no destructor, so that a thread can still record while it ends.
    static NUMBER: Cell<u32> = const { Cell::new(0) };
    static NAME: Option<Arc<str>> = std::thread::current().name().map(Into::into);
}

/// A number that no other thread of the process has had.
#[inline]
fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NUMBER.with(|number| {
        if number.get() == 0 {
            // Only the number itself is shared.
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// The slots of a device's threads. A thread locks its own, which no other one wants, but for a moment while a
/// recording starts, is read or ends: then all are locked, in their order. The log is locked last.
#[derive(Debug)]
pub(crate) struct Slots {
    /// In a forked child a thread of the parent may hold the locks for ever.
    origin: ProcessGuard,
    slots: [Slot; SLOTS],
}

/// Alone on its cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Slot(PlainMutex<Option<Open>>);

/// A slot while something is recorded.
#[derive(Debug)]
struct Open {
    log: Arc<EventLog>,
    events: Vec<TimedEvent>,
    /// The last thread that has written here, or 0, and all since the slot was emptied.
    thread: u32,
    threads: ThreadNames,
}

pub(crate) type ThreadNames = BTreeMap<u32, Option<Arc<str>>>;

impl Slots {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            origin: ProcessGuard::current(),
            slots: array::from_fn(|number| Slot(PlainMutex::numbered(Rank::TraceSlot, number as u64, None))),
        })
    }

    fn lock(&self) -> Vec<PlainMutexGuard<'_, Option<Open>>> {
        // By rising numbers: a thread that locks all of them and one that locks its own never wait for each other in turn.
        self.slots.iter().map(|slot| slot.0.lock()).collect()
    }

    /// Opens the slots to a new log, unless another one has them. Calls `opened` under their locks.
    pub(crate) fn open(&self, log: &Arc<EventLog>, opened: impl FnOnce()) -> bool {
        let mut slots = self.lock();
        if slots.iter().any(|slot| slot.is_some()) {
            return false;
        }
        for slot in &mut slots {
            let (events, threads) = (Vec::new(), ThreadNames::default());
            **slot = Some(Open { log: log.clone(), events, thread: 0, threads });
        }
        opened();
        true
    }

    /// Closes them, if that log has them. Calls `closing` under their locks.
    pub(crate) fn close(&self, log: &EventLog, closing: impl FnOnce()) {
        let mut slots = self.lock();
        if slots.iter().all(|slot| slot.as_ref().is_some_and(|open| open.is_of(log))) {
            closing();
            // After the slots, as everywhere: a thread with a full slot holds that, and waits for the log.
            let mut kept = log.kept.lock();
            slots.iter_mut().filter_map(|slot| slot.take()).for_each(|mut open| open.empty(&mut kept));
        }
    }

    /// Writes an event of this thread, now. It is made where it stays.
    #[inline(always)]
    pub(crate) fn write(&self, event: impl FnOnce() -> LogEvent) {
        if !self.origin.is_valid() {
            return;
        }
        let thread = thread_number();
        // Free but while a recording starts, is read or ends, or if more threads than slots record.
        let mut slot = self.slots[thread as usize % SLOTS].0.lock();
        let Some(open) = &mut *slot else { return };
        if open.thread != thread {
            open.enter(thread);
        }
        open.events.push(TimedEvent { time: clock().now(), thread, event: event() });
        // A block at a time, so that threads meet at the log once in many events.
        if open.events.len() >= BLOCK {
            open.turn();
        }
    }
}

impl Open {
    fn is_of(&self, log: &EventLog) -> bool {
        std::ptr::eq(&*self.log, log)
    }

    /// Another thread writes here than before.
    #[cold]
    fn enter(&mut self, thread: u32) {
        self.thread = thread;
        // The name is gone where the thread's variables are.
        self.threads.entry(thread).or_insert_with(|| NAME.try_with(Clone::clone).ok().flatten());
    }

    #[cold]
    fn turn(&mut self) {
        let log = self.log.clone();
        // The caller holds its slot: the log comes after it.
        let mut kept = log.kept.lock();
        self.empty(&mut kept);
        kept.trim(&log);
        // Who has filled one block fills another.
        self.events.reserve(BLOCK);
    }

    /// Moves the events to the log.
    fn empty(&mut self, kept: &mut Kept) {
        self.thread = 0;
        kept.threads.append(&mut self.threads);
        kept.take(mem::take(&mut self.events), &self.log);
    }
}

/// The events of a log, and a summary of those that were dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    pub(crate) blocks: VecDeque<Arc<Vec<TimedEvent>>>,
    /// Events in the blocks.
    count: usize,
    pub(crate) threads: ThreadNames,
    pub(crate) summary: Summary,
    pub(crate) lost: u64,
    /// When an event was first lost, if the oldest are kept.
    full: Option<u64>,
}

impl Kept {
    fn take(&mut self, mut block: Vec<TimedEvent>, log: &EventLog) {
        if log.options.overflow == Overflow::KeepOldest {
            let room = log.most.saturating_sub(self.count);
            self.full = self.full.or_else(|| Some(block.get(room)?.time));
            if let Some(full) = self.full {
                let count = block.len();
                block.retain(|event| event.time < full);
                self.lost += (count - block.len()) as u64;
            }
        }
        if block.is_empty() {
            return;
        }
        // A block may be nearly empty: slots are emptied when a recording is read.
        block.shrink_to_fit();
        self.count += block.len();
        // Shared: a copy of the log copies no events.
        self.blocks.push_back(Arc::new(block));
    }

    /// Drops the oldest blocks beyond the limit.
    fn trim(&mut self, log: &EventLog) {
        while log.options.overflow == Overflow::KeepNewest
            && self.count > log.most
            && let Some(block) = self.blocks.pop_front()
        {
            block.iter().for_each(|event| self.summary.add(event.time, event));
            self.count -= block.len();
            self.lost += block.len() as u64;
        }
    }
}

/// Summary of events that were dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Summary {
    /// Allocated, and not freed.
    pub(crate) held: BTreeMap<u64, AllocationInfo>,
    /// Freed, with bytes and kind, though the allocation was not seen: it is older than the log, or still to come from
    /// another thread.
    pub(crate) ended: BTreeMap<u64, (u64, Option<TraceKind>)>,
    /// The last event that is not kept.
    pub(crate) until: Option<u64>,
    pub(crate) reserved: BTreeMap<TraceKind, i64>,
}

impl Summary {
    pub(crate) fn add(&mut self, time: u64, event: &TimedEvent) {
        self.until = self.until.max(Some(time));
        match &event.event {
            LogEvent::Allocate { id, .. } if self.ended.remove(id).is_some() => {}
            LogEvent::Allocate { id, request } => drop(self.held.insert(*id, request.clone())),
            LogEvent::Free { id, .. } if self.held.remove(id).is_some() => {}
            LogEvent::Free { id, bytes, kind } => drop(self.ended.insert(*id, (*bytes, *kind))),
            LogEvent::Reserve { bytes, kind } => *self.reserved.entry(*kind).or_default() += bytes,
            _ => {}
        }
    }
}

/// The device's state when the recording starts.
#[derive(Debug, Clone)]
pub struct InitialState {
    /// The name of the device.
    pub device: String,
    /// Bytes of its memory.
    pub total: usize,
    /// By kind: bytes held by its resource, bytes allocated, and the unit of allocations.
    pub kinds: Vec<(TraceKind, usize, usize, usize)>,
}

/// One recording of one device.
pub struct EventLog {
    pub(crate) initial: InitialState,
    pub(crate) start: u64,
    pub(crate) options: RecorderOptions,
    /// Most events.
    most: usize,
    slots: Arc<Slots>,
    // Apart from the slots, so that a thread with a full slot holds up only those with full slots too.
    kept: PlainMutex<Kept>,
}

impl EventLog {
    /// Makes an empty log of a recording that starts now.
    pub(crate) fn new(options: RecorderOptions, initial: InitialState, slots: Arc<Slots>) -> Arc<Self> {
        let most = (options.limit_bytes / mem::size_of::<TimedEvent>()).max(BLOCK);
        let kept = PlainMutex::new(Rank::TraceLog, Kept::default());
        Arc::new(Self { initial, start: clock().now(), options, most, slots, kept })
    }

    /// Returns whether this is the process that started the recording; a forked child must not touch its locks.
    pub fn is_of_this_process(&self) -> bool {
        self.slots.origin.is_valid()
    }

    /// Everything that is there, and the time of its end. Recording goes on meanwhile.
    pub(crate) fn copy(&self) -> (Kept, u64) {
        // All at once: what one thread hands to another is not missing from the first.
        let mut slots = self.slots.lock();
        let mut open: Vec<_> = slots.iter_mut().flat_map(|slot| slot.as_mut()).collect();
        open.retain(|open| open.is_of(self));
        // After the slots, and held to the end, so that no block comes between what the slots had and the copy.
        let mut kept = self.kept.lock();
        let end = clock().now();
        if !open.is_empty() {
            // Only what was there before: it may be the last of a thread.
            kept.trim(self);
        }
        open.into_iter().for_each(|open| open.empty(&mut kept));
        // The log alone is copied: threads go on to record meanwhile.
        drop(slots);
        (kept.clone(), kept.full.unwrap_or(end))
    }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog")
            .field("device", &self.initial.device)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
