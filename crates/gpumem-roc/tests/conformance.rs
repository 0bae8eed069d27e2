//! The conformance suite on the ROCm backend. Without a device everything is skipped, with the reason.

mod simulator;

use gpumem_conformance::{RanOn, Suite};
use gpumem_roc::Roc;
use std::process::ExitCode;

fn main() -> ExitCode {
    let ran_on = simulator::prepare();
    let suite = Suite::<Roc>::new("roc", ran_on);
    let suite = suite.slow(ran_on == RanOn::Rocsim);
    let ended = suite.main();
    match simulator::left_behind() {
        None => ended,
        Some(what) => {
            eprintln!("the simulated GPU says: {what}");
            ExitCode::FAILURE
        }
    }
}
