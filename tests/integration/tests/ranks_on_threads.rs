//! Ranks of one device on threads of their own, which call operations of arrays without naming a stream.
#![cfg(all(feature = "host", feature = "collectives"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use gpumem::{
    Device, DeviceArray,
    collectives::{Communicator, InPlace, Options, Sum},
    ndarray::Ix1,
    ops::{self, ArrayOps as _},
};
use std::{thread, time::Duration};

/// One rank waits for a sum, by a call on the device's own stream. The other one works there before it takes part.
fn passes(waits: impl FnOnce(&DeviceArray<i32, Ix1>) + Send) {
    let device = Device::open("host").unwrap();
    let options = Options::new().timeout(Duration::from_secs(20));
    let ranks = Communicator::all_with(&[device.clone(), device.clone()], &options).unwrap();
    let streams = [device.stream().unwrap(), device.stream().unwrap()];
    let mut sums = [streams[0].to_device(&[1, 1]).unwrap(), streams[1].to_device(&[2, 2]).unwrap()];
    let own = streams[1].to_device(&[5_i32; 4]).unwrap();
    streams[1].synchronize().unwrap();
    let [first, second] = &mut sums;
    ranks[0].on(&streams[0]).all_reduce(InPlace, first, Sum).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| waits(first));
        // As a rule, it waits by then.
        thread::sleep(Duration::from_millis(50));
        assert_eq!(own.sum().unwrap(), 20_i64);
        ranks[1].on(&streams[1]).all_reduce(InPlace, second, Sum).unwrap();
    });
    assert_eq!(second.copy_to_host().unwrap().to_vec(), [3, 3]);
}

#[test]
fn an_operation_that_waits_for_another_rank_holds_none_of_that_rank() {
    passes(|sum| assert_eq!(sum.sum().unwrap(), 6));
    passes(|sum| assert_eq!(sum.inclusive_scan(0).unwrap().get(1).unwrap(), 6));
    passes(|sum| assert_eq!(ops::concatenate(0, &[sum, sum]).unwrap().len(), 4));
}
