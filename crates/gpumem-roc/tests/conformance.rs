//! The conformance suite on the ROCm backend. Without a device everything is skipped, with the reason.

mod simulator;

use gpumem_conformance::{RanOn, Suite};
use gpumem_roc::Roc;
use std::process::ExitCode;

fn main() -> ExitCode {
    let ran_on = simulator::prepare();
    let suite = Suite::<Roc>::new("roc", ran_on);
    let suite = suite.slow(ran_on == RanOn::Rocsim);
    // Where the simulated GPU executes no machine code, the host's body runs in the place of a kernel.
    let bodies = ran_on == RanOn::Rocsim && !simulator::runs_machine_code();
    let suite = if bodies { suite.bodies(simulator::register_entry) } else { suite };
    let ended = suite.main();
    match simulator::left_behind() {
        None => ended,
        Some(what) => {
            eprintln!("the simulated GPU says: {what}");
            ExitCode::FAILURE
        }
    }
}
