//! Random sequences of operations equal a sequential model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;
#[path = "suite/random.rs"]
mod suite;
