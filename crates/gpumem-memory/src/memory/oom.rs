//! Out of memory: the attempts before the error, and the error's report.

use super::{
    ResourceReport,
    reclaim::{self, Exhausted, ROUNDS},
    resource::{BlockOrigin, MemoryBlock, MemoryRequest, Trim, wrong_generation},
    serving::{Serving, is_inside_resource},
};
use crate::memory::DeviceCore;
use gpumem_core::{Backend, Error, ErrorKind, MemoryPressure, PoolPressure, Result, SpillPressure};
use std::{sync::Arc, time::Duration};

/// Most names in an error.
const NAMES: usize = 5;

/// Keeps everything: makes finished blocks idle and joins them.
const SETTLE: Trim = Trim { keep: usize::MAX, wait: true, unused_for: Duration::ZERO };

/// Handles a request that `resource` has refused. When memory is out, does these steps and repeats the request after
/// each:
///
/// 1. frees dropped memory that is not in use,
/// 2. asks each hook, and again as long as one of them has freed something, at most 16 times,
/// 3. waits for memory in flight,
/// 4. returns idle memory of pools to the driver,
/// 5. waits for memory that the driver frees with a delay.
///
/// The hooks come before the waits: what they drop goes to the pool with its pending uses, and serves the request without a wait of
/// the host. Inside `defer_cleanup`, in a callback, and inside a memory resource, nothing is freed or waited for and no hook asked,
/// so there is no second try.
///
/// # Errors
/// Returns the error of the resource, with the operation of the request.
#[cold]
pub fn retry<B: Backend>(
    core: &Arc<DeviceCore<B>>,
    resource: &Serving<'_, B>,
    request: &MemoryRequest<'_, B>,
    error: Error,
) -> Result<MemoryBlock<B>> {
    let outcome = match error.is_out_of_memory() {
        true => reclaim_and_retry(core, resource, request, error),
        false => Err(error),
    };
    // A resource of the user's may say that the device is lost. The driver's error has been noted where it came from.
    outcome.map_err(|error| core.place(error).in_operation(request.operation))
}

fn reclaim_and_retry<B: Backend>(
    core: &Arc<DeviceCore<B>>,
    resource: &Serving<'_, B>,
    request: &MemoryRequest<'_, B>,
    mut error: Error,
) -> Result<MemoryBlock<B>> {
    let deferred = core.deferred_frees.is_deferred();
    // Inside a resource, giving back would call that resource again.
    let may_give_back = !deferred && !is_inside_resource();
    // In a callback a wait would be for the thread that it runs on.
    let may_wait = may_give_back && crate::blocking::may_block(request.operation).is_ok();
    if may_wait {
        // What is freed here serves the request, where a limit above a pool has refused it: the pool takes no more for it.
        let again = request.in_flight();
        let repeat = |error: &mut Error| match resource.allocate(&again) {
            Err(again) if again.is_out_of_memory() => {
                *error = again;
                None
            }
            outcome => Some(outcome),
        };
        // From the cheapest to the dearest; the request is repeated after each.
        core.deferred_frees.flush(core);
        if let Some(outcome) = repeat(&mut error) {
            return outcome;
        }
        for _ in 0..ROUNDS {
            let mut has_freed = false;
            for hook in core.reclaim.to_ask() {
                let need = Exhausted::new(request.bytes, request.kind, request.operation, &error);
                if !reclaim::ask(core, &hook, &need) {
                    continue;
                }
                has_freed = true;
                core.deferred_frees.flush(core);
                if let Some(outcome) = repeat(&mut error) {
                    return outcome;
                }
            }
            if !has_freed {
                break;
            }
        }
        for how in [SETTLE, Trim::UNUSED] {
            core.trim_all(how);
            if let Some(outcome) = repeat(&mut error) {
                return outcome;
            }
        }
        let mut outcome = None;
        // Only now: nothing else is left to be freed, and each growth may be enough.
        core.late.wait(core, || {
            outcome = repeat(&mut error);
            outcome.is_some()
        });
        if let Some(outcome) = outcome {
            return outcome;
        }
    }
    Err(explain(core, request, &error, deferred))
}

/// Returns the error with the holders of the memory.
fn explain<B: Backend>(
    core: &DeviceCore<B>,
    request: &MemoryRequest<'_, B>,
    error: &Error,
    deferred: bool,
) -> Error {
    let &ErrorKind::OutOfMemory { kind, free, total, .. } = error.kind() else { return error.clone() };
    let resources: Vec<PoolPressure> = core
        .memory
        .in_use()
        .map(|(kind, resource)| {
            let ResourceReport { resource, statistics } = resource.report();
            PoolPressure {
                kind: kind.name(),
                resource,
                reserved: statistics.reserved,
                allocated: statistics.allocated,
                in_flight: statistics.in_flight,
                largest_free: statistics.largest_free,
            }
        })
        .collect();
    let (pending_items, pending_bytes) = core.deferred_frees.pending_frees();
    let holders = core.names.holders().into_iter().take(NAMES).map(|holder| (holder.name, holder.bytes));
    let holders = holders.collect();
    // An array that is counted may end here, and inside a resource of the user's its memory would go back to that one.
    let spilling = if is_inside_resource() { SpillPressure::default() } else { core.reclaim.spilling() };
    let pressure = MemoryPressure { deferred, pending_items, pending_bytes, resources, holders, spilling };
    // The caller's request, and not the piece that a pool has tried to get for it.
    let requested = request.bytes;
    let kind = ErrorKind::OutOfMemory { requested, kind, free, total, pressure: Some(Box::new(pressure)) };
    core.error(request.operation, kind)
}

/// Checks whether a resource has allocated the requested memory, of this device as it is now. A user's resource may be
/// wrong.
#[inline]
pub fn is_fit<B: Backend>(block: &MemoryBlock<B>, request: &MemoryRequest<'_, B>) -> bool {
    let is_seen = request.kind.is_host_accessible();
    let aligned = |address: u64| address & (request.align as u64 - 1) == 0;
    let host = block.host().map(|host| host.as_ptr() as u64);
    let BlockOrigin { generation, kind, .. } = block.origin();
    block.bytes() >= request.bytes
        && generation == request.core.generation()
        && kind == request.kind
        && host.is_some() == is_seen
        && host.is_none_or(aligned)
        && (is_seen || aligned(block.address()))
}

/// Returns what is wrong with a block that does not fit.
#[cold]
pub fn misfit<B: Backend>(block: &MemoryBlock<B>, request: &MemoryRequest<'_, B>) -> Error {
    let found = block.origin().generation;
    let why = "the memory resource has allocated memory that does not match the request";
    let kind = match found == request.core.generation() {
        true => ErrorKind::InvalidArgument { why },
        false => wrong_generation(request.core, found),
    };
    request.core.error(request.operation, kind)
}
