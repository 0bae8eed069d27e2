//! Managed memory of a device that does not let the host touch it while any work runs: over a double of the driver.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod driver_double;

use gpumem_core::{Attach, ErrorKind};
use gpumem_cuda::Cuda;
use gpumem_runtime::Device;
use std::env;

/// The variable of the child process, which runs over the double.
const CHILD: &str = "GPUMEM_TEST_MANAGED";

/// A view of the host would outlive the wait for the device, and work on any stream would make it a crash.
#[test]
fn without_concurrent_access_there_is_none() {
    if env::var_os(CHILD).is_some() {
        let device = Device::<Cuda>::open("cuda").unwrap();
        assert!(!device.capabilities().concurrent_managed_access && !device.capabilities().managed);
        for attach in [Attach::Global, Attach::Host] {
            let error = device.managed_array::<u32, _>(8, attach).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Unsupported { what: "managed memory" }), "{error}");
        }
        return;
    }
    driver_double::run_again("managed", &[(CHILD, "1"), ("CUDA_DOUBLE_CONCURRENT_MANAGED_ACCESS", "0")]);
}
