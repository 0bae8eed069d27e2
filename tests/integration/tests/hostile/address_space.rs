//! A process with little address space: every call succeeds or returns a typed error, and freed memory can be allocated
//! again.
//!
//! Only blocks that may be large are asked for in ways that can fail. The standard library ends a process that has no room for
//! a few bytes, so that some room is left here.

use super::{DONE, child, is_done, task_of_child};
use gpumem::{
    Device, DeviceArray, ErrorKind, PinnedArray, Result,
    kernel::{In, Out, config_for_items},
    memory::Trim,
    trace::{RecorderOptions, ReplayOptions, Trace, TraceThread},
};
use gpumem_integration::slow_copy;
use ndarray::Array1;
use std::{fs, hint::black_box};

/// Heap blocks that are left for the standard library's requests, and their size.
const ROOM: (usize, usize) = (128, 64 << 10);

/// Keeps room in the heap: it does not shrink, every block of some size is outside of it, and all threads share it.
fn keep_room() {
    // SAFETY: sets numbers.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
    drop(black_box((0..ROOM.0).map(|_| vec![1_u8; ROOM.1]).collect::<Vec<_>>()));
}

/// Lets the process have so many bytes of address space more.
fn allow_more(bytes: usize) {
    let status = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = status.split(' ').next().unwrap().parse().unwrap();
    // SAFETY: asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let most = (pages * page + bytes) as libc::rlim_t;
    let limit = libc::rlimit { rlim_cur: most, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a valid limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}

/// Whether a call succeeded. An error is one of too little memory, or of too few threads.
fn succeeds<T>(result: Result<T>) -> Option<T> {
    let is_expected = |error: &gpumem::Error| match error.kind() {
        ErrorKind::OutOfMemory { .. } => true,
        ErrorKind::Unsupported { what } => what.contains("thread"),
        _ => false,
    };
    result.map_err(|error| assert!(is_expected(&error), "{error}")).ok()
}

/// All calls that allocate in proportion to their argument.
fn storm(device: &Device, bytes: usize) {
    let Some(stream) = succeeds(device.stream()) else { return };
    let mut kept: Vec<(DeviceArray<u8>, Option<PinnedArray<u8>>)> = Vec::new();
    let mut failed = 0;
    while failed < 10 && kept.len() < 4000 {
        let Some(array) = succeeds(stream.device_array::<u8, _>(bytes)) else {
            failed += 1;
            continue;
        };
        let pinned = succeeds(stream.copy_to_host(&array));
        failed += usize::from(pinned.is_none());
        kept.push((array, pinned));
    }
    assert!(failed > 0, "there is room for {} times {bytes} bytes", kept.len());
    for (array, _) in kept.iter().take(3) {
        if let Some(host) = succeeds(array.copy_to_host()) {
            assert!(host.iter().all(|byte| *byte == 0));
        }
        let _ = (succeeds(array.try_clone()), succeeds(device.pinned_array::<u8, _>(bytes)));
        let _ =
            (succeeds(array.reshape_copy((bytes / 2, 2), gpumem::Order::F)), succeeds(stream.record_event()));
        let _ = (succeeds(stream.add_callback(|_| ())), succeeds(device.memory_info()));
        let _ = (
            succeeds(device.managed_array::<u8, _>(bytes, gpumem::Attach::Global)),
            succeeds(device.stream()),
        );
    }
    if let Some((first, _)) = kept.first_mut() {
        let _ = (succeeds(first.fill(1)), succeeds(first.get(bytes - 1)));
    }
    drop(kept);
    succeeds(device.synchronize()).unwrap();
    succeeds(device.flush()).unwrap();
    device.trim(Trim::ALL).unwrap();
}

/// Work that needs threads, which there is no room for at times.
fn threads(device: &Device) {
    let Some(stream) = succeeds(device.stream()) else { return };
    let Some(kernel) = succeeds(slow_copy().load(device)) else { return };
    let (from, mut to) = (vec![7_u32; 5000], vec![0_u32; 5000]);
    let dims = config_for_items([5000, 1, 1], [50, 1, 1]);
    if succeeds(kernel.launch(&stream, &dims, (In(&from), Out(&mut to)))).is_some() {
        assert_eq!(to, from);
    }
    let mut host = Array1::<u8>::zeros(1 << 20);
    let scoped = stream.scope(|scope| {
        let array = scope.stream().device_array::<u8, _>(1 << 20)?;
        scope.copy_to_host(&array, host.view_mut())
    });
    let _ = succeeds(scoped.and_then(|copied| copied));
}

/// A trace of as many threads as there is no room for: none of them is waited for.
fn replay(device: &Device) {
    let Some(recording) = succeeds(device.record_memory(RecorderOptions::default())) else { return };
    let Some(array) = succeeds(device.device_array::<u8, _>(100)) else { return };
    drop(array);
    let mut trace: Trace = recording.finish();
    let allocation = trace.allocations[0].clone();
    for number in 1..2000_u32 {
        trace.threads.push(TraceThread { number: u64::from(number), name: None });
        trace.allocations.push(allocation.clone());
        let what = gpumem::trace::TraceEventKind::Allocate { memory: number };
        trace.events.push(gpumem::trace::TraceEvent { time: trace.span, thread: number, what });
    }
    trace.check().unwrap();
    let replayed =
        device.replay_memory(&trace, ReplayOptions::default(), |kind| device.memory_resource(kind));
    assert!(replayed.unwrap_err().to_string().contains("threads"));
    let alone = ReplayOptions { threads: false, ..ReplayOptions::default() };
    let report = device.replay_memory(&trace, alone, |kind| device.memory_resource(kind)).unwrap();
    assert_eq!(report.threads, 1);
}

#[test]
fn too_little_address_space_is_an_error() {
    let test = "address_space::too_little_address_space_is_an_error";
    if let Some(task) = task_of_child(60) {
        let device = Device::open("host").unwrap();
        keep_room();
        let (mebibytes, bytes) = task.split_once(' ').unwrap();
        allow_more(mebibytes.parse::<usize>().unwrap() << 20);
        for _ in 0..3 {
            if bytes == "threads" {
                threads(&device);
            } else if bytes == "replay" {
                replay(&device);
            } else {
                storm(&device, bytes.parse().unwrap());
            }
        }
        println!("{DONE}");
        return;
    }
    for mebibytes in [16, 60] {
        for bytes in ["threads", "300000", "9000001"] {
            let output = child(test, &format!("{mebibytes} {bytes}")).output().unwrap();
            assert!(is_done(&output), "{mebibytes} MiB, {bytes}: {output:?}");
        }
    }
    // With large stacks, what is left when a thread has no room for its own is enough for what the standard library maps
    // for the threads that start meanwhile: it ends a process that cannot have that.
    let output = child(test, "200 replay").env("RUST_MIN_STACK", (32 << 20).to_string()).output().unwrap();
    assert!(is_done(&output), "replay: {output:?}");
}
