//! The engine for GPUs over the double of NCCL keeps nothing of the operations that are done.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_collectives::{Communicator, InPlace, Options, Sum};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicIsize, Ordering},
};

/// Counts the bytes that are allocated.
struct Counting;

static ALLOCATED: AtomicIsize = AtomicIsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes allocated after so many calls.
fn after(
    calls: usize,
    comm: &Comm,
    stream: &Stream,
    array: &mut gpumem_runtime::DeviceArray<i64, ndarray::Ix1, B>,
) -> isize {
    for _ in 0..calls / 500 {
        for _ in 0..500 {
            comm.on(stream).all_reduce(InPlace, array, Sum).unwrap();
        }
        stream.synchronize().unwrap();
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [0, 1]);
    }
    ALLOCATED.load(Ordering::Relaxed)
}

#[test]
fn operations_that_are_done_leave_no_memory() {
    let _alone = alone();
    let comm = Communicator::all_with(&[concurrent()], &Options::new()).unwrap().remove(0);
    let stream = comm.device().stream().unwrap();
    let mut array = stream.to_device(&[0_i64, 1]).unwrap();
    let early = after(5000, &comm, &stream, &mut array);
    let late = after(40_000, &comm, &stream, &mut array);
    // The queue of operations under way may have doubled once more.
    assert!(late - early < 200_000, "{} bytes of 40000 calls are left", late - early);
}
