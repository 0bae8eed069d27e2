//! A process that ends while communicators are being ended, or are still there, does not call the library too late.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_collectives::{Communicator, CommunicatorId, InPlace, Options, Sum};
use nccl_double::Fault;
use std::{
    env,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const WHAT: &str = "NCCL_DOUBLE_EXIT";

/// What a child process does before it ends.
fn end(what: &str) {
    let devices = [concurrent(), concurrent()];
    let options = Options::new().timeout(Duration::from_secs(2));
    let all = Communicator::all_with(&devices, &options).unwrap();
    let streams: Vec<Stream> = devices.iter().map(|device| device.stream().unwrap()).collect();
    let called = if what.starts_with("late") { 1 } else { 2 };
    let mut arrays = Vec::new();
    for (rank, stream) in all.iter().zip(&streams).take(called) {
        let mut array = stream.to_device(&[1]).unwrap();
        rank.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        arrays.push(array);
    }
    match what {
        "kept" => std::mem::forget(all),
        "dropped" => drop(all),
        "dropped and soon" => {
            drop(all);
            thread::sleep(Duration::from_millis(105));
        }
        "destroyed" => all.into_iter().for_each(|rank| rank.destroy().unwrap()),
        "aborted" => all.iter().for_each(Communicator::abort),
        "late" => drop(failed(streams[0].synchronize())),
        "late and soon" => thread::sleep(Duration::from_millis(2000)),
        _ => panic!("{what}"),
    }
}

/// Ends while a rank joins, and the library does not come back.
fn end_while_joining(what: &str) {
    let _hang = plant(Fault::HangingInit);
    let device = concurrent();
    let is_patient = !["destroyed", "late"].contains(&what);
    let options = Options::new().timeout(Duration::from_secs(if is_patient { 60 } else { 1 }));
    let id = CommunicatorId::for_device(&device).unwrap();
    let rank = Communicator::join(&device, &id, 0, 1, &options).unwrap();
    let stream = device.stream().unwrap();
    let mut array = stream.to_device(&[1]).unwrap();
    // The library is inside its function by then.
    thread::sleep(Duration::from_millis(200));
    match what {
        "kept" => std::mem::forget((rank, stream, array)),
        "dropped" => drop((rank, stream, array)),
        "destroyed" => drop(rank.destroy()),
        "aborted" => rank.abort(),
        "late" => drop(failed(rank.on(&stream).all_reduce(InPlace, &mut array, Sum))),
        "called" => {
            thread::spawn(move || rank.on(&stream).all_reduce(InPlace, &mut array, Sum));
            thread::sleep(Duration::from_millis(200));
        }
        _ => panic!("{what}"),
    }
    std::process::exit(STATUS);
}

const STATUS: i32 = 43;

/// The end of the process waits two seconds for threads that are inside a driver.
#[test]
fn a_library_that_never_comes_back_does_not_keep_the_process() {
    if let Ok(what) = env::var(WHAT) {
        end_while_joining(&what);
    }
    let ends = ["kept", "dropped", "destroyed", "aborted", "late", "called"].map(|what| {
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(["--exact", "a_library_that_never_comes_back_does_not_keep_the_process"]).env(WHAT, what);
        (what, again.stdout(Stdio::null()).spawn().unwrap())
    });
    let began = Instant::now();
    for (what, mut child) in ends {
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if began.elapsed() < Duration::from_secs(20) => thread::sleep(Duration::from_millis(20)),
                None => {
                    child.kill().unwrap();
                    panic!("{what}: the process does not end");
                }
            }
        };
        assert_eq!(status.code(), Some(STATUS), "{what}");
    }
}

#[test]
fn the_library_is_not_called_after_its_clean_up() {
    if let Ok(what) = env::var(WHAT) {
        return end(&what);
    }
    for what in ["kept", "dropped", "dropped and soon", "destroyed", "aborted", "late", "late and soon"] {
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(["--exact", "the_library_is_not_called_after_its_clean_up"]).env(WHAT, what);
        let output = again.output().unwrap();
        assert!(output.status.success(), "{what}: {output:?}");
    }
}
