//! Elements that no stack has room for.
#![allow(clippy::unwrap_used, large_assignments)] // helpers of tests

use gpumem::{
    Device, DeviceRecord, ErrorKind,
    kernel::{InOut, Out, config_for_items, prelude::*},
};

/// 16 MiB, of which a kernel uses a few bytes.
#[derive(Clone, Copy, DeviceRecord)]
#[repr(C)]
struct Row {
    first: u32,
    rest: [u8; 16 << 20],
    last: u32,
}

// SAFETY: each work-item uses its own element of `y`, and one of them writes to `rows`.
#[gpumem::kernel(unsafe)]
fn parts(rows: SliceMut<Row>, y: SliceMut<u32>) {
    let i = global_id(0);
    if i == 0 {
        rows[1].first = 7;
        rows[1].last = 5;
        y[0] = rows[1].first + rows[1].last;
    } else {
        y[i] = rows[0].first + rows[0].last;
    }
}

#[test]
fn elements_larger_than_the_stack_are_made_and_used_in_parts() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    let (mut in_order, mut blocking) =
        (stream.device_array::<Row, _>(2).unwrap(), device.device_array::<Row, _>(2).unwrap());
    for check in [false, true] {
        let kernel = parts().race_checks(check).load(&device).unwrap();
        let dims = config_for_items(4, 4);
        for rows in [&mut in_order, &mut blocking] {
            let mut y = [1; 4];
            kernel.launch(&stream, &dims, (rows, InOut(&mut y))).unwrap();
            assert_eq!(y, [12, 0, 0, 0]);
        }
        let (mut y, mut rows) = ([1; 4], blocking.copy_to_host().unwrap());
        kernel.launch(&stream, &dims, (Out(&mut rows), InOut(&mut y))).unwrap();
        assert_eq!((y, rows[0].first, rows[1].first, rows[1].last), ([12, 0, 0, 0], 0, 7, 5));
    }
}

/// More than any host has.
#[derive(Clone, Copy, DeviceRecord)]
#[repr(C)]
struct Vast {
    first: u32,
    rest: [u8; 1 << 45],
    inner: Inner,
}

#[derive(Clone, Copy, DeviceRecord)]
#[repr(C)]
struct Inner {
    last: u32,
}

#[gpumem::kernel]
fn lengths(rows: Slice<Vast>, y: Own<u64>) {
    y[own()] = rows.len() as u64;
}

// SAFETY: it is never launched.
#[gpumem::kernel(unsafe)]
fn shared_beyond_all_memory(y: SliceMut<u32>) {
    let many = shared::<u32>([1 << 40, 1 << 40]);
    let more = shared::<u64>([1 << 62]);
    many[[0, 0]] = 1;
    more[0] = 1;
    y[0] = many[[0, 0]] + more[0] as u32;
}

#[test]
fn declarations_of_vast_types_are_declared() {
    let text = lengths().source_text().unwrap().to_owned();
    for declared in ["u32 first_;", "array<u8, 35184372088832> rest_;", "Inner_", "u32 last_;"] {
        assert!(text.contains(declared), "{declared}: {text}");
    }
}

// SAFETY: there is one work-item.
#[gpumem::kernel(unsafe)]
fn most_shared(y: SliceMut<u32>) {
    let many = shared::<u32>([12287]);
    let few = shared::<u8>([4]);
    many[12286] = 1;
    few[3] = 2;
    y[0] = many[12286] + few[3] as u32;
}

// SAFETY: it is never launched.
#[gpumem::kernel(unsafe)]
fn more_shared(y: SliceMut<u32>) {
    let many = shared::<u32>([12287]);
    let few = shared::<u8>([5]);
    many[12286] = 1;
    few[3] = 2;
    y[0] = many[12286] + few[3] as u32;
}

#[test]
fn shared_arrays_have_the_room_of_every_device() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    for kernel in [more_shared(), shared_beyond_all_memory(), shared_beyond_all_memory().shared_bytes(0)] {
        let error = kernel.load(&device).unwrap_err();
        assert!(error.to_string().contains("bytes together"), "{error}");
    }
    let mut y = [0];
    let dims = config_for_items(1, 1);
    most_shared().load(&device).unwrap().launch(&stream, &dims, (InOut(&mut y),)).unwrap();
    assert_eq!(y, [3]);
    // The number of bytes is no part of the seal: the body's own allocation is what is checked in the end.
    for kernel in [most_shared(), most_shared().shared_bytes(0)] {
        let (kernel, dims) = (kernel.load(&device).unwrap(), dims.shared_bytes(32 << 10));
        let error = kernel.launch(&stream, &dims, (InOut(&mut y),)).unwrap_err();
        assert!(error.to_string().contains("shared memory"), "{error}");
    }
}

/// The most that one variable may have, kept across a barrier.
#[gpumem::kernel]
fn kept(y: Own<f32>) {
    let mut a = local::<f32>([131072]);
    a[local_id(0)] = 1.0;
    wavebarrier();
    y[own()] = a[local_id(0)];
}

/// More than a thread of Rust has.
#[gpumem::kernel]
fn six(y: Own<f32>) {
    let i = global_id(0);
    let mut a = local::<f32>([131072]);
    let mut b = local::<f32>([131072]);
    let mut c = local::<f32>([131072]);
    let mut d = local::<f32>([131072]);
    let mut e = local::<f32>([131072]);
    let mut f = local::<f32>([131072]);
    a[i] = 1.0;
    b[i + 1] = a[i];
    c[i + 2] = b[i + 1];
    d[i + 3] = c[i + 2];
    e[i + 4] = d[i + 3];
    f[i + 5] = e[i + 4];
    y[own()] = f[i + 5];
}

#[test]
fn variables_have_the_stack_of_a_worker_on_any_thread() {
    // A thread as Rust starts it. It waits for each launch, and would run some of them.
    let waits = || {
        let device = Device::open("host").unwrap();
        let stream = device.stream().unwrap();
        for kernel in [kept().load(&device).unwrap(), six().load(&device).unwrap()] {
            for _ in 0..10 {
                let mut y = [0.0f32; 8];
                kernel.launch(&stream, &config_for_items(8, 4), (Out(&mut y),)).unwrap();
                assert_eq!(y, [1.0; 8]);
            }
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(waits).unwrap().join().unwrap();
}

/// Five variables of 480,000 bytes: less than the stack of a thread, and more than there is room for where work-items wait.
macro_rules! five {
    ($(#[$kernel:meta] $name:ident $wait:block)*) => {$(
        #[$kernel]
        fn $name(y: Own<u32>) {
            let mut a = [1u32; 120000];
            let mut b = [2u32; 120000];
            let mut c = [3u32; 120000];
            let mut d = [4u32; 120000];
            let mut e = [5u32; 120000];
            let i = local_id(0);
            a[i] = b[i] + c[i];
            $wait;
            b[i] = a[i] + d[i];
            c[i] = b[i] + e[i];
            $wait;
            d[i] = c[i];
            e[i] = d[i];
            y[own()] = a[i] + b[i] + c[i] + d[i] + e[i];
        }
    )*};
}
five! {
    #[gpumem::kernel] five {}
    #[gpumem::kernel] five_in_phases { barrier(Local); }
    // SAFETY: each work-item writes its own element, and all come to the same operations.
    #[gpumem::kernel(unsafe)] five_that_wait { let all = wave_sum(1u32) + wave_sum(2u32); assert!(all > 0); }
}

#[gpumem::device]
fn many(i: u64) -> u32 {
    let mut a = [1u32; 120000];
    let mut b = [2u32; 120000];
    let mut c = [3u32; 120000];
    let mut d = [4u32; 120000];
    a[0] = 1;
    b[0] = 1;
    c[0] = 1;
    d[0] = 1;
    a[i as usize] + b[i as usize] + c[i as usize] + d[i as usize]
}

/// Its variables and those of a function: two calls are one after the other.
#[gpumem::kernel]
fn calls(y: Own<u32>) {
    let mut a = [1u32; 120000];
    let mut b = [2u32; 120000];
    a[0] = many(0);
    b[0] = many(1);
    y[own()] = a[0] + b[0];
}

#[gpumem::kernel]
fn calls_with_more(y: Own<u32>) {
    let mut a = [1u32; 120000];
    let mut b = [2u32; 120000];
    let mut c = [2u32; 120000];
    let mut d = [2u32; 120000];
    a[0] = many(0);
    b[0] = many(1);
    c[0] = a[0];
    d[0] = b[0];
    y[own()] = c[0] + d[0];
}

#[test]
fn variables_without_room_are_an_error_and_do_not_end_the_process() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    for (kernel, sum) in [(five(), 5 + 9 + 14 * 3), (calls(), 4 + 10)] {
        let mut y = [0; 8];
        let kernel = kernel.load(&device).unwrap();
        kernel.launch(&stream, &config_for_items(8, 4), (Out(&mut y),)).unwrap();
        assert_eq!(y, [sum; 8]);
    }
    for kernel in [five_in_phases(), five_that_wait(), calls_with_more()] {
        // The launch of one that waits would end the process.
        let launched = kernel
            .load(&device)
            .and_then(|kernel| kernel.launch(&stream, &config_for_items(8, 4), (Out(&mut [0; 8]),)));
        assert!(launched.unwrap_err().to_string().contains("bytes together"));
    }
}

/// As large as an element may be of which a part is found on the stack.
#[derive(Clone, Copy, DeviceRecord)]
#[repr(C)]
struct Wide {
    first: u32,
    rest: [u32; 16382],
    last: u32,
}

/// Uses 192 parts: room for an element each would be more than a thread has.
macro_rules! many_parts {
    ($($at:literal)*) => {
        #[gpumem::kernel]
        fn many_parts(x: Slice<Wide>, y: Own<u32>) {
            let mut sum = 0u32;
            $( sum += x[0].first + x[0].rest[$at] + x[0].last; )*
            y[own()] = sum;
        }
    };
}
many_parts! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
}

#[test]
fn parts_of_large_elements_take_turns_on_the_stack() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    let x = device.to_device(&[Wide { first: 1, rest: [2; 16382], last: 3 }]).unwrap();
    let mut y = [0; 2];
    many_parts().load(&device).unwrap().launch(&stream, &config_for_items(2, 2), (&x, Out(&mut y))).unwrap();
    assert_eq!(y, [64 * 6; 2]);
}

/// Without bytes in Rust: an array without elements has one in C++.
const VAST: [[u32; 0]; 1 << 40] = [[]; 1 << 40];
const VASTER: [[[u32; 0]; 1 << 40]; 1 << 40] = [VAST; 1 << 40];
/// A little more than there is constant memory.
const MANY: [[u64; 0]; 8193] = [[]; 8193];

#[gpumem::kernel]
fn counts_vast(y: Own<u64>) {
    y[own()] = VAST.len() as u64;
}

#[gpumem::kernel]
fn counts_vaster(y: Own<u64>) {
    y[own()] = VASTER.len() as u64;
}

#[gpumem::kernel]
fn counts_many(y: Own<u64>) {
    y[own()] = MANY.len() as u64;
}

#[test]
fn constants_that_no_device_has_room_for_are_refused_and_not_printed() {
    let device = Device::open("host").unwrap();
    for kernel in [counts_vast(), counts_vaster(), counts_many()] {
        let error = kernel.load(&device).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Build { .. }), "{error}");
        assert!(error.to_string().contains("constants that are arrays"), "{error}");
    }
}
