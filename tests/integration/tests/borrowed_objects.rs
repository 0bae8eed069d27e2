//! Copies from and to objects with a CUDA array interface, which lend their memory for the call. A separate program: it starts
//! itself as a process that is to end.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::double;
use gpumem_core::{ErrorKind, Result};
use gpumem_host::{HostOptions, Injection, Operation};
use gpumem_runtime::{CudaArrayInterface, HasCudaArrayInterface, cuda_array};
use ndarray::Ix1;
use std::{env, os::unix::process::ExitStatusExt, process::Command};

const LEN: usize = 1000;

struct Object(CudaArrayInterface);

// SAFETY: the test keeps the memory.
unsafe impl HasCudaArrayInterface for Object {
    fn cuda_array_interface(&self) -> Result<CudaArrayInterface> {
        Ok(self.0.clone())
    }
}

/// The copy may still read the object's memory, which the caller may free once the call has returned.
#[test]
fn memory_whose_copy_cannot_be_waited_for_is_not_given_back() {
    const TEST: &str = "memory_whose_copy_cannot_be_waited_for_is_not_given_back";
    const CHILD: &str = "GPUMEM_TEST_SUBPROCESS";
    if env::var_os(CHILD).is_none() {
        let mut child = Command::new(env::current_exe().unwrap());
        let output = child.args(["--exact", TEST, "--nocapture"]).env(CHILD, "1").output().unwrap();
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
        return;
    }
    let (device, raw) = double(HostOptions::new().brief_bytes(0));
    let memory = device.to_device(&vec![7_u32; LEN]).unwrap();
    let mut described = memory.lend(&device.default_stream().unwrap()).unwrap().describe();
    described.stream = None;
    let mut copy = device.device_array::<u32, _>(LEN).unwrap();
    // Else the copy is not begun.
    device.synchronize().unwrap();
    let refused = Injection::next(Operation::Synchronize, ErrorKind::Driver { code: 99, name: "REFUSED" });
    raw.host().inject(refused.times(u64::MAX));
    let copied = copy.copy_to_device(&cuda_array::<u32, Ix1>(&Object(described)));
    assert!(copied.is_err());
}
