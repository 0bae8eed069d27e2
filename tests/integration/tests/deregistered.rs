//! Memory of the caller that is given back while other threads use it.
#![allow(clippy::unwrap_used, reason = "tests")]

use gpumem_integration::slow_fill;
use gpumem_kernel::config_for_items;
use gpumem_runtime::Device;
use host_double::{Double, DoubleOptions};
use ndarray::Array1;
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
