//! Failures, refusals, and what is forgotten.

use super::{
    BYTES, Files, LEN, add, arrays,
    common::{direct_double, double, host, is_clean},
    is_right, limit, manager, next_version, numbers, options, write,
};
use gpumem_core::{Error, ErrorKind, FileFailure, MemoryKind, NotRecorded};
use gpumem_host::{Injection, Operation};
use gpumem_integration::reset;
use gpumem_runtime::SpillOptions;
use host_double::{Script, Trouble};
use ndarray::Array1;
use std::{fs, sync::Barrier, thread, time::Duration};

#[test]
fn a_file_that_has_changed_is_an_error() {
    let (device, _raw) = host(options());
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let files = Files::new(0..2);
    let (array, view) = (spilling.open(files.view(1)).unwrap(), files.view(1));
    is_right(&array, &stream, 1, 0);
    assert!(array.evict().unwrap());
    fs::OpenOptions::new().write(true).open(files.path()).unwrap().set_len(5).unwrap();
    let error = array.get(&stream).unwrap_err();
    // As a copy from it says.
    assert_eq!(error.kind(), device.to_device(&view).unwrap_err().kind());
    assert!(matches!(error.kind(), ErrorKind::File(_)), "{error}");
    assert!(!array.is_resident().unwrap());
}

/// With the same length: the time tells.
#[test]
fn a_file_that_is_written_anew_is_an_error() {
    let (device, _raw) = host(options());
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let files = Files::new(0..2);
    let [away, there] = [0, 1].map(|at| spilling.open(files.view(at)).unwrap());
    is_right(&there, &stream, 1, 0);
    let other = fs::read(files.path()).unwrap().iter().map(|byte| !byte).collect::<Vec<_>>();
    fs::write(files.path(), other).unwrap();
    let later = fs::File::open(files.path()).unwrap().metadata().unwrap().modified().unwrap();
    let file = fs::OpenOptions::new().write(true).open(files.path()).unwrap();
    file.set_modified(later + Duration::from_secs(1)).unwrap();
    // What is on the device was read before. It leaves, and is not read again.
    is_right(&there, &stream, 1, 0);
    assert!(there.evict().unwrap());
    for array in [away, there] {
        let error = array.get(&stream).unwrap_err();
        let ErrorKind::File(failed) = error.kind() else { panic!("{error}") };
        assert_eq!(failed.failure, FileFailure::Changed);
        assert!(!array.is_resident().unwrap());
    }
}

#[test]
fn threads_that_hold_what_the_other_needs_get_an_error() {
    let (device, _raw) = host(options());
    let _before = limit(&device, 3);
    let spilling = manager(&device, SpillOptions::new());
    let all = arrays(&device, &spilling, 4);
    let barrier = Barrier::new(2);
    let failed: usize = thread::scope(|scope| {
        let threads = [0, 2].map(|first| {
            let (all, barrier, device) = (&all, &barrier, &device);
            scope.spawn(move || {
                let stream = device.stream().unwrap();
                let _held = all[first].get(&stream).unwrap();
                barrier.wait();
                let second = all[first + 1].get(&stream);
                barrier.wait();
                usize::from(second.is_err_and(|error| error.is_out_of_memory()))
            })
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(failed, 1);
    let stream = device.stream().unwrap();
    for (number, array) in all.iter().enumerate() {
        is_right(array, &stream, number, 0);
    }
}

#[test]
fn an_array_without_room_on_the_host_stays() {
    let (device, _raw) = host(options());
    let _before = limit(&device, 3);
    let (spilling, stream) =
        (manager(&device, SpillOptions::new().host_bytes(BYTES + 5)), device.stream().unwrap());
    let mut all = arrays(&device, &spilling, 4);
    assert_eq!(spilling.report().host_bytes, BYTES);
    let error = all[1].evict().unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    assert!(device.device_array::<u32, _>(LEN).unwrap_err().is_out_of_memory());
    // One comes back, and keeps its copy: that goes for the next one.
    drop(all.remove(3));
    is_right(&all[0], &stream, 0, 0);
    assert!(all[1].evict().unwrap());
    assert_eq!(spilling.report().host_bytes, BYTES);
    for (number, array) in all.iter().enumerate() {
        is_right(array, &stream, number, 0);
    }
}

/// What a failed kernel was to write says so wherever it is, until it is written.
#[test]
fn a_poisoned_array_is_poisoned_wherever_it_is() {
    for seed in 0..10 {
        for waits in [false, true] {
            let (device, _raw) = host(options().adversarial(seed));
            let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
            let kernel = next_version(&device, 100_007);
            let mut array = add(&spilling, device.to_device(&numbers(1, 0)).unwrap());
            write(&kernel, &stream, &mut array).unwrap();
            let failed = waits.then(|| stream.synchronize().unwrap_err());
            for round in 0..3 {
                // What is known to be poisoned is not copied: it stays.
                match array.evict() {
                    Ok(has_left) => assert!(has_left, "{failed:?}"),
                    Err(error) => assert!(error.is_poisoned() && array.is_resident().unwrap(), "{error}"),
                }
                let read = array.get(&stream).and_then(|view| view.copy_to_host());
                let error = read.unwrap_err();
                let is_named = error.is_poisoned() && error.to_string().contains("next_version");
                assert!(is_named, "seed {seed}, {waits}, round {round}: {error}");
            }
            array.get_mut(&stream).unwrap().fill(4).unwrap();
            let _ = stream.synchronize();
            assert!(array.evict().unwrap());
            let found = array.get(&stream).unwrap().copy_to_host().unwrap();
            assert_eq!(found, Array1::from_elem(LEN, 4));
            let _ = device.synchronize();
            device.take_errors();
        }
    }
}

#[test]
fn every_call_of_a_round_trip_may_fail_once() {
    let mut number = 0;
    loop {
        let (device, raw) = double(options().adversarial(number));
        let before = limit(&device, 2);
        let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
        let (mut all, mut versions) = (arrays(&device, &spilling, 3), [0; 3]);
        raw.script().begin(Some((number, Trouble::Refuse)));
        for round in 0..3 {
            for (at, array) in all.iter_mut().enumerate() {
                match array.get_mut(&stream) {
                    Ok(mut view) => match stream.copy_to_device(&mut view, &numbers(at, round)) {
                        Ok(()) => versions[at] = round,
                        Err(error) => assert_eq!(*error.kind(), Script::REFUSED, "call {number}: {error}"),
                    },
                    Err(error) => {
                        let expected = *error.kind() == Script::REFUSED || error.is_out_of_memory();
                        assert!(expected, "call {number}: {error}");
                    }
                }
            }
        }
        let struck = raw.script().struck();
        raw.script().begin(None);
        // Told to whom it concerns; the arrays are as they were, or say that they are not.
        let _ = device.synchronize();
        device.take_errors();
        for (at, array) in all.iter_mut().enumerate() {
            let found = array.get(&stream).and_then(|view| view.copy_to_host());
            match found {
                Ok(found) => {
                    assert_eq!(found, numbers(at, versions[at]), "call {number}, {struck:?}, array {at}");
                }
                Err(error) => assert!(error.is_poisoned(), "call {number}, {struck:?}: {error}"),
            }
            array.get_mut(&stream).unwrap().copy_to_device(&numbers(at, 5)).unwrap();
        }
        for (at, array) in all.iter().enumerate() {
            is_right(array, &stream, at, 5);
        }
        drop((all, spilling));
        device.set_memory_resource(MemoryKind::Device, before).unwrap();
        is_clean(&device, raw.host());
        if struck.is_none() {
            break;
        }
        number += 1;
    }
    assert!(number > 30, "the round trips make {number} calls");
}

/// An array that cannot leave stays, one that cannot come back stays away, and both have their elements.
#[test]
fn each_call_of_a_way_out_and_back_may_fail() {
    let files = Files::new(7..8);
    for make in [double, direct_double] {
        for trouble in [Trouble::Refuse, Trouble::Lose] {
            let mut number = 0;
            loop {
                let (device, raw) = make(options().adversarial(number));
                let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
                let written = add(&spilling, device.to_device(&numbers(1, 0)).unwrap());
                let of_file = spilling.open(files.view(0)).unwrap();
                is_right(&of_file, &stream, 7, 0);
                device.synchronize().unwrap();
                raw.script().begin(Some((number, trouble)));
                let mut failed = Vec::new();
                for array in [&written, &of_file, &written, &of_file] {
                    let was_there = array.is_resident().unwrap();
                    match array.evict() {
                        Ok(has_left) => assert_eq!(has_left, was_there),
                        Err(error) => {
                            assert!(array.is_resident().unwrap(), "call {number}: {error}");
                            failed.push(error);
                        }
                    }
                    let was_there = array.is_resident().unwrap();
                    if let Err(error) = array.get(&stream).map(drop) {
                        assert!(!was_there && !array.is_resident().unwrap(), "call {number}: {error}");
                        failed.push(error);
                    }
                }
                let struck = raw.script().struck();
                raw.script().begin(None);
                let is_ours = |error: &Error| *error.kind() == Script::REFUSED || error.is_device_lost();
                assert!(failed.iter().all(is_ours), "call {number}, {struck:?}: {failed:?}");
                if trouble == Trouble::Refuse {
                    assert!(device.take_errors().iter().all(is_ours));
                    for _ in 0..2 {
                        is_right(&written, &stream, 1, 0);
                        is_right(&of_file, &stream, 7, 0);
                        assert!(written.evict().unwrap() && of_file.evict().unwrap());
                    }
                    drop((written, of_file, spilling, stream));
                    if struck != Some("release") {
                        is_clean(&device, raw.host());
                    }
                }
                if struck.is_none() {
                    break;
                }
                number += 1;
            }
            assert!(number > 8, "the ways make {number} calls");
        }
    }
}

/// The copy fails where it runs: the elements are gone, which a use is told, with the cause.
#[test]
fn a_copy_that_fails_on_its_way_out_or_back_is_told() {
    for after in 0..3 {
        for seed in 0..5 {
            let (device, raw) = double(options().adversarial(seed));
            let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
            let mut array = add(&spilling, device.to_device(&numbers(1, 0)).unwrap());
            device.synchronize().unwrap();
            let what = ErrorKind::AsynchronousFault { what: "bit rot".to_owned() };
            raw.host().inject(Injection::next(Operation::Copy, what).after(after));
            for _ in 0..4 {
                let left = array.evict();
                assert!(left.is_ok() || array.is_resident().unwrap(), "{left:?}");
                match array.get(&stream).and_then(|view| view.copy_to_host()) {
                    Ok(found) => assert_eq!(found, numbers(1, 0), "copy {after}, seed {seed}"),
                    Err(error) => assert!(error.to_string().contains("bit rot"), "{error}"),
                }
            }
            assert!(raw.host().counters().faults > 0, "copy {after}");
            raw.host().clear_injections();
            let _told = (device.synchronize(), device.take_errors());
            array.get_mut(&stream).unwrap().copy_to_device(&numbers(1, 4)).unwrap();
            assert!(array.evict().unwrap());
            is_right(&array, &stream, 1, 4);
        }
    }
}

#[test]
fn forgotten_views_and_arrays_do_no_harm() {
    let (device, _raw) = host(options());
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let all = arrays(&device, &spilling, 3);
    std::mem::forget(all[0].get(&stream).unwrap());
    assert!(!all[0].evict().unwrap() && all[1].evict().unwrap());
    let mut all = all.into_iter();
    is_right(&all.next().unwrap(), &stream, 0, 0);
    std::mem::forget(all.next().unwrap());
    // Manager, device and stream go first.
    drop((spilling, stream));
    let last = all.next().unwrap();
    assert!(last.evict().unwrap());
    let stream = device.stream().unwrap();
    drop(device);
    is_right(&last, &stream, 2, 0);
}

#[test]
fn after_a_reset_arrays_are_stale() {
    let (device, _raw) = host(options());
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let mut all = arrays(&device, &spilling, 2);
    assert!(all[1].evict().unwrap());
    // As for every array in memory of the host.
    assert!(reset(&device).unwrap_err().to_string().contains("are alive"));
    drop(all.remove(1));
    let files = Files::new(0..1);
    let of_file = spilling.open(files.view(0)).unwrap();
    reset(&device).unwrap();
    let stale = |error: Error| matches!(error.kind(), ErrorKind::Stale { .. });
    let new = device.stream().unwrap();
    assert!(all[0].get(&new).unwrap().copy_to_host().is_err_and(stale));
    assert!(all[0].evict().is_err_and(stale));
    assert!(of_file.get(&stream).is_err_and(stale));
    is_right(&of_file, &new, 0, 0);
}

#[test]
fn recordings_are_refused() {
    let (device, _raw) = double(options());
    let (spilling, stream) = (manager(&device, SpillOptions::new()), device.stream().unwrap());
    let files = Files::new(2..3);
    let of_file = spilling.open(files.view(0)).unwrap();
    let array = add(&spilling, device.to_device(&numbers(1, 0)).unwrap());
    let recorded = device.record((), |stream, ()| {
        // It is there, but no argument of the graph.
        let view = array.get(stream)?;
        assert!(stream.copy_to_host(&view).is_err());
        drop(view);
        assert!(array.evict()?);
        for gone in [&array, &of_file] {
            let error = gone.get(stream).unwrap_err();
            let is_told = matches!(error.kind(), ErrorKind::NotRecordable { what: NotRecorded::Spilling });
            assert!(is_told, "{error}");
        }
        let made = stream.device_array::<u32, _>(LEN)?;
        let (_, error) = spilling.add(made).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::OfRecording { .. }), "{error}");
        Ok(())
    });
    drop(recorded.unwrap());
    is_right(&array, &stream, 1, 0);
    is_right(&of_file, &stream, 2, 0);
}

#[test]
fn another_device_is_refused() {
    let ((device, _raw), (other, _other)) = (host(options()), host(options()));
    let (spilling, stream) = (manager(&device, SpillOptions::new()), other.stream().unwrap());
    let wrong = |error: &Error| matches!(error.kind(), ErrorKind::WrongDevice { .. });
    let (array, error) = spilling.add(other.to_device(&numbers(1, 0)).unwrap()).unwrap_err();
    assert!(wrong(&error), "{error}");
    assert_eq!(array.copy_to_host().unwrap(), numbers(1, 0));
    let mut array = add(&spilling, device.to_device(&numbers(2, 0)).unwrap());
    for is_there in [true, false] {
        assert!(is_there || array.evict().unwrap());
        assert!(array.get(&stream).is_err_and(|error| wrong(&error)));
        assert!(array.get_mut(&stream).is_err_and(|error| wrong(&error)));
        assert!(array.prefetch(&stream).is_err_and(|error| wrong(&error)));
    }
    let (array, error) = array.into_array(&stream).unwrap_err();
    assert!(wrong(&error), "{error}");
    is_right(&array, &device.stream().unwrap(), 2, 0);
}
