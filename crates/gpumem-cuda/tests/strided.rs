//! Strided copies whose kernels the driver does not find: over a double of the driver, which has none.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod driver_double;

use gpumem_core::ErrorKind;
use gpumem_cuda::Cuda;
use gpumem_runtime::Device;
use std::env;

/// The variable of the child process, which runs over the double.
const CHILD: &str = "GPUMEM_TEST_STRIDED";

/// The double holds few modules at a time.
#[test]
fn a_module_without_the_kernels_is_unloaded() {
    if env::var_os(CHILD).is_some() {
        let device = Device::<Cuda>::open("cuda").unwrap();
        let array = device.to_device(&[1_u32; 64]).unwrap();
        let mut copy = device.device_array::<u32, _>(22).unwrap();
        for _ in 0..40 {
            let error = copy.copy_to_device(&array.slice(ndarray::s![..;3]).unwrap()).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
        }
        return;
    }
    driver_double::run_again("strided", &[(CHILD, "1")]);
}
