//! The program of a kernel, and who has launched it last.

use crate::{
    memory::{Allocation, Counted},
    order::{Timeline, UseLog},
};
use gpumem_core::Backend;
use parking_lot::Mutex;
use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// Streams whose last launch is noted without a lock.
const PLACES: usize = 4;

/// A loaded program. It is unloaded when its last launch is done, by the deferred queue.
///
/// Nothing conflicts with a launch but the unloading, so launches are not looked up when work is submitted, as uses of
/// arrays are. The ticket of the last one on each stream is all that has to be known, and it is written down under that
/// stream's lock, which a launch holds anyway.
pub(super) struct Program<B: Backend> {
    /// Owns the program as an array owns its memory.
    memory: Counted<Allocation<B>>,
    places: [Place<B>; PLACES],
    /// What finds no place.
    others: Mutex<UseLog<Arc<Timeline<B>>>>,
}

/// The last launch on one stream.
struct Place<B: Backend> {
    timeline: OnceLock<Arc<Timeline<B>>>,
    ticket: AtomicU64,
}

impl<B: Backend> Place<B> {
    const fn free() -> Self {
        Self { timeline: OnceLock::new(), ticket: AtomicU64::new(0) }
    }
}

impl<B: Backend> Program<B> {
    pub(super) fn new(memory: Counted<Allocation<B>>) -> Self {
        Self { memory, places: [const { Place::free() }; PLACES], others: Mutex::new(UseLog::new()) }
    }

    #[inline]
    pub(super) fn memory(&self) -> &Allocation<B> {
        &self.memory
    }

    /// Notes a launch. For whoever holds the lock under which the timeline gives out its tickets.
    #[inline]
    pub(super) fn launched(&self, timeline: &Arc<Timeline<B>>, ticket: u64) {
        for place in &self.places {
            if Arc::ptr_eq(place.timeline.get_or_init(|| timeline.clone()), timeline) {
                // Tickets rise, and those of one timeline are noted one after the other.
                place.ticket.store(ticket, Ordering::Release);
                return;
            }
        }
        self.launched_elsewhere(timeline, ticket);
    }

    #[cold]
    fn launched_elsewhere(&self, timeline: &Arc<Timeline<B>>, ticket: u64) {
        let mut others = self.others.lock();
        others.tidy();
        others.note_others(&(0..1), false, timeline, ticket);
    }
}

impl<B: Backend> Drop for Program<B> {
    fn drop(&mut self) {
        if !self.memory.core().origin.is_usable() {
            // In a forked child somebody else may hold the lock for ever.
            return;
        }
        let mut log = self.memory.log();
        for Place { timeline, ticket } in &self.places {
            if let Some(timeline) = timeline.get() {
                log.note_others(&(0..1), false, timeline, ticket.load(Ordering::Acquire));
            }
        }
        for entry in self.others.get_mut().all() {
            log.note_others(&(0..1), false, &entry.by, entry.ticket);
        }
    }
}

impl<B: Backend> fmt::Debug for Program<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Stream};
    use gpumem_host::Host;

    #[test]
    fn the_last_launch_on_every_stream_is_known_when_the_program_goes() {
        let device: Device<Host> = Device::open("host").unwrap();
        let streams: Vec<Stream<Host>> = (0..2 * PLACES).map(|_| device.stream().unwrap()).collect();
        let program = Program::new(Allocation::program(&device, Box::new(())));
        let memory = program.memory.clone();
        for ticket in 1..=3 {
            streams.iter().for_each(|stream| program.launched(stream.timeline(), ticket));
        }
        program.launched(streams[1].timeline(), 9);
        program.launched(streams[PLACES + 1].timeline(), 9);
        assert_eq!(memory.log().all().count(), 0, "nothing but places has been written");
        drop(program);
        let log = memory.log();
        assert_eq!(log.all().count(), streams.len());
        for (number, stream) in streams.iter().enumerate() {
            let entry = log.all().find(|entry| entry.by.id() == stream.timeline().id()).unwrap();
            assert_eq!(entry.ticket, if number % PLACES == 1 { 9 } else { 3 });
        }
    }
}
