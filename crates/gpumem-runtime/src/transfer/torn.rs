//! What a transfer leaves behind that failed half-way, and what one does away with that did not.

use super::{memory::Place, plan::Plan};
use crate::{layout::Pair, order::Timeline};
use gpumem_core::{Backend, Error, ErrorKind, Failure, POISONED, Space};
use std::sync::Arc;

/// Notes that a transfer failed after part of it had been enqueued: nobody knows what is in its destination. A caller who
/// has cancelled it knows.
#[cold]
pub(super) fn note_torn<B: Backend>(operation: &'static str, destination: Place<'_, B>, error: &Error) {
    if matches!(error.kind(), ErrorKind::Cancelled) {
        return;
    }
    let Place { memory, layout } = destination;
    let failure = Failure::new(operation, memory.core().name(), error.kind().to_string());
    // SAFETY: the extent is the allocation's own.
    unsafe { POISONED.poison(&memory.used(&layout.extent(), true), &Arc::new(failure)) };
}

/// Notes that every element of a place has been written, where the backend does not note it itself.
#[inline]
pub(super) fn note_written<B: Backend>(timeline: &Timeline<B>, destination: Place<'_, B>) {
    if POISONED.is_any() && !timeline.survives_faults() {
        clear(destination);
    }
}

#[cold]
fn clear<B: Backend>(destination: Place<'_, B>) {
    let Place { memory, layout } = destination;
    let Ok(pair) = Pair::new(layout, layout) else { return };
    if pair.len == 0 || pair.item == 0 {
        return;
    }
    let base = (memory.address(), Space::Host);
    let _ = Plan::new(&pair).run(base, base, |region| {
        let [row_pitch, slice_pitch] = region.destination.pitch;
        for (slice, row) in (0..region.slices).flat_map(|slice| (0..region.rows).map(move |row| (slice, row)))
        {
            let start = region.destination.address + (slice * slice_pitch + row * row_pitch) as u64;
            // SAFETY: the transfer has written every element of the place.
            unsafe { POISONED.clear(&(start..start + region.bytes as u64)) };
        }
        Ok::<_, std::convert::Infallible>(())
    });
}
