//! Replays traces.

mod run;

use self::run::OPERATION;
use super::{Trace, TraceError, TraceEventKind, TraceKind};
use crate::Device;
use gpumem_core::{Backend, Error, ErrorKind, MemoryKind, NotRecorded, Result};
use gpumem_memory::memory::{MemoryResource, check_outside_resource};
use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

/// The parts of a trace that are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Uses on streams are entered into the allocations, so that streams wait for each other as they do in programs.
    /// Without them only allocations and frees are left.
    pub uses: bool,
    /// Each use that writes fills at most so many of its bytes on its stream, so that memory is in use for a while when it
    /// is freed. 0 enqueues nothing.
    pub work: usize,
    /// The host waits where it has waited, for everything enqueued so far on that stream.
    pub waits: bool,
    /// Threads run at the same time, as in the trace. Otherwise one thread does everything in the order of the trace.
    pub threads: bool,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self { uses: true, work: 0, waits: true, threads: true }
    }
}

/// How a replay went.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReplayReport {
    /// Allocations that were made, those from before the trace included.
    pub allocations: u64,
    /// Allocations that were freed during the replay.
    pub frees: u64,
    /// Uses that were enqueued or waited for.
    pub uses: u64,
    /// Requests that found no memory, of those that had found some in the trace.
    pub failures: u64,
    /// Uses that were refused.
    pub refused: u64,
    /// The first of the failures and refusals.
    pub first_error: Option<Error>,
    /// Time in allocations, of all threads.
    pub allocating: Duration,
    /// Time in frees, of all threads.
    pub freeing: Duration,
    /// From the first event to the last.
    pub wall: Duration,
    /// Most bytes that were in use, all kinds together.
    pub peak_used: u64,
    /// The most bytes that the resources ever held: the sum over the kinds of memory. Resources that were used before
    /// include their earlier peak.
    pub peak_reserved: u64,
    /// Threads that took part.
    pub threads: usize,
    /// Streams that took part.
    pub streams: usize,
}

impl ReplayReport {
    /// Nanoseconds of an allocation or a free on average, the clock's own time (some 20 ns) included.
    pub fn nanoseconds(&self) -> f64 {
        let operations = (self.allocations + self.frees).max(1);
        (self.allocating + self.freeing).as_nanos() as f64 / operations as f64
    }

    /// Nanoseconds of an allocation on average.
    pub fn allocate_nanoseconds(&self) -> f64 {
        self.allocating.as_nanos() as f64 / self.allocations.max(1) as f64
    }

    /// Nanoseconds of a free on average.
    pub fn free_nanoseconds(&self) -> f64 {
        self.freeing.as_nanos() as f64 / self.frees.max(1) as f64
    }
}

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { allocations, frees, uses, failures, threads, streams, .. } = self;
        writeln!(
            f,
            "{allocations} allocations ({:.0} ns each), {frees} frees ({:.0} ns each), {uses} uses, on {threads} \
             threads and {streams} streams in {:.3} ms",
            self.allocate_nanoseconds(),
            self.free_nanoseconds(),
            self.wall.as_secs_f64() * 1e3,
        )?;
        writeln!(f, "peak: {} bytes in use, {} bytes reserved", self.peak_used, self.peak_reserved)?;
        match &self.first_error {
            Some(error) => write!(f, "{failures} requests failed, {} uses refused: {error}", self.refused),
            None => write!(f, "{failures} requests failed"),
        }
    }
}

/// Puts the resources of a device back, however a replay ends.
struct Swapped<'a, B: Backend> {
    device: &'a Device<B>,
    before: Vec<(MemoryKind, Arc<dyn MemoryResource<B>>)>,
}

impl<B: Backend> Drop for Swapped<'_, B> {
    fn drop(&mut self) {
        for (kind, resource) in self.before.drain(..) {
            if let Err(error) = self.device.set_memory_resource(kind, resource) {
                gpumem_core::tell!(error: %error, "a memory resource could not be put back after a replay");
            }
        }
    }
}

impl<B: Backend> Device<B> {
    /// Replays a trace as fast as possible: each thread of the trace is a thread, and each stream a stream. Events of
    /// one piece of memory keep their order, also across threads.
    ///
    /// `resource` returns the resource of each kind of memory that occurs, which then serves the device until the
    /// replay is over; no other code should use the device meanwhile. `|kind| device.memory_resource(kind)` leaves
    /// everything as it is. Each resource that is new to the device takes one of the 64 that it can have in its
    /// lifetime.
    ///
    /// ```
    /// # use {gpumem_runtime::{memory::Pool, trace::{RecorderOptions, ReplayOptions}, Device}, std::sync::Arc};
    /// # let device = Device::<gpumem_host::Host>::open("host")?;
    /// # let recording = device.record_memory(RecorderOptions::default())?;
    /// # drop(device.device_array::<f32, _>((64, 64))?);
    /// # let trace = recording.finish();
    /// let report = device.replay_memory(&trace, ReplayOptions::default(), |kind| {
    ///     Ok(Arc::new(Pool::new(device.driver_memory(), device.pool_options(kind))))
    /// })?;
    /// assert_eq!((report.allocations, report.failures), (1, 0));
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for a trace that contradicts itself
    /// ([`check`](Trace::check)), [`NotRecordable`](gpumem_core::ErrorKind::NotRecordable) in the recording of a graph, the error of
    /// `resource`, [`Driver`](gpumem_core::ErrorKind::Driver) if a stream
    /// cannot be made, and [`Unsupported`](gpumem_core::ErrorKind::Unsupported) inside a memory resource, and if the system has
    /// no thread for each one of the trace. Requests and uses that fail are counted instead.
    pub fn replay_memory(
        &self,
        trace: &Trace,
        options: ReplayOptions,
        resource: impl FnMut(MemoryKind) -> Result<Arc<dyn MemoryResource<B>>>,
    ) -> Result<ReplayReport> {
        self.check_replay(trace)?;
        self.replay_checked(trace, options, resource)
    }

    /// Checks that the trace can be replayed, here and now.
    pub(super) fn check_replay(&self, trace: &Trace) -> Result<()> {
        gpumem_memory::may_block(OPERATION)?;
        check_outside_resource(OPERATION).map_err(|error| self.core().place(error))?;
        if self.recording().is_some() {
            return Err(self.core().not_recordable(OPERATION, NotRecorded::Wait));
        }
        trace.check().map_err(|why: TraceError| {
            gpumem_core::tell!(error: %why, "a trace cannot be replayed");
            let why = "the trace contradicts itself";
            self.core().error(OPERATION, ErrorKind::InvalidArgument { why })
        })
    }

    /// As [`replay_memory`](Self::replay_memory), for a trace that has been [checked](Self::check_replay).
    pub(super) fn replay_checked(
        &self,
        trace: &Trace,
        options: ReplayOptions,
        mut resource: impl FnMut(MemoryKind) -> Result<Arc<dyn MemoryResource<B>>>,
    ) -> Result<ReplayReport> {
        let kinds: BTreeSet<TraceKind> = trace.allocations.iter().filter_map(|memory| memory.kind).collect();
        let mut serving = Vec::new();
        let mut swapped = Swapped { device: self, before: Vec::new() };
        for kind in kinds.into_iter().map(TraceKind::memory_kind) {
            let resource = resource(kind)?;
            swapped.before.push((kind, self.memory_resource(kind)?));
            self.set_memory_resource(kind, resource.clone())?;
            serving.push((kind, resource));
        }
        let mut report = run::run(trace, self, options)?;
        // One resource may serve several kinds.
        serving.sort_by_key(|(_, resource)| Arc::as_ptr(resource).cast::<()>());
        serving.dedup_by_key(|(_, resource)| Arc::as_ptr(resource).cast::<()>());
        for (kind, _) in serving {
            let (_, resource) = self.core().memory.serving(self.core(), OPERATION, kind)?;
            let peak = resource.report().statistics.peak_reserved as u64;
            report.peak_reserved = report.peak_reserved.saturating_add(peak);
        }
        drop(swapped);
        Ok(report)
    }
}

/// For each event how many events of the same memory come before it.
fn turns(trace: &Trace) -> Vec<u32> {
    let mut seen = vec![0u32; trace.allocations.len()];
    let turn = |what: &TraceEventKind| match *what {
        TraceEventKind::Allocate { memory }
        | TraceEventKind::Free { memory }
        | TraceEventKind::Use { memory, .. } => {
            let slot = &mut seen[memory as usize];
            *slot += 1;
            *slot - 1
        }
        TraceEventKind::Fail { .. }
        | TraceEventKind::Wait { .. }
        | TraceEventKind::Collective { .. }
        | TraceEventKind::Reserve { .. }
        | TraceEventKind::Release { .. } => 0,
    };
    trace.events.iter().map(|event| &event.what).map(turn).collect()
}
