//! Code of the user that the library runs: a panic in it ends there.

use std::{
    any::Any,
    cell::Cell,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    thread::LocalKey,
};

/// Runs code of the user. A panic does not go on from here.
///
/// # Errors
/// Returns the text of the panic.
pub fn run<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| {
        let message = message(&*panic);
        discard(panic);
        message
    })
}

/// Says that this thread is inside some code of the user, until the result is dropped, also by a panic.
pub(crate) fn mark(mark: &'static LocalKey<Cell<bool>>) -> Marked {
    // Where the thread's variables are gone, it counts as inside.
    Marked { mark, outer: mark.try_with(|inside| inside.replace(true)).unwrap_or(true) }
}

/// Restores the earlier mark of the thread.
pub(crate) struct Marked {
    mark: &'static LocalKey<Cell<bool>>,
    outer: bool,
}

impl Drop for Marked {
    fn drop(&mut self) {
        let _ = self.mark.try_with(|inside| inside.set(self.outer));
    }
}

/// Drops a panic's payload. That runs code of the user again, which may panic in turn: the second payload is leaked.
fn discard(panic: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        mem::forget(another);
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a value that is no text".to_owned(),
    }
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
