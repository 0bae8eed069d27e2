//! The executor of the host: results of bodies, faults, the check mode.
#![allow(clippy::unwrap_used)] // in helpers of tests

mod bodies;
mod checks;
mod common;
mod faults;
