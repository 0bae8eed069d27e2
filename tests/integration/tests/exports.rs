//! Arrays that this process has exported, and those that it has not any more. The double of a driver makes handles, and opens none.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::double;
use gpumem_core::{ErrorKind, Result};
use gpumem_host::HostOptions;
use gpumem_runtime::{Device, IpcArrayHandle};
use host_double::Double;
use ndarray::{Ix1, s};

/// What comes back over a pipe.
fn sent(handle: &IpcArrayHandle<u32, Ix1>) -> IpcArrayHandle<u32, Ix1> {
    IpcArrayHandle::from_bytes(&handle.to_bytes()).unwrap()
}

/// Whether the array is refused as one of this process. Otherwise the driver is asked.
fn is_own(device: &Device<Double>, handle: &IpcArrayHandle<u32, Ix1>) -> bool {
    // SAFETY: the double opens nothing.
    let opened: Result<()> = unsafe { device.open_ipc(handle) }.map(drop);
    match opened.unwrap_err().kind() {
        ErrorKind::InvalidArgument { why } => why.contains("exported by this process"),
        ErrorKind::Unsupported { .. } => false,
        other => unreachable!("{other}"),
    }
}

#[test]
fn an_exported_array_is_known_until_its_memory_goes_back() {
    let (device, _raw) = double(HostOptions::new());
    let other = double(HostOptions::new()).0;
    let [first, second] = [(), ()].map(|()| device.ipc_array::<u32, _>(100).unwrap());
    // SAFETY: no other process gets the handles.
    let (handles, of_view) = unsafe {
        let view = first.slice(s![50..]).unwrap();
        ([first.ipc_handle().unwrap(), second.ipc_handle().unwrap()], view.ipc_handle().unwrap())
    };
    // Exported once more, it is still one array.
    // SAFETY: as above.
    assert_eq!(unsafe { first.ipc_handle() }.unwrap(), handles[0]);
    for handle in handles.iter().chain([&of_view]) {
        assert!(is_own(&device, &sent(handle)) && is_own(&other, handle), "on each device");
    }
    drop(first);
    assert!(
        !is_own(&device, &handles[0]) && !is_own(&device, &of_view),
        "the driver may give the handle to others"
    );
    assert!(is_own(&device, &handles[1]), "another array is not forgotten");
    drop(second);
    assert!(!is_own(&device, &handles[1]));
}

#[test]
fn an_array_in_a_pool_is_not_exported() {
    let (device, _raw) = double(HostOptions::new());
    let pooled = device.to_device(&[1_u32, 2]).unwrap();
    // SAFETY: it is refused.
    let refused = unsafe { pooled.ipc_handle() }.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::InvalidArgument { .. }), "{refused}");
}
