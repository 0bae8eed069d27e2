//! On every machine, with a driver and without, every entry point gives one typed answer and does not panic.

use gpumem_core::{Backend, DeviceSelector, DriverDevice, ErrorKind, LoadFailure};
use gpumem_roc::Roc;

#[test]
fn every_entry_point_gives_the_same_answer() {
    let probed = Roc::probe();
    let devices = Roc::devices();
    let opened = Roc::open(&DeviceSelector::ordinal("roc", 0));
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
            assert!(["the HIP runtime of ROCm", "ROCm"].contains(&error.library), "{error}");
            assert!(!error.tried.is_empty(), "{error}");
            for name in &error.tried {
                assert!(error.to_string().contains(name.as_str()), "{error}");
            }
            assert_eq!(devices.unwrap_err().kind(), &ErrorKind::Load(error.clone()));
            assert_eq!(opened.unwrap_err().kind(), &ErrorKind::Load(error));
        }
    }
}

#[test]
fn a_selector_of_another_backend_is_refused_before_the_driver_is_called() {
    let error = Roc::open(&DeviceSelector::ordinal("cuda", 0)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BackendNotEnabled { .. }), "{error}");
}

#[test]
fn a_device_that_does_not_exist_is_an_error() {
    let error = Roc::open(&DeviceSelector::ordinal("roc", 4711)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoSuchDevice { .. } | ErrorKind::Load(_)), "{error}");
}

#[test]
fn probing_from_many_threads_gives_one_answer() {
    let first = Roc::probe();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(Roc::probe)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), first);
        }
    });
}

#[test]
fn the_types_may_go_to_any_thread() {
    fn check<B: Backend>() {}
    fn shared<T: Send + Sync>() {}
    check::<Roc>();
    shared::<gpumem_roc::RocBuffer>();
    shared::<gpumem_roc::RocStream>();
    shared::<gpumem_roc::RocEvent>();
    shared::<gpumem_roc::RocKernel>();
}
