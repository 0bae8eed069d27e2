//! What fails while a graph of the driver is made, changed and launched.

use super::{LEN, MultiplyAdd, device, device_of, grid, is_empty, multiply_add};
use gpumem_core::{Error, ErrorKind, Result};
use gpumem_host::HostOptions;
use gpumem_runtime::{
    Device, DeviceArray, FrozenArray, Graph, GraphMemory, PinnedArray, Stream, WriteForm, reads, writes,
};
use host_double::{Double, Script, Trouble};
use ndarray::{Ix1, s};
use std::collections::BTreeSet;

pub(super) type Numbered = Graph<(WriteForm<i64, Ix1>, i64), DeviceArray<i64, Ix1, Double>, Double>;

/// `x += a`, `z = a * x` on another stream, `x += a * z`. Returns `z`.
pub(super) fn graph(device: &Device<Double>) -> Numbered {
    record(device, &multiply_add().load(device).unwrap()).unwrap()
}

fn record(device: &Device<Double>, kernel: &MultiplyAdd) -> Result<Numbered> {
    device.record((writes::<i64, _>(LEN), 0_i64), |stream, (mut x, a)| {
        let other = stream.device().stream()?;
        let one = stream.to_device(&[1_i64; LEN])?;
        let mut z = other.device_array::<i64, _>(LEN)?;
        kernel.launch(stream, &grid(), (&a, &one, &mut x))?;
        kernel.launch(&other, &grid(), (&a, &x, &mut z))?;
        kernel.launch(stream, &grid(), (&a, &z, &mut x))?;
        Ok(z)
    })
}

#[test]
fn a_launch_is_right_or_fails_as_a_whole() {
    let (device, raw) = device();
    let stream = device.stream().unwrap();
    let mut struck = BTreeSet::new();
    for call in 0..120 {
        let (graph, mut x, mut value) = (graph(&device), device.to_device(&[0_i64; LEN]).unwrap(), 0);
        device.synchronize().unwrap();
        raw.script().begin(Some((call, Trouble::Refuse)));
        for a in [1, 1, 2, 3] {
            let launched = graph.launch(&stream, (&mut x, a));
            let planned = raw.script().struck();
            let Err(error) = launched else {
                value = (value + a) * (a * a + 1);
                continue;
            };
            // Each later call succeeds.
            raw.script().begin(None);
            struck.extend(planned);
            match x.copy_to_host() {
                Ok(found) => assert_eq!(found[LEN - 1], value, "call {call}: {error}"),
                Err(poisoned) => {
                    assert!(matches!(poisoned.kind(), ErrorKind::Poisoned { .. }), "{poisoned}");
                    value = 5;
                    stream.fill(&mut x, value).unwrap();
                }
            }
        }
        struck.extend(raw.script().struck());
        raw.script().begin(None);
        assert_eq!(x.copy_to_host().unwrap()[LEN - 1], value, "call {call}");
        let _ = (stream.synchronize(), device.take_errors());
    }
    for call in ["begin_capture", "end_capture", "set_launch", "launch_graph"] {
        assert!(struck.contains(call), "{call}: {struck:?}");
    }
}

/// From the recording on: the error of the call, no wrong element, nothing that is left, and the next graph is right.
#[test]
fn each_call_of_a_recording_and_of_its_launches_may_fail() {
    let is_ours = |error: &Error| *error.kind() == Script::REFUSED;
    for captures in [true, false] {
        let mut number = 0;
        loop {
            let (device, raw) = device_of(HostOptions::new().adversarial(number), captures);
            let kernel = multiply_add().load(&device).unwrap();
            let (stream, mut x) = (device.stream().unwrap(), device.to_device(&[0_i64; LEN]).unwrap());
            device.synchronize().unwrap();
            raw.script().begin(Some((number, Trouble::Refuse)));
            let (recorded, mut value, mut results) = (record(&device, &kernel), 0, Vec::new());
            let mut launch = |graph: &Numbered, a: i64| match graph.launch(&stream, (&mut x, a)) {
                Ok(z) => {
                    value += a;
                    results.push((a * value, z));
                    value += a * a * value;
                }
                Err(error) => {
                    let poisoned = matches!(error.kind(), ErrorKind::Poisoned { .. });
                    assert!(poisoned || is_ours(&error), "call {number}: {error}");
                }
            };
            match &recorded {
                Ok(graph) => [1, 1, 2].into_iter().for_each(|a| launch(graph, a)),
                Err(error) => assert!(is_ours(error), "call {number}: {error}"),
            }
            let struck = raw.script().struck();
            raw.script().begin(None);
            let told = device.take_errors();
            assert!(told.iter().all(is_ours), "call {number}, {struck:?}: {told:?}");
            let read = |array: &DeviceArray<i64, Ix1, Double>, value| match array.copy_to_host() {
                Ok(found) => assert_eq!(found.to_vec(), [value; LEN], "call {number}, {struck:?}"),
                Err(error) => {
                    let is_told = error.is_poisoned() || is_ours(&error);
                    assert!(is_told, "call {number}, {struck:?}: {error}");
                }
            };
            read(&x, value);
            results.iter().for_each(|(value, z)| read(z, *value));
            stream.fill(&mut x, 0).unwrap();
            let again = record(&device, &kernel).unwrap();
            for graph in recorded.iter().chain([&again]) {
                stream.fill(&mut x, 1).unwrap();
                let z = graph.launch(&stream, (&mut x, 3_i64)).unwrap();
                assert_eq!(z.copy_to_host().unwrap().to_vec(), [12; LEN], "call {number}, {struck:?}");
                assert_eq!(x.copy_to_host().unwrap().to_vec(), [40; LEN], "call {number}, {struck:?}");
            }
            drop((results, recorded, again, kernel, x, stream));
            if struck != Some("release") {
                is_empty(&device, &raw);
            }
            if struck.is_none() {
                break;
            }
            number += 1;
        }
        assert!(number > 10, "{number} calls");
    }
}

type Mixed = Graph<(WriteForm<i64, Ix1>, i64), PinnedArray<i64, Ix1, Double>, Double>;

/// Of `x`: a copy in memory of graphs, `a * frozen` added to that, the first elements filled, the others copied back.
fn mixed(
    device: &Device<Double>,
    memory: &GraphMemory<Double>,
    kernel: &MultiplyAdd,
    frozen: &FrozenArray<i64, Ix1, Double>,
) -> Result<Mixed> {
    device.record_in(memory, (writes::<i64, _>(LEN), 0_i64), |stream, (mut x, a)| {
        let mut inside = stream.to_device(&x)?;
        kernel.launch(stream, &grid(), (a, frozen, &mut inside))?;
        stream.fill(&mut x.slice_mut(s![..10])?, 9)?;
        stream.copy_to_device(&mut x.slice_mut(s![10..])?, &inside.slice(s![10..])?)?;
        stream.copy_to_host(&inside)
    })
}

/// With a fill, copies, a page-locked result, a frozen array and memory that graphs share: a call that fails leaves the elements as they
/// were, poisoned or as they become, and no memory.
#[test]
fn each_call_of_a_body_of_all_kinds_may_fail() {
    let is_ours = |error: &Error| *error.kind() == Script::REFUSED || error.is_poisoned();
    let mut all_struck = BTreeSet::new();
    for captures in [true, false] {
        for number in 0.. {
            let (device, raw) = device_of(HostOptions::new().adversarial(number), captures);
            let (kernel, stream) = (multiply_add().load(&device).unwrap(), device.stream().unwrap());
            let mut x = device.to_device(&[0_i64; LEN]).unwrap();
            let frozen =
                device.to_device(&[2_i64; LEN]).unwrap().freeze().map_err(|(_, error)| error).unwrap();
            let memory = GraphMemory::new(&device);
            let allocated = || {
                device.synchronize().unwrap();
                device.flush().unwrap();
                let kinds = device.memory_report().unwrap().kinds;
                kinds.iter().map(|one| (one.kind, one.resources[0].statistics.allocated)).collect::<Vec<_>>()
            };
            // Memory that graphs share stays as large as one of them has needed.
            drop(mixed(&device, &memory, &kernel, &frozen).unwrap());
            let before = allocated();
            raw.script().begin(Some((number, Trouble::Refuse)));
            let recorded = mixed(&device, &memory, &kernel, &frozen);
            let mut value = 0;
            for a in [1, 1, 3] {
                let Ok(graph) = &recorded else { break };
                // What comes before it in the order of the stream is a fill, which may be the call that fails.
                match stream.fill(&mut x, value).and_then(|()| graph.launch(&stream, (&mut x, a))) {
                    Ok(host) => {
                        let sum = value + 2 * a;
                        match host.view() {
                            Ok(host) => assert_eq!(host.to_vec(), [sum; LEN], "call {number}"),
                            Err(error) => assert!(is_ours(&error), "call {number}: {error}"),
                        }
                        value = sum;
                    }
                    Err(error) => assert!(is_ours(&error), "call {number}: {error}"),
                }
                match x.copy_to_host() {
                    Ok(found) => {
                        let written = [vec![9; 10], vec![value; LEN - 10]].concat();
                        let found = found.to_vec();
                        let is_right = found == written || found == vec![value; LEN];
                        assert!(is_right, "call {number}: {found:?} is not of {value}");
                    }
                    Err(error) => assert!(is_ours(&error), "call {number}: {error}"),
                }
            }
            let struck = raw.script().struck();
            all_struck.extend(struck);
            raw.script().begin(None);
            let _ = stream.synchronize();
            assert!(device.take_errors().iter().all(is_ours), "call {number}, {struck:?}");
            if recorded.is_err() && struck != Some("release") {
                assert_eq!(allocated(), before, "call {number}, {struck:?}: of a recording that failed");
            }
            let again = mixed(&device, &memory, &kernel, &frozen).unwrap();
            for graph in recorded.iter().chain([&again]) {
                stream.fill(&mut x, 1).unwrap();
                let host = graph.launch(&stream, (&mut x, 5_i64)).unwrap();
                assert_eq!(host.view().unwrap().to_vec(), [11; LEN], "call {number}, {struck:?}");
                let written = [[9; 10].as_slice(), &[11; LEN - 10]].concat();
                assert_eq!(x.copy_to_host().unwrap().to_vec(), written, "call {number}, {struck:?}");
            }
            drop((recorded, again, memory, frozen, kernel, x, stream));
            if struck != Some("release") {
                is_empty(&device, &raw);
            }
            if struck.is_none() {
                break;
            }
        }
    }
    for call in
        ["allocate", "fill", "copy", "launch", "begin_capture", "end_capture", "set_launch", "launch_graph"]
    {
        assert!(all_struck.contains(call), "{call}: {all_struck:?}");
    }
}

/// Arguments that no launch may use: of a recording, of another device. They take no place of the graphs that there are.
#[test]
fn a_launch_that_is_refused_makes_no_graph_of_the_driver() {
    let ((device, _), (other, _)) = (device(), device());
    let stream = device.stream().unwrap();
    let graph = device
        .record((reads::<i64, _>(LEN), writes::<i64, _>(LEN)), |stream, (x, mut y)| {
            stream.copy_to_device(&mut y, &x)
        })
        .unwrap();
    let (x, mut y) = (device.to_device(&[7_i64; LEN]).unwrap(), device.to_device(&[0_i64; LEN]).unwrap());
    graph.launch(&stream, (&x, &mut y)).unwrap();
    assert_eq!(graph.report().driver_graphs, 1);
    let mut refused: Vec<_> = (0..20).map(|_| other.device_array::<i64, _>(LEN).unwrap()).collect();
    let body = |stream: &Stream<Double>, ()| {
        refused.push(stream.device_array::<i64, _>(LEN)?);
        Ok(())
    };
    drop(device.record((), body).unwrap());
    let unused = device
        .record((reads::<i64, _>(LEN), writes::<i64, _>(LEN)), |stream, (_x, mut y)| stream.fill(&mut y, 7))
        .unwrap();
    unused.launch(&stream, (&x, &mut y)).unwrap();
    for array in &refused {
        for graph in [&graph, &unused] {
            let error = graph.launch(&stream, (array, &mut y)).unwrap_err();
            assert_eq!(error.argument(), Some(1), "{error}");
            assert_eq!((graph.report().driver_graphs, graph.report().replayed), (1, None));
        }
    }
    graph.launch(&stream, (&x, &mut y)).unwrap();
    assert_eq!(graph.report().driver_graphs, 1);
    assert_eq!(y.copy_to_host().unwrap().to_vec(), [7; LEN]);
}
