//! The conformance suite on the host backend.

use gpumem_conformance::{RanOn, Suite};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::Device;

fn main() -> std::process::ExitCode {
    Suite::<Host>::new("host", RanOn::Host)
        .second_device(|_| Host::open_with(&HostOptions::new()).ok().map(Device::from_raw))
        .main()
}
