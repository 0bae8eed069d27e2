//! The stack of a thread that waits, and may run kernels meanwhile.

use gpumem_core::HostFunction;
use std::ops::Range;

/// Bytes of the stack that the caller, the engine and the kernel's own frames may use before its variables.
const FRAMES: usize = 1 << 20;

/// Whether the calling thread has as much stack left as a worker has. A kernel that fits into a worker would otherwise overflow the
/// stack of the thread that waits for it, which ends the process: threads of Rust have two MiB.
pub(super) fn has_room() -> bool {
    let here = 0u8;
    has_room_at((&raw const here).addr(), &own())
}

/// Whether there is so much below an address of the stack. Code that has left the stack of its thread, as a coroutine does, is on
/// one whose end is not known.
fn has_room_at(here: usize, stack: &Range<usize>) -> bool {
    stack.contains(&here) && here - stack.start >= HostFunction::STACK_BYTES - FRAMES
}

/// The thread's stack; empty where the system does not say.
#[cfg(all(target_os = "linux", not(miri)))]
fn own() -> Range<usize> {
    use std::cell::Cell;

    thread_local! {
        /// Asked once: of a main thread, the answer is read from a file.
        static STACK: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
    }

    fn ask() -> Option<(usize, usize)> {
        let mut attributes = std::mem::MaybeUninit::uninit();
        // SAFETY: the thread is the calling one, and there is room for its attributes.
        if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
            return None;
        }
        let (mut lowest, mut bytes) = (std::ptr::null_mut(), 0);
        // SAFETY: the call above has written the attributes, and the results are variables.
        let failed =
            unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut bytes) };
        // SAFETY: as above; nothing uses them any more.
        unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
        (failed == 0).then(|| (lowest.addr(), bytes))
    }

    let (lowest, bytes) = STACK.get().unwrap_or_else(|| {
        let stack = ask().unwrap_or_default();
        STACK.set(Some(stack));
        stack
    });
    lowest..lowest.saturating_add(bytes)
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn own() -> Range<usize> {
    0..0
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;
    use std::thread::Builder;

    #[test]
    fn a_thread_has_room_if_its_stack_is_as_large_as_that_of_a_worker() {
        for (bytes, room) in [(2 << 20, false), (HostFunction::STACK_BYTES, true), (64 << 20, true)] {
            let found = Builder::new().stack_size(bytes).spawn(has_room).unwrap().join().unwrap();
            assert_eq!(found, room, "{bytes}");
        }
    }

    #[test]
    fn a_thread_that_has_left_its_stack_has_no_room() {
        let (bytes, here) = (64 << 20, 0u8);
        let here = (&raw const here).addr();
        assert!(has_room_at(here, &(here - bytes..here + bytes)));
        assert!(!has_room_at(here, &(here + 1..here + bytes)), "it is below the stack");
        assert!(!has_room_at(here, &(here - bytes..here)), "it is above the stack");
        assert!(!has_room_at(here, &(0..0)), "the system does not say");
    }
}
