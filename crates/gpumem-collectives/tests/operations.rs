//! Every operation with every layout, element and number of ranks gives ndarray's answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;
#[path = "suite/operations.rs"]
mod suite;
