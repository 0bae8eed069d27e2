//! Launches of one graph from several threads, with other arrays and other numbers: which graph of the driver each takes, and when
//! that ends. In a model a graph keeps one of them.

use super::{
    captured::{FAILS, KernelCall, NOT_TAKEN},
    fixture::Mock,
    model, model_within, stream,
};
use gpumem_kernel::{KernelDef, Slice, config_for_items};
use gpumem_runtime::{Device, DeviceArray, ReadForm, Stream, reads};
use loom::thread;
use ndarray::Ix1;
use std::sync::Arc;

type Graph = gpumem_runtime::Graph<(ReadForm<u8, Ix1>, u32), (), Mock>;
type Array = DeviceArray<u8, Ix1, Mock>;

/// Two launches of a kernel with the same number.
fn graph(device: &Device<Mock>) -> Graph {
    // SAFETY: the body touches nothing, and is never run.
    let declaration = unsafe { KernelDef::<(Slice<u8>, u32)>::new("reads") }.host_loop(|_, _| {});
    let kernel = declaration.load(device).unwrap();
    let like = (reads::<u8, _>(16), 0u32);
    let recorded = device.record(like, |stream, (x, number)| {
        let dims = config_for_items([1, 1, 1], [1, 1, 1]);
        kernel.launch(stream, &dims, (&x, number.clone()))?;
        kernel.launch(stream, &dims, (&x, number))
    });
    recorded.unwrap()
}

fn array(device: &Device<Mock>) -> Array {
    // SAFETY: any byte is a number.
    unsafe { device.uninit_array(16).unwrap().assume_init() }
}

/// Tells whether the driver took the launch.
fn launch(graph: &Graph, stream: &Stream<Mock>, array: &Array, number: u32) -> bool {
    graph.launch(stream, (array, number)).is_ok()
}

/// Asserts that there were these launches and no others, each with its own array and its own number. Those that are true were
/// enqueued by a graph of the driver, the others call by call.
fn check(device: &Device<Mock>, expected: &[(bool, &Array, u32)]) {
    let mut found = Vec::new();
    for launched in device.raw().lab.launches() {
        found.extend(launched.calls.iter().map(|call| (launched.by_graph, *call)));
        assert!(
            launched.calls.windows(2).all(|two| two[0] == two[1]),
            "numbers of two launches: {launched:?}"
        );
    }
    let both = |(by_graph, array, number): &(bool, &Array, u32)| {
        let array = array.address();
        [(*by_graph, KernelCall { array, number: *number, writes: false }); 2]
    };
    let mut expected: Vec<_> = expected.iter().flat_map(both).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

/// The same graph of the driver gets the numbers of both threads.
#[test]
fn a_launch_has_its_own_numbers() {
    for is_same in [true, false] {
        model(move |device| {
            let (first, second, x) = (stream(device), stream(device), array(device));
            let graph = graph(device);
            assert!(launch(&graph, &first, &x, 0));
            let x = Arc::new(x);
            let (theirs, their_x) = (graph.clone(), x.clone());
            let their_stream = if is_same { second.clone() } else { first };
            let other = thread::spawn(move || assert!(launch(&theirs, &their_stream, &their_x, 1)));
            assert!(launch(&graph, &second, &x, 2));
            other.join().unwrap();
            assert_eq!(graph.report().driver_graphs, 1);
            check(device, &[(true, &x, 0), (true, &x, 1), (true, &x, 2)]);
        });
    }
}

/// Each thread needs a graph of the driver with its own array, and only one is kept. The handles of the graph go meanwhile, and what
/// is dropped is freed. The numbers are equal, so that no thread sets them in the other's.
#[test]
fn a_graph_of_the_driver_ends_after_its_launches() {
    model(|device| {
        let (first, second) = (stream(device), stream(device));
        let (x, y) = (array(device), array(device));
        let graph = graph(device);
        assert!(launch(&graph, &first, &x, 0));
        let theirs = graph.clone();
        let other = thread::spawn(move || {
            assert!(launch(&theirs, &first, &x, 1));
            drop(theirs);
            x
        });
        assert!(launch(&graph, &second, &y, 1));
        drop(graph);
        device.flush().unwrap();
        let x = other.join().unwrap();
        check(device, &[(true, &x, 0), (true, &x, 1), (true, &y, 1)]);
    });
}

/// As above, with a third thread that launches with one of the arrays.
#[test]
fn a_graph_of_the_driver_that_two_threads_launch_is_replaced() {
    // A fourth preemption takes minutes.
    model_within(3, |device| {
        let streams = [(); 3].map(|()| stream(device));
        let (x, y) = (Arc::new(array(device)), array(device));
        let graph = graph(device);
        assert!(launch(&graph, &streams[2], &x, 0));
        let others = [1, 2].map(|number| {
            let (stream, graph, x) = (streams[number as usize - 1].clone(), graph.clone(), x.clone());
            thread::spawn(move || assert!(launch(&graph, &stream, &x, number)))
        });
        assert!(launch(&graph, &streams[2], &y, 1));
        drop(graph);
        others.into_iter().for_each(|other| other.join().unwrap());
        check(device, &[(true, &x, 0), (true, &x, 1), (true, &x, 2), (true, &y, 1)]);
    });
}

/// One thread's number is not taken, after a part of it was: its launch is enqueued call by call, and the other's is whole.
#[test]
fn a_launch_beside_one_that_is_not_taken_has_its_own_numbers() {
    model(|device| {
        let (first, second, x) = (stream(device), stream(device), Arc::new(array(device)));
        let graph = graph(device);
        assert!(launch(&graph, &first, &x, 0));
        let (theirs, their_x) = (graph.clone(), x.clone());
        let other = thread::spawn(move || assert!(launch(&theirs, &first, &their_x, NOT_TAKEN)));
        assert!(launch(&graph, &second, &x, 0));
        drop(graph);
        device.flush().unwrap();
        other.join().unwrap();
        check(device, &[(true, &x, 0), (false, &x, NOT_TAKEN), (true, &x, 0)]);
    });
}

/// One thread's launch fails, and nothing of it is enqueued.
#[test]
fn a_launch_beside_one_that_fails_succeeds() {
    model(|device| {
        let (first, second, x) = (stream(device), stream(device), Arc::new(array(device)));
        let graph = graph(device);
        let (theirs, their_x) = (graph.clone(), x.clone());
        let other = thread::spawn(move || assert!(!launch(&theirs, &first, &their_x, FAILS)));
        assert!(launch(&graph, &second, &x, 1));
        drop(graph);
        other.join().unwrap();
        check(device, &[(true, &x, 1)]);
    });
}
