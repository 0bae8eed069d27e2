//! Several communicators of one device over the double of NCCL: their operations take turns, in the order of the host's calls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_collectives::{CollectiveCause, CommunicatorId, InPlace, Options, Sum};
use gpumem_core::{CollectiveState, ErrorKind};
use std::{sync::mpsc, thread, time::Duration};

#[test]
fn a_captured_stream_is_refused_before_it_waits_for_another_communicator() {
    let _alone = alone();
    let devices = [concurrent(), concurrent()];
    let [first, second] = [0, 1].map(|_| Comm::all(&devices).unwrap());
    let streams = devices.each_ref().map(|device| device.stream().unwrap());
    let other = devices[0].stream().unwrap();
    let mut arrays = [streams[0].to_device(&[1]).unwrap(), streams[1].to_device(&[2]).unwrap()];
    let mut later = other.to_device(&[7]).unwrap();
    // The stream would wait for this operation, which is under way until rank 1 calls it too.
    first[0].on(&streams[0]).all_reduce(InPlace, &mut arrays[0], Sum).unwrap();
    raw(&devices[0]).set_capturing(true);
    let before = devices[0].counters();
    let refused = second[0].on(&other).all_reduce(InPlace, &mut later, Sum).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Unsupported { .. }), "{refused}");
    assert_eq!(devices[0].counters(), before, "a wait would end the capture");
    raw(&devices[0]).set_capturing(false);
    first[1].on(&streams[1]).all_reduce(InPlace, &mut arrays[1], Sum).unwrap();
    assert_eq!(arrays[0].copy_to_host().unwrap().to_vec(), [3]);
    let mut theirs = streams[1].to_device(&[1]).unwrap();
    second[0].on(&other).all_reduce(InPlace, &mut later, Sum).unwrap();
    second[1].on(&streams[1]).all_reduce(InPlace, &mut theirs, Sum).unwrap();
    assert_eq!(theirs.copy_to_host().unwrap().to_vec(), [8]);
}

#[test]
fn operations_go_on_while_another_communicator_of_the_device_is_joined() {
    let _alone = alone();
    let device = concurrent();
    let own = Comm::all(std::slice::from_ref(&device)).unwrap();
    let id = CommunicatorId::for_device(&device).unwrap();
    let early = Comm::join(&device, &id, 0, 2, &Options::new()).unwrap();
    let (done, told) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let stream = device.stream().unwrap();
            let mut array = stream.to_device(&[1]).unwrap();
            early.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
            done.send(array.copy_to_host().unwrap().to_vec()).unwrap();
        });
        // The thread waits in its call.
        assert!(told.recv_timeout(Duration::from_millis(100)).is_err());
        let stream = device.stream().unwrap();
        let mut array = stream.to_device(&[5]).unwrap();
        own[0].on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [5]);
        let late = Comm::join(&device, &id, 1, 2, &Options::new()).unwrap();
        late.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        assert_eq!(told.recv().unwrap(), [6]);
    });
}

/// An operation of another communicator waits on the stream for one that is aborted, and would give other ranks what that leaves.
#[test]
fn operations_behind_an_aborted_one_give_nothing_to_other_ranks() {
    let _alone = alone();
    for is_same_stream in [true, false] {
        let devices = [concurrent(), concurrent()];
        let [first, second] = [(); 2].map(|()| Comm::all_with(&devices, &soon()).unwrap());
        let streams = devices.each_ref().map(|device| [device.stream().unwrap(), device.stream().unwrap()]);
        let mut array = streams[0][0].to_device(&[1]).unwrap();
        // The other rank does not come.
        first[0].on(&streams[0][0]).all_reduce(InPlace, &mut array, Sum).unwrap();
        let behind = &streams[0][usize::from(!is_same_stream)];
        second[0].on(behind).all_reduce(InPlace, &mut array, Sum).unwrap();
        let mut sum = streams[1][0].to_device(&[10]).unwrap();
        second[1].on(&streams[1][0]).all_reduce(InPlace, &mut sum, Sum).unwrap();
        first[0].abort();
        sum.copy_to_host().unwrap_err();
        let told = second[1].failure().unwrap();
        assert!(matches!(told.cause, CollectiveCause::Timeout { .. }), "{told}");
        let state = second[0].recent()[0].state;
        assert_eq!((state, second[0].failure().is_some()), (CollectiveState::Failed, true));
        array.copy_to_host().unwrap_err();
    }
}
