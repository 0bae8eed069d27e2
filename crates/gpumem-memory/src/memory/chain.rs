//! Chains of resources: how far down a question goes.

use std::cell::Cell;

/// Most resources of one chain that are asked: one that says that it takes its memory from itself has no end.
pub(super) const DEEPEST: usize = 64;

thread_local! {
    /// How many resources of a chain this thread is passing a question down.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Restores the earlier depth.
struct Up(usize);

impl Drop for Up {
    fn drop(&mut self) {
        let _ = DEPTH.try_with(|depth| depth.set(self.0));
    }
}

/// Passes a question on to the next resource of a chain. `None` where the chain is longer than any.
pub(super) fn one_deeper<R>(ask: impl FnOnce() -> R) -> Option<R> {
    let depth = DEPTH.try_with(Cell::get).unwrap_or_default();
    (depth < DEEPEST).then(|| {
        let _up = Up(depth);
        let _ = DEPTH.try_with(|now| now.set(depth + 1));
        ask()
    })
}
