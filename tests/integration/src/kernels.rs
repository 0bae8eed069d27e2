//! The little that is `unsafe` in tests which are not: honest kernels, and the start of a device anew.

use gpumem_core::{Backend, Result};
use gpumem_kernel::{ConstantArray, Indices, KernelDef, Slice, SliceMut, View, ViewMut};
use gpumem_runtime::Device;
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread::sleep,
    time::Duration,
};

/// Writes a value into every element.
pub fn fill() -> KernelDef<(SliceMut<u32>, u32)> {
    // SAFETY: each work-item writes its own element.
    let declaration = unsafe { KernelDef::<(SliceMut<u32>, u32)>::new("fill") };
    declaration.host_loop(|ids, (out, value)| {
        let i = ids.global_id(0);
        if i < out.len() {
            out.set(i, *value);
        }
    })
}

/// Writes 1 into every element, in one work-item that takes its time.
pub fn slow_fill() -> KernelDef<(SliceMut<u32>,)> {
    // SAFETY: one work-item.
    let declaration = unsafe { KernelDef::<(SliceMut<u32>,)>::new("slow_fill") };
    declaration.host_loop(|_, (out,)| {
        for i in 0..out.len() {
            out.set(i, 1);
            if i.is_multiple_of(1024) {
                sleep(Duration::from_millis(1));
            }
        }
    })
}

/// Copies element by element, and takes its time.
pub fn slow_copy() -> KernelDef<(Slice<u32>, SliceMut<u32>)> {
    // SAFETY: each work-item writes its own element.
    let declaration = unsafe { KernelDef::<(Slice<u32>, SliceMut<u32>)>::new("slow_copy") };
    declaration.host_loop(|ids, (from, to)| {
        let i = ids.global_id(0);
        if i.is_multiple_of(256) {
            sleep(Duration::from_micros(100));
        }
        if i < to.len() {
            to.set(i, from.get(i));
        }
    })
}

/// Adds elements up on other threads, checked.
pub fn threaded_sum() -> KernelDef<(Slice<u32>,)> {
    // SAFETY: nothing is written.
    let declaration = unsafe { KernelDef::<(Slice<u32>,)>::new("threaded_sum") };
    declaration.race_checks(true).host_loop(|_, (data,)| {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let sum = (0..data.len()).fold(0, |sum, at| sum + u64::from(data.get(at)));
                    assert_eq!(sum, data.len() as u64);
                });
            }
        });
    })
}

/// Takes some 20 ms, and holds a value for as long as the kernel is loaded.
pub fn holding<V: Send + Sync + 'static>(value: V) -> KernelDef<(u32,)> {
    // SAFETY: nothing is used.
    let declaration = unsafe { KernelDef::<(u32,)>::new("holding") };
    declaration.host_loop(move |_, _| {
        let _ = &value;
        sleep(Duration::from_millis(20));
    })
}

/// Calls back, once in every work-item.
pub fn calling(body: impl Fn() + Send + Sync + 'static) -> KernelDef<(u32,)> {
    // SAFETY: nothing is used.
    let declaration = unsafe { KernelDef::<(u32,)>::new("calling") };
    declaration.host_loop(move |_, _| body())
}

/// Copies a constant array, and calls back before, once in every work-item.
pub fn of_constants(
    body: impl Fn() + Send + Sync + 'static,
) -> KernelDef<(ConstantArray<u32, 1>, SliceMut<u32>)> {
    // SAFETY: each work-item writes its own element.
    let declaration = unsafe { KernelDef::<(ConstantArray<u32, 1>, SliceMut<u32>)>::new("of_constants") };
    declaration.host_loop(move |ids, (constants, out)| {
        body();
        out.set(ids.global_id(0), constants.get([ids.global_id(0)]));
    })
}

/// An index that is 3 at the first look, and outside at every other.
#[derive(Debug, Clone, Copy)]
struct Changing<'a>(&'a AtomicUsize);

impl Indices<1> for Changing<'_> {
    fn positions(self) -> [usize; 1] {
        [if self.0.fetch_add(1, Ordering::Relaxed) == 0 { 3 } else { usize::MAX }]
    }
}

/// Reads at an index that changes, and writes the value at another index that changes, once in each work-item.
pub fn by_changing_indices() -> KernelDef<(View<u32, 1>, ViewMut<u32, 1>)> {
    // SAFETY: the launches are of one work-item.
    let declaration = unsafe { KernelDef::<(View<u32, 1>, ViewMut<u32, 1>)>::new("by_changing") };
    declaration.host_loop(|_, (from, to)| {
        let (read, write) = (AtomicUsize::new(0), AtomicUsize::new(0));
        to.set(Changing(&write), from.get(Changing(&read)));
        assert_eq!((read.into_inner(), write.into_inner()), (1, 1), "each is asked once");
    })
}

/// Starts a device anew.
///
/// # Errors
/// As [`Device::reset`].
pub fn reset<B: Backend>(device: &Device<B>) -> Result<()> {
    // SAFETY: the tests that call this use the device from one thread.
    unsafe { device.reset() }
}
