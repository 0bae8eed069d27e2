//! Wrong calls, and what is lost in flight.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;
#[path = "suite/misuse.rs"]
mod suite;
