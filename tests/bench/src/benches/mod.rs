//! The benches, one file for each subject.

mod copies;
mod harness;
mod ordering;
mod rmm;
mod views;

use crate::Bench;

/// All benches of this build, in the order in which they run.
pub fn all() -> Vec<Bench> {
    [harness::all(), views::all(), copies::all(), ordering::all(), rmm::all()].into_iter().flatten().collect()
}
