//! Calls that ROCm 5 must not get at the same time.

use gpumem_sys::hip::Version;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// How long a query may wait for calls that enqueue, which take microseconds.
const MOST_FOR_A_QUERY: Duration = Duration::from_millis(5);

/// Calls that enqueue hold the lock shared; calls that wait for the whole device, as freeing memory does, hold it
/// alone. Streams are waited for by an event. A query makes HIP enqueue a marker of its own: it holds the lock alone too, or is
/// not made.
///
/// If one thread waits for a stream, or frees memory, which waits for all of them, while another one enqueues there,
/// HIP of ROCm 5.2 now and then reports the stream as done before its last copy has arrived. The waiting call takes the
/// command that is being enqueued for a finished one and forgets it, so the next wait finds nothing to wait for. Four
/// threads with short copies on one stream saw it about once in a thousand rounds on the simulated GPU. Reading the
/// copy's destination would be a race. The price: while a call frees memory, other threads cannot enqueue on the device. With newer
/// versions the lock is not taken, nor do other libraries take it.
#[derive(Debug)]
pub(crate) struct EnqueueLock(Option<RwLock<()>>);

/// A turn that is shared, where turns are needed.
pub(crate) type Shared<'a> = Option<RwLockReadGuard<'a, ()>>;

/// A turn alone, where turns are needed.
pub(crate) type Alone<'a> = Option<RwLockWriteGuard<'a, ()>>;

impl EnqueueLock {
    pub(crate) fn new(version: Version) -> Self {
        Self((version.major() <= 5).then(|| RwLock::new(())))
    }

    pub(crate) fn are_needed(&self) -> bool {
        self.0.is_some()
    }

    /// For a call that enqueues.
    #[inline]
    pub(crate) fn shared(&self) -> Shared<'_> {
        self.0.as_ref().map(RwLock::read)
    }

    /// For calls that wait for the whole device.
    pub(crate) fn alone(&self) -> Alone<'_> {
        self.0.as_ref().map(RwLock::write)
    }

    /// For a query, which never blocks: `None` while a call waits for the whole device, so that the answer is not known.
    pub(crate) fn for_query(&self) -> Option<Alone<'_>> {
        match &self.0 {
            None => Some(None),
            Some(lock) => lock.try_write_for(MOST_FOR_A_QUERY).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rocm_5_takes_the_enqueue_lock() {
        let old = EnqueueLock::new(Version::new(50_221_153));
        let first = old.shared();
        assert!(first.is_some() && old.0.as_ref().is_some_and(|lock| lock.try_read().is_some()));
        drop(first);
        let freeing = old.alone();
        assert!(freeing.is_some() && old.0.as_ref().is_some_and(|lock| lock.try_read().is_none()));
        assert!(old.for_query().is_none(), "a query does not wait for the device");
        drop(freeing);
        let query = old.for_query();
        assert!(query.is_some() && old.0.as_ref().is_some_and(|lock| lock.try_read().is_none()));
        drop(query);
        let new = EnqueueLock::new(Version::new(60_443_484));
        assert!(old.are_needed() && !new.are_needed());
        assert!(new.alone().is_none() && new.shared().is_none() && matches!(new.for_query(), Some(None)));
    }
}
