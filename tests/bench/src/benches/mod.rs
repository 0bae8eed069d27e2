//! The benches, one file for each subject.

mod harness;

use crate::Bench;

/// All benches of this build, in the order in which they run.
pub fn all() -> Vec<Bench> {
    harness::all()
}
