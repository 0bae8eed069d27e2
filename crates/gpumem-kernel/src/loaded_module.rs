//! The program of a kernel, and the last launch on each stream.

use gpumem_core::Backend;
use gpumem_runtime::internal::{AccessLog, Allocation, AllocationRef, Timeline};
use parking_lot::Mutex;
use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// Streams whose last launch is noted without a lock.
const LAST_LAUNCHES: usize = 4;

/// A loaded program. It is unloaded when its last launch is done, by the deferred queue.
///
/// Nothing conflicts with a launch but the unloading, so launches are not looked up when work is submitted, as uses of
/// arrays are. The submission index of the last one on each stream is all that has to be known, and it is written down
/// under that stream's lock, which a launch holds anyway.
pub(super) struct LoadedModule<B: Backend> {
    /// Owns the program as an array owns its memory.
    memory: AllocationRef<B>,
    last_launches: [LastLaunch<B>; LAST_LAUNCHES],
    /// Streams for which the slots have no room.
    others: Mutex<AccessLog<Arc<Timeline<B>>>>,
}

/// The last launch on one stream.
struct LastLaunch<B: Backend> {
    timeline: OnceLock<Arc<Timeline<B>>>,
    submission: AtomicU64,
}

impl<B: Backend> LastLaunch<B> {
    const fn free() -> Self {
        Self { timeline: OnceLock::new(), submission: AtomicU64::new(0) }
    }
}

impl<B: Backend> LoadedModule<B> {
    pub(super) fn new(memory: AllocationRef<B>) -> Self {
        Self {
            memory,
            last_launches: [const { LastLaunch::free() }; LAST_LAUNCHES],
            others: Mutex::new(AccessLog::new()),
        }
    }

    #[inline]
    pub(super) fn memory(&self) -> &Allocation<B> {
        &self.memory
    }

    /// Notes a launch. The caller holds the lock under which the timeline gives out submission indexes.
    #[inline]
    pub(super) fn record_launch(&self, timeline: &Arc<Timeline<B>>, submission: u64) {
        for place in &self.last_launches {
            if Arc::ptr_eq(place.timeline.get_or_init(|| timeline.clone()), timeline) {
                // Submission indexes rise, and those of one timeline are noted one after the other.
                place.submission.store(submission, Ordering::Release);
                return;
            }
        }
        self.launched_elsewhere(timeline, submission);
    }

    #[cold]
    fn launched_elsewhere(&self, timeline: &Arc<Timeline<B>>, submission: u64) {
        let mut others = self.others.lock();
        others.compact();
        others.note_others(&(0..1), false, timeline, submission);
    }
}

impl<B: Backend> Drop for LoadedModule<B> {
    fn drop(&mut self) {
        if !self.memory.core().origin.is_valid() {
            // In a forked child the lock may be held for ever by a thread of the parent.
            return;
        }
        let mut log = self.memory.log();
        for LastLaunch { timeline, submission } in &self.last_launches {
            if let Some(timeline) = timeline.get() {
                log.note_others(&(0..1), false, timeline, submission.load(Ordering::Acquire));
            }
        }
        for entry in self.others.get_mut().all() {
            log.note_others(&(0..1), false, &entry.by, entry.submission);
        }
    }
}

impl<B: Backend> fmt::Debug for LoadedModule<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_host::Host;
    use gpumem_runtime::{Device, Stream};

    #[test]
    fn dropping_a_program_logs_the_last_launch_of_every_stream() {
        let device: Device<Host> = Device::open("host").unwrap();
        let streams: Vec<Stream<Host>> = (0..2 * LAST_LAUNCHES).map(|_| device.stream().unwrap()).collect();
        let program = LoadedModule::new(Allocation::program(crate::KEY, &device, Box::new(()), true));
        let memory = program.memory.clone();
        for submission in 1..=3 {
            streams
                .iter()
                .for_each(|stream| program.record_launch(stream.timeline_by(crate::KEY), submission));
        }
        program.record_launch(streams[1].timeline_by(crate::KEY), 9);
        program.record_launch(streams[LAST_LAUNCHES + 1].timeline_by(crate::KEY), 9);
        assert_eq!(memory.log().all().count(), 0, "nothing but places has been written");
        drop(program);
        let log = memory.log();
        assert_eq!(log.all().count(), streams.len());
        for (number, stream) in streams.iter().enumerate() {
            let entry =
                log.all().find(|entry| Arc::ptr_eq(&entry.by, stream.timeline_by(crate::KEY))).unwrap();
            assert_eq!(entry.submission, if number % LAST_LAUNCHES == 1 { 9 } else { 3 });
        }
    }
}
