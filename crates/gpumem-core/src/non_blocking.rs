//! Code of the user that runs in the middle of a device's work, where a wait for a device might never end.

use std::cell::Cell;

/// Code that a thread runs for a device: a callback, or a part of a kernel's host body. The runtime refuses blocking
/// calls from it, before they enqueue anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NonBlockingContext {
    /// Name of the device's backend.
    pub backend: &'static str,
    /// Number of the device.
    pub device: usize,
    /// For a kernel, the backend's number of the stream that it runs on.
    pub stream: Option<u64>,
}

thread_local! {
    static CURRENT: Cell<Option<NonBlockingContext>> = const { Cell::new(None) };
}

/// Restores the thread's context when it is dropped.
struct Restore(Option<NonBlockingContext>);

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|current| current.set(self.0));
    }
}

impl NonBlockingContext {
    /// Returns the context of this thread.
    #[inline]
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Cell::get).unwrap_or_default()
    }

    /// Runs `work` in a context, and restores the thread's own afterwards, also if `work` panics. A backend that spreads a
    /// kernel over several threads passes the context on to each. With `None` the thread stays in its own: no code leaves the
    /// context that it was called in.
    #[inline]
    pub fn run<R>(context: Option<Self>, work: impl FnOnce() -> R) -> R {
        let enter = |current: &Cell<Option<Self>>| current.replace(context.or(current.get()));
        let _restore = Restore(CURRENT.try_with(enter).unwrap_or_default());
        work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn contexts_nest_and_survive_panics() {
        let context = |device| Some(NonBlockingContext { backend: "test", device, stream: None });
        NonBlockingContext::run(context(1), || {
            assert_eq!(NonBlockingContext::current(), context(1));
            let unwound = catch_unwind(AssertUnwindSafe(|| {
                NonBlockingContext::run(context(2), || {
                    assert_eq!(NonBlockingContext::current(), context(2));
                    std::panic::resume_unwind(Box::new(()));
                });
            }));
            assert!(unwound.is_err());
            assert_eq!(NonBlockingContext::current(), context(1));
            NonBlockingContext::run(None, || assert_eq!(NonBlockingContext::current(), context(1)));
            assert_eq!(NonBlockingContext::current(), context(1));
        });
        assert_eq!(NonBlockingContext::current(), None);
    }
}
