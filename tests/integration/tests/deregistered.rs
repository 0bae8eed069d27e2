//! Memory of the caller that is registered, and given back while other threads use it.
#![allow(clippy::unwrap_used, reason = "tests")]

use gpumem_core::ErrorKind;
use gpumem_host::Host;
use gpumem_integration::slow_fill;
use gpumem_kernel::config_for_items;
use gpumem_runtime::{Device, Layout};
use host_double::{Double, DoubleOptions};
use ndarray::{Array1, Ix1, Ix2};
use std::thread;

/// A binding's view goes while the memory is waited for, and leaves work.
#[test]
fn work_that_is_enqueued_during_the_wait_is_waited_for() {
    let raw = Double::open_with(&DoubleOptions::default()).unwrap();
    let device = Device::<Double>::from_raw(raw.clone());
    let (first, left) = (device.stream().unwrap(), device.stream().unwrap());
    let kernel = slow_fill().load(&device).unwrap();
    let mut registered = device.register_mapped(Array1::<u32>::zeros(1 << 17)).unwrap();
    first.fill(&mut registered.device_view_mut(), 7).unwrap();
    // SAFETY: no other view is used before the elements are given back.
    let mut view = unsafe { registered.device_view().detach() };
    raw.script().during("synchronize a stream", move || {
        let enqueue = move || {
            let dims = config_for_items([1, 1, 1], [1, 1, 1]);
            kernel.launch(&left, &dims, (&mut view,)).unwrap();
            drop(view);
        };
        thread::spawn(enqueue).join().unwrap();
    });
    let elements = registered.deregister().unwrap();
    assert!(elements.iter().all(|element| *element == 1), "{elements}");
}

/// A layout of other elements, of other axes, or whose strides are no multiples of an element: the views of ndarray cannot have it.
#[test]
fn elements_that_no_view_can_have_are_not_registered() {
    let device = Device::<Host>::open("host").unwrap();
    let refused = |layout: Layout| {
        let mut owner = vec![[0.0_f32; 4]; 4];
        let lowest = owner.as_mut_ptr().cast::<u8>();
        // SAFETY: the vector owns the bytes of the layout.
        let triples = unsafe { device.register_foreign::<[f32; 3], Ix1, _>(lowest, &layout, owner) };
        let error = triples.map(drop).unwrap_err();
        assert!(matches!(error.error.kind(), ErrorKind::Layout(_)), "{}", error.error);
        assert_eq!(error.given.len(), 4, "the owner comes back");
    };
    refused(Layout::strided(&[4], &[16], 12).unwrap());
    refused(Layout::strided(&[4], &[16], 16).unwrap());
    refused(Layout::strided(&[4, 1], &[12, 12], 12).unwrap());
    let mut owner = vec![[0.0_f32; 3]; 4];
    let (lowest, layout) =
        (owner.as_mut_ptr().cast::<u8>(), Layout::strided(&[4, 1], &[12, 12], 12).unwrap());
    // SAFETY: the vector owns the bytes of the layout.
    let registered = unsafe { device.register_foreign::<[f32; 3], Ix2, _>(lowest, &layout, owner) };
    assert_eq!(registered.unwrap().view().unwrap().shape(), [4, 1]);
}
