//! The real library without a device: identities are made, and setting a communicator up is a typed error.
//!
//! `GPUMEM_NCCL` names the library; without it, and where there is an NVIDIA GPU, this is skipped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use gpumem_collectives::{CollectiveCause, CollectiveLibrary, Communicator, CommunicatorId};
use gpumem_core::ErrorKind;
use host_double::{Double, DoubleOptions};
use std::{env, path::Path};

#[test]
fn the_library_reports_that_there_is_no_device() {
    let options =
        DoubleOptions { collective_library: Some(CollectiveLibrary::Nccl), ..DoubleOptions::default() };
    let device = gpumem_runtime::Device::<Double>::from_raw(Double::open_with(&options).unwrap());
    let named = env::var_os("GPUMEM_NCCL");

    // SAFETY: no other thread of this program reads the environment meanwhile.
    unsafe { env::set_var("GPUMEM_NCCL", "/nowhere/libnccl.so.2") };
    let missing = Communicator::all(std::slice::from_ref(&device)).unwrap_err();
    assert!(matches!(missing.kind(), ErrorKind::Load(_)), "{missing}");
    assert!(missing.to_string().contains("/nowhere/libnccl.so.2"), "{missing}");

    let Some(named) = named.filter(|path| !path.is_empty()) else {
        println!("skipped: GPUMEM_NCCL names no library");
        return;
    };
    if Path::new("/dev/nvidiactl").exists() {
        println!("skipped: there may be an NVIDIA GPU");
        return;
    }
    // SAFETY: as above.
    unsafe { env::set_var("GPUMEM_NCCL", &named) };
    let id = CommunicatorId::for_device(&device).unwrap();
    assert_ne!(id, CommunicatorId::for_device(&device).unwrap());
    assert_eq!(CommunicatorId::from_bytes(&id.to_bytes()).unwrap(), id);
    let failed = Communicator::all(&[device]).unwrap_err();
    let ErrorKind::Collective(failure) = failed.kind() else { panic!("{failed}") };
    assert_eq!((failure.rank, failure.size), (0, 1));
    let CollectiveCause::Library { why } = &failure.cause else { panic!("{failed}") };
    assert!(why.contains("ncclUnhandledCudaError") && why.contains("CUDA driver"), "{why}");
}
