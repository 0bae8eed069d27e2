//! What follows when a transfer ends: poison for the destination of one that failed half-way, no more poison after one that
//! succeeded, and the end of the process where borrowed memory may still be in use.

use super::{ArrayRef, region_loop::RegionLoop};
use crate::layout::CopyNest;
use gpumem_core::{Backend, Error, ErrorKind, POISONED, Result, Space, process::stay_while_exiting};
use gpumem_memory::track::{DeviceContext, Timeline};
use std::{convert::Infallible, ops::Range, sync::Arc};

/// [`Timeline::note_torn`], for the destination of a transfer.
#[cold]
pub(crate) fn note_torn<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    destination: ArrayRef<'_, B>,
    error: &Error,
) {
    timeline.note_torn(operation, &[destination.access(true)], error);
}

/// Notes at its end that a destination is torn, if its transfer has failed or unwound by then.
pub(super) struct NoteTorn<'a, B: Backend, F: Fn() -> Option<Error>> {
    /// The stream of the transfer.
    pub(super) timeline: &'a Arc<Timeline<B>>,
    pub(super) operation: &'static str,
    /// None of a download, and none that is dropped after a failure.
    pub(super) destination: Option<ArrayRef<'a, B>>,
    /// The failure of a transfer that has begun.
    pub(super) failure: F,
}

impl<B: Backend, F: Fn() -> Option<Error>> Drop for NoteTorn<'_, B, F> {
    fn drop(&mut self) {
        if let Some(destination) = self.destination
            && let Some(error) = (self.failure)()
        {
            note_torn(self.timeline, self.operation, destination, &error);
        }
    }
}

/// The failure of a transfer of which a thread unwinds, or the caller's function: its part has not been moved.
pub(super) fn unwound<B: Backend>(context: &DeviceContext<B>, operation: &'static str) -> Error {
    let what = "a thread of the transfer panicked".to_owned();
    context.error(operation, ErrorKind::AsynchronousFault { what })
}

/// Notes that every element of a place has been written, where the backend does not note it itself.
#[inline]
pub(super) fn note_written<B: Backend>(timeline: &Timeline<B>, destination: ArrayRef<'_, B>) {
    if POISONED.is_any() && !timeline.survives_faults() {
        clear(destination);
    }
}

/// As [`note_written`], of a copy on a device. If failed work was to write both sides, and is found out while the copy is enqueued, the
/// copy makes nothing good.
#[inline]
pub(super) fn note_copied<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
) {
    if POISONED.is_any() && !timeline.survives_faults() {
        clear(destination);
        // After that: what failed work was to write is poisoned in its order, and it reads nothing that it writes later.
        if let Err(error) = source.memory.check_written(operation, &source.access(false).extent) {
            timeline.poison(operation, &[destination.access(true)], &error);
        }
    }
}

#[cold]
fn clear<B: Backend>(destination: ArrayRef<'_, B>) {
    let _ = each_run(destination, |run| {
        // SAFETY: the transfer has written every element of the place.
        unsafe { POISONED.clear(&run) };
        Ok::<_, Infallible>(())
    });
}

/// Notes that the elements of a place are the caller's own, who sees them as they are: not the gaps between them, which may be
/// another's.
pub(crate) fn note_returned<B: Backend>(place: ArrayRef<'_, B>) {
    if POISONED.is_any() {
        clear(place);
        place.memory.forget_poison();
    }
}

/// Checks as [`check_written`](gpumem_memory::track::Tracked::check_written) does, looking at the elements alone and not at the gaps between
/// them.
pub(crate) fn check_elements_written<B: Backend>(
    operation: &'static str,
    place: ArrayRef<'_, B>,
) -> Result<()> {
    // What was aborted is poisoned by this, before the table is looked at.
    place.memory.check_written(operation, &(0..0))?;
    if !POISONED.is_any() {
        return Ok(());
    }
    let base = place.memory.address();
    each_run(place, |run| {
        place.memory.check_written(operation, &((run.start - base) as usize..(run.end - base) as usize))
    })
}

/// Calls `found` with the addresses of the elements, those of neighbours in one piece, until it fails.
fn each_run<B: Backend, E>(
    place: ArrayRef<'_, B>,
    mut found: impl FnMut(Range<u64>) -> Result<(), E>,
) -> Result<(), E> {
    let ArrayRef { memory, layout } = place;
    let Ok(nest) = CopyNest::new(layout, layout) else { return Ok(()) };
    if nest.len == 0 || nest.item == 0 {
        return Ok(());
    }
    let base = (memory.address(), Space::Host);
    RegionLoop::new(&nest).run(base, base, |region| {
        let [row_pitch, slice_pitch] = region.destination.pitch;
        let mut rows = (0..region.slices).flat_map(|slice| (0..region.rows).map(move |row| (slice, row)));
        rows.try_for_each(|(slice, row)| {
            let start = region.destination.address + (slice * slice_pitch + row * row_pitch) as u64;
            found(start..start + region.bytes as u64)
        })
    })
}

/// Checks that the uses of memory can be waited for which is to go back to its owner. While the process ends they cannot, and other
/// threads run on: this one stays here.
/// Returns [`ForkedChild`](ErrorKind::ForkedChild) in a forked child, whose memory no device uses.
pub(crate) fn check_release<B: Backend>(context: &DeviceContext<B>, operation: &'static str) -> Result<()> {
    context.check_process(operation).inspect_err(stay_if_exiting)
}

fn stay_if_exiting(error: &Error) {
    if matches!(error.kind(), ErrorKind::Exiting) {
        stay_while_exiting();
    }
}

/// Law 3, the one exception to law 7: memory that a device may still be using must not go back to its owner.
pub fn abort(operation: &'static str, result: Result<()>) -> ! {
    let _ = result.as_ref().inspect_err(|error| stay_if_exiting(error));
    let reason = result.err().map_or_else(String::new, |error| error.to_string());
    eprintln!(
        "gpumem: {operation}: neither the stream nor the device could be waited for ({reason}); borrowed memory may \
         still be in use, so the process ends here"
    );
    std::process::abort()
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;
    use crate::Device;
    use gpumem_host::Host;

    #[test]
    fn placeholder_memory_is_not_poisoned() {
        let device = Device::<Host>::open("host").unwrap();
        let body = |stream: &crate::Stream<Host>, ()| {
            let array = stream.device_array::<u32, _>(8)?;
            let error = device.core().error("test", ErrorKind::NotReady);
            note_torn(stream.timeline(), "test", array.place(), &error);
            assert!(!array.place().memory.is_poisoned(&(0..32)));
            Ok(())
        };
        drop(device.record((), body).unwrap());
    }
}
