//! The order of a rank's calls.

use gpumem_core::Result;
use gpumem_runtime::internal::may_block;
use std::{
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
    thread,
    time::{Duration, Instant},
};

/// How long the body of a kernel or a callback waits for another thread's call. That one may wait for the body, where no
/// stream can: for work of a stream that another thread alone can use, or of another backend.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 5000 });

/// Held from the call of an operation until it is enqueued: two threads would reverse the order on the stream.
#[derive(Debug, Default)]
pub(crate) struct CallOrder(Mutex<()>);

impl CallOrder {
    /// Waits until no other thread of the rank is in a call.
    /// Returns [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) where this thread may not wait, and the other one
    /// takes long.
    pub(crate) fn lock(&self, operation: &'static str) -> Result<MutexGuard<'_, ()>> {
        let began = Instant::now();
        loop {
            match self.0.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(guard)) => return Ok(guard.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
            match may_block(operation) {
                Ok(()) => return Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner)),
                Err(error) if began.elapsed() > PATIENCE => return Err(error),
                Err(_) => thread::yield_now(),
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use gpumem_core::{ErrorKind, NonBlockingContext};

    #[test]
    fn a_callback_waits_for_a_call_and_not_for_ever() {
        let order = CallOrder::default();
        let in_callback = || {
            let context = NonBlockingContext { backend: "host", device: 0, stream: None };
            NonBlockingContext::run(Some(context), || order.lock("barrier").map(drop))
        };
        in_callback().unwrap();
        let held = order.lock("barrier").unwrap();
        let refused = in_callback().unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::BlockingInCallback), "{refused}");
        drop(held);
        in_callback().unwrap();
    }
}
