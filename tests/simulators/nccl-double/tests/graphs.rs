//! The double of NCCL: operations in graphs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;
#[path = "../../../../crates/gpumem-collectives/tests/suite/graphs.rs"]
mod suite;
