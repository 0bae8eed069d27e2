//! Code of the user that the library runs: a panic in it ends there.

use crate::NonBlockingContext;
use std::{
    any::Any,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Runs code of the user. A panic does not go on from here. Builds with debug assertions panic if this thread holds a lock
/// ([`note_lock`]): the code may ask for any.
///
/// # Errors
/// Returns the text of the panic.
pub fn run<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    #[cfg(all(debug_assertions, not(loom)))]
    locks::check();
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| {
        let message = message(&*panic).to_owned();
        discard(panic);
        message
    })
}

/// Notes that this thread has taken, or has released, a lock under which no code of the user may run. Only builds with debug
/// assertions count these locks.
#[inline(always)]
pub fn note_lock(is_taken: bool) {
    #[cfg(all(debug_assertions, not(loom)))]
    locks::note(is_taken);
    #[cfg(not(all(debug_assertions, not(loom))))]
    let _ = is_taken;
}

/// Runs work that a device would run on a thread of its own: the locks of this thread are not those of that work.
#[inline(always)]
pub fn as_another_thread<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(all(debug_assertions, not(loom)))]
    let _restored = locks::without_any();
    work()
}

#[cfg(all(debug_assertions, not(loom)))]
mod locks {
    use std::cell::Cell;

    thread_local! {
        static HELD: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn note(is_taken: bool) {
        let change = |held: usize| if is_taken { held + 1 } else { held.saturating_sub(1) };
        let _ = HELD.try_with(|held| held.set(change(held.get())));
    }

    /// Restores the number of locks at the end.
    pub(super) struct Restored(usize);

    pub(super) fn without_any() -> Restored {
        Restored(HELD.try_with(|held| held.replace(0)).unwrap_or_default())
    }

    impl Drop for Restored {
        fn drop(&mut self) {
            let _ = HELD.try_with(|held| held.set(self.0));
        }
    }

    #[allow(clippy::panic, reason = "the user's code could wait for ever; only builds for tests look")]
    pub(super) fn check() {
        let held = HELD.try_with(Cell::get).unwrap_or_default();
        // A second panic would end the process before the first is told.
        if held > 0 && !std::thread::panicking() {
            panic!("code of the user would run under {held} locks of the library");
        }
    }
}

/// Drops a panic's payload. That runs code of the user again, which may panic in turn: the second payload is leaked.
fn discard(panic: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        mem::forget(another);
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a value that is no text")
}

/// Sends an event to the subscriber of `tracing`, which is code of the user: a panic in it ends here, and it may not wait for a device.
/// The level, a colon, and what the macro of that level takes. The crate that uses it depends on `tracing`.
#[macro_export]
macro_rules! tell {
    ($level:ident: $($event:tt)*) => {
        $crate::user_code::tell(|| ::tracing::$level!($($event)*))
    };
}

/// Runs a subscriber of `tracing`. The thread may be one that others wait for: it serves callbacks, deadlines or transfers.
#[doc(hidden)]
pub fn tell(event: impl FnOnce()) {
    let nowhere = NonBlockingContext { backend: "", device: 0, stream: None };
    let context = NonBlockingContext::current().unwrap_or(nowhere);
    let _ = run(|| NonBlockingContext::run(Some(context), event));
}

#[cfg(test)]
mod tests {
    use super::run;
    use std::panic::panic_any;

    /// Panics when it is dropped, with a value that does so as often again.
    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 && !std::thread::panicking() {
                panic_any(Bomb(self.0 - 1));
            }
        }
    }

    #[test]
    #[cfg(all(debug_assertions, not(loom)))]
    fn no_code_runs_under_a_lock() {
        super::note_lock(true);
        let refused = std::panic::catch_unwind(|| run(|| 3));
        super::note_lock(false);
        assert!(refused.is_err());
        assert_eq!(run(|| 3), Ok(3));
        super::note_lock(true);
        assert_eq!(super::as_another_thread(|| run(|| 3)), Ok(3));
        assert!(std::panic::catch_unwind(|| run(|| 3)).is_err());
        super::note_lock(false);
    }

    #[test]
    #[cfg_attr(miri, ignore = "leaks values whose drop panics, on purpose")]
    fn panics_become_errors_with_their_text() {
        assert_eq!(run(|| 3), Ok(3));
        assert_eq!(run(|| panic!("said {}", "so")), Err::<(), _>("said so".to_owned()));
        assert_eq!(run(|| panic_any("a text")), Err::<(), _>("a text".to_owned()));
        for depth in 0..4 {
            assert_eq!(run(|| panic_any(Bomb(depth))), Err::<(), _>("a value that is no text".to_owned()));
        }
    }
}
