//! Says whether a workload fits into a pool.

use super::{ReplayOptions, ReplayReport, Trace, TraceEvent, TraceEventKind};
use crate::Device;
use gpumem_core::{Backend, Result};
use gpumem_memory::memory::{Pool, PoolOptions};
use std::{fmt, sync::Arc};

/// What became of a trace in a pool with a limit.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Verdict {
    /// Most bytes that the pool could reserve; `None` for no limit.
    pub limit: Option<usize>,
    /// Requests that had failed in the trace, and were made again.
    pub retried: u64,
    /// How the replay went. What had failed in the trace is among its allocations or its failures.
    pub report: ReplayReport,
}

impl Verdict {
    /// Whether the pool had memory for every request.
    pub fn fits(&self) -> bool {
        self.report.failures == 0
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const GIB: f64 = (1u64 << 30) as f64;
        let Self { limit, retried, report } = self;
        let (used, reserved) = (report.peak_used, report.peak_reserved);
        let ratio = reserved as f64 / used.max(1) as f64;
        let verdict = if self.fits() { "fits" } else { "does not fit" };
        match limit {
            Some(limit) => write!(f, "{verdict} into {:.3} GiB: ", *limit as f64 / GIB)?,
            None => write!(f, "{verdict}: ")?,
        }
        write!(
            f,
            "peak in use {:.3} GiB, reserved {:.3} ({ratio:.3}); ",
            used as f64 / GIB,
            reserved as f64 / GIB
        )?;
        write!(f, "{} requests failed, {retried} had failed in the trace", report.failures)?;
        match &report.first_error {
            Some(error) => write!(f, "; first failure: {error}"),
            None => Ok(()),
        }
    }
}

impl<B: Backend> Device<B> {
    /// Makes the allocations and frees of a trace in a new [`Pool`] with these options for each kind of memory,
    /// in the order of the trace and by one thread. Requests that failed in the trace are made again, and freed at
    /// once if they are served. Uses are left out: memory is free when the trace frees it.
    ///
    /// `PoolOptions::device(256).max_size(limit)` are the options of a GPU. The host's own
    /// [`pool_options`](Self::pool_options) are smaller.
    ///
    /// A device of the host (`HostOptions::memory`) can have more memory than the machine: nothing touches it, so a
    /// system that overcommits memory, which is usual, need not have it. Where it does not, its refusals count as failures.
    ///
    /// # Errors
    /// As [`replay_memory`](Self::replay_memory). Requests that the pool cannot serve are counted instead.
    pub fn simulate_memory(&self, trace: &Trace, pool: PoolOptions) -> Result<Verdict> {
        // Before failures become allocations, whose bytes may add up to no number.
        self.check_replay(trace)?;
        let (trace, retried) = retrying(trace);
        let options = ReplayOptions { uses: false, work: 0, waits: false, threads: false };
        let report =
            self.replay_checked(&trace, options, |_| Ok(Arc::new(Pool::new(self.driver_memory(), pool))))?;
        Ok(Verdict { limit: pool.max_size, retried, report })
    }
}

/// The trace, in which each failure is an allocation that is freed at once, and how many there are.
fn retrying(trace: &Trace) -> (Trace, u64) {
    let mut retried = 0;
    let mut events = Vec::with_capacity(trace.events.len());
    for event in &trace.events {
        match event.what {
            TraceEventKind::Fail { memory } => {
                retried += 1;
                let steps = [TraceEventKind::Allocate { memory }, TraceEventKind::Free { memory }];
                events.extend(steps.map(|what| TraceEvent { what, ..*event }));
            }
            _ => events.push(*event),
        }
    }
    (Trace { events, ..trace.clone() }, retried)
}
