//! The conformance suite on the ROCm backend. Without a device everything is skipped, with the reason.

use gpumem_conformance::{RanOn, Suite};
use gpumem_roc::Roc;

fn main() -> std::process::ExitCode {
    Suite::<Roc>::new("roc", RanOn::Hardware).main()
}
