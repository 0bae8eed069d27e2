//! The conformance suite on the ROCm backend. Without a device everything is skipped, with the reason.

mod simulator;

use gpumem_conformance::{RanOn, Suite};
use gpumem_roc::Roc;
use std::process::ExitCode;

fn main() -> ExitCode {
    let ran_on = simulator::prepare();
    let suite = Suite::<Roc>::new("roc", ran_on);
    // The simulated GPU executes no device code: AMD's compiler, loader and launches are real, and the host body runs.
    let suite =
        if ran_on == RanOn::Rocsim { suite.slow(true).bodies(simulator::register_entry) } else { suite };
    let ended = suite.main();
    match simulator::left_behind() {
        None => ended,
        Some(what) => {
            eprintln!("the simulated GPU says: {what}");
            ExitCode::FAILURE
        }
    }
}
