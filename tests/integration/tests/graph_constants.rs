//! A graph with more elements of the host than the host can hold once more.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use gpumem_core::ErrorKind;
use gpumem_host::Host;
use gpumem_runtime::Device;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicBool, Ordering},
};

const MIB: usize = 1 << 20;
const ARRAYS: usize = 3;

/// Has no room for all constants together, while it is told so.
struct Short;

static IS_SHORT: AtomicBool = AtomicBool::new(false);

// SAFETY: it allocates by the system's allocator, or not at all.
unsafe impl GlobalAlloc for Short {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Memory of the device is aligned.
        if IS_SHORT.load(Ordering::Relaxed) && layout.size() >= ARRAYS * MIB && layout.align() == 1 {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Short = Short;

#[test]
fn constants_without_room_on_the_host_are_an_error() {
    let device = Device::<Host>::open("host").unwrap();
    let elements = vec![7_u8; MIB];
    let record = || {
        device.record((), |stream, ()| {
            let all =
                (0..ARRAYS).map(|_| stream.to_device(&elements)).collect::<gpumem_core::Result<Vec<_>>>()?;
            let mut sum = stream.device_array::<u8, _>(MIB)?;
            all.iter().try_for_each(|one| stream.copy_to_device(&mut sum, one))?;
            stream.copy_to_host(&sum)
        })
    };
    IS_SHORT.store(true, Ordering::Relaxed);
    let refused = record();
    IS_SHORT.store(false, Ordering::Relaxed);
    let error = refused.unwrap_err();
    let ErrorKind::OutOfMemory { requested, kind: "host", .. } = error.kind() else { panic!("{error}") };
    assert_eq!(*requested, ARRAYS * MIB);
    // Nothing is left of it.
    let graph = record().unwrap();
    assert_eq!(graph.report().constant_bytes, ARRAYS * MIB);
    let stream = device.stream().unwrap();
    assert_eq!(graph.launch(&stream, ()).unwrap().view().unwrap().to_vec(), elements);
}
