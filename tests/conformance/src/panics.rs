//! Panics inside cases: caught, told with their place, and not printed.

use std::{
    cell::{Cell, RefCell},
    panic::{self, AssertUnwindSafe},
    sync::Once,
    thread,
};

thread_local! {
    static IN_CASE: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Name of the runtime's threads for callbacks, in which some cases panic on purpose.
const CALLBACKS: &str = "gpumem callbacks";

/// Runs `body`; a panic in it becomes its text and place.
pub(crate) fn caught<R>(body: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let on_purpose = thread::current().name() == Some(CALLBACKS);
            if IN_CASE.get() {
                LAST.set(Some(info.to_string()));
            } else if !on_purpose {
                before(info);
            }
        }));
    });
    let outer = IN_CASE.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    IN_CASE.set(outer);
    result.map_err(|_| LAST.take().unwrap_or_else(|| "a panic without a text".to_owned()))
}
