//! The engine for GPUs over the double of NCCL: registered memory is held while the library knows it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_collectives::{Communicator, InPlace, Options, Sum};
use gpumem_core::{ErrorKind, MemoryKind};
use gpumem_runtime::{SpillManager, SpillOptions, memory::Trim};
use nccl_double::Fault;
use std::{
    thread,
    time::{Duration, Instant},
};

const LEN: usize = 1 << 20;

fn wait_for(what: impl Fn() -> bool, text: &str) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < Duration::from_secs(10), "{text}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn registrations_are_counted_and_hold_the_memory() {
    let _alone = alone();
    let base = registered();
    let registered = || registered() - base;
    let comm = Communicator::all_with(&[concurrent()], &Options::new()).unwrap().remove(0);
    let device = comm.device();
    let stream = device.stream().unwrap();
    let mut array = stream.to_device(&vec![1_i32; LEN]).unwrap();
    comm.register(&array).unwrap();
    comm.register(&array).unwrap();
    assert_eq!(registered(), 1, "the library is told once");
    comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    comm.deregister(&array).unwrap();
    assert_eq!(registered(), 1);
    comm.deregister(&array).unwrap();
    assert_eq!(registered(), 0);
    let error = comm.deregister(&array).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    let other = concurrent().to_device(&[1]).unwrap();
    let error = comm.register(&other).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WrongDevice { .. }), "{error}");
    assert_eq!(array.copy_to_host().unwrap().to_vec(), vec![1; LEN]);

    // Memory that the library knows is not given back to the driver.
    comm.register(&array).unwrap();
    let blocks = || device.memory_resource(MemoryKind::Device).unwrap().statistics().blocks;
    let before = blocks();
    drop(array);
    device.trim(Trim::ALL).unwrap();
    assert_eq!((registered(), blocks()), (1, before));
    comm.destroy().unwrap();
    assert_eq!(registered(), 0, "the end of the communicator takes it back");
}

#[test]
fn memory_that_the_library_does_not_let_go_is_held() {
    let _alone = alone();
    let (device, before) = (concurrent(), registered());
    let comm = Communicator::all_with(std::slice::from_ref(&device), &Options::new()).unwrap().remove(0);
    let blocks = || device.memory_resource(MemoryKind::Device).unwrap().statistics().blocks;
    let array = device.to_device(&vec![1_i32; LEN]).unwrap();
    comm.register(&array).unwrap();
    let fault = plant(Fault::FailingDeregister);
    let error = comm.deregister(&array).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Driver { .. }), "{error}");
    drop(fault);
    let held = blocks();
    drop(array);
    assert_eq!((blocks(), registered()), (held, before + 1));
    comm.destroy().unwrap();
    assert!(blocks() < held && registered() == before, "the end of the communicator takes it back");
}

#[test]
fn an_abort_lets_the_memory_go() {
    let _alone = alone();
    let (device, before) = (concurrent(), registered());
    let comm = Communicator::all_with(std::slice::from_ref(&device), &Options::new()).unwrap().remove(0);
    let blocks = || device.memory_resource(MemoryKind::Device).unwrap().statistics().blocks;
    let array = device.to_device(&vec![1_i32; LEN]).unwrap();
    let held = blocks();
    comm.register(&array).unwrap();
    drop(array);
    assert_eq!(blocks(), held);
    comm.abort();
    wait_for(|| blocks() < held, "the memory is held by nothing any more");
    let array = device.to_device(&[1]).unwrap();
    failed(comm.register(&array));
    assert_eq!(registered(), before + 1, "the real library frees what it knows itself");
}

#[test]
fn an_array_that_may_leave_the_device_stays_while_it_is_registered() {
    let _alone = alone();
    let comm = Communicator::all_with(&[concurrent()], &Options::new()).unwrap().remove(0);
    let (device, stream) = (comm.device(), comm.device().stream().unwrap());
    let spilling = SpillManager::new(device, SpillOptions::new()).unwrap();
    let array = device.to_device(&vec![3_i32; LEN]).unwrap();
    let array = spilling.add(array).map_err(|(_, error)| error).unwrap();
    comm.register(&array.get(&stream).unwrap()).unwrap();
    assert!(!array.evict().unwrap());
    assert_eq!(spilling.sleep().unwrap().evicted, 0);
    comm.deregister(&array.get(&stream).unwrap()).unwrap();
    assert!(array.evict().unwrap());
    assert_eq!(array.get(&stream).unwrap().copy_to_host().unwrap().to_vec(), vec![3; LEN]);
}
