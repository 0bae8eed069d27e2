//! The conformance suite on the run-time choice among the backends, with the host chosen.

use gpumem::{AnyBackend, DeviceSelector};
use gpumem_conformance::{RanOn, Suite};

fn main() -> std::process::ExitCode {
    Suite::<AnyBackend>::new("any", RanOn::Host).device(DeviceSelector::ordinal("host", 0)).main()
}
