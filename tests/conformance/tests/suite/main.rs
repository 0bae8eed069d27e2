//! The suite itself: what it says of cases, and what it finds. One program, so that the cases are compiled once for each backend.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod adversary;
mod framework;
mod kernels;
mod third_party;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Each case counts the memory of all devices, the reference `host:0` among them. So suites run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
