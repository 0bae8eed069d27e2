//! Errors that no call could return.

use gpumem_core::Error;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Most errors that are kept. Further ones push out the oldest.
const CAPACITY: usize = 64;

/// Errors of a `Drop` or of a callback, until `Device::take_errors` takes them. Never returned from an unrelated call.
#[derive(Debug, Default)]
pub struct ErrorQueue(Mutex<VecDeque<Error>>);

impl ErrorQueue {
    /// Adds an error; a full queue drops its oldest.
    pub fn push(&self, error: Error) {
        tracing::error!(%error, "no call could return this error");
        let mut queue = self.0.lock();
        if queue.len() >= CAPACITY {
            queue.pop_front();
        }
        queue.push_back(error);
    }

    /// Takes all errors out.
    pub fn take(&self) -> Vec<Error> {
        self.0.lock().drain(..).collect()
    }
}
