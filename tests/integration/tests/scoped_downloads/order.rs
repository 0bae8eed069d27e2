//! When a download inside a scope waits, and what arrives.

use super::{BEYOND, WITHIN, close, common::is_clean, numbers, short_blocks, untouched};
use gpumem_core::Error;
use gpumem_host::HostOptions;
use ndarray::s;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

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
