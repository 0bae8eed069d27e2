//! State that belongs to the process: its current device, its last error, the memory of another process.

use super::fixture::{Lab, Skip, allocate, download, release, request, upload};
use gpumem_conformance::RanOn;
use gpumem_core::{Backend, DeviceBuffer, DriverDevice, ErrorKind, IpcMemory, MemoryKind, Stream};
use gpumem_roc::{Roc, RocExt};
use std::process::ExitCode;

pub(super) fn the_callers_device_and_last_error_are_left_alone(lab: &Lab) -> Result<(), Skip> {
    let hip = gpumem_sys::hip::load(&gpumem_sys::Places::from_environment()).unwrap().functions;
    let last = || {
        // SAFETY: the function has no preconditions.
        unsafe { hip.hipGetLastError() }.unwrap()
    };
    last();
    // SAFETY: at least one byte.
    let refused = unsafe { lab.device.allocate(&request(1 << 60, MemoryKind::Device)) };
    assert!(refused.unwrap_err().is_out_of_memory());
    assert_eq!(last(), gpumem_sys::hip::hipError_t::hipSuccess);
    let devices = Roc::devices().unwrap();
    if devices.len() < 2 {
        return Err("there is no second device");
    }
    // SAFETY: a device that there is.
    assert_eq!(unsafe { hip.hipSetDevice(1) }.unwrap(), gpumem_sys::hip::hipError_t::hipSuccess);
    let buffer = allocate(lab, 100, MemoryKind::Device);
    lab.stream.synchronize().unwrap();
    release(lab, buffer);
    let mut current = 0;
    // SAFETY: a place for a number.
    unsafe { hip.hipGetDevice(&mut current) }.unwrap();
    assert_eq!(current, 1);
    // SAFETY: a device that there is.
    unsafe { hip.hipSetDevice(0) }.unwrap();
    Ok(())
}

/// In another process: memory that this one has sent, as hexadecimal digits.
pub(super) const SENT: &str = "GPUMEM_TEST_SUBPROCESS";

/// The other process: sees the bytes that were sent, and answers in the same memory.
pub(super) fn look_at(sent: &str) -> ExitCode {
    let bytes: Vec<u8> =
        (0..sent.len() / 2).map(|at| u8::from_str_radix(&sent[2 * at..2 * at + 2], 16).unwrap()).collect();
    let memory = IpcMemory::from_bytes(&bytes.try_into().unwrap());
    let lab = Lab::open(RanOn::Hardware).unwrap();
    // SAFETY: the other process keeps the memory and waits for this one to end.
    let buffer = unsafe { lab.device.open_memory(&memory) }.unwrap();
    assert_eq!(buffer.len(), 1000);
    for (offset, bytes) in [(4096, 4 << 20), (8 << 20, 1), (u64::MAX, 1), (0, u64::MAX)] {
        let beyond = IpcMemory::new(*memory.handle(), offset, bytes);
        // SAFETY: refused.
        let error =
            unsafe { lab.device.open_memory(&beyond) }.map(|buffer| release(&lab, buffer)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    }
    assert_eq!(download(&lab, buffer.address(), 1000), [0x5A; 1000]);
    upload(&lab, buffer.address(), &[0x6B; 1000]);
    release(&lab, buffer);
    ExitCode::SUCCESS
}

pub(super) fn memory_is_shared_with_another_process(lab: &Lab) -> Result<(), Skip> {
    // An allocation of its own, so that no other data is shown with it.
    let buffer = allocate(lab, 4 << 20, MemoryKind::Device);
    let part = buffer.address() + 4096;
    upload(lab, buffer.address(), &[0x11; 8192]);
    upload(lab, part, &[0x5A; 1000]);
    assert_eq!(Roc::allocation_of(&lab.device, part).unwrap(), (buffer.address(), buffer.len()));
    // SAFETY: the range lies in the buffer, which is kept until the other process has ended.
    let memory = unsafe { lab.device.export_memory(part, 1000) }.unwrap();
    // SAFETY: as above; it is refused.
    let outside = unsafe { lab.device.export_memory(part, 4 << 20) }.unwrap_err();
    assert!(matches!(outside.kind(), ErrorKind::InvalidArgument { .. }), "{outside}");
    let sent: String = memory.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let child =
        std::process::Command::new(std::env::current_exe().unwrap()).env(SENT, sent).output().unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    let seen = download(lab, buffer.address(), 8192);
    assert!(seen[4096..5096].iter().all(|byte| *byte == 0x6B));
    assert!(seen[..4096].iter().chain(&seen[5096..]).all(|byte| *byte == 0x11));
    release(lab, buffer);
    Ok(())
}
