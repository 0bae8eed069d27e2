//! A pool's free blocks under AddressSanitizer. Each case runs in a child process, because the sanitizer ends the process
//! that it catches; `cargo xtask ci asan` builds this with `-Zsanitizer=address --cfg gpumem_asan`.
#![cfg(gpumem_asan)]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests")]

use gpumem_core::MemoryKind;
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device,
    memory::{Pool, PoolOptions, Trim},
};
use std::{
    ffi::c_void,
    process::{Command, Output},
    ptr,
    sync::Arc,
};

unsafe extern "C" {
    fn __asan_unpoison_memory_region(start: *const c_void, bytes: usize);
}

/// Which case a child runs.
const CASE: &str = "GPUMEM_SANITIZER_CASE";
const BYTES: usize = 4096;

/// A device with a pool of one piece, which stays when its blocks are free: no `free` of the system hides in here.
fn device() -> Device<Host> {
    let device = Device::from_raw(Host::open_with(&HostOptions::new().memory(1 << 20)).unwrap());
    let options = PoolOptions::device(256).chunks(1 << 19, 1 << 19);
    device
        .set_memory_resource(MemoryKind::Device, Arc::new(Pool::new(device.driver_memory(), options)))
        .unwrap();
    device
}

/// Reads or writes one byte as an array's last use that comes too late.
fn touch(address: u64, write: bool) {
    let byte = ptr::with_exposed_provenance_mut::<u8>(address as usize);
    // SAFETY: the byte lies in a piece that the pool still holds. The sanitizer is to report that it is not allocated.
    unsafe {
        match write {
            true => byte.write_volatile(7),
            false => _ = byte.read_volatile(),
        }
    }
}

/// Address of an array that has been dropped.
fn dropped(device: &Device<Host>) -> u64 {
    let array = device.uninit_array::<u8, _>(BYTES).unwrap().fill(1).unwrap();
    let address = array.address();
    device.synchronize().unwrap();
    drop(array);
    address
}

/// The actions of a child; those whose name begins with `caught` must not come to an end.
fn run(case: &str) {
    let device = device();
    // Something else stays in the piece, so that it is never free as a whole.
    let neighbour = device.uninit_array::<u8, _>(BYTES).unwrap().fill(2).unwrap();
    match case {
        "caught: a read after the drop" => touch(dropped(&device) + 100, false),
        "caught: a write after the drop" => touch(dropped(&device) + BYTES as u64 - 1, true),
        "caught: past the end, in unallocated memory" => touch(neighbour.address() + BYTES as u64, true),
        "caught: in a piece that was never allocated" => {
            // The piece is much larger than its allocated part.
            let (start, bytes) = neighbour.driver_block();
            touch(start + bytes as u64 - 1, false);
        }
        "caught: after work on a stream that is done" => {
            let stream = device.stream().unwrap();
            let array = stream.device_array::<u8, _>(BYTES).unwrap();
            let address = array.address();
            drop(array);
            stream.synchronize().unwrap();
            // The pool learns that the work is done when it looks.
            device.trim(Trim { keep: usize::MAX, ..Trim::UNUSED }).unwrap();
            touch(address, false);
        }
        "passes: the same read without the poison" => {
            let address = dropped(&device);
            // SAFETY: only tells the sanitizer that the bytes may be used.
            unsafe { __asan_unpoison_memory_region(ptr::without_provenance(address as usize), BYTES) };
            touch(address + 100, false);
        }
        "passes: the same bytes, allocated again" => {
            let address = dropped(&device);
            let again = device.uninit_array::<u8, _>(BYTES).unwrap().fill(3).unwrap();
            assert_eq!(again.address(), address);
            touch(address, true);
            assert_eq!(again.get(1).unwrap(), 3);
        }
        "passes: pieces that were freed and taken again" => {
            let array = device.uninit_array::<u8, _>(1 << 18).unwrap();
            drop((array, neighbour));
            assert!(device.trim(Trim::ALL).unwrap() > 0);
            // The system's memory is not poisoned by us any more: it may give the bytes to anybody.
            let all = vec![1u8; 1 << 19];
            assert!(all.iter().all(|byte| *byte == 1));
            let array = device.uninit_array::<u8, _>(1 << 18).unwrap().fill(4).unwrap();
            assert_eq!(array.copy_to_host().unwrap(), ndarray::Array1::from_elem(1 << 18, 4));
            return;
        }
        other => panic!("no case {other}"),
    }
    assert_eq!(neighbour.get(0).unwrap(), 2);
}

fn child(case: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child_of_a_case", "--exact", "--nocapture", "--test-threads=1"]).env(CASE, case);
    command.output().unwrap()
}

/// Not a test by itself: the children run it.
#[test]
fn child_of_a_case() {
    if let Ok(case) = std::env::var(CASE) {
        run(&case);
    }
}

#[test]
fn a_use_after_free_inside_a_pool_is_caught() {
    let caught = [
        "caught: a read after the drop",
        "caught: a write after the drop",
        "caught: past the end, in unallocated memory",
        "caught: in a piece that was never allocated",
        "caught: after work on a stream that is done",
    ];
    for case in caught {
        let output = child(case);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("use-after-poison"), "{case}: {said}");
    }
}

/// It is the poison that catches them: the memory of a pool is alive as far as the sanitizer can see.
#[test]
fn without_poison_nothing_is_caught_and_allocated_memory_is_not_poisoned() {
    let passes = [
        "passes: the same read without the poison",
        "passes: the same bytes, allocated again",
        "passes: pieces that were freed and taken again",
    ];
    for case in passes {
        let output = child(case);
        assert!(output.status.success(), "{case}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("1 passed"),
            "{case}: the child ran nothing"
        );
    }
}
