//! Graphs of the backend: a launch is one command, which runs in any order that the edges allow, and fails in parts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{adversarial, allocate, concurrent, copy, event, fill, host, kernel, on, read, release, stream};
use gpumem_core::{
    CaptureStart, ErrorKind, ExecutableGraph, KernelArguments, LaunchConfig, Result, Stream as _,
};
use gpumem_host::{Device, Host, Injection, Kernel, Operation, Stream};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

type Graph = Box<dyn ExecutableGraph<Host>>;
/// Which kernels have run, in their order.
type Ran = Arc<Mutex<Vec<u32>>>;

/// A kernel that notes its argument.
fn note(device: &Device) -> (Kernel, Ran) {
    let ran = Ran::default();
    let notes = ran.clone();
    let body = move |launch: gpumem_core::HostLaunch<'_>| {
        let number = launch.arguments.read::<u32>(0).ok_or("no argument")?;
        notes.lock().map_err(|_| "a test has panicked")?.push(number);
        if number == 13 { Err("it is unlucky".to_owned()) } else { Ok(()) }
    };
    (kernel(device, body), ran)
}

fn launch(stream: &Stream, kernel: &Kernel, number: u32) {
    let arguments = KernelArguments::new().with(number);
    // SAFETY: the kernel reads this argument and no memory.
    unsafe { stream.launch(kernel, &LaunchConfig::linear(1, 1), &arguments) }.unwrap();
}

/// Begins a capture of what the test enqueues.
fn begin(stream: &Stream) -> bool {
    // SAFETY: the stream is the test's, which relies on none of the captured work before it is launched.
    unsafe { stream.begin_capture() }.unwrap() == CaptureStart::Begun
}

/// Captures what is enqueued on two streams, of which the second begins with the first and ends before it.
fn capture(device: &Device, enqueue: impl FnOnce(&Stream, &Stream)) -> Graph {
    let (one, two) = (stream(device), stream(device));
    assert!(begin(&one));
    let (begun, ended) = (event(device), event(device));
    one.record(&begun).unwrap();
    two.wait(&begun).unwrap();
    assert!(two.is_capturing().unwrap());
    enqueue(&one, &two);
    two.record(&ended).unwrap();
    one.wait(&ended).unwrap();
    let graph = one.end_capture(true).unwrap();
    // Both are ordinary streams again.
    for stream in [&one, &two] {
        assert!(!stream.is_capturing().unwrap());
        stream.synchronize().unwrap();
    }
    graph
}

fn start(graph: &mut Graph, stream: &Stream) -> Result<()> {
    // SAFETY: the tests keep the memory alive until they have waited.
    unsafe { graph.launch(stream) }
}

fn taken(ran: &Ran) -> Vec<u32> {
    std::mem::take(&mut *ran.lock().unwrap())
}

#[test]
fn a_launch_is_one_command_that_runs_in_the_order_of_the_capture() {
    let device = concurrent();
    let (note, ran) = note(&device);
    let mut graph = capture(&device, |one, two| {
        (100..150).for_each(|at| launch(if at % 3 == 0 { two } else { one }, &note, at));
    });
    assert!(taken(&ran).is_empty(), "captured work does not run");
    let stream = stream(&device);
    let before = device.counters().launches;
    for _ in 0..3 {
        start(&mut graph, &stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(taken(&ran), (100..150).collect::<Vec<_>>());
    }
    assert_eq!(device.counters().launches - before, 150);

    let device = adversarial(3);
    let (from, to) = (allocate(&device, 4096), allocate(&device, 4096));
    let mut graph = capture(&device, |one, two| {
        copy(one, on(&device, &from), on(&device, &to), 2048);
        fill(two, &from, 1);
    });
    let stream = common::stream(&device);
    let known = device.schedule_trace().len();
    (0..2).for_each(|_| start(&mut graph, &stream).unwrap());
    stream.synchronize().unwrap();
    let commands: BTreeSet<u64> = device.schedule_trace()[known..].iter().map(|step| step.command).collect();
    assert_eq!(commands, BTreeSet::from([0, 1]), "one for each launch");
    release(&device, from);
    release(&device, to);
}

/// Two streams with three nodes each, and an edge from the second node of the first stream to the last node of the second stream.
#[test]
fn some_seed_runs_each_order_that_the_edges_allow_and_none_another_one() {
    let mut orders = BTreeSet::new();
    for seed in 0..200 {
        let device = adversarial(seed);
        let (note, ran) = note(&device);
        let mut graph = capture(&device, |one, two| {
            let middle = event(&device);
            launch(one, &note, 0);
            launch(one, &note, 1);
            one.record(&middle).unwrap();
            launch(one, &note, 2);
            launch(two, &note, 3);
            launch(two, &note, 4);
            two.wait(&middle).unwrap();
            launch(two, &note, 5);
        });
        let stream = stream(&device);
        for _ in 0..3 {
            start(&mut graph, &stream).unwrap();
            stream.synchronize().unwrap();
            let order = taken(&ran);
            let place = |node| order.iter().position(|ran| *ran == node).unwrap();
            for (before, after) in [(0, 1), (1, 2), (3, 4), (4, 5), (1, 5)] {
                assert!(place(before) < place(after), "seed {seed}: {order:?}");
            }
            assert_eq!(order.len(), 6, "seed {seed}: {order:?}");
            orders.insert(order);
        }
    }
    // Of 20 interleavings four run 5 before 1.
    assert_eq!(orders.len(), 16, "{orders:?}");
}

/// A copy is torn, and what is not ordered with it runs between its parts.
#[test]
fn some_seed_interrupts_a_copy_of_a_graph() {
    let is_torn = |seed| {
        let device = adversarial(seed);
        let (from, middle, to) = (allocate(&device, 4096), allocate(&device, 4096), allocate(&device, 4096));
        let stream = stream(&device);
        fill(&stream, &from, 1);
        // The two are not ordered: a missing edge.
        let mut graph = capture(&device, |one, two| {
            copy(one, on(&device, &from), on(&device, &middle), 4096);
            copy(two, on(&device, &middle), on(&device, &to), 4096);
        });
        start(&mut graph, &stream).unwrap();
        stream.synchronize().unwrap();
        let found = read(&device, &stream, &to);
        assert_eq!(read(&device, &stream, &middle), [1; 4096]);
        [from, middle, to].into_iter().for_each(|buffer| release(&device, buffer));
        found.contains(&0) && found.contains(&1)
    };
    assert!((0..200).any(is_torn));
}

#[test]
fn a_failed_kernel_stops_what_depends_on_it_and_no_more() {
    let devices = (0..20).map(adversarial).chain([concurrent()]);
    for device in devices {
        let (note, ran) = note(&device);
        let mut graph = capture(&device, |one, two| {
            let failed = event(&device);
            launch(one, &note, 0);
            launch(two, &note, 1);
            launch(one, &note, 13);
            one.record(&failed).unwrap();
            launch(two, &note, 3);
            launch(one, &note, 4);
            two.wait(&failed).unwrap();
            launch(two, &note, 5);
        });
        let stream = stream(&device);
        for _ in 0..2 {
            start(&mut graph, &stream).unwrap();
            let error = stream.synchronize().unwrap_err().to_string();
            let parts = ["node s2 of a graph", "kernel \"body\"", "it is unlucky"];
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
            let ran: BTreeSet<u32> = taken(&ran).into_iter().collect();
            assert_eq!(ran, BTreeSet::from([0, 1, 13, 3]));
        }
        // Other arguments, and all of it runs. Those of launches that are under way stay.
        let number = KernelArguments::new().with(2u32);
        start(&mut graph, &stream).unwrap();
        // SAFETY: the third call that was captured is a launch of this kernel.
        unsafe { graph.set_launch(gpumem_core::GraphNode(2), &note, &LaunchConfig::linear(1, 1), &number) }
            .unwrap();
        start(&mut graph, &stream).unwrap();
        stream.synchronize().unwrap_err();
        let mut ran = taken(&ran);
        ran.sort_unstable();
        assert_eq!(ran, [0, 0, 1, 1, 2, 3, 3, 4, 5, 13]);
    }
}

#[test]
fn injected_failures_are_those_of_one_launch() {
    let device = concurrent();
    let (buffer, bytes) = (allocate(&device, 64), vec![7u8; 64]);
    let mut graph = capture(&device, |one, _| copy(one, host(&bytes), on(&device, &buffer), 64));
    let stream = stream(&device);
    device.inject(Injection::next(Operation::Copy, ErrorKind::AsynchronousFault { what: "injected".into() }));
    start(&mut graph, &stream).unwrap();
    assert!(stream.synchronize().unwrap_err().to_string().contains("node s0 of a graph, copy: injected"));
    device.inject(Injection::next(Operation::Copy, ErrorKind::NotReady));
    assert!(matches!(start(&mut graph, &stream).unwrap_err().kind(), ErrorKind::NotReady));
    assert_eq!(read(&device, &stream, &buffer), [0; 64]);
    start(&mut graph, &stream).unwrap();
    assert_eq!(read(&device, &stream, &buffer), [7; 64]);
    release(&device, buffer);
}

#[test]
fn memory_that_was_released_is_not_touched() {
    let device = concurrent();
    let (from, to) = (allocate(&device, 64), allocate(&device, 64));
    let mut graph = capture(&device, |one, two| {
        fill(two, &to, 3);
        copy(one, on(&device, &from), on(&device, &to), 32);
    });
    let stream = stream(&device);
    start(&mut graph, &stream).unwrap();
    stream.synchronize().unwrap();
    release(&device, from);
    start(&mut graph, &stream).unwrap();
    let error = stream.synchronize().unwrap_err().to_string();
    assert!(error.contains("node s1 of a graph, copy") && error.contains("no live memory"), "{error}");
    assert_eq!(read(&device, &stream, &to), [3; 64]);
    release(&device, to);
}

#[test]
fn what_is_not_captured_is_refused() {
    let (device, other) = (concurrent(), concurrent());
    let (one, two) = (stream(&device), stream(&device));
    one.end_capture(false).unwrap_err();
    one.captured_node().unwrap_err();
    assert!(begin(&one));
    one.captured_node().unwrap_err();
    one.synchronize().unwrap_err();
    let outside = event(&device);
    two.record(&outside).unwrap();
    one.wait(&outside).unwrap_err();
    let inside = event(&device);
    one.record(&inside).unwrap();
    let mut graph = one.end_capture(false).unwrap();
    // An event of a capture that has ended takes no stream with it.
    two.wait(&inside).unwrap_err();
    assert!(!two.is_capturing().unwrap());
    start(&mut graph, &two).unwrap();
    two.synchronize().unwrap();
    let is_wrong =
        matches!(start(&mut graph, &stream(&other)).unwrap_err().kind(), ErrorKind::WrongDevice { .. });
    assert!(is_wrong);
    assert!(begin(&one));
    start(&mut graph, &one).unwrap_err();
    drop(one);
    device.lose("the test says so");
    start(&mut graph, &two).unwrap_err();
}
