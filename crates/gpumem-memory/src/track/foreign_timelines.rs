//! A free list of timelines for foreign streams.
//!
//! An import needs a timeline for one submission index: the work on the foreign stream at that moment. The timeline is
//! released with the import, and its next submission index may belong to another stream. That is sound: earlier indexes
//! are not queried again, and a wait that was enqueued for one waits for the event as it was recorded then. So imports
//! make neither timelines nor events, once there are some.

use super::{DeviceContext, Timeline};
use crate::sync::{Rank, ShortMutex};
use gpumem_core::Backend;
use std::sync::Arc;

/// Most that are kept: more than the imports of one step of a program.
const MOST: usize = 32;

/// Timelines that have ended, and that nothing refers to. They refer to the device, which must
/// [forget](Self::forget) them.
#[derive(Debug)]
pub struct ForeignTimelinePool<B: Backend>(ShortMutex<Vec<Arc<Timeline<B>>>>);

impl<B: Backend> ForeignTimelinePool<B> {
    pub(crate) fn new() -> Self {
        Self(ShortMutex::new(Rank::ForeignTimelines, Vec::new()))
    }

    /// One that may be used again.
    pub(crate) fn take(&self, context: &DeviceContext<B>) -> Option<Arc<Timeline<B>>> {
        // Unlocked before its queue is locked by the caller.
        let taken = self.0.lock().pop()?;
        (taken.generation == context.generation()).then_some(taken)
    }

    /// Keeps a timeline that has ended, if it has no other reference.
    pub fn keep(&self, mut timeline: Arc<Timeline<B>>) {
        if Arc::get_mut(&mut timeline).is_none_or(|timeline| !timeline.is_foreign_snapshot()) {
            return;
        }
        // Declared after the parameter: a timeline that finds no room is dropped without the lock.
        let mut kept = self.0.lock();
        if kept.len() < MOST {
            kept.push(timeline);
        }
    }

    pub(crate) fn forget(&self) {
        // Dropped without the lock: they give their events back.
        let all = std::mem::take(&mut *self.0.lock());
        drop(all);
    }
}
