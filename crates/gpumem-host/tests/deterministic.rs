//! The adversarial schedule: the same again with the same seed, and nasty within the law.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_core::{DriverDevice, Event as _, Stream as _};
use gpumem_host::{Device, Host, HostOptions, Schedule, Step, Stream};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const FEW: u64 = if cfg!(miri) { 8 } else { 50 };
const SEEDS: u64 = if cfg!(miri) { 3 } else { 20 };
const MANY: u64 = if cfg!(miri) { 8 } else { 200 };

/// Two streams on one buffer, with or without the event that orders them. Returns what the second stream saw.
fn produce_and_consume(device: &Device, ordered: bool) -> Vec<u8> {
    let (produce, consume) = (stream(device), stream(device));
    let (shared, target) = (allocate(device, 4096), allocate(device, 4096));
    fill(&produce, &shared, 7);
    if ordered {
        let mark = event(device);
        produce.record(&mark).unwrap();
        consume.wait(&mark).unwrap();
    }
    copy(&consume, on(device, &shared), on(device, &target), 4096);
    let seen = read(device, &consume, &target);
    produce.synchronize().unwrap();
    release(device, shared);
    release(device, target);
    seen
}

#[test]
fn a_missing_event_shows_for_some_seed() {
    let wrong = (0..FEW).filter(|seed| produce_and_consume(&adversarial(*seed), false) != [7; 4096]).count();
    assert!(wrong > FEW as usize / 10, "only {wrong} of {FEW} seeds show it");
    assert!(wrong < FEW as usize, "some seeds run the streams as they were enqueued");
}

#[test]
fn an_event_always_helps() {
    for seed in 0..MANY {
        assert_eq!(produce_and_consume(&adversarial(seed), true), [7; 4096], "seed {seed}");
    }
}

#[test]
fn copies_are_torn_for_some_seed() {
    let torn = (0..FEW)
        .filter(|seed| {
            let seen = produce_and_consume(&adversarial(*seed), false);
            seen.contains(&0) && seen.contains(&7)
        })
        .count();
    assert!(torn > 0, "every copy of {FEW} seeds came in one piece");
}

/// A program with everything: streams, events, copies, fills, kernels, queries. The schedule that it got.
fn program(device: &Device) -> Vec<Step> {
    let streams: Vec<Stream> = (0..4).map(|_| stream(device)).collect();
    let buffers: Vec<_> = (0..4).map(|_| allocate(device, 1000)).collect();
    let body = kernel(device, |_| Ok(()));
    for round in 0..10 {
        for (index, stream) in streams.iter().enumerate() {
            fill(stream, &buffers[index], round);
            launch(stream, &body).unwrap();
            let mark = event(device);
            stream.record(&mark).unwrap();
            let next = (index + 1) % 4;
            streams[next].wait(&mark).unwrap();
            copy(&streams[next], on(device, &buffers[index]), on(device, &buffers[next]), 1000);
        }
        let _ = streams[0].query().unwrap();
    }
    device.synchronize().unwrap();
    buffers.into_iter().for_each(|buffer| release(device, buffer));
    device.schedule_trace()
}

#[test]
fn a_seed_means_one_schedule() {
    let mut different = HashSet::new();
    for seed in 0..SEEDS {
        let trace = program(&adversarial(seed));
        assert_eq!(trace, program(&adversarial(seed)), "seed {seed}");
        // Fill, launch, record and copy; waits for finished work are not enqueued.
        assert!(trace.len() >= 4 * 10 * 4, "every command is in the trace");
        different.insert(trace);
    }
    assert!(
        different.len() >= SEEDS as usize * 2 / 3,
        "only {} schedules for {SEEDS} seeds",
        different.len()
    );
}

#[test]
fn every_stream_keeps_its_order() {
    for seed in 0..SEEDS {
        let trace = program(&adversarial(seed));
        for stream in 0..4 {
            let own: Vec<_> = trace.iter().filter(|step| step.stream == stream).collect();
            for pair in own.windows(2) {
                let (one, two) = (pair[0], pair[1]);
                let torn = two.command == one.command && two.chunk == one.chunk + 1;
                assert!(torn || (two.command == one.command + 1 && two.chunk == 0), "{one:?} {two:?}");
            }
        }
    }
}

#[test]
fn some_seeds_run_nothing_until_it_is_waited_for_and_some_everything() {
    let (mut lazy, mut eager) = (0, 0);
    for seed in 0..MANY {
        let device = adversarial(seed);
        let buffers = [allocate(&device, 64), allocate(&device, 64)];
        let streams = [stream(&device), stream(&device)];
        for value in 0..10 {
            streams.iter().zip(&buffers).for_each(|(stream, buffer)| fill(stream, buffer, value));
        }
        let begun: HashSet<_> =
            device.schedule_trace().iter().map(|step| (step.stream, step.command)).collect();
        match begun.len() {
            0 => lazy += 1,
            20 => eager += 1,
            _ => {}
        }
        device.synchronize().unwrap();
        buffers.into_iter().for_each(|buffer| release(&device, buffer));
    }
    assert!(lazy > 0 && eager > 0, "{lazy} lazy and {eager} eager schedules");
}

/// The caller may hold locks in calls that do not wait, and the body may ask for them.
#[test]
fn kernels_run_only_in_calls_that_wait_or_query() {
    for seed in 0..MANY {
        let device = adversarial(seed);
        let count = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&count);
        let body = kernel(&device, move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let (buffer, streams) = (allocate(&device, 64), [stream(&device), stream(&device)]);
        for value in 0..10 {
            streams.iter().for_each(|stream| launch(stream, &body).unwrap());
            fill(&streams[0], &buffer, value);
            let mark = event(&device);
            streams[0].record(&mark).unwrap();
            streams[1].wait(&mark).unwrap();
        }
        assert_eq!(count.load(Ordering::Relaxed), 0);
        streams[0].synchronize().unwrap();
        assert!(count.load(Ordering::Relaxed) >= 10);
        assert!((0..5_000).any(|_| streams[1].query().unwrap()), "seed {seed}");
        assert_eq!(count.load(Ordering::Relaxed), 20);
        release(&device, buffer);
    }
}

#[test]
fn repeated_queries_end() {
    for seed in 0..FEW {
        let device = adversarial(seed);
        let (one, two) = (stream(&device), stream(&device));
        let buffer = allocate(&device, 4096);
        let mark = event(&device);
        (0..5).for_each(|value| fill(&one, &buffer, value));
        one.record(&mark).unwrap();
        two.wait(&mark).unwrap();
        fill(&two, &buffer, 9);
        let last = event(&device);
        two.record(&last).unwrap();
        let asked = (1..).find(|_| last.query().unwrap()).unwrap();
        assert!(asked < 5_000, "seed {seed}: {asked} queries");
        assert!(mark.query().unwrap());
        assert!((0..5_000).any(|_| two.query().unwrap()), "seed {seed}");
        assert_eq!(read(&device, &two, &buffer), [9; 4096]);
        release(&device, buffer);
    }
}

#[test]
fn devices_wait_for_each_other_on_any_thread() {
    for seed in 0..FEW {
        let pairs = [
            (adversarial(seed), adversarial(seed + 1)),
            (concurrent(), adversarial(seed)),
            (adversarial(seed), concurrent()),
        ];
        for (left, right) in pairs {
            let (here, there) = (stream(&left), stream(&right));
            let (one, two) = (allocate(&left, 256), allocate(&right, 256));
            let (forth, back) = (event(&left), event(&right));
            fill(&here, &one, 3);
            here.record(&forth).unwrap();
            there.wait(&forth).unwrap();
            copy(&there, on(&left, &one), on(&right, &two), 256);
            there.record(&back).unwrap();
            here.wait(&back).unwrap();
            fill(&here, &one, 4);
            copy(&here, on(&right, &two), on(&left, &one), 128);
            let end = event(&left);
            here.record(&end).unwrap();
            if seed % 2 == 0 {
                ask(&end).unwrap()
            } else {
                end.synchronize().unwrap()
            }
            let seen = read(&left, &here, &one);
            assert_eq!((&seen[..128], &seen[128..]), (&[3; 128][..], &[4; 128][..]), "seed {seed}");
            release(&left, one);
            release(&right, two);
        }
    }
}

#[test]
fn threads_may_share_an_adversarial_device() {
    for seed in 0..FEW / 5 {
        let device = adversarial(seed);
        let shared = stream(&device);
        let count = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&count);
        let body = kernel(&device, move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let own = stream(&device);
                    for _ in 0..20 {
                        let mark = event(&device);
                        launch(&shared, &body).unwrap();
                        shared.record(&mark).unwrap();
                        own.wait(&mark).unwrap();
                        launch(&own, &body).unwrap();
                        own.synchronize().unwrap();
                    }
                });
            }
        });
        shared.synchronize().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 160);
    }
}

#[test]
fn a_kernel_may_use_its_device() {
    for seed in 0..FEW / 5 {
        let device = adversarial(seed);
        let (one, two) = (stream(&device), Arc::new(stream(&device)));
        let count = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&count);
        let inner = kernel(&device, move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let other = Arc::clone(&two);
        let outer = kernel(&device, move |_| {
            launch(&other, &inner).and_then(|()| other.synchronize()).map_err(|error| error.to_string())
        });
        launch(&one, &outer).unwrap();
        one.synchronize().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 1);
        // The kernel holds a stream and the stream's device holds nothing of the kernel: no cycle is left.
        drop(outer);
        assert_eq!(Arc::strong_count(&two), 1);
    }
}

#[test]
fn dropping_everything_runs_what_is_pending() {
    for seed in 0..FEW {
        let count = Arc::new(AtomicUsize::new(0));
        {
            let device = adversarial(seed);
            let seen = Arc::clone(&count);
            let body = kernel(&device, move |_| {
                seen.fetch_add(1, Ordering::Relaxed);
                Ok(())
            });
            let (one, two) = (stream(&device), stream(&device));
            launch(&one, &body).unwrap();
            drop(one);
            launch(&two, &body).unwrap();
        }
        assert_eq!(count.load(Ordering::Relaxed), 2, "seed {seed}");
        assert_eq!(Arc::strong_count(&count), 1, "seed {seed}: the commands are gone");
    }
}

#[test]
fn no_thread_is_started() {
    let device = Host::open_with(&HostOptions::new().adversarial(1)).unwrap();
    assert_eq!(device.schedule(), Schedule::Adversarial { seed: 1 });
    program(&device);
    assert_eq!(device.counters().workers, 0);
}
