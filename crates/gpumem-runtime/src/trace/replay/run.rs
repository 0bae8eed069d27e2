//! The threads of a replay.

use super::{ReplayOptions, ReplayReport, Trace, turns};
use crate::{
    Device, Stream,
    device::{Allocation, AllocationRef, HostReady},
    trace::{TraceAllocation, TraceEventKind},
};
use gpumem_core::{Backend, Error, ErrorKind, Fill, HostAccess, MemoryKind, Pattern, Result};
use gpumem_memory::{memory::named, trace::clock::clock, track::Access};
use parking_lot::Mutex;
use std::{
    hint,
    ops::Range,
    sync::{
        OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

pub(super) const OPERATION: &str = "replay";

/// A piece of memory of the trace.
struct Slot<B: Backend> {
    /// How many of its events are over.
    turn: AtomicU32,
    memory: Mutex<Option<AllocationRef<B>>>,
}

/// State that all threads share.
struct Stage<'a, B: Backend> {
    trace: &'a Trace,
    options: ReplayOptions,
    device: &'a Device<B>,
    streams: Vec<Stream<B>>,
    slots: Vec<Slot<B>>,
    turns: Vec<u32>,
    used: AtomicU64,
    peak: AtomicU64,
}

/// The counts of a thread. Times are in ticks of the clock.
#[derive(Default)]
struct Counts {
    allocations: u64,
    frees: u64,
    uses: u64,
    failures: u64,
    refused: u64,
    allocating: u64,
    freeing: u64,
    first_error: Option<Error>,
}

pub(super) fn run<B: Backend>(
    trace: &Trace,
    device: &Device<B>,
    options: ReplayOptions,
) -> Result<ReplayReport> {
    let slots = trace.allocations.iter();
    let stage = Stage {
        trace,
        options,
        device,
        streams: trace.streams.iter().map(|_| device.stream()).collect::<Result<_>>()?,
        slots: slots.map(|_| Slot { turn: AtomicU32::new(0), memory: Mutex::new(None) }).collect(),
        turns: turns(trace),
        used: AtomicU64::new(0),
        peak: AtomicU64::new(0),
    };
    let mut all = Counts::default();
    for (memory, _) in trace.older().iter().enumerate().filter(|(_, is_older)| **is_older) {
        stage.allocate(memory, &mut all);
    }
    let parts = stage.parts();
    let threads = parts.len();
    let (counts, wall) = stage.perform(parts)?;
    counts.into_iter().for_each(|counts| all.add(counts));
    // Memory that the trace never frees is freed now; that is not measured.
    stage.slots.iter().for_each(|slot| drop(slot.memory.lock().take()));
    for stream in &stage.streams {
        if let Err(error) = stream.synchronize() {
            all.refuse(error);
        }
    }
    let time = |ticks| Duration::from_nanos(clock().ticks(ticks));
    Ok(ReplayReport {
        allocations: all.allocations,
        frees: all.frees,
        uses: all.uses,
        failures: all.failures,
        refused: all.refused,
        first_error: all.first_error,
        allocating: time(all.allocating),
        freeing: time(all.freeing),
        wall,
        peak_used: stage.peak.load(Ordering::Relaxed),
        peak_reserved: 0,
        threads,
        streams: stage.streams.len(),
    })
}

impl<B: Backend> Stage<'_, B> {
    /// The events of each thread that has some, by index.
    fn parts(&self) -> Vec<Vec<usize>> {
        let mut parts = vec![Vec::new(); self.trace.threads.len().max(1)];
        for (index, event) in self.trace.events.iter().enumerate() {
            let thread = if self.options.threads { event.thread as usize } else { 0 };
            parts[thread].push(index);
        }
        parts.retain(|part| !part.is_empty());
        parts
    }

    fn perform(&self, mut parts: Vec<Vec<usize>>) -> Result<(Vec<Counts>, Duration)> {
        if parts.len() <= 1 {
            let start = Instant::now();
            let counts = self.act(&parts.pop().unwrap_or_default());
            return Ok((vec![counts], start.elapsed()));
        }
        // Where threads wait until all of them are there, or until it is known that some cannot be had.
        let (goes_on, mut start) = (OnceLock::new(), Instant::now());
        let counts = thread::scope(|scope| {
            let mut workers = Vec::new();
            for part in &parts {
                let work = || if *goes_on.wait() { self.act(part) } else { Counts::default() };
                match thread::Builder::new().spawn_scoped(scope, work) {
                    Ok(worker) => workers.push(worker),
                    Err(error) => {
                        // Those that are there would wait for the others' turns.
                        let _ = goes_on.set(false);
                        return Err(error);
                    }
                }
            }
            start = Instant::now();
            let _ = goes_on.set(true);
            Ok(workers.into_iter().filter_map(|worker| worker.join().ok()).collect())
        });
        counts.map(|counts| (counts, start.elapsed())).map_err(|error: std::io::Error| {
            gpumem_core::tell!(error: %error, threads = parts.len(), "there is no thread for each one of the trace");
            self.device.core().error(OPERATION, ErrorKind::Unsupported { what: "so many threads" })
        })
    }

    /// Does these events, one after the other.
    fn act(&self, events: &[usize]) -> Counts {
        let mut counts = Counts::default();
        for &index in events {
            match self.trace.events[index].what {
                TraceEventKind::Allocate { memory } => {
                    self.await_turn(memory, index);
                    self.allocate(memory as usize, &mut counts);
                    self.end_turn(memory);
                }
                TraceEventKind::Free { memory } => {
                    self.await_turn(memory, index);
                    self.free(memory as usize, &mut counts);
                    self.end_turn(memory);
                }
                TraceEventKind::Use { memory, from, bytes, write, stream, .. } => {
                    self.await_turn(memory, index);
                    let extent = from as usize..(from + bytes) as usize;
                    self.use_it(memory as usize, extent, write, stream, &mut counts);
                    self.end_turn(memory);
                }
                TraceEventKind::Wait { stream: None, of, .. } if self.options.waits => {
                    if let Err(error) = self.streams[of as usize].synchronize() {
                        counts.refuse(error);
                    }
                }
                // Streams wait for each other where they must, which depends on the resource. Failures and driver calls
                // of the trace are not replayed: this run has its own.
                TraceEventKind::Wait { .. }
                | TraceEventKind::Fail { .. }
                | TraceEventKind::Collective { .. }
                | TraceEventKind::Reserve { .. }
                | TraceEventKind::Release { .. } => {}
            }
        }
        counts
    }

    /// Waits until the earlier events of the memory have been replayed. The order of the trace is one in which
    /// everything can happen, so one thread can always continue.
    fn await_turn(&self, memory: u32, index: usize) {
        let (slot, turn) = (&self.slots[memory as usize], self.turns[index]);
        let mut spins = 0u32;
        while slot.turn.load(Ordering::Acquire) != turn {
            spins = spins.saturating_add(1);
            match spins {
                0..100 => hint::spin_loop(),
                _ => thread::yield_now(),
            }
        }
    }

    fn end_turn(&self, memory: u32) {
        self.slots[memory as usize].turn.fetch_add(1, Ordering::Release);
    }

    fn allocate(&self, memory: usize, counts: &mut Counts) {
        let allocation = &self.trace.allocations[memory];
        let Some(kind) = allocation.kind else { return };
        let device = allocation.stream.map_or(self.device, |stream| self.streams[stream as usize].device());
        let make = || {
            let begin = clock().now();
            let made = match usize::try_from(allocation.bytes) {
                Ok(bytes) => match kind.memory_kind() {
                    MemoryKind::Device => Allocation::new(device, OPERATION, bytes, align(allocation)),
                    kind => Allocation::for_host(device, OPERATION, bytes, align(allocation), kind)
                        .map(HostReady::into_memory),
                },
                Err(_) => Err(too_large()),
            };
            (made, clock().now().saturating_sub(begin))
        };
        let name = allocation.name.and_then(|name| self.trace.names.get(name as usize));
        let (made, ticks) = match name {
            Some(name) => named(name, make),
            None => make(),
        };
        match made {
            Ok(made) => {
                counts.allocations += 1;
                counts.allocating += ticks;
                let used = self.used.fetch_add(allocation.bytes, Ordering::Relaxed) + allocation.bytes;
                self.peak.fetch_max(used, Ordering::Relaxed);
                *self.slots[memory].memory.lock() = Some(made);
            }
            Err(error) => {
                counts.failures += 1;
                counts.first_error.get_or_insert(error);
            }
        }
    }

    fn free(&self, memory: usize, counts: &mut Counts) {
        let Some(made) = self.slots[memory].memory.lock().take() else { return };
        let begin = clock().now();
        drop(made);
        counts.freeing += clock().now().saturating_sub(begin);
        counts.frees += 1;
        self.used.fetch_sub(self.trace.allocations[memory].bytes, Ordering::Relaxed);
    }

    fn use_it(
        &self,
        memory: usize,
        extent: Range<usize>,
        write: bool,
        stream: Option<u32>,
        counts: &mut Counts,
    ) {
        let slot = self.slots[memory].memory.lock();
        let Some(memory) = &*slot else { return };
        if extent.is_empty() || !(if stream.is_some() { self.options.uses } else { self.options.waits }) {
            return;
        }
        let used = match stream {
            Some(stream) => self.enqueue(memory, extent, write, &self.streams[stream as usize]),
            None => {
                let access = if write { HostAccess::Write } else { HostAccess::Read };
                memory.wait_for_host(OPERATION, &extent, access)
            }
        };
        match used {
            Ok(()) => counts.uses += 1,
            Err(error) => counts.refuse(error),
        }
    }

    fn enqueue(
        &self,
        memory: &AllocationRef<B>,
        extent: Range<usize>,
        write: bool,
        stream: &Stream<B>,
    ) -> Result<()> {
        let count = if write { extent.len().min(self.options.work) } else { 0 };
        let address = memory.address() + extent.start as u64;
        let fills = count > 0 && memory.kind().is_device_accessible();
        let access = Access::new(memory, extent, write);
        let submitted = stream.timeline().submit(OPERATION, &[access], |sink| {
            if !fills {
                return Ok(());
            }
            let fill = Fill { address, pattern: Pattern::U8(0), count, rows: 1, pitch: 0 };
            // SAFETY: the bytes lie in a live allocation of this device, which the access log keeps alive and ordered.
            unsafe { sink.fill(&fill) }
        });
        submitted.map(|_| ())
    }
}

/// An alignment that this machine can say.
fn align(allocation: &TraceAllocation) -> usize {
    usize::try_from(allocation.align).unwrap_or(1)
}

fn too_large() -> Error {
    let why = "the trace asks for more bytes than this machine can name";
    Error::new("", OPERATION, ErrorKind::InvalidArgument { why })
}

impl Counts {
    fn refuse(&mut self, error: Error) {
        self.refused += 1;
        self.first_error.get_or_insert(error);
    }

    fn add(&mut self, other: Self) {
        self.allocations += other.allocations;
        self.frees += other.frees;
        self.uses += other.uses;
        self.failures += other.failures;
        self.refused += other.refused;
        self.allocating += other.allocating;
        self.freeing += other.freeing;
        if self.first_error.is_none() {
            self.first_error = other.first_error;
        }
    }
}
