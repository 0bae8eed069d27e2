//! Memory of other devices and of other processes.

use crate::hip::{Hip, is_amds, is_beyond_the_double, noise, ok};
use hip_on_cuda::types::*;
use std::{
    env,
    process::{Command, Stdio},
    ptr::null_mut,
};

const MIB: usize = 1 << 20;

#[test]
fn peers_copy_and_reach_each_other() {
    let Some(hip) = &Hip::start() else { return };
    if hip.device_count() < 2 {
        println!("skipped: there is one device");
        return;
    }
    let contents = noise(3 * MIB, 9);
    let near = hip.device(&contents);
    ok!(hip.hipSetDevice(1));
    let far = hip.allocate(contents.len());
    ok!(hip.hipMemcpyPeer(far.cast(), 1, near.cast(), 0, contents.len()));
    assert!(hip.read(far, contents.len()) == contents);
    ok!(hip.hipSetDevice(0));
    assert_eq!(hip.hipMemcpyPeer(far.cast(), 99, near.cast(), 0, 16), hipError_t::INVALID_DEVICE);
    let (mut can, stream) = (0, hip.stream());
    ok!(hip.hipDeviceCanAccessPeer(&mut can, 0, 1));
    if can == 1 {
        ok!(hip.hipDeviceEnablePeerAccess(1, 0));
        assert_eq!(hip.hipDeviceEnablePeerAccess(1, 0), hipError_t::PEER_ACCESS_ALREADY_ENABLED);
        ok!(hip.hipMemsetAsync(far.cast(), 0x31, 1000, stream));
        ok!(hip.hipMemcpyPeerAsync(near.cast(), 0, far.cast(), 1, 2000, stream));
        ok!(hip.hipStreamSynchronize(stream));
        let back = hip.read(near, 2000);
        assert!(back[..1000].iter().all(|byte| *byte == 0x31) && back[1000..] == contents[1000..2000]);
        ok!(hip.hipDeviceDisablePeerAccess(1));
        assert_eq!(hip.hipDeviceDisablePeerAccess(1), hipError_t::PEER_ACCESS_NOT_ENABLED);
    }
    ok!(hip.hipStreamDestroy(stream));
    hip.free(near);
    hip.free(far);
}

const HANDLE: &str = "HIP_ON_CUDA_TEST_HANDLE";

#[test]
fn another_process_reads_and_writes_shared_memory() {
    const TEST: &str = "sharing::another_process_reads_and_writes_shared_memory";
    let Some(hip) = &Hip::start() else { return };
    if is_beyond_the_double() {
        return;
    }
    let Ok(words) = env::var(HANDLE) else {
        let device = hip.device(&noise(2 * MIB, 3));
        let mut handle = hipIpcMemHandle_t { reserved: [0; 64] };
        ok!(hip.hipIpcGetMemHandle(&mut handle, device.cast()));
        let words: Vec<String> = handle.reserved.iter().map(|byte| byte.to_string()).collect();
        let guest = Command::new(env::current_exe().unwrap())
            .args([TEST, "--exact", "--test-threads=1", "--nocapture"])
            .env(HANDLE, words.join(" "))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(guest.status.success(), "{}", String::from_utf8_lossy(&guest.stderr));
        assert!(hip.read(device, 2 * MIB) == noise(2 * MIB, 4), "what the guest has written");
        hip.free(device);
        return;
    };
    let bytes: Vec<_> = words.split(' ').map(|word| word.parse().unwrap()).collect();
    let handle = hipIpcMemHandle_t { reserved: bytes.try_into().unwrap() };
    let mut address = null_mut();
    // No other flag is known to ROCm 5.
    let flags = if is_amds() { 1 } else { 2 };
    assert_eq!(hip.hipIpcOpenMemHandle(&mut address, handle, flags), hipError_t::INVALID_VALUE);
    ok!(hip.hipIpcOpenMemHandle(&mut address, handle, 0));
    assert!(hip.read(address.cast(), 2 * MIB) == noise(2 * MIB, 3));
    let contents = noise(2 * MIB, 4);
    ok!(hip.hipMemcpy(address, contents.as_ptr().cast(), 2 * MIB, 1));
    ok!(hip.hipDeviceSynchronize());
    ok!(hip.hipIpcCloseMemHandle(address));
}
