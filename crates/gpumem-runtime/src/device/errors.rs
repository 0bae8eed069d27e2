//! Errors that no call could return.

use gpumem_core::Error;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Most errors that are kept. Further ones push out the oldest.
const CAPACITY: usize = 64;

/// What failed in a `Drop` or in a callback, until [`Device::take_errors`](crate::Device::take_errors) asks for it.
/// Never returned from an unrelated call.
#[derive(Debug, Default)]
pub(crate) struct ErrorQueue(Mutex<VecDeque<Error>>);

impl ErrorQueue {
    pub(crate) fn push(&self, error: Error) {
        tracing::error!(%error, "no call could return this error");
        let mut queue = self.0.lock();
        if queue.len() >= CAPACITY {
            queue.pop_front();
        }
        queue.push_back(error);
    }

    pub(crate) fn take(&self) -> Vec<Error> {
        self.0.lock().drain(..).collect()
    }
}
