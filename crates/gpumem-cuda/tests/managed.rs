//! Managed memory of a device that does not let the host touch it while any work runs: over a double of the driver.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use gpumem_core::{Attach, ErrorKind};
use gpumem_cuda::Cuda;
use gpumem_runtime::Device;
use std::{
    env, fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
};

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
    let double = env::current_exe().unwrap().with_file_name("libcuda_double.so");
    if !double.exists() {
        println!("skipped: {} is not there", double.display());
        return;
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("managed");
    fs::create_dir_all(&directory).unwrap();
    for name in ["libcuda.so", "libcuda.so.1"] {
        let link = directory.join(name);
        let _ = fs::remove_file(&link);
        symlink(&double, &link).unwrap();
    }
    let child = Command::new(env::current_exe().unwrap())
        .env("LD_LIBRARY_PATH", &directory)
        .envs([(CHILD, "1"), ("CUDA_DOUBLE_CONCURRENT_MANAGED_ACCESS", "0")])
        .stdin(Stdio::null())
        .output();
    let output = child.unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.contains("1 passed"), "{}\n{text}", output.status);
}
