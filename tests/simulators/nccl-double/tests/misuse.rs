//! The double of NCCL: wrong calls, and what is lost in flight.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;
#[path = "../../../../crates/gpumem-collectives/tests/suite/misuse.rs"]
mod suite;
