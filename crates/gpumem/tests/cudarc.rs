//! Memory to and from cudarc's slices, on an NVIDIA GPU.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use gpumem::{
    Device, ErrorKind, LayoutError,
    cudarc::{
        cudarc::driver::{CudaContext, CudaStream, DriverError, sys::CUresult},
        from_cudarc, with_cudarc, with_cudarc_mut,
    },
    ndarray::Array1,
    s,
};
use std::sync::Arc;

const LEN: usize = 1 << 22;

/// The device and two streams of cudarc's; says why where there is none.
fn parts() -> Option<(Device, Arc<CudaStream>, Arc<CudaStream>)> {
    // Asked first: cudarc panics without a driver.
    match Device::open("cuda:0") {
        Ok(device) => {
            let context = CudaContext::new(0).unwrap();
            Some((device, context.new_stream().unwrap(), context.new_stream().unwrap()))
        }
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

#[test]
fn slices_become_arrays() {
    let Some((device, stream, other)) = parts() else { return };
    let host: Vec<f32> = (0..LEN).map(|at| at as f32).collect();
    for round in 0..8u8 {
        // Pending on two of cudarc's streams; the host does not wait.
        let mut slice = stream.clone_htod(&host).unwrap();
        if round % 2 == 1 {
            other.memset_zeros(&mut slice).unwrap();
        }
        let array = from_cudarc(&device, slice).unwrap();
        let ours = device.stream().unwrap();
        let mut copy = ours.to_device(&array).unwrap();
        drop(array); // frees theirs, after the copy
        let junk = stream.clone_htod(&vec![-1.0f32; LEN]).unwrap();
        ours.fill(&mut copy.slice_mut(s![..1]).unwrap(), 5.0).unwrap();
        let mut expected = if round % 2 == 1 { Array1::zeros(LEN) } else { Array1::from_vec(host.clone()) };
        expected[0] = 5.0;
        assert_eq!(copy.copy_to_host().unwrap(), expected);
        drop(junk);
    }
    let empty = from_cudarc(&device, stream.null::<f32>().unwrap()).unwrap();
    assert!(empty.is_empty());
    device.synchronize().unwrap();
}

#[test]
fn arrays_are_lent_as_views() {
    let Some((device, stream, other)) = parts() else { return };
    let ours = device.stream().unwrap();
    for round in 1..9u8 {
        let value = f32::from(round);
        let mut array = ours.device_array::<f32, _>(LEN).unwrap();
        ours.fill(&mut array, value).unwrap();
        // cudarc's work comes after gpumem's, on a stream that cudarc orders; gpumem's later work comes after cudarc's.
        let on = if round % 2 == 0 { &stream } else { &other };
        // SAFETY: it is one stream, which cudarc orders.
        let copy = unsafe { with_cudarc(&array, &stream, |view| on.clone_dtod(view)) }.unwrap().unwrap();
        // SAFETY: as above.
        unsafe { with_cudarc_mut(&mut array, &stream, |view| on.memset_zeros(view)) }.unwrap().unwrap();
        let after = device.stream().unwrap().to_device(&array).unwrap();
        drop(array);
        assert_eq!(after.copy_to_host().unwrap(), Array1::<f32>::zeros(LEN));
        assert_eq!(on.clone_dtoh(&copy).unwrap(), vec![value; LEN]);
    }
    device.synchronize().unwrap();
}

#[test]
fn arrays_that_cannot_be_lent_are_errors() {
    let Some((device, stream, _)) = parts() else { return };
    let array = device.device_array::<f32, _>((4, 6)).unwrap();
    // SAFETY: no work is enqueued, here and below.
    let error = unsafe { with_cudarc(&array.t(), &stream, |_| ()) }.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Layout(LayoutError::NeedsCopy { .. })), "{error}");
    let host = Device::open("host").unwrap().device_array::<f32, _>(4).unwrap();
    // SAFETY: as above.
    let error = unsafe { with_cudarc(&host, &stream, |_| ()) }.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WrongDevice { .. }), "{error}");
    // Memory stays ours when the closure panics.
    let mut array = device.to_device(&Array1::from_elem(8, 2.0f32)).unwrap();
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        // SAFETY: as above.
        unsafe { with_cudarc_mut(&mut array, &stream, |_| panic!("on purpose")) }
    }));
    assert!(ended.is_err());
    assert_eq!(array.copy_to_host().unwrap(), Array1::from_elem(8, 2.0));
}

/// Pending work on streams that cudarc does not order, and the errors that it stores.
#[test]
fn slices_come_after_all_work_of_their_context() {
    let Some((device, stream, _)) = parts() else { return };
    // Of this context cudarc sees no second stream, so that it tracks nothing.
    let alone = CudaContext::new(0).unwrap().default_stream();
    for _ in 0..8 {
        let mut slice = alone.clone_htod(&vec![1.0f32; LEN]).unwrap();
        alone.synchronize().unwrap();
        for _ in 0..16 {
            stream.memset_zeros(&mut slice).unwrap();
        }
        let array = from_cudarc(&device, slice).unwrap();
        assert_eq!(
            device.stream().unwrap().to_device(&array).unwrap().copy_to_host().unwrap(),
            Array1::<f32>::zeros(LEN)
        );
        drop(array);
    }
    // The slices were freed, wherever the library dropped them, and cudarc has stored nothing.
    device.flush().unwrap();
    alone.context().check_err().unwrap();
    let slice = stream.clone_htod(&[1.0f32]).unwrap();
    stream.context().record_err::<()>(Err(DriverError(CUresult::CUDA_ERROR_UNKNOWN)));
    let error = from_cudarc(&device, slice).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Driver { code: 999, .. }), "{error}");
    let apart = CudaContext::new_non_primary(0, 0).unwrap().new_stream().unwrap();
    let error = from_cudarc(&device, apart.clone_htod(&[1.0f32]).unwrap()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    let array = device.device_array::<f32, _>(4).unwrap();
    // SAFETY: no work is enqueued.
    let error = unsafe { with_cudarc(&array, &apart, |_| ()) }.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
}
