//! The per-thread default stream of a GPU: a name, which means another stream on each thread.

use super::device;
use gpumem_core::ErrorKind;
use gpumem_integration::slow_fill;
use gpumem_kernel::config_for_items;
use gpumem_runtime::Device;
use host_double::{Double, DoubleOptions};
use ndarray::Ix1;
use std::{sync::mpsc::channel, thread};

/// The kernel takes a millisecond for each 1024 of them.
const LEN: usize = if cfg!(miri) { 1 << 11 } else { 1 << 18 };

/// A thread that waits for the device waits for all streams, one after the other. What another thread enqueues on its own
/// stream meanwhile is not done when this thread's own stream is.
#[test]
fn a_wait_for_the_device_does_not_take_work_of_another_thread_for_done() {
    let device: Device<Double> = Device::from_raw(Double::open_with(&DoubleOptions::default()).unwrap());
    let (kernel, once) = (slow_fill().load(&device).unwrap(), config_for_items([1, 1, 1], [1, 1, 1]));
    let first = device.stream().unwrap();
    let mut array = first.device_array::<u32, _>(LEN / 4).unwrap();
    let ((ready, is_ready), (begin, begins)) = (channel(), channel());
    let ((launched, has_launched), (waited, has_waited)) = (channel(), channel());
    thread::scope(|scope| {
        let (device, kernel) = (&device, &kernel);
        let other = scope.spawn(move || {
            let own = device.per_thread_stream().unwrap();
            let mut array = own.device_array::<u32, _>(LEN).unwrap();
            own.synchronize().unwrap();
            ready.send(()).unwrap();
            begins.recv().unwrap();
            kernel.launch(&own, &once, (&mut array,)).unwrap();
            launched.send(()).unwrap();
            has_waited.recv().unwrap();
            array.copy_to_host().unwrap()
        });
        is_ready.recv().unwrap();
        // The device is waited for until this kernel is done. Then the other thread launches its own, which the wait for the
        // first stream sees through, and the wait for the other thread's stream comes last.
        kernel.launch(&first, &once, (&mut array,)).unwrap();
        let callback = move |_| {
            begin.send(()).unwrap();
            has_launched.recv().unwrap();
        };
        first.add_callback(callback).unwrap();
        device.synchronize().unwrap();
        waited.send(()).unwrap();
        assert!(other.join().unwrap().iter().all(|element| *element == 1), "read before it was written");
    });
}

/// An event after the work of another thread's stream cannot be recorded.
#[test]
fn no_import_is_ready_after_the_stream_of_another_thread() {
    let device = device();
    let array = device.to_device(&[1, 2, 3]).unwrap();
    let tensor = || array.lend_to_host().unwrap().into_dlpack().unwrap();
    let stream = thread::scope(|scope| scope.spawn(|| device.per_thread_stream().unwrap()).join().unwrap());
    let imported = device.from_dlpack::<i32, Ix1>(tensor(), Some(&stream));
    let kind = imported.as_ref().map_err(|error| error.kind());
    assert!(matches!(kind, Err(ErrorKind::WrongThread)), "{kind:?}");
}
