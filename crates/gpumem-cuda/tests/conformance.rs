//! The conformance suite on the CUDA backend. Without a device everything is skipped, with the reason.

use gpumem_conformance::{RanOn, Suite};
use gpumem_cuda::Cuda;

fn main() -> std::process::ExitCode {
    Suite::<Cuda>::new("cuda", RanOn::Hardware).main()
}
