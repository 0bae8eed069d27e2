//! The caller's memory that failed work was to write is ordinary memory again after it was returned. A separate
//! program: the process has one table.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{double, host};
use gpumem_core::{Backend, POISONED};
use gpumem_host::HostOptions;
use gpumem_kernel::{Kernel, KernelDef, SliceMut, WorkItemIds, config_for_items};
use gpumem_runtime::{Device, Layout, Order};
use ndarray::{Array1, Array2, Ix1, s};
use std::sync::mpsc::{Sender, channel};

type One = (SliceMut<u32>,);

const LEN: usize = 1000;

/// Returns its elements when it is dropped.
#[derive(Debug)]
struct Owner(Option<Array1<u32>>, Sender<Array1<u32>>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.take().map(|elements| self.1.send(elements));
    }
}

fn bad<B: Backend>(device: &Device<B>) -> Kernel<One, B> {
    // SAFETY: there is no source.
    let declaration = unsafe { KernelDef::<One>::new("bad") };
    declaration.host_loop(|_: &WorkItemIds<'_>, (y,): &One| y.set(1 << 30, 0)).load(device).unwrap()
}

/// The elements can be page-locked, read and written again.
#[track_caller]
fn is_ordinary<B: Backend>(device: &Device<B>, mut elements: Array1<u32>) -> Array1<u32> {
    elements.fill(7);
    let read = device.mapped([elements.view_mut()], |locked| {
        let first = locked[0].view().map(|view| view[0]);
        let uploaded = device.to_device(&locked[0]).and_then(|array| array.get(LEN - 1));
        (first, uploaded)
    });
    let (first, uploaded) = read.unwrap();
    assert_eq!((first.unwrap(), uploaded.unwrap()), (7, 7));
    let registered = device.register_mapped(elements).unwrap();
    assert_eq!(registered.view().unwrap()[5], 7);
    registered.deregister().unwrap()
}

fn memory_goes_back<B: Backend>(device: &Device<B>, seed: u64) {
    let (bad, stream) = (bad(device), device.stream().unwrap());
    let once = config_for_items([1, 1, 1], [1, 1, 1]);
    let mut elements = Array1::from_elem(LEN, 1u32);
    for round in 0..8 {
        // Dropped with the kernel under way: its owner has the memory back by the next flush.
        let (sender, receiver) = channel();
        let layout = Layout::packed(&[LEN], size_of::<u32>(), Order::C).unwrap();
        let lowest = elements.as_mut_ptr().cast::<u8>();
        let owner = Owner(Some(elements), sender);
        // SAFETY: the owner keeps the elements, which lie on the heap and have no other user.
        let locked = unsafe { device.register_foreign_mapped::<u32, Ix1, _>(lowest, &layout, owner) };
        let mut locked = locked.unwrap();
        bad.launch(&stream, &once, (&mut locked.device_view_mut(),)).unwrap();
        if round % 2 == 0 {
            assert!(stream.synchronize().is_err());
        }
        drop(locked);
        let _ = stream.synchronize();
        device.flush().unwrap();
        elements = is_ordinary(device, receiver.try_recv().unwrap());
        assert!(!POISONED.is_any(), "seed {seed}, round {round}");
        // Page-locked for a scope whose closure does not wait.
        let told = device.mapped([elements.view_mut()], |locked| {
            bad.launch(&stream, &once, (&mut locked[0].device_view_mut(),))
        });
        assert!(told.is_err());
        let _ = stream.synchronize();
        elements = is_ordinary(device, elements);
        assert!(!POISONED.is_any(), "seed {seed}, round {round}");
    }
    let _ = device.synchronize();
    let _ = device.take_errors();
}

/// Scopes borrow the elements of their arrays, and not what lies between them.
fn neighbours_keep_their_poison<B: Backend>(device: &Device<B>) {
    let (bad, stream) = (bad(device), device.stream().unwrap());
    let once = config_for_items([1, 1, 1], [1, 1, 1]);
    let mut rows = Array2::from_elem((3, LEN), 1u32);
    let (even, odd) = rows.multi_slice_mut((s![..;2, ..], s![1, ..]));
    let told = device.mapped([odd], |locked| {
        bad.launch(&stream, &once, (&mut locked[0].device_view_mut(),)).unwrap();
        let _ = stream.synchronize();
        assert!(locked[0].view().is_err());
        // Its rows lie around the other.
        device.pinned([even], |_| ()).unwrap();
        assert!(locked[0].view().is_err(), "the other scope has written none of these elements");
    });
    assert!(told.is_err());
    assert!(!POISONED.is_any());
    // The other way round: what fails in the gaps is not this scope's.
    let (even, odd) = rows.multi_slice_mut((s![..;2, ..], s![1, ..]));
    device
        .mapped([even], |_| {
            let told = device.mapped([odd], |locked| {
                bad.launch(&stream, &once, (&mut locked[0].device_view_mut(),)).unwrap();
                let _ = stream.synchronize();
            });
            assert!(told.is_err());
        })
        .unwrap();
    assert!(!POISONED.is_any());
    let _ = device.synchronize();
    let _ = device.take_errors();
}

// One test: the process has one table.
#[test]
fn returned_memory_is_ordinary_again() {
    for seed in 0..10 {
        let options = || HostOptions::new().adversarial(seed).memory(64 << 20);
        memory_goes_back(&host(options()).0, seed);
        memory_goes_back(&host(HostOptions::new()).0, seed);
        memory_goes_back(&double(options()).0, seed);
        neighbours_keep_their_poison(&host(options()).0);
        neighbours_keep_their_poison(&double(options()).0);
    }
}
