//! The conformance suite on the ROCm backend. Without a device everything is skipped, with the reason.

mod simulator;

use gpumem_conformance::Suite;
use gpumem_roc::Roc;

fn main() -> std::process::ExitCode {
    Suite::<Roc>::new("roc", simulator::prepare()).main()
}
