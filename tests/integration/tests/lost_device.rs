//! The end of a device: lost, reset. Stale handles return an error, and their memory is not freed twice.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "common/scenario.rs"]
mod scenario;

use common::{double, host, is_clean};
use gpumem_core::{ErrorKind, Result};
use gpumem_host::HostOptions;
use gpumem_runtime::{CudaArrayInterface, HasCudaArrayInterface};
use ndarray::{Array1, Array2, Ix1};
use scenario::{UNTOUCHED, is_lost, is_usable, numbers};
use std::{sync::mpsc, task::Poll, time::Duration};

fn is_stale<T>(result: Result<T>) -> bool {
    matches!(result, Err(error) if matches!(error.kind(), ErrorKind::Stale { .. }))
}

/// The output of a future within a few seconds.
fn wait(future: gpumem_runtime::Completion) -> Result<()> {
    struct Wake(mpsc::SyncSender<()>);
    impl std::task::Wake for Wake {
        fn wake(self: std::sync::Arc<Self>) {
            let _ = self.0.try_send(());
        }
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let waker = std::sync::Arc::new(Wake(sender)).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
        receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}

#[test]
fn every_call_on_a_lost_device_is_an_error_and_none_hangs() {
    let why = "it fell off the bus";
    for options in [HostOptions::new().brief_bytes(0), HostOptions::new().adversarial(1)] {
        let (device, raw) = double(options);
        let stream = device.stream().unwrap();
        let mut array = stream.to_device(&numbers()).unwrap();
        let pinned = stream.copy_to_host(&array).unwrap();
        let mut target = device.pinned_array::<u32, _>((23, 29)).unwrap();
        let event = stream.record_event().unwrap();
        raw.host().lose(why);
        raw.host().lose("a later cause");
        let mut host = Array2::from_elem((23, 29), UNTOUCHED);
        assert!(is_lost(stream.synchronize(), why));
        assert!(is_lost(array.copy_to_host(), why));
        assert!(is_lost(array.copy_to_host_into(host.view_mut()).map(drop), why));
        assert!(is_lost(array.copy_to_device(&numbers()).map(drop), why));
        assert!(is_lost(array.fill(1), why) && is_lost(array.get((0, 0)), why));
        assert!(is_lost(pinned.view().map(drop), why) && is_lost(target.view_mut().map(drop), why));
        assert!(is_lost(stream.copy_to_host_into(&array, &mut target), why));
        assert!(is_lost(stream.copy_to_host(&array).map(drop), why));
        assert!(is_lost(stream.query(), why) && is_lost(stream.record_event().map(drop), why));
        assert!(is_lost(event.query(), why) && is_lost(event.synchronize(), why));
        assert!(is_lost(stream.wait(&event), why));
        assert!(is_lost(stream.add_callback(|_| ()), why));
        assert!(is_lost(wait(stream.completed()), why) && is_lost(wait(event.completed()), why));
        assert!(is_lost(stream.scope(|_| ()), why));
        assert!(is_lost(device.pinned([host.view_mut()], |_| ()), why));
        assert!(is_lost(device.synchronize(), why) && is_lost(device.flush(), why));
        assert!(is_lost(device.memory_info(), why) && is_lost(device.stream().map(drop), why));
        assert!(is_lost(device.device_array::<u8, _>(3).map(drop), why));
        assert!(is_lost(device.pinned_array::<u8, _>(3).map(drop), why));
        // SAFETY: no other thread uses the device.
        assert!(is_lost(unsafe { device.reset() }, why));
        assert!(host.iter().all(|value| *value == UNTOUCHED));
        // Functions that need no driver still answer.
        assert_eq!((array.shape(), array.t().shape()), (&[23, 29][..], &[29, 23][..]));
        drop((array, pinned, target, event, stream, device));
    }
}

#[test]
fn a_device_lost_in_a_scope_frees_the_memory() {
    let why = "in the middle";
    let (device, raw) = double(HostOptions::new().brief_bytes(0));
    let array = device.to_device(&numbers()).unwrap();
    let mut out = Array2::from_elem((23, 29), UNTOUCHED);
    let mut locked = out.clone();
    let stream = device.stream().unwrap();
    let result = stream.scope(|scope| {
        scope.copy_to_host(&array, out.view_mut())?;
        let mut pinned = scope.pinned(locked.view_mut())?;
        raw.host().lose(why);
        scope.stream().copy_to_host_into(&array, &mut pinned)
    });
    assert!(is_lost(result.and_then(|inner| inner), why));
    assert!(out.iter().all(|value| *value == UNTOUCHED) && locked == out);
}

#[test]
fn a_reset_makes_older_objects_stale() {
    for options in [HostOptions::new(), HostOptions::new().adversarial(2)] {
        let (device, raw) = double(options);
        let stream = device.stream().unwrap();
        let mut array = stream.to_device(&numbers()).unwrap();
        let event = stream.record_event().unwrap();
        {
            let pinned = device.pinned_array::<u32, _>((23, 29)).unwrap();
            let mapped = device.mapped_array::<u8, _>(3, Default::default()).unwrap();
            // SAFETY: no other thread uses the device.
            let refused = unsafe { device.reset() }.unwrap_err();
            assert_eq!(refused.kind(), &ErrorKind::HostMemoryInUse { count: 2 });
            assert_eq!((pinned.view().unwrap().sum(), mapped.view().unwrap().sum()), (0, 0));
            assert_eq!(array.copy_to_host().unwrap(), numbers(), "a refused reset changes nothing");
        }
        // SAFETY: no other thread uses the device.
        unsafe { device.reset() }.unwrap();
        let mut host = Array2::from_elem((23, 29), UNTOUCHED);
        assert!(is_stale(array.copy_to_host()) && is_stale(array.view().copy_to_host()));
        assert!(is_stale(array.copy_to_host_into(host.view_mut()).map(drop)));
        assert!(is_stale(array.copy_to_device(&numbers()).map(drop)) && is_stale(array.fill(1)));
        assert!(
            is_stale(stream.synchronize())
                && is_stale(stream.query())
                && is_stale(stream.record_event().map(drop))
        );
        assert!(is_stale(stream.scope(|_| ())) && is_stale(stream.add_callback(|_| ())));
        assert!(is_stale(event.synchronize()) && is_stale(event.query()));
        let fresh = device.stream().unwrap();
        assert!(is_stale(fresh.wait(&event)) && is_stale(fresh.copy_to_host(&array).map(drop)));
        let mut new = device.to_device(&numbers()).unwrap();
        assert!(is_stale(new.copy_to_device(&array).map(drop)) && is_stale(stream.fill(&mut new, 1)));
        assert!(host.iter().all(|value| *value == UNTOUCHED));
        is_usable(&device);
        drop((array, stream, event, new, fresh));
        is_clean(&device, raw.host());
    }
}

#[test]
fn a_reset_inside_a_scope_is_refused_or_an_error() {
    let (device, raw) = double(HostOptions::new());
    let array = device.to_device(&[1u32, 2, 3]).unwrap();
    let mut out = Array1::from_elem(3, UNTOUCHED);
    let stream = device.stream().unwrap();
    let result = stream.scope(|scope| {
        scope.copy_to_host(&array, out.view_mut()).unwrap();
        // SAFETY: no other thread uses the device.
        unsafe { device.reset() }
    });
    let is_right = match &result {
        // Either the reset is refused and the elements arrive, or the scope says that they have not.
        Ok(Err(_)) => out == ndarray::array![1, 2, 3],
        Ok(Ok(())) => false,
        Err(error) => matches!(error.kind(), ErrorKind::Stale { .. }),
    };
    assert!(is_right, "{result:?}, {out}");
    drop((array, stream));
    is_usable(&device);
    is_clean(&device, raw.host());
}

#[test]
fn a_reset_inside_a_page_locked_scope_frees_nothing_twice() {
    let (device, raw) = host(HostOptions::new());
    let mut data = Array1::from_elem(3000, 1u32);
    // SAFETY: no other thread uses the device.
    let result = device.pinned([data.view_mut()], |_| unsafe { device.reset() }).unwrap();
    if let Err(error) = result {
        assert!(matches!(error.kind(), ErrorKind::HostMemoryInUse { .. }), "{error}");
    }
    is_usable(&device);
    is_clean(&device, &raw);
}

/// An object of another library.
struct Foreign(CudaArrayInterface);

// SAFETY: the test keeps the memory.
unsafe impl HasCudaArrayInterface for Foreign {
    fn cuda_array_interface(&self) -> Result<CudaArrayInterface> {
        Ok(self.0.clone())
    }
}

/// Loans last beyond a reset, and the addresses of their memory are given out anew: to another library, too.
#[test]
fn what_was_lent_before_a_reset_is_told_from_what_is_there_now() {
    // Memory of that size is a mapping of its own, which the next one of that size gets.
    const LEN: usize = if cfg!(miri) { 1 << 8 } else { 10 << 20 };
    let (device, _) = host(HostOptions::new());
    let array = device.to_device(&vec![7_u32; LEN]).unwrap();
    let (tensor, loan) =
        (array.lend_to_host().unwrap().into_dlpack().unwrap(), array.lend_to_host().unwrap());
    let described = loan.describe();
    std::mem::forget(loan);
    // SAFETY: no other thread uses the device, and no other library the memory that was lent.
    unsafe { device.reset() }.unwrap();
    let newer: Vec<_> = (0..3).map(|at| device.to_device(&vec![at; LEN]).unwrap()).collect();
    let overlapping =
        newer.iter().filter(|array| described.data.0.abs_diff(array.address()) < LEN as u64 * 4);
    println!("{} of {} arrays have addresses that were lent", overlapping.count(), newer.len());
    for (at, array) in newer.iter().enumerate() {
        let object = Foreign(CudaArrayInterface { data: (array.address(), true), ..described.clone() });
        let taken = device.as_cuda_array::<u32, Ix1, _>(object).unwrap();
        assert_eq!(taken.get(LEN - 1).unwrap(), at as u32);
    }
    // The tensor is the old one, also where newer memory at its address is lent.
    let _loans: Vec<_> = newer.iter().map(|array| array.lend_to_host().unwrap()).collect();
    assert!(is_stale(device.from_dlpack::<u32, Ix1>(tensor, None)));
}
