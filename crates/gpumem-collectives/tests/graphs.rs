//! Operations in graphs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;
#[path = "suite/graphs.rs"]
mod suite;
