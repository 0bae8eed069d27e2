//! The conformance suite on the ROCm backend. Without a device everything is skipped, with the reason.

mod simulator;

use gpumem_conformance::{Case, Expectations, RanOn, Suite, all};
use gpumem_roc::Roc;

fn main() -> std::process::ExitCode {
    let ran_on = simulator::prepare();
    let mut expectations = Expectations::none();
    if ran_on == RanOn::Rocsim {
        let why = "the simulated GPU executes no device code, and the suite gives it no host function for this kernel";
        let kernels = all::<Roc>().into_iter().filter(Case::compares_kernel);
        expectations = kernels.fold(expectations, |known, case| known.skip(&case.name, why));
    }
    Suite::<Roc>::new("roc", ran_on).expectations(expectations).main()
}
