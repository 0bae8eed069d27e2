//! Downloads inside a scope: how much staging memory they take, when the call waits, and which error tells of a failure.
//!
//! A separate program: some tests poison page-locked memory, and the process has one table of poisoned bytes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{double, host, is_clean, packing_double};
use gpumem_core::{Backend, Error, ErrorKind, Failure, MemoryKind, MemoryUse, POISONED};
use gpumem_host::{HostOptions, Injection, Operation};
use gpumem_integration::{calling, fill};
use gpumem_kernel::{Out, config_for_items};
use gpumem_runtime::{
    Device, Stream, TransferOptions,
    memory::{MemoryResource, StatisticsResource},
};
use host_double::{Double, DoubleDevice, DoubleOptions, Script, Trouble};
use ndarray::{Array1, Array2, s};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

const UNTOUCHED: u32 = 0xDEAD_BEEF;
/// The shortest staging block.
const BLOCK: usize = 64 << 10;
/// Most staging bytes that the downloads of one stream hold between two calls.
const BOUND: usize = 8 * BLOCK;
/// `u32` elements of a download that fits into the bound, and of one that is eight times as long.
const WITHIN: usize = BOUND / 4;
const BEYOND: usize = 8 * WITHIN;

fn options() -> TransferOptions {
    TransferOptions::new().threads(4).block_bytes(BLOCK).parallel_bytes(1).single_block_bytes(0)
}

fn short_blocks(options_of_host: HostOptions) -> (Device<Double>, DoubleDevice) {
    let (device, raw) = double(options_of_host);
    device.set_transfer_options(options());
    (device, raw)
}

fn numbers(len: usize) -> Array1<u32> {
    Array1::from_iter(0..len as u32)
}

fn untouched(len: usize) -> Array1<u32> {
    Array1::from_elem(len, UNTOUCHED)
}

/// Counts the page-locked bytes of the device from here on. Nothing is staged when it returns.
fn count_staging<B: Backend>(device: &Device<B>) -> Arc<StatisticsResource<B>> {
    device.flush().unwrap();
    let pool = device.memory_resource(MemoryKind::Pinned).unwrap();
    let counting = Arc::new(StatisticsResource::new(pool));
    device.set_memory_resource(MemoryKind::Pinned, counting.clone()).unwrap();
    counting
}

fn peak<B: Backend>(counting: &StatisticsResource<B>) -> usize {
    counting.statistics().peak_allocated.unwrap()
}

/// Whether each element is the right one or has not been written.
fn is_right_or_untouched(found: &Array1<u32>) -> bool {
    found.iter().enumerate().all(|(at, value)| *value == at as u32 || *value == UNTOUCHED)
}

/// Keeps a stream from going on until the flag is set, or for 20 seconds.
fn close<B: Backend>(device: &Device<B>, stream: &Stream<B>) -> Arc<AtomicBool> {
    let open = Arc::new(AtomicBool::new(false));
    let (theirs, end) = (open.clone(), Instant::now() + Duration::from_secs(20));
    let kernel = calling(move || {
        while !theirs.load(Ordering::Acquire) && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    });
    let kernel = kernel.load(device).unwrap();
    kernel.launch(stream, &config_for_items([1, 1, 1], [1, 1, 1]), (1,)).unwrap();
    open
}

// ---- memory ---------------------------------------------------------------------------------------------------------

/// Packed, backwards, every second column, and both: 4 MiB or a part of that through half a MiB.
fn takes_bounded_memory<B: Backend>(device: &Device<B>) {
    device.set_transfer_options(options());
    let base = Array2::from_shape_fn((1024, BEYOND / 1024), |(i, j)| (i * (BEYOND / 1024) + j) as u32);
    let array = device.to_device(&base).unwrap();
    let stream = device.stream().unwrap();
    for (rows, columns) in [(1, 1), (-1, 1), (1, 2), (-1, -2)] {
        let part = s![..;rows, ..;columns];
        let expected = base.slice(part);
        let mut packed = Array2::from_elem(expected.raw_dim(), UNTOUCHED);
        let mut wide = Array2::from_elem((expected.nrows(), 2 * expected.ncols()), UNTOUCHED);
        let counting = count_staging(device);
        stream
            .scope(|scope| {
                let source = array.slice(part)?;
                scope.copy_to_host(&source, packed.view_mut())?;
                scope.copy_to_host(&source, wide.slice_mut(s![.., ..;2]))
            })
            .unwrap()
            .unwrap();
        assert!(packed == expected && wide.slice(s![.., ..;2]) == expected, "{rows}, {columns}");
        assert!(wide.slice(s![.., 1..;2]).iter().all(|value| *value == UNTOUCHED), "{rows}, {columns}");
        assert!(peak(&counting) <= BOUND, "{rows}, {columns}: {} bytes", peak(&counting));
    }
}

#[test]
fn a_download_takes_bounded_staging_memory() {
    for seed in [None, Some(3), Some(8)] {
        let options = || seed.map_or_else(HostOptions::new, |seed| HostOptions::new().adversarial(seed));
        let (device, raw) = double(options());
        takes_bounded_memory(&device);
        is_clean(&device, raw.host());
        // The device packs strided elements, and the host copies the caller's memory itself.
        let (device, raw) = packing_double(options());
        takes_bounded_memory(&device);
        is_clean(&device, raw.host());
        let (device, raw) = host(options());
        takes_bounded_memory(&device);
        is_clean(&device, &raw);
    }
}

/// The same with no other page-locked memory: no request exceeds the limit.
#[test]
fn no_more_page_locked_memory_is_needed() {
    for page_locked in [BLOCK, 3 * BLOCK, BOUND] {
        let made = DoubleOptions { page_locked: page_locked as u64, ..DoubleOptions::default() };
        let raw = Double::open_with(&made).unwrap();
        let device = Device::<Double>::from_raw(raw.clone());
        device.set_transfer_options(options());
        let array = device.to_device(&numbers(BEYOND)).unwrap();
        device.flush().unwrap();
        let stream = device.stream().unwrap();
        let (mut first, mut second) = (untouched(BEYOND), untouched(100));
        stream
            .scope(|scope| {
                scope.copy_to_host(&array, first.view_mut())?;
                // All of the memory is in use by the first one.
                scope.copy_to_host(&array.slice(s![..100])?, second.view_mut())
            })
            .unwrap()
            .unwrap();
        assert!(first == numbers(BEYOND) && second == numbers(100), "{page_locked}");
        drop((array, stream));
        is_clean(&device, raw.host());
    }
}

#[test]
fn many_downloads_of_one_scope_take_bounded_staging_memory() {
    let (device, raw) = short_blocks(HostOptions::new());
    let array = device.to_device(&numbers(BEYOND)).unwrap();
    let stream = device.stream().unwrap();
    for len in [1, 5000, BLOCK / 4, BLOCK / 4 + 1, WITHIN] {
        let mut found: Vec<_> = (0..64).map(|_| untouched(len)).collect();
        let counting = count_staging(&device);
        stream
            .scope(|scope| {
                let mut parts = found.iter_mut().enumerate();
                parts.try_for_each(|(at, found)| {
                    scope.copy_to_host(&array.slice(s![at..at + len])?, found.view_mut())?;
                    assert!(counting.statistics().allocated <= BOUND, "{len}");
                    Ok::<_, Error>(())
                })
            })
            .unwrap()
            .unwrap();
        let is_right = |(at, found): (usize, &Array1<u32>)| *found == numbers(len) + at as u32;
        assert!(found.iter().enumerate().all(is_right), "{len}");
        assert!(peak(&counting) <= BOUND, "{len}: {} bytes", peak(&counting));
    }
    drop((array, stream));
    is_clean(&device, raw.host());
}

#[test]
fn an_array_of_the_host_that_a_kernel_writes_in_a_scope_takes_bounded_staging_memory() {
    let (device, raw) = short_blocks(HostOptions::new());
    let (kernel, stream) = (fill().load(&device).unwrap(), device.stream().unwrap());
    let mut out = vec![UNTOUCHED; BEYOND];
    let counting = count_staging(&device);
    let dims = config_for_items([BEYOND, 1, 1], [256, 1, 1]);
    stream.scope(|scope| kernel.launch_in(scope, &dims, (Out(&mut out), 7u32))).unwrap().unwrap();
    assert!(out.iter().all(|value| *value == 7));
    assert!(peak(&counting) <= BOUND, "{} bytes", peak(&counting));
    drop((kernel, stream));
    is_clean(&device, raw.host());
}

/// One bound for data staged between calls, and another one for each thread inside a call.
#[test]
fn scopes_of_two_threads_on_one_stream_share_the_bound() {
    let (device, raw) = short_blocks(HostOptions::new());
    let array = device.to_device(&numbers(BEYOND)).unwrap();
    let stream = device.stream().unwrap();
    let counting = count_staging(&device);
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                for round in 0..4 {
                    let (mut long, mut short) = (untouched(2 * WITHIN), untouched(WITHIN / 2));
                    let part = array.slice(s![round..round + 2 * WITHIN]).unwrap();
                    stream
                        .scope(|scope| {
                            scope.copy_to_host(&array.slice(s![..WITHIN / 2])?, short.view_mut())?;
                            scope.copy_to_host(&part, long.view_mut())
                        })
                        .unwrap()
                        .unwrap();
                    assert!(long == numbers(2 * WITHIN) + round as u32 && short == numbers(WITHIN / 2));
                }
            });
        }
    });
    assert!(peak(&counting) <= 3 * BOUND, "{} bytes", peak(&counting));
    drop((array, stream));
    is_clean(&device, raw.host());
}

/// Eight GiB, of which the device holds one row.
#[test]
#[ignore = "takes 9 GiB of memory and some minutes without optimisation"]
fn eight_gib_on_the_host_take_no_more_than_the_bound() {
    const ROW: usize = 1 << 20;
    let (device, raw) = host(HostOptions::new());
    let row = device.to_device(&numbers(ROW)).unwrap();
    let counting = count_staging(&device);
    let mut found = Array2::<u32>::zeros((2048, ROW));
    let stream = device.stream().unwrap();
    stream
        .scope(|scope| scope.copy_to_host(&row.broadcast((2048, ROW))?, found.view_mut()))
        .unwrap()
        .unwrap();
    let expected = numbers(ROW);
    assert!(found.rows().into_iter().all(|found| found == expected));
    let bound = device.transfer_options().scoped_staging_bytes();
    assert!(peak(&counting) <= bound, "{} bytes", peak(&counting));
    drop((row, stream));
    is_clean(&device, &raw);
}

// ---- order and waits ------------------------------------------------------------------------------------------------

#[test]
fn a_download_within_the_bound_does_not_wait() {
    let (device, raw) = short_blocks(HostOptions::new());
    let array = device.to_device(&numbers(WITHIN)).unwrap();
    let stream = device.stream().unwrap();
    let open = close(&device, &stream);
    let mut found = untouched(WITHIN);
    stream
        .scope(|scope| {
            scope.copy_to_host(&array, found.view_mut()).unwrap();
            assert!(!stream.query().unwrap(), "the call has waited");
            open.store(true, Ordering::Release);
        })
        .unwrap();
    assert_eq!(found, numbers(WITHIN));
    drop((array, stream));
    is_clean(&device, raw.host());
}

#[test]
fn a_longer_download_waits_for_the_work_before_it() {
    let (device, raw) = short_blocks(HostOptions::new());
    let array = device.to_device(&numbers(BEYOND)).unwrap();
    let stream = device.stream().unwrap();
    let open = close(&device, &stream);
    let mut found = untouched(BEYOND);
    thread::scope(|threads| {
        threads.spawn(|| {
            thread::sleep(Duration::from_millis(100));
            open.store(true, Ordering::Release);
        });
        let copied = stream.scope(|scope| {
            let copied = scope.copy_to_host(&array, found.view_mut());
            assert!(open.load(Ordering::Acquire), "more than the bound was staged before the stream went on");
            copied
        });
        copied.unwrap().unwrap();
    });
    assert_eq!(found, numbers(BEYOND));
    drop((array, stream));
    is_clean(&device, raw.host());
}

/// The elements are those at the place of the call in the stream, whatever comes after it.
#[test]
fn later_work_does_not_change_what_arrives() {
    for seed in 0..6 {
        let (device, raw) = short_blocks(HostOptions::new().adversarial(seed));
        let array = device.to_device(&numbers(2 * WITHIN)).unwrap();
        let stream = device.stream().unwrap();
        for len in [WITHIN, WITHIN + 1, 2 * WITHIN] {
            let (mut first, mut second) = (untouched(len), untouched(len));
            stream
                .scope(|scope| -> Result<(), Error> {
                    let mut scratch = stream.to_device(&array.slice(s![..len])?)?;
                    scope.copy_to_host(&scratch, first.view_mut())?;
                    stream.fill(&mut scratch, 7)?;
                    scope.copy_to_host(&scratch, second.view_mut())?;
                    drop(scratch);
                    // Likely where the scratch array was.
                    let mut other = stream.device_array::<u32, _>(len)?;
                    stream.fill(&mut other, 9)
                })
                .unwrap()
                .unwrap();
            assert_eq!(first, numbers(len), "seed {seed}");
            assert!(second.iter().all(|value| *value == 7), "seed {seed}");
        }
        drop((array, stream));
        is_clean(&device, raw.host());
    }
}

/// A thread outside the scope copies out the data that the scope has staged.
#[test]
fn another_thread_may_wait_for_the_stream() {
    let (device, raw) = short_blocks(HostOptions::new());
    let array = device.to_device(&numbers(2 * WITHIN)).unwrap();
    let stream = device.stream().unwrap();
    let end = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            while !end.load(Ordering::Relaxed) {
                stream.synchronize().unwrap();
                device.synchronize().unwrap();
            }
        });
        let ended = catch_unwind(AssertUnwindSafe(|| {
            for round in 0..10 {
                let (mut long, mut short) = (untouched(2 * WITHIN - round), untouched(100));
                let copied = stream.scope(|scope| {
                    scope.copy_to_host(&array.slice(s![..100])?, short.view_mut())?;
                    scope.copy_to_host(&array.slice(s![round..])?, long.view_mut())
                });
                copied.unwrap().unwrap();
                assert_eq!(short, numbers(100));
                assert_eq!(long, numbers(2 * WITHIN - round) + round as u32);
                // Nothing writes after the end.
                long.fill(1);
                thread::yield_now();
                assert!(long.iter().all(|value| *value == 1));
            }
        }));
        end.store(true, Ordering::Relaxed);
        assert!(ended.is_ok());
    });
    drop((array, stream));
    is_clean(&device, raw.host());
}

#[test]
fn nothing_is_touched_after_a_scope_that_panics() {
    for seed in [None, Some(2), Some(5)] {
        let options = seed.map_or_else(HostOptions::new, |seed| HostOptions::new().adversarial(seed));
        let (device, raw) = short_blocks(options);
        let array = device.to_device(&numbers(2 * WITHIN)).unwrap();
        let stream = device.stream().unwrap();
        for len in [WITHIN, 2 * WITHIN] {
            let mut found = untouched(len);
            let ended = catch_unwind(AssertUnwindSafe(|| {
                stream.scope(|scope| {
                    scope.copy_to_host(&array.slice(s![..len]).unwrap(), found.view_mut()).unwrap();
                    std::panic::resume_unwind(Box::new("on purpose"));
                })
            }));
            assert!(ended.is_err());
            assert_eq!(found, numbers(len), "the scope waits on this way out, too");
            found.fill(1);
            device.synchronize().unwrap();
            assert!(found.iter().all(|value| *value == 1));
        }
        drop((array, stream));
        is_clean(&device, raw.host());
    }
}

// ---- failures -------------------------------------------------------------------------------------------------------

/// Makes page-locked memory unreadable for the library, as the destination of failed work is.
struct Spoiled(Vec<MemoryUse>);

impl Spoiled {
    fn new(raw: &DoubleDevice) -> Self {
        let failure = Arc::new(Failure::new("copy", "double:0", "bit rot"));
        let used = raw.page_locked().into_iter().map(|bytes| MemoryUse {
            owner: 0,
            start: bytes.start,
            bytes: (bytes.end - bytes.start) as usize,
            write: true,
            is_foreign: true,
        });
        let used: Vec<_> = used.collect();
        for used in &used {
            // SAFETY: the memory belongs to this test's device, and no entry stands for these bytes.
            unsafe { POISONED.poison(used, &failure) };
        }
        Self(used)
    }
}

impl Drop for Spoiled {
    fn drop(&mut self) {
        for used in &self.0 {
            // SAFETY: staging memory, which is written before it is read again.
            unsafe { POISONED.clear(&used.range()) };
        }
    }
}

/// The stream is fine, the elements are in staging memory, and the last copy, to the caller's array, fails.
#[test]
fn a_failure_of_the_last_copy_is_the_scopes_error() {
    for len in [100, WITHIN, 2 * WITHIN] {
        for another_waits in [false, true] {
            let (device, raw) = short_blocks(HostOptions::new());
            let array = device.to_device(&numbers(len)).unwrap();
            device.flush().unwrap();
            let stream = device.stream().unwrap();
            let (mut found, mut spoiled) = (untouched(len), None);
            let result = stream.scope(|scope| -> Result<(), Error> {
                scope.copy_to_host(&array, found.view_mut())?;
                // Not a wait, which would copy out the staged data.
                while !stream.query()? {
                    thread::yield_now();
                }
                spoiled = Some(Spoiled::new(&raw));
                if another_waits {
                    // The stream's work is done and right: its waits have nothing to tell.
                    thread::scope(|threads| threads.spawn(|| stream.synchronize()).join().unwrap())?;
                }
                Ok(())
            });
            drop(spoiled);
            let error = result.expect_err("the scope ended as if nothing had happened");
            assert!(error.is_poisoned(), "{error}");
            assert_eq!(device.take_errors(), [], "told twice");
            assert!(is_right_or_untouched(&found) && found[len - 1] == UNTOUCHED, "{len}");
            // A later scope on the stream hears nothing of it.
            stream.scope(|scope| scope.copy_to_host(&array, found.view_mut())).unwrap().unwrap();
            assert_eq!(found, numbers(len));
            drop((array, stream));
            is_clean(&device, raw.host());
        }
    }
}

/// There is no result that could tell of it.
#[test]
fn a_failure_of_the_last_copy_after_a_panic_goes_to_the_queue_of_errors() {
    let (device, raw) = short_blocks(HostOptions::new());
    let array = device.to_device(&numbers(100)).unwrap();
    device.flush().unwrap();
    let stream = device.stream().unwrap();
    let (mut found, mut spoiled) = (untouched(100), None);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        stream.scope(|scope| {
            scope.copy_to_host(&array, found.view_mut()).unwrap();
            while !stream.query().unwrap() {
                thread::yield_now();
            }
            spoiled = Some(Spoiled::new(&raw));
            std::panic::resume_unwind(Box::new("on purpose"));
        })
    }));
    drop(spoiled);
    assert!(ended.is_err());
    let told = device.take_errors();
    assert!(told.len() == 1 && told[0].is_poisoned(), "{told:?}");
    assert_eq!(found, untouched(100));
    drop((array, stream));
    is_clean(&device, raw.host());
}

/// Each scope gets the errors of its own downloads only.
#[test]
fn an_inner_scope_copies_out_and_does_not_take_the_error() {
    let (device, raw) = short_blocks(HostOptions::new());
    let array = device.to_device(&numbers(100)).unwrap();
    device.flush().unwrap();
    let stream = device.stream().unwrap();
    let (mut found, mut spoiled) = (untouched(100), None);
    let result = stream.scope(|scope| -> Result<(), Error> {
        scope.copy_to_host(&array, found.view_mut())?;
        while !stream.query()? {
            thread::yield_now();
        }
        spoiled = Some(Spoiled::new(&raw));
        stream.scope(|_| ())
    });
    drop(spoiled);
    assert!(result.is_err_and(|error| error.is_poisoned()));
    assert_eq!((device.take_errors(), found), (vec![], untouched(100)));
    drop((array, stream));
    is_clean(&device, raw.host());
}

/// The device's copy fails when its turn comes: the one of the last chunk, or any before it.
#[test]
fn a_fault_in_a_copy_is_returned_and_copies_nothing_wrong() {
    for len in [100, WITHIN, 2 * WITHIN] {
        let copies = {
            let (device, raw) = short_blocks(HostOptions::new());
            let array = device.to_device(&numbers(len)).unwrap();
            let (stream, mut found) = (device.stream().unwrap(), untouched(len));
            device.synchronize().unwrap();
            let before = raw.host().counters().copies;
            stream.scope(|scope| scope.copy_to_host(&array, found.view_mut())).unwrap().unwrap();
            raw.host().counters().copies - before
        };
        assert_eq!(copies > 1, len > 100);
        for at in 0..copies {
            let (device, raw) = short_blocks(HostOptions::new());
            let array = device.to_device(&numbers(len)).unwrap();
            let (stream, mut found) = (device.stream().unwrap(), untouched(len));
            device.synchronize().unwrap();
            let what = ErrorKind::AsynchronousFault { what: "bit rot".to_owned() };
            raw.host().inject(Injection::next(Operation::Copy, what).after(at));
            let mut told = None;
            let result = stream.scope(|scope| told = scope.copy_to_host(&array, found.view_mut()).err());
            raw.host().clear_injections();
            // The call waits for some of the copies of a long download; the scope gets the error of any of them.
            let error = result.expect_err("the scope ended as if nothing had happened");
            for error in [Some(error), told].into_iter().flatten() {
                let is_fault = matches!(error.kind(), ErrorKind::AsynchronousFault { .. });
                assert!(is_fault || error.is_poisoned(), "copy {at} of {copies}: {error}");
            }
            assert!(is_right_or_untouched(&found), "copy {at} of {copies}");
            assert_eq!(found[len - 1], UNTOUCHED, "copy {at} of {copies}: what comes last arrived");
            assert!(
                len > WITHIN || found == untouched(len),
                "all of a download within the bound, or nothing"
            );
            let _told = device.synchronize();
            device.take_errors();
            drop((array, stream));
            is_clean(&device, raw.host());
        }
    }
}

/// A call of the driver fails, or the device is lost, at any point.
#[test]
fn a_failing_driver_call_is_returned_after_all_copies_ended() {
    for trouble in [Trouble::Refuse, Trouble::Lose] {
        for len in [WITHIN, 2 * WITHIN] {
            for at in 0..60 {
                let (device, raw) = short_blocks(HostOptions::new());
                let array = device.to_device(&numbers(len)).unwrap();
                let (stream, mut found) = (device.stream().unwrap(), untouched(len));
                raw.script().begin(Some((at, trouble)));
                let result = stream.scope(|scope| scope.copy_to_host(&array, found.view_mut()));
                let result = result.and_then(|inner| inner);
                let struck = raw.script().struck();
                raw.script().begin(None);
                let before = found.clone();
                assert!(is_right_or_untouched(&found), "call {at}, {struck:?}");
                match &result {
                    Ok(()) => assert_eq!(found, numbers(len), "call {at}, {struck:?}"),
                    Err(error) if trouble == Trouble::Refuse => assert_eq!(*error.kind(), Script::REFUSED),
                    Err(error) => assert!(error.is_device_lost(), "call {at}, {struck:?}: {error}"),
                }
                let settled = device.synchronize();
                assert!(settled.is_ok() || trouble == Trouble::Lose, "call {at}, {struck:?}: {settled:?}");
                assert_eq!(found, before, "call {at}, {struck:?}: written after the scope");
                if trouble == Trouble::Refuse {
                    stream.scope(|scope| scope.copy_to_host(&array, found.view_mut())).unwrap().unwrap();
                    assert_eq!(found, numbers(len), "call {at}, {struck:?}");
                }
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn a_forked_child_leaves_the_scope_and_writes_nothing() {
    let (device, _raw) = short_blocks(HostOptions::new());
    let array = device.to_device(&numbers(2 * WITHIN)).unwrap();
    let (stream, mut found, mut pid) = (device.stream().unwrap(), untouched(2 * WITHIN), 0);
    let result = stream.scope(|scope| {
        scope.copy_to_host(&array, found.view_mut())?;
        // SAFETY: the child leaves the scope, which is promised to work, and ends.
        pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: a child that hangs ends by a signal.
            unsafe { libc::alarm(60) };
        }
        Ok::<_, Error>(())
    });
    if pid == 0 {
        let is_forked = result.is_err_and(|error| *error.kind() == ErrorKind::ForkedChild);
        // Data that was staged when the process forked stays where it is.
        let is_right = is_right_or_untouched(&found) && found[found.len() - 1] == UNTOUCHED;
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!(is_forked && is_right))) };
    }
    result.unwrap().unwrap();
    let mut status = 0;
    // SAFETY: our child.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0);
    assert_eq!(found, numbers(2 * WITHIN));
}
