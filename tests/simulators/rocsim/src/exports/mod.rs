//! The functions that AMD's runtime calls.

mod events;
mod memory;
mod queues;
mod rocsim;
mod topology;
mod unsupported;

use crate::abi::Status;
use std::sync::{
    Once,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

/// Defines functions under AMD's names.
///
/// With symbol versions the name is a label in assembly that jumps to the function: names that rustc exports itself
/// cannot be given a version, because its own version script comes first.
macro_rules! export {
    ($($(#[$meta:meta])* $symbol:literal =>
        unsafe fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty $body:block)*) => {$(
        $(#[$meta])*
        #[cfg_attr(not(rocsim_versioned), unsafe(export_name = $symbol))]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $result $body

        #[cfg(rocsim_versioned)]
        core::arch::global_asm!(
            concat!(".pushsection .text.", $symbol, ",\"ax\",@progbits"),
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ",@function"),
            concat!($symbol, ":"),
            "jmp {body}",
            concat!(".size ", $symbol, ", . - ", $symbol),
            ".popsection",
            body = sym $name,
        );
    )*};
}
use export;

static FORKED: AtomicBool = AtomicBool::new(false);
static OPEN: AtomicU32 = AtomicU32::new(0);
static WAS_OPENED: AtomicBool = AtomicBool::new(false);

/// Whether the runtime has ever opened the driver.
pub(crate) fn was_opened() -> bool {
    WAS_OPENED.load(Ordering::Relaxed)
}

/// Whether this process is a forked child of the one that has used the library: its engines are not here.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Notes that the runtime opens the driver.
pub(crate) fn note_opened() {
    watch_forks();
    WAS_OPENED.store(true, Ordering::Relaxed);
}

fn watch_forks() {
    static WATCH: Once = Once::new();
    extern "C" fn forked() {
        FORKED.store(true, Ordering::Relaxed);
    }
    // SAFETY: the handler only touches an atomic, which is allowed after a fork. It lives in this library; glibc
    // forgets handlers of libraries that are unloaded.
    WATCH.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(forked));
    });
}

/// The check that begins every function: without an open channel there is no driver.
fn check_open() -> Result<(), Status> {
    if is_forked() || OPEN.load(Ordering::Acquire) == 0 {
        return Err(Status::KERNEL_IO_CHANNEL_NOT_OPENED);
    }
    Ok(())
}

/// The status of a function body that uses `?`.
fn status(body: impl FnOnce() -> Result<Status, Status>) -> Status {
    check_open().and_then(|()| body()).unwrap_or_else(|error| error)
}

/// A list that a caller passes as pointer and length.
///
/// # Safety
/// `start` is null or leads to `count` values that do not change during the call.
unsafe fn list<'a, T>(start: *const T, count: u64) -> Result<&'a [T], Status> {
    if count == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return Err(Status::INVALID_PARAMETER);
    }
    // SAFETY: the caller's promise; not null.
    Ok(unsafe { std::slice::from_raw_parts(start, count as usize) })
}

/// Writes a result through a pointer of the caller, which need not be aligned.
///
/// # Safety
/// `target` is null or leads to room for a value.
unsafe fn put<T>(target: *mut T, value: T) -> Result<(), Status> {
    if target.is_null() {
        return Err(Status::INVALID_PARAMETER);
    }
    // SAFETY: the caller's promise; not null.
    unsafe { target.write_unaligned(value) };
    Ok(())
}
