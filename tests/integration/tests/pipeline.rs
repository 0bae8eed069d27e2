//! Copies of the caller's memory through the pipeline of page-locked blocks: the results, and memory that is never
//! touched afterwards.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{double, is_clean, packing_double};
use gpumem_core::{Error, ErrorKind};
use gpumem_host::HostOptions;
use gpumem_runtime::{Device, NonTemporalStores, TransferOptions};
use host_double::{Double, DoubleDevice, DoubleOptions, Script, Trouble};
use ndarray::{Array1, Array2, s};
use std::{
    collections::HashSet,
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
    time::{Duration, Instant},
};

const UNTOUCHED: u32 = 0xDEAD_BEEF;

/// Several threads and small pieces, so that a little array is a long transfer.
fn options() -> TransferOptions {
    TransferOptions::new().threads(4).block_bytes(16 << 10).parallel_bytes(1).single_block_bytes(0)
}

fn ring(host: HostOptions) -> (Device<Double>, DoubleDevice) {
    let (device, raw) = double(host);
    device.set_transfer_options(options());
    (device, raw)
}

/// As [`ring`], and the device walks any layout in its own memory.
fn packing_ring() -> (Device<Double>, DoubleDevice) {
    let (device, raw) = packing_double(HostOptions::new());
    device.set_transfer_options(options());
    (device, raw)
}

fn numbers(rows: usize, columns: usize) -> Array2<u32> {
    Array2::from_shape_fn((rows, columns), |(i, j)| (i * columns + j) as u32)
}

/// 2 MiB: 128 pieces.
fn big() -> Array1<u32> {
    Array1::from_iter(0..(512 << 10))
}

#[test]
fn every_layout_arrives_and_gaps_are_unchanged() {
    for (stores, packing) in [(NonTemporalStores::Never, false), (NonTemporalStores::Always, true)] {
        let (device, raw) = if packing { packing_ring() } else { ring(HostOptions::new()) };
        device.set_transfer_options(options().non_temporal_stores(stores));
        let base = numbers(300, 517);
        let views = [
            base.slice(s![.., ..]),
            base.slice(s![.., ..;2]),
            base.slice(s![..;-1, ..;3]),
            base.slice(s![10..290, 3..500]),
            base.slice(s![..;-2, ..;-1]),
        ];
        for view in views.iter().flat_map(|view| [view.view(), view.t()]) {
            let array = device.to_device(&view).unwrap();
            assert_eq!(array.copy_to_host().unwrap(), view);
            // Into every second column of something else, and one row and column from the edges.
            let mut wide = Array2::from_elem((view.nrows() + 2, 2 * view.ncols() + 2), UNTOUCHED);
            let mut expected = wide.clone();
            let inner = s![1..=view.nrows(), 1..=2 * view.ncols();2];
            let inner_t = s![1..=2 * view.ncols();2, 1..=view.nrows()];
            expected.slice_mut(inner).assign(&view);
            array.copy_to_host_into(wide.slice_mut(inner)).unwrap();
            assert_eq!(wide, expected);
            // From and to every second column on the device.
            let mut array = device.to_device(&Array2::from_elem(expected.raw_dim(), UNTOUCHED)).unwrap();
            array.slice_mut(inner).unwrap().copy_to_device(&view).unwrap();
            assert_eq!(array.copy_to_host().unwrap(), expected);
            assert_eq!(array.slice(inner).unwrap().copy_to_host().unwrap(), view);
            assert_eq!(array.t().slice(inner_t).unwrap().copy_to_host().unwrap(), view.t());
        }
        assert_eq!(raw.host().counters().strided_copies > 0, packing);
        let spread = ndarray::arr0(7u32);
        let mut array = device.device_array::<u32, _>((300, 517)).unwrap();
        array.assign(&spread).unwrap();
        assert!(array.copy_to_host().unwrap().iter().all(|value| *value == 7));
        drop(array);
        is_clean(&device, raw.host());
    }
}

/// Whatever the schedule delays and tears: blocks are not used again before the copy out of or into them is done.
#[test]
fn no_schedule_mixes_up_the_blocks() {
    for seed in 0..24 {
        let (device, raw) = ring(HostOptions::new().adversarial(seed));
        device.set_transfer_options(options().block_bytes(4 << 10).threads(1 + seed as usize % 3));
        let base = numbers(64, 257);
        let (one, two) = (device.stream().unwrap(), device.stream().unwrap());
        let array = one.to_device(&base).unwrap();
        let mut copy = two.to_device(&array).unwrap();
        two.copy_to_device(&mut copy, &base.slice(s![..;-1, ..])).unwrap();
        let mut host = Array2::zeros((64, 257));
        copy.copy_to_host_into(host.view_mut()).unwrap();
        assert_eq!(host, base.slice(s![..;-1, ..]), "seed {seed}");
        assert_eq!(array.copy_to_host().unwrap(), base, "seed {seed}");
        drop((array, copy, one, two));
        is_clean(&device, raw.host());
    }
}

/// Threads that call the driver at the same time hold each other up there.
#[test]
fn uploads_call_the_driver_from_one_thread() {
    let (device, raw) = ring(HostOptions::new());
    for threads in [2, 4, 12] {
        device.set_transfer_options(options().threads(threads));
        raw.script().begin(None);
        let array = device.to_device(&big()).unwrap();
        assert_eq!(raw.script().callers(), HashSet::from([thread::current().id()]), "{threads} threads");
        assert_eq!(array.copy_to_host().unwrap(), big());
    }
    is_clean(&device, raw.host());
}

/// Parts of the block are copied while others are filled, without a wait, and filled again when they have been copied.
#[test]
fn a_block_is_filled_while_parts_of_it_are_copied() {
    let (device, raw) = double(HostOptions::new().adversarial(3));
    device.set_transfer_options(TransferOptions::new().threads(4));
    // All of it in the block at once, which would take one copy, and more than twice as long as the block.
    for (bytes, rounds) in [(3 << 20, 20), (34 << 20, 2)] {
        let source = Array1::from_iter(0..bytes / 4_u32);
        let mut array = device.device_array::<u32, _>(source.len()).unwrap();
        let (mut copies, mut round) = (0, 0);
        // Where processors are busy, no other thread may come to fill a part for some rounds.
        while round < rounds || copies == u64::from(round) {
            assert!(round < 50 * rounds, "{copies} copies");
            let source = &source + round;
            raw.script().begin(None);
            let before = raw.host().counters().copies;
            array.copy_to_device(&source).unwrap();
            copies += raw.host().counters().copies - before;
            assert_eq!(raw.script().callers(), HashSet::from([thread::current().id()]), "round {round}");
            assert_eq!(array.copy_to_host().unwrap(), source);
            round += 1;
        }
    }
    is_clean(&device, raw.host());
}

/// Parts, the block and its end: wherever the last byte lies.
#[test]
fn uploads_of_any_length_arrive() {
    let (device, raw) = ring(HostOptions::new().adversarial(11));
    let (part, block) = (4 << 10, 64 << 10);
    let around = |at: usize| [at - 1, at, at + 1];
    for len in [part, block, block + part, 5 * block + 3 * part].into_iter().flat_map(around) {
        let source = Array1::from_iter((0..len).map(|i| (i % 251) as u8));
        let mut array = device.to_device(&Array1::from_elem(len + 2, 7_u8)).unwrap();
        array.slice_mut(s![1..=len]).unwrap().copy_to_device(&source).unwrap();
        let host = array.copy_to_host().unwrap();
        assert_eq!(host.slice(s![1..=len]), source, "{len}");
        assert_eq!((host[0], host[len + 1]), (7, 7), "{len}");
    }
    is_clean(&device, raw.host());
}

#[test]
fn progress_rises_to_the_whole() {
    let (device, _raw) = ring(HostOptions::new());
    let source = big();
    let mut array = device.device_array::<u32, _>(source.len()).unwrap();
    let mut host = Array1::from_elem(source.len(), UNTOUCHED);
    let total = 4 * source.len() as u64;
    let mut told = Vec::new();
    let mut note = |progress: gpumem_runtime::Progress| {
        assert_eq!(progress.total, total);
        told.push(progress.done);
        ControlFlow::Continue(())
    };
    array.copy_to_device_with_progress(&source, &mut note).unwrap();
    array.copy_to_host_with_progress(host.view_mut(), &mut note).unwrap();
    assert_eq!(host, source);
    let (up, down) = told.split_at(told.iter().position(|done| *done == total).unwrap() + 1);
    for told in [up, down] {
        assert!(told.windows(2).all(|pair| pair[0] < pair[1]), "{told:?}");
        assert_eq!(told.last(), Some(&total));
    }
}

#[test]
fn a_cancelled_transfer_stops_between_pieces() {
    let (device, raw) = ring(HostOptions::new());
    let source = big();
    let mut array = device.to_device(&source).unwrap();
    for pieces in [1, 3, 20] {
        // `Break` at the wanted piece; whether it came before the end, when it is too late.
        let stop = |(count, early): &mut (i32, bool), progress: gpumem_runtime::Progress| {
            *count += 1;
            *early |= *count == pieces && progress.done < progress.total;
            if *count == pieces { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut host = Array1::from_elem(source.len(), UNTOUCHED);
        let mut state = (0, false);
        let result = array
            .copy_to_host_with_progress(host.view_mut(), |progress| stop(&mut state, progress))
            .map(drop);
        assert!(is_cancelled(&result) || (!state.1 && result.is_ok()), "{state:?}: {result:?}");
        let arrived = host.iter().zip(&source).filter(|(value, wanted)| value == wanted).count();
        assert!(host.iter().zip(&source).all(|(value, wanted)| value == wanted || *value == UNTOUCHED));
        assert!(arrived > 0 && (arrived == source.len() || result.is_err()), "{arrived}");
        let mut state = (0, false);
        let result =
            array.copy_to_device_with_progress(&source, |progress| stop(&mut state, progress)).map(drop);
        assert!(is_cancelled(&result) || (!state.1 && result.is_ok()), "{state:?}: {result:?}");
    }
    drop(array);
    is_clean(&device, raw.host());
}

fn is_cancelled(result: &Result<(), Error>) -> bool {
    matches!(result, Err(error) if *error.kind() == ErrorKind::Cancelled)
}

/// The caller's array is changed right after the call has unwound: a late read or write would show, here or under
/// AddressSanitizer, where it is freed too.
#[test]
fn nothing_is_touched_after_a_panic() {
    let (device, raw) = ring(HostOptions::new());
    for round in 0..10 {
        let mut array = device.to_device(&big()).unwrap();
        let mut host = Array1::from_elem(array.len(), UNTOUCHED);
        let panics = |left: &mut i32| {
            *left -= 1;
            if *left < 0 {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
            ControlFlow::Continue(())
        };
        let mut left = round;
        let ended = catch_unwind(AssertUnwindSafe(|| {
            array.copy_to_host_with_progress(host.view_mut(), |_| panics(&mut left)).map(drop)
        }));
        // The calling thread may have got fewer pieces than that.
        assert!(ended.is_err() || left >= 0);
        host.fill(1);
        thread::yield_now();
        device.synchronize().unwrap();
        assert!(host.iter().all(|value| *value == 1), "round {round}");
        drop(host);
        let source = big();
        let mut left = round;
        let ended = catch_unwind(AssertUnwindSafe(|| {
            array.copy_to_device_with_progress(&source, |_| panics(&mut left)).map(drop)
        }));
        assert!(ended.is_err() || left >= 0);
        drop(source);
        array.copy_to_device(&big()).unwrap();
        assert_eq!(array.copy_to_host().unwrap(), big());
    }
    is_clean(&device, raw.host());
}

/// A call of the driver fails, or the device is lost, somewhere in the middle: the call says so, and the caller's memory
/// belongs to the caller again.
#[test]
fn a_failure_in_the_middle_is_returned_after_all_copies_ended() {
    for trouble in [Trouble::Refuse, Trouble::Lose] {
        for at in (0..400).step_by(41) {
            let (device, raw) = ring(HostOptions::new());
            let source = big();
            let mut array = device.device_array::<u32, _>(source.len()).unwrap();
            let mut host = Array1::from_elem(source.len(), UNTOUCHED);
            raw.script().begin(Some((at, trouble)));
            let up = array.copy_to_device(&source).map(drop);
            let down = array.copy_to_host_into(host.view_mut()).map(drop);
            let struck = raw.script().struck();
            // After the call nothing reads the source or writes the destination.
            drop(source);
            let before = host.clone();
            for error in [&up, &down].into_iter().filter_map(|result| result.as_ref().err()) {
                let is_ours = match trouble {
                    // An array that was uploaded in part is not read.
                    Trouble::Refuse if up.is_err() => *error.kind() == Script::REFUSED || error.is_poisoned(),
                    Trouble::Refuse => *error.kind() == Script::REFUSED,
                    Trouble::Lose => error.is_device_lost(),
                };
                assert!(is_ours, "call {at}, {struck:?}: {error}");
            }
            if up.is_ok() && down.is_ok() {
                assert_eq!(host, big(), "call {at}, {struck:?}");
            }
            let settled = device.synchronize();
            assert!(settled.is_ok() || trouble == Trouble::Lose, "call {at}, {struck:?}: {settled:?}");
            assert_eq!(host, before, "call {at}, {struck:?}: written after the call");
            raw.script().begin(None);
            if trouble == Trouble::Refuse {
                array.copy_to_device(&big()).unwrap();
                assert_eq!(array.copy_to_host().unwrap(), big(), "call {at}, {struck:?}");
            }
        }
    }
}

/// Downloads of a scope land by the same threads, when the stream is waited for and not before.
#[test]
fn downloads_of_a_scope_arrive_at_its_end() {
    for seed in [None, Some(3), Some(8)] {
        let (device, raw) =
            ring(seed.map_or_else(HostOptions::new, |seed| HostOptions::new().adversarial(seed)));
        let base = numbers(400, 517);
        let array = device.to_device(&base).unwrap();
        let mut wide = Array2::from_elem((402, 1036), UNTOUCHED);
        let mut flat = Array2::from_elem((400, 517), UNTOUCHED);
        let mut expected = wide.clone();
        expected.slice_mut(s![1..401, 1..1035;2]).assign(&base.slice(s![..;-1, ..]));
        let stream = device.stream().unwrap();
        stream
            .scope(|scope| {
                let mut scratch = stream.to_device(&array).unwrap();
                scope
                    .copy_to_host(
                        &scratch.slice(s![..;-1, ..]).unwrap(),
                        wide.slice_mut(s![1..401, 1..1035;2]),
                    )
                    .unwrap();
                scope.copy_to_host(&scratch, flat.view_mut()).unwrap();
                // Later work of the stream does not change the data that arrives.
                stream.fill(&mut scratch, 7).unwrap();
            })
            .unwrap();
        assert_eq!((&wide, &flat), (&expected, &base), "{seed:?}");
        // If a scope's work fails, no data arrives, and the memory is not touched afterwards.
        let ended = catch_unwind(AssertUnwindSafe(|| {
            stream.scope(|scope| {
                scope.copy_to_host(&array, flat.view_mut()).unwrap();
                std::panic::resume_unwind(Box::new("on purpose"));
            })
        }));
        assert!(ended.is_err());
        flat.fill(1);
        device.synchronize().unwrap();
        assert!(flat.iter().all(|value| *value == 1), "{seed:?}");
        drop((array, stream));
        is_clean(&device, raw.host());
    }
}

/// Between devices of two backends: through the blocks of the one that needs them.
#[test]
fn two_backends_meet_in_the_blocks() {
    for seed in [None, Some(1), Some(5)] {
        let host = || seed.map_or_else(HostOptions::new, |seed| HostOptions::new().adversarial(seed));
        let open = |is_direct, name| {
            let made = DoubleOptions {
                host: host(),
                is_direct,
                is_packing: is_direct,
                name,
                ..DoubleOptions::default()
            };
            let raw = Double::open_with(&made).unwrap();
            let device = Device::<Double>::from_raw(raw.clone());
            device.set_transfer_options(options());
            (device, raw)
        };
        let (gpu, gpu_raw) = open(false, "gpu");
        let (near, near_raw) = open(true, "near");
        let (other, other_raw) = open(false, "other");
        let base = numbers(200, 131);
        for (from, to) in [(&gpu, &near), (&near, &gpu), (&gpu, &other)] {
            let array = from.to_device(&base).unwrap();
            let (stream, wide) = (to.stream().unwrap(), Array2::from_elem((202, 264), UNTOUCHED));
            let mut there = stream.to_device(&wide).unwrap();
            let inner = s![1..201, 1..263;2];
            let mut expected = wide.clone();
            for view in [s![..;1, ..], s![..;-1, ..]] {
                expected.slice_mut(inner).assign(&base.slice(view));
                let source = array.slice(view).unwrap();
                stream.copy_to_device(&mut there.slice_mut(inner).unwrap(), &source).unwrap();
                assert_eq!(there.copy_to_host().unwrap(), expected, "{seed:?}");
                // The driver of the source knows no address of the other one.
                let near = from.stream().unwrap();
                let wrong = near.copy_to_device(&mut there.slice_mut(inner).unwrap(), &source);
                assert!(matches!(wrong.unwrap_err().kind(), ErrorKind::WrongDevice { .. }));
            }
        }
        for (device, raw) in [(&gpu, &gpu_raw), (&near, &near_raw), (&other, &other_raw)] {
            is_clean(device, raw.host());
        }
    }
}

/// One block is enough, and a short one. Less is an error.
#[test]
fn without_memory_for_more_blocks_it_only_takes_longer() {
    for kib in [0, 64, 128, 300] {
        let raw =
            Double::open_with(&DoubleOptions { page_locked: kib << 10, ..DoubleOptions::default() }).unwrap();
        let device = Device::<Double>::from_raw(raw.clone());
        device.set_transfer_options(options().block_bytes(64 << 10));
        let source = numbers(300, 517);
        let mut array = device.device_array::<u32, _>(source.raw_dim()).unwrap();
        let mut host = Array2::zeros(source.raw_dim());
        for view in [source.view(), source.slice(s![..;-1, ..])] {
            let up = array.copy_to_device(&view).map(drop);
            let down = array.copy_to_host_into(host.view_mut()).map(drop);
            if kib > 0 {
                up.unwrap();
                down.unwrap();
                assert_eq!(host, view, "{kib} KiB");
            } else {
                assert!(up.unwrap_err().is_out_of_memory() && down.unwrap_err().is_out_of_memory());
            }
        }
        drop(array);
        is_clean(&device, raw.host());
    }
}

#[test]
fn threads_of_the_caller_share_the_ring() {
    let (device, raw) = ring(HostOptions::new());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let device = &device;
            scope.spawn(move || {
                for round in 0..4 {
                    let source = big() + (thread * 100 + round);
                    let array = device.to_device(&source).unwrap();
                    assert_eq!(array.copy_to_host().unwrap(), source);
                }
            });
        }
    });
    is_clean(&device, raw.host());
}

/// The helpers belong to the device and end with it. In a child process: other tests have helpers too.
#[cfg(target_os = "linux")]
#[test]
fn the_threads_end_with_the_device() {
    const CHILD: &str = "GPUMEM_TEST_SUBPROCESS";
    if std::env::var_os(CHILD).is_none() {
        let test = "the_threads_end_with_the_device";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.args(["--exact", test, "--nocapture"]).env(CHILD, "1").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let count = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "gpumem:copy").count()
    };
    assert_eq!(count(), 0);
    let (device, raw) = ring(HostOptions::new());
    let array = device.to_device(&big()).unwrap();
    assert_eq!(array.copy_to_host().unwrap(), big());
    let wait_until = |holds: &dyn Fn() -> bool, what: &str| {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < Duration::from_secs(60), "{} helpers: {what}", count());
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    // A thread that has not run yet has not got its name.
    wait_until(&|| count() > 0, "some were to help");
    assert!(count() <= 3, "{} helpers for four threads", count());
    drop((array, device, raw));
    wait_until(&|| count() == 0, "they end");
}

#[cfg(unix)]
#[test]
fn a_forked_child_gets_an_error_and_does_not_hang() {
    let (device, _raw) = ring(HostOptions::new());
    let mut array = device.to_device(&big()).unwrap();
    let source = big();
    // SAFETY: the child only makes calls that are promised to work there, and ends without unwinding.
    match unsafe { libc::fork() } {
        0 => {
            let is_forked = |result: Result<(), Error>| matches!(result, Err(error) if *error.kind() == ErrorKind::ForkedChild);
            let up = is_forked(array.copy_to_device(&source).map(drop));
            let down = is_forked(array.copy_to_host().map(drop));
            drop((array, device));
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!(up && down))) };
        }
        child => {
            let mut status = 0;
            // SAFETY: our child.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
    assert_eq!(array.copy_to_host().unwrap(), source);
}
