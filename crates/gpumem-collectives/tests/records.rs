//! The last operations of a rank are told.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;
#[path = "suite/records.rs"]
mod suite;
