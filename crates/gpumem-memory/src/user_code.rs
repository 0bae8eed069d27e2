//! Code of the user that the library runs: a panic in it ends there.

use crate::sync::threads::LocalKey;
pub use gpumem_core::user_code::run;
use std::cell::Cell;

/// Declares a mark of a thread: see [`mark`]. A thread of loom is none of the system's.
#[doc(hidden)]
#[macro_export]
macro_rules! thread_mark {
    ($(#[$attribute:meta])* $name:ident) => {
        #[cfg(not(loom))]
        ::std::thread_local! {
            $(#[$attribute])*
            static $name: ::std::cell::Cell<bool> = const { ::std::cell::Cell::new(false) };
        }
        #[cfg(loom)]
        ::loom::thread_local! {
            $(#[$attribute])*
            static $name: ::std::cell::Cell<bool> = ::std::cell::Cell::new(false);
        }
    };
}

/// Says that this thread is inside some code of the user, until the result is dropped, also by a panic.
pub fn mark(mark: &'static LocalKey<Cell<bool>>) -> Marked {
    // Where the thread's variables are gone, it counts as inside.
    Marked { mark, outer: mark.try_with(|inside| inside.replace(true)).unwrap_or(true) }
}

/// Restores the earlier mark of the thread.
#[derive(Debug)]
pub struct Marked {
    mark: &'static LocalKey<Cell<bool>>,
    outer: bool,
}

impl Drop for Marked {
    fn drop(&mut self) {
        let _ = self.mark.try_with(|inside| inside.set(self.outer));
    }
}
