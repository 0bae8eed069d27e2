//! Arrays and graphs that are dropped where a driver would mind it: while a graph is recorded, with launches in flight, at the end of
//! threads; and graphs that are forgotten.

use super::{LEN, device_of, failures::graph, grid, is_empty};
use gpumem::kernel::{KernelDef, SliceMut, WorkItemIds};
use gpumem_core::MemoryKind;
use gpumem_host::HostOptions;
use gpumem_runtime::{Device, DeviceArray, DeviceViewMut, Stream, memory::LimitingResource, reads, writes};
use host_double::Double;
use ndarray::Ix1;
use parking_lot::Mutex;
use std::{collections::VecDeque, mem, sync::Arc, thread};

/// Arrays with work in flight.
fn busy(device: &Device<Double>, count: usize) -> Vec<DeviceArray<i64, Ix1, Double>> {
    let stream = device.stream().unwrap();
    let make = |number| {
        let mut array = stream.device_array::<i64, _>(LEN).unwrap();
        stream.fill(&mut array, number as i64).unwrap();
        array
    };
    (0..count).map(make).collect()
}

#[test]
fn arrays_that_threads_drop_during_a_recording_call_no_driver() {
    for captures in [true, false] {
        let (device, raw) = device_of(HostOptions::new().adversarial(5), captures);
        let stream = device.stream().unwrap();
        let x = stream.to_device(&[7_i64; LEN]).unwrap();
        let mut dropped: Vec<_> = (0..8).map(|_| busy(&device, 20)).collect();
        let recorded = device.record((&x,), |stream, (x,)| {
            raw.script().begin(None);
            let before = stream.to_device(&x)?;
            thread::scope(|scope| {
                for arrays in dropped.drain(..) {
                    scope.spawn(move || drop(arrays));
                }
            });
            let after = stream.to_device(&before)?;
            assert_eq!(raw.script().calls(), 0);
            stream.to_device(&after)
        });
        let graph = recorded.unwrap();
        for _ in 0..3 {
            // In memory that was dropped, as the arena may be.
            let beside = busy(&device, 3);
            let found = graph.launch(&stream, (&x,)).unwrap();
            assert_eq!(found.copy_to_host().unwrap().to_vec(), [7; LEN]);
            for (array, number) in beside.iter().zip(0..) {
                assert_eq!(array.copy_to_host().unwrap().to_vec(), [number; LEN]);
            }
        }
        drop((graph, x, stream));
        is_empty(&device, &raw);
    }
}

#[test]
fn graphs_that_threads_drop_in_flight_leave_no_memory() {
    for captures in [true, false] {
        for host in [HostOptions::new(), HostOptions::new().adversarial(3)] {
            let (device, raw) = device_of(host, captures);
            for round in 0..25 {
                thread::scope(|scope| {
                    for number in 0..4_i64 {
                        let device = &device;
                        scope.spawn(move || {
                            let (stream, graph) = (device.stream().unwrap(), graph(device));
                            let mut x = device.to_device(&[number; LEN]).unwrap();
                            let z = graph.launch(&stream, (&mut x, round)).unwrap();
                            drop((graph, stream));
                            let sum = number + round;
                            assert_eq!(z.copy_to_host().unwrap().to_vec(), [round * sum; LEN]);
                            drop(z);
                            assert_eq!(x.copy_to_host().unwrap().to_vec(), [sum + round * round * sum; LEN]);
                        });
                    }
                });
            }
            is_empty(&device, &raw);
        }
    }
}

#[test]
fn a_forgotten_graph_is_leaked_and_no_more() {
    for captures in [true, false] {
        let (device, raw) = device_of(HostOptions::new().adversarial(3), captures);
        let stream = device.stream().unwrap();
        let graph = device
            .record((reads::<i64, _>(LEN),), |stream, (x,)| {
                let inside = stream.to_device(&x)?;
                stream.to_device(&inside)
            })
            .unwrap();
        let x = stream.to_device(&[7_i64; LEN]).unwrap();
        let found = graph.launch(&stream, (&x,)).unwrap();
        mem::forget(graph);
        drop((x, stream));
        let beside = busy(&device, 5);
        assert_eq!(found.copy_to_host().unwrap().to_vec(), [7; LEN]);
        for (array, number) in beside.iter().zip(0..) {
            assert_eq!(array.copy_to_host().unwrap().to_vec(), [number; LEN]);
        }
        drop((beside, found));
        device.synchronize().unwrap();
        device.flush().unwrap();
        assert_eq!(device.take_errors(), []);
        assert!(raw.host().counters().live_allocations <= 1, "the block of the pool with its memory");
        assert_eq!(raw.graphs(), usize::from(captures));
    }
}

/// The stream is in order by itself.
#[test]
fn memory_of_a_dropped_graph_serves_its_stream_without_an_event() {
    const LEN: usize = 512;
    for captures in [true, false] {
        let (device, raw) = device_of(HostOptions::new().adversarial(3), captures);
        let pool = device.memory_resource(MemoryKind::Device).unwrap();
        let (stream, x) = (device.stream().unwrap(), device.to_device(&[7_i64; LEN]).unwrap());
        // Room for the memory of the graph, and for its result.
        let limited = Arc::new(LimitingResource::new(pool.clone(), 2 * 8 * LEN));
        device.set_memory_resource(MemoryKind::Device, limited).unwrap();
        let graph = device.record((&x,), |stream, (x,)| {
            let inside = stream.to_device(&x)?;
            stream.to_device(&inside)
        });
        let graph = graph.unwrap();
        let found = graph.launch(&stream, (&x,)).unwrap();
        drop(graph);
        raw.script().begin(None);
        let mut beside = stream.device_array::<i64, _>(LEN).unwrap();
        stream.fill(&mut beside, 8).unwrap();
        let ordering = ["record", "wait", "synchronize a stream"];
        assert_eq!(ordering.map(|call| raw.script().calls_of(call)), [0; 3]);
        assert_eq!(found.copy_to_host().unwrap().to_vec(), [7; LEN]);
        assert_eq!(beside.copy_to_host().unwrap().to_vec(), [8; LEN]);
        drop((found, beside, x, stream));
        device.set_memory_resource(MemoryKind::Device, pool).unwrap();
        is_empty(&device, &raw);
    }
}

/// Its kernel waits for the test.
#[test]
fn a_graph_of_the_driver_is_destroyed_after_its_last_launch() {
    let (device, raw) = device_of(HostOptions::new(), true);
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    // SAFETY: each work-item writes its own element.
    let kernel = unsafe { KernelDef::<(SliceMut<i64>,)>::new("waiting") };
    let kernel = kernel.host_loop(move |ids: &WorkItemIds<'_>, (y,): &(SliceMut<i64>,)| {
        if ids.global_id(0) == 0 {
            // Until the other end is dropped.
            let _ = wait.lock().recv();
        }
        if ids.global_id(0) < y.len() {
            y.set(ids.global_id(0), 7);
        }
    });
    let kernel = kernel.load(&device).unwrap();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let body = |stream: &Stream<Double>, (mut y,): (DeviceViewMut<'_, i64, Ix1, Double>,)| {
        kernel.launch(stream, &grid(), (&mut y,))
    };
    let graph = device.record((writes::<i64, _>(LEN),), body).unwrap();
    // More than the queue of what is to be freed keeps before it looks which are done.
    let mut all = busy(&device, 12);
    for array in &mut all {
        graph.launch(&stream, (array,)).unwrap();
    }
    assert_eq!(raw.graphs(), 12);
    drop((graph, stream));
    let beside = device.record((writes::<i64, _>(LEN),), |stream, (mut y,)| stream.fill(&mut y, 9)).unwrap();
    let mut array = device.device_array::<i64, _>(LEN).unwrap();
    beside.launch(&other, (&mut array,)).unwrap();
    other.synchronize().unwrap();
    drop((beside, array));
    drop(device.uninit_array::<i64, _>(1 << 22).unwrap());
    assert_eq!(raw.graphs(), 12, "those in use are left, and the one that is done is not");
    drop(go);
    for array in &all {
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [7; LEN]);
    }
    drop((all, kernel, other));
    is_empty(&device, &raw);
}

/// Neither memory, nor graphs of the driver, nor streams and events pile up.
#[test]
fn a_thousand_graphs_whose_results_are_kept_for_a_while_leave_nothing() {
    for captures in [true, false] {
        let (device, raw) = device_of(HostOptions::new(), captures);
        let (stream, x) = (device.stream().unwrap(), device.to_device(&[3_i64; LEN]).unwrap());
        let (mut kept, mut counted) = (VecDeque::new(), Vec::new());
        for round in 0..1000_i64 {
            let graph = device.record((&x, 0_i64), |stream, (x, _)| {
                let inside = stream.to_device(&x)?;
                Ok((stream.to_device(&inside)?, stream.copy_to_host(&inside)?))
            });
            let graph = graph.unwrap();
            kept.push_back(graph.launch(&stream, (&x, round)).unwrap());
            drop(graph);
            if kept.len() > 4 {
                let (array, host) = kept.pop_front().unwrap();
                assert_eq!(array.copy_to_host().unwrap().to_vec(), [3; LEN]);
                assert_eq!(host.view().unwrap().to_vec(), [3; LEN]);
            }
            if round % 250 == 249 {
                stream.synchronize().unwrap();
                device.flush().unwrap();
                let left = raw.host().counters();
                let bytes = (left.live_device_bytes, left.live_pinned_bytes, left.live_allocations);
                counted.push((bytes, left.streams, left.events, raw.graphs()));
            }
        }
        assert!(counted.windows(2).all(|pair| pair[0] == pair[1]), "{counted:?}");
        assert_eq!(counted[0].3, 0, "graphs that were dropped are left");
        drop((kept, x, stream));
        is_empty(&device, &raw);
    }
}
