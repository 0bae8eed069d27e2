//! Every operation with every layout, element and number of ranks gives ndarray's answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;
#[path = "suite/operations.rs"]
mod suite;

#[test]
#[cfg_attr(miri, ignore = "starts processes")]
fn all_of_this_holds_over_mpi() {
    if common::launcher::of_this_process().is_some() {
        return;
    }
    common::launcher::pass(4, &[], &[]);
    common::launcher::pass(4, &["are_moved"], &[("GPUMEM_COLLECTIVE_CHECK", "1")]);
}
