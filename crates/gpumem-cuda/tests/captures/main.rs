//! No operation of the library ends a capture of another library: on a GPU, and over a double of the driver.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod capture;
#[path = "../driver_double/mod.rs"]
mod driver_double;
mod operations;
mod rules;

use capture::{Capture, Kind, MODES, TheirStream};
use cudarc::driver::sys::CUstreamCaptureMode;
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_cuda::Cuda;
use operations::{OPERATIONS, Operation, Outcome, Place};
use std::{
    env,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
};

/// The variable of a child process that runs over the double.
const DOUBLE: &str = "GPUMEM_TEST_DOUBLE";

/// One test at a time: a capture minds what any thread does. `None` where there is no device.
fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    match Cuda::devices() {
        Ok(devices) if !devices.is_empty() => Some(TURN.lock().unwrap_or_else(PoisonError::into_inner)),
        _ => {
            assert!(env::var_os(DOUBLE).is_none(), "the double is there");
            println!("skipped: there is no device");
            None
        }
    }
}

#[test]
fn the_same_over_a_double_of_the_driver() {
    if env::var_os(DOUBLE).is_some() {
        return;
    }
    driver_double::run_again("captures", &[(DOUBLE, "1")]);
}

/// Does `work` while another library captures a stream. Returns whether the capture has been left alone.
fn beside(kind: Kind, is_elsewhere: bool, work: impl FnOnce(&Arc<TheirStream>)) -> bool {
    if !is_elsewhere {
        let capture = Capture::begin(kind);
        work(&capture.0);
        return capture.end();
    }
    thread::scope(|scope| {
        let ((begun, begins), (done, is_done)) = (mpsc::channel(), mpsc::channel::<()>());
        let other = scope.spawn(move || {
            let capture = Capture::begin(kind);
            begun.send(capture.0.clone()).unwrap();
            // Until the other end is dropped.
            let _ = is_done.recv();
            capture.end()
        });
        work(&begins.recv().unwrap());
        drop(done);
        other.join().unwrap()
    })
}

/// What an operation has done that it should not.
fn trouble(operation: &Operation, kind: Kind, result: &Result<()>, is_alive: bool) -> Option<&'static str> {
    let is_refused =
        result.as_ref().is_err_and(|error| matches!(error.kind(), ErrorKind::Unsupported { .. }));
    let (expects_refusal, ends) = match operation.outcome {
        Outcome::Done => (false, false),
        Outcome::Refused => (true, false),
        Outcome::RefusedBesideBlocking => (kind.is_blocking, false),
        Outcome::WaitsForAllStreams => (true, !kind.is_blocking),
        Outcome::AsksForAllStreams => (false, !kind.is_blocking),
        Outcome::Either => (is_refused, false),
    };
    match () {
        () if is_alive == ends => Some(if ends { "left the capture alone" } else { "ended the capture" }),
        () if is_refused != expects_refusal || (result.is_err() && !is_refused) => Some("ended otherwise"),
        () => None,
    }
}

#[test]
fn every_operation_leaves_captures_alone() {
    let Some(_turn) = turn() else { return };
    let mut troubles = Vec::new();
    for operation in OPERATIONS {
        for (mode, is_blocking, is_elsewhere) in cases() {
            let (kind, mut result) = (Kind { mode, is_blocking }, Ok(()));
            let mut place = Place::new().unwrap();
            let is_alive =
                beside(kind, is_elsewhere, |captured| result = (operation.run)(&mut place, captured));
            if let Some(trouble) = trouble(operation, kind, &result, is_alive) {
                let whose = if is_elsewhere { "another" } else { "the same" };
                troubles
                    .push(format!("{}: {trouble} ({kind:?}, {whose} thread): {result:?}", operation.name));
            }
            // Nothing is left to be freed beside the next capture.
            place.end().unwrap();
        }
    }
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}

fn cases() -> impl Iterator<Item = (CUstreamCaptureMode, bool, bool)> {
    let both = || [false, true].into_iter();
    MODES.into_iter().flat_map(move |mode| both().flat_map(move |a| both().map(move |b| (mode, a, b))))
}
