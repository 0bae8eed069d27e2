//! The conformance suite on the ROCm backend. Without a device everything is skipped, with the reason.

mod simulator;

use gpumem_conformance::{Expectations, RanOn, Suite};
use gpumem_roc::Roc;

/// Cases that launch kernels of the portable prelude.
const KERNELS: [&str; 5] = [
    "12_kernel::saxpy_of_any_length",
    "12_kernel::transpose_through_a_padded_tile",
    "12_kernel::sums_by_tree_and_by_wave",
    "12_kernel::histogram_with_shared_atomics",
    "12_kernel::records_are_updated_in_place",
];

fn main() -> std::process::ExitCode {
    let ran_on = simulator::prepare();
    let mut expectations = Expectations::none();
    if ran_on == RanOn::Rocsim {
        let why = "the simulated GPU executes no device code, and the suite gives it no host function for this kernel";
        expectations = KERNELS.iter().fold(expectations, |known, name| known.skip(name, why));
    }
    Suite::<Roc>::new("roc", ran_on).expectations(expectations).main()
}
