//! Traits of the user's own that are implemented wrongly on purpose: shapes, wakers, indices.

use super::device;
use gpumem_core::{Attach, MappedOptions};
use gpumem_integration::{by_changing_indices, slow_fill};
use gpumem_kernel::config_for_items;
use gpumem_runtime::{ArraySpec, IntoArraySpec};
use ndarray::{Ix2, IxDyn};
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Wake, Waker},
};

/// Gives another shape at every call, of which none can be.
struct Absurd<'a>(&'a AtomicUsize);

impl IntoArraySpec for Absurd<'_> {
    type Dim = Ix2;
    fn into_spec(self) -> ArraySpec<Ix2> {
        let most = isize::MAX;
        match self.0.fetch_add(1, Ordering::Relaxed) % 6 {
            0 => ArraySpec::new((usize::MAX, 2)),
            1 => ArraySpec::new((usize::MAX / 8, 1)),
            2 => ArraySpec::new((3, 4)).strides(&[most, most]),
            3 => ArraySpec::new((3, 4)).strides(&[0, 8]),
            4 => ArraySpec::new((3, 4)).strides(&[isize::MIN, 8]),
            _ => ArraySpec::new((3, 4)).strides(&[3, 1]),
        }
    }
}

/// Panics instead of a shape.
struct Panicking;

impl IntoArraySpec for Panicking {
    type Dim = IxDyn;
    fn into_spec(self) -> ArraySpec<IxDyn> {
        panic_any("the program's")
    }
}

#[test]
fn an_impossible_shape_is_an_error_everywhere() {
    let (device, asked) = (device(), AtomicUsize::new(0));
    let stream = device.stream().unwrap();
    let absurd = || Absurd(&asked);
    for _ in 0..6 {
        assert!(device.device_array::<u64, _>(absurd()).is_err());
    }
    for _ in 0..6 {
        assert!(device.uninit_array::<u64, _>(absurd()).is_err());
    }
    for _ in 0..6 {
        assert!(stream.device_array::<u64, _>(absurd()).is_err());
    }
    for _ in 0..6 {
        assert!(device.pinned_array::<u64, _>(absurd()).is_err());
    }
    for _ in 0..6 {
        assert!(device.mapped_array::<u64, _>(absurd(), MappedOptions::default()).is_err());
    }
    for _ in 0..6 {
        assert!(device.managed_array::<u64, _>(absurd(), Attach::Global).is_err());
    }
    for _ in 0..6 {
        assert!(device.ipc_array::<u64, _>(absurd()).is_err());
    }
    assert_eq!(asked.load(Ordering::Relaxed), 42, "each is asked once");
    assert!(catch_unwind(AssertUnwindSafe(|| device.device_array::<u8, _>(Panicking))).is_err());
    assert_eq!(device.to_device(&[3_u8; 9]).unwrap().copy_to_host().unwrap().sum(), 27);
    assert_eq!(device.take_errors(), []);
}

/// Panics when it is woken, and again when it is dropped.
struct Wild {
    woken: Arc<AtomicUsize>,
}

impl Wake for Wild {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::Relaxed);
        panic_any("the program's");
    }
}

impl Drop for Wild {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic_any("the program's");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn a_waker_that_panics_stops_no_thread_of_the_library() {
    let device = device();
    let stream = device.stream().unwrap();
    let kernel = slow_fill().load(&device).unwrap();
    let woken = Arc::new(AtomicUsize::new(0));
    let mut array = device.device_array::<u32, _>(30_000_usize).unwrap();
    for turn in 1..=4 {
        kernel.launch(&stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut array,)).unwrap();
        let mut done = pin!(stream.completed());
        let waker = Waker::from(Arc::new(Wild { woken: woken.clone() }));
        assert!(done.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        // One of the two is the last to drop it.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(waker)));
        let (sender, receiver) = std::sync::mpsc::channel();
        stream.add_callback(move |result| sender.send(result).unwrap()).unwrap();
        receiver.recv_timeout(std::time::Duration::from_secs(60)).unwrap().unwrap();
        // Futures and callbacks do not wait for each other. The error is there after the waker was called.
        let begun = std::time::Instant::now();
        let mut errors = 0;
        while errors == 0 && begun.elapsed() < std::time::Duration::from_secs(60) {
            errors = device.take_errors().len();
            std::thread::yield_now();
        }
        assert_eq!((woken.load(Ordering::Relaxed), errors), (turn, 1));
        assert!(done.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
    assert_eq!(array.get(29_999).unwrap(), 1);
}

#[test]
fn an_index_is_evaluated_once() {
    let device = device();
    let stream = device.stream().unwrap();
    let kernel = by_changing_indices().load(&device).unwrap();
    let from = device.to_device(&[5_u32, 6, 7, 8]).unwrap();
    let mut to = device.device_array::<u32, _>(4_usize).unwrap();
    for _ in 0..3 {
        kernel.launch(&stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&from, &mut to)).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(to.copy_to_host().unwrap().to_vec(), [0, 0, 0, 8]);
    }
    // Outside, it is an error of the launch.
    let mut short = device.device_array::<u32, _>(3_usize).unwrap();
    kernel.launch(&stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&from, &mut short)).unwrap();
    assert!(stream.synchronize().unwrap_err().to_string().contains("by_changing"));
}
