//! The order of work on one array, by more streams than its log has room for.

use super::device;
use gpumem_core::MemoryKind;
use gpumem_host::{Host, HostOptions};
use gpumem_integration::calling;
use gpumem_kernel::config_for_items;
use gpumem_runtime::{Device, memory::Pool};
use ndarray::s;
use std::{
    sync::{Arc, Barrier, mpsc},
    thread,
    time::Duration,
};

const LEN: usize = 1 << 16;
const SEEDS: u64 = if cfg!(miri) { 2 } else { 20 };

/// Work that uses two parts of an array takes two entries of its log.
#[test]
fn work_on_two_parts_of_an_array_forgets_no_other_part() {
    for (seed, streams) in (0..SEEDS).flat_map(|seed| (12..20).map(move |streams| (seed, streams))) {
        let device: Device<Host> =
            Device::from_raw(Host::open_with(&HostOptions::new().adversarial(seed)).unwrap());
        let mut array = device.device_array::<u32, _>(64).unwrap();
        for part in 0..streams {
            let stream = device.stream().unwrap();
            stream.fill(&mut array.slice_mut(s![part..=part]).unwrap(), 7).unwrap();
        }
        let (mut left, right) = array.split_at_mut(0, 32).unwrap();
        let mut left = left.slice_mut(s![30..]).unwrap();
        device.stream().unwrap().copy_to_device(&mut left, &right.slice(s![..2]).unwrap()).unwrap();
        let seen = array.slice(s![..streams]).unwrap().copy_to_host().unwrap();
        assert_eq!(seen.to_vec(), vec![7; streams], "seed {seed}");
    }
}

/// Memory whose uses were more than a log has room for goes to a new array with all of them.
#[test]
fn memory_of_many_borrowers_is_allocated_again() {
    let device = device();
    let options = device.pool_options(MemoryKind::Device).chunks(LEN, LEN).max_size(LEN);
    let pool = Arc::new(Pool::new(device.driver_memory(), options));
    device.set_memory_resource(MemoryKind::Device, pool).unwrap();
    let array = device.device_array::<u8, _>(LEN).unwrap();
    let streams: Vec<_> = (0..40).map(|_| device.stream().unwrap()).collect();
    let loans: Vec<_> = streams.iter().map(|stream| array.lend(stream).unwrap()).collect();
    drop((loans, array));
    let array = device.uninit_array::<u8, _>(LEN).unwrap().fill(3).unwrap();
    assert!(array.copy_to_host().unwrap().iter().all(|element| *element == 3));
}

/// A stream that has waited for an event waits for its time too.
#[test]
fn the_time_of_an_event_is_known_after_a_later_one() {
    for seed in 0..SEEDS {
        let device: Device<Host> =
            Device::from_raw(Host::open_with(&HostOptions::new().adversarial(seed)).unwrap());
        let (one, other) = (device.stream().unwrap(), device.stream().unwrap());
        let start = one.record_timed_event().unwrap();
        other.wait(&start).unwrap();
        let end = other.record_timed_event().unwrap();
        end.synchronize().unwrap();
        assert!(end.elapsed_since(&start).unwrap() >= 0.0, "seed {seed}");
    }
}

/// Streams that take turns: what waits behind a running kernel may wait for work that waits for the kernel.
#[test]
fn a_query_does_not_wait_for_a_running_kernel() {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let device = device();
        let (one, other) = (device.stream().unwrap(), device.stream().unwrap());
        let (begun, ended) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (begins, ends) = (begun.clone(), ended.clone());
        let body = move || {
            begins.wait();
            ends.wait();
        };
        let kernel = calling(body).load(&device).unwrap();
        kernel.launch(&one, &config_for_items([1, 1, 1], [1, 1, 1]), (1,)).unwrap();
        other.wait(&one.record_event().unwrap()).unwrap();
        one.wait(&other.record_timed_event().unwrap()).unwrap();
        begun.wait();
        let answers = [one.query().unwrap(), other.query().unwrap()];
        ended.wait();
        one.synchronize().unwrap();
        sender.send(answers).unwrap();
    });
    assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok([false; 2]));
}
