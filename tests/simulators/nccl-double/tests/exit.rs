//! A process that ends while communicators are being ended, or are still there, does not call the library too late.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_collectives::{Communicator, Options, Sum};
use std::{env, process::Command, thread, time::Duration};

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
        rank.all_reduce_in_place(stream, &mut array, Sum).unwrap();
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
