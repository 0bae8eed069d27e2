//! Which error tells of a failed download inside a scope, and what its destination holds.

use super::{UNTOUCHED, WITHIN, common::is_clean, is_right_or_untouched, numbers, short_blocks, untouched};
use gpumem_core::{Error, ErrorKind, Failure, MemoryUse, POISONED};
use gpumem_host::{HostOptions, Injection, Operation};
use host_double::{DoubleDevice, Script, Trouble};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
};

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
