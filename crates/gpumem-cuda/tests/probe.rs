//! On every machine, with a driver and without, every entry point gives one typed answer and does not panic.

use gpumem_core::{Backend, DeviceSelector, DriverDevice, ErrorKind, LoadFailure};
use gpumem_cuda::{Cuda, CudaExt};

#[test]
fn every_entry_point_gives_the_same_answer() {
    let probed = Cuda::probe();
    let devices = Cuda::devices();
    let opened = Cuda::open(&DeviceSelector::ordinal("cuda", 0));
    match probed {
        Ok(()) => {
            let devices = devices.unwrap();
            assert!(!devices.is_empty(), "a driver that works has a device");
            let device = opened.unwrap();
            assert_eq!(device.info(), &devices[0]);
        }
        // The driver works and there is nothing to drive.
        Err(error) if devices.is_ok() => {
            assert!(matches!(error.failure, LoadFailure::Refused { .. }), "{error}");
            assert_eq!(devices.unwrap(), []);
            assert!(matches!(opened.unwrap_err().kind(), ErrorKind::NoSuchDevice { found: 0, .. }));
        }
        Err(error) => {
            assert_eq!(error.library, "the CUDA driver");
            let expected = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
            assert!(error.tried.iter().any(|name| name == expected), "{:?}", error.tried);
            for name in &error.tried {
                assert!(error.to_string().contains(name.as_str()), "{error}");
            }
            assert_eq!(devices.unwrap_err().kind(), &ErrorKind::Load(error.clone()));
            assert_eq!(opened.unwrap_err().kind(), &ErrorKind::Load(error.clone()));
            // SAFETY: without a driver there is nothing that a handle could name, and none is used.
            let adopted = unsafe { Cuda::from_context(std::ptr::null_mut()) };
            assert_eq!(adopted.unwrap_err().kind(), &ErrorKind::Load(error));
        }
    }
}

#[test]
fn a_selector_of_another_backend_is_refused_before_the_driver_is_called() {
    let error = Cuda::open(&DeviceSelector::ordinal("roc", 0)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BackendNotEnabled { .. }), "{error}");
}

#[test]
fn a_device_that_does_not_exist_is_an_error() {
    let error = Cuda::open(&DeviceSelector::ordinal("cuda", 4711)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoSuchDevice { .. } | ErrorKind::Load(_)), "{error}");
}

#[test]
fn probing_from_many_threads_gives_one_answer() {
    let first = Cuda::probe();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(Cuda::probe)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), first);
        }
    });
}

#[test]
fn the_types_may_go_to_any_thread() {
    fn check<B: Backend>() {}
    fn shared<T: Send + Sync>() {}
    check::<Cuda>();
    shared::<gpumem_cuda::CudaBuffer>();
    shared::<gpumem_cuda::CudaStream>();
    shared::<gpumem_cuda::CudaEvent>();
    shared::<gpumem_cuda::CudaKernel>();
}
