//! Ranks of one device on threads of their own, which copy and call operations without naming a stream.
#![cfg(all(feature = "host", feature = "collectives"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use gpumem::{
    Device, DeviceArray, Order,
    collectives::{Communicator, InPlace, Options, Sum},
    ndarray::{Ix1, s},
    ops::{self, ArrayOps as _},
};
use std::{thread, time::Duration};

/// One rank waits for a sum, by a call on the device's own stream. The other one works there before it takes part.
fn passes(waits: impl FnOnce(&mut DeviceArray<i32, Ix1>) + Send) {
    let device = Device::open("host").unwrap();
    let options = Options::new().timeout(Duration::from_secs(20));
    let ranks = Communicator::all_with(&[device.clone(), device.clone()], &options).unwrap();
    let streams = [device.stream().unwrap(), device.stream().unwrap()];
    let mut sums = [streams[0].to_device(&[1, 1]).unwrap(), streams[1].to_device(&[2, 2]).unwrap()];
    let (mut own, other) =
        (streams[1].to_device(&[5_i32; 4]).unwrap(), streams[1].to_device(&[6; 4]).unwrap());
    streams[1].synchronize().unwrap();
    let [first, second] = &mut sums;
    ranks[0].on(&streams[0]).all_reduce(InPlace, first, Sum).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| waits(first));
        // As a rule, it waits by then.
        thread::sleep(Duration::from_millis(50));
        own.copy_to_device(&other).unwrap();
        assert_eq!(own.copy_to_host().unwrap().to_vec(), [6; 4]);
        assert_eq!(own.sum().unwrap(), 24_i64);
        ranks[1].on(&streams[1]).all_reduce(InPlace, second, Sum).unwrap();
    });
    assert_eq!(second.copy_to_host().unwrap().to_vec(), [3, 3]);
}

#[test]
fn a_call_that_waits_for_another_rank_holds_no_copy_of_that_rank() {
    passes(|sum| assert_eq!(sum.copy_to_host().unwrap().to_vec(), [3, 3]));
    passes(|sum| assert_eq!(sum.get(1).unwrap(), 3));
    passes(|sum| assert!(sum.copy_to_device(&[7, 7]).is_ok()));
    passes(|sum| sum.fill(7).unwrap());
    passes(|sum| assert_eq!(sum.try_clone().unwrap().get(0).unwrap(), 3));
    passes(|sum| {
        let turned = sum.slice(s![..;-1]).unwrap().reshape_copy((2, 1), Order::C).unwrap();
        assert_eq!(turned.get((0, 0)).unwrap(), 3);
    });
}

#[test]
fn an_operation_that_waits_for_another_rank_holds_none_of_that_rank() {
    passes(|sum| assert_eq!(sum.sum().unwrap(), 6));
    passes(|sum| assert_eq!(sum.inclusive_scan(0).unwrap().get(1).unwrap(), 6));
    passes(|sum| assert_eq!(ops::concatenate(0, &[&*sum, &*sum]).unwrap().len(), 4));
}
