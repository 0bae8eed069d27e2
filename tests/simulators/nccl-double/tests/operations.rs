//! The double of NCCL: every operation with every layout, element and number of ranks gives ndarray's answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "../../../../crates/gpumem-collectives/tests/suite/aliases.rs"]
mod aliases;
mod common;
#[path = "../../../../crates/gpumem-collectives/tests/suite/operations.rs"]
mod suite;
