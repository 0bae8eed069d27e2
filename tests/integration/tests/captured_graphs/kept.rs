//! How many graphs of the driver a graph has, and when another one is made.

use super::{LEN, MultiplyAdd, device, device_of, grid, multiply_add};
use gpumem_host::HostOptions;
use gpumem_runtime::{Device, DeviceArray, writes};
use host_double::{Double, DoubleDevice, Trouble};
use ndarray::Ix1;

type Array = DeviceArray<i64, Ix1, Double>;
type Form = gpumem_runtime::WriteForm<i64, Ix1>;

/// `y -= x`, `x += y`.
fn steps(device: &Device<Double>, kernel: &MultiplyAdd) -> gpumem_runtime::Graph<(Form, Form), (), Double> {
    let graph = device.record((writes::<i64, _>(LEN), writes::<i64, _>(LEN)), |stream, (mut x, mut y)| {
        kernel.launch(stream, &grid(), (-1_i64, &x, &mut y))?;
        kernel.launch(stream, &grid(), (1_i64, &y, &mut x))
    });
    graph.unwrap()
}

fn scene() -> (Device<Double>, DoubleDevice, MultiplyAdd) {
    let (device, raw) = device();
    let kernel = multiply_add().load(&device).unwrap();
    (device, raw, kernel)
}

fn is_filled(array: &Array, value: i64) {
    assert_eq!(array.copy_to_host().unwrap().to_vec(), [value; LEN]);
}

#[test]
fn two_arrays_in_turn_need_two_graphs_of_the_driver_and_no_change() {
    let (device, raw, kernel) = scene();
    let (stream, graph) = (device.stream().unwrap(), steps(&device, &kernel));
    let (mut a, mut b) = (7_i64, 2_i64);
    let (mut x, mut y) = (device.to_device(&[a; LEN]).unwrap(), device.to_device(&[b; LEN]).unwrap());
    let mut turn = |times: usize| {
        for _ in 0..times {
            graph.launch(&stream, (&mut x, &mut y)).unwrap();
            b -= a;
            a += b;
            std::mem::swap(&mut x, &mut y);
            std::mem::swap(&mut a, &mut b);
        }
        is_filled(&x, a);
        is_filled(&y, b);
    };
    turn(10);
    raw.script().begin(None);
    turn(1000);
    let calls = ["launch_graph", "begin_capture", "set_launch"].map(|call| raw.script().calls_of(call));
    assert_eq!(calls, [1000, 0, 0]);
    assert_eq!((graph.report().driver_graphs, graph.report().replayed), (2, None));
}

#[test]
fn many_arrays_share_few_graphs_of_the_driver() {
    let (device, _, kernel) = scene();
    let (stream, graph) = (device.stream().unwrap(), steps(&device, &kernel));
    let mut all: Vec<_> = (0..100_i64)
        .map(|number| (stream.to_device(&[number; LEN]).unwrap(), stream.to_device(&[1_i64; LEN]).unwrap()))
        .collect();
    for _ in 0..2 {
        for (x, y) in &mut all {
            graph.launch(&stream, (x, y)).unwrap();
            assert!(graph.report().driver_graphs <= 16);
        }
    }
    for ((x, y), number) in all.iter().zip(0..) {
        // From (n, 1) to (1, 1 - n), and from there to (1 - n, -n).
        is_filled(x, 1 - number);
        is_filled(y, -number);
    }
    assert!(graph.report().replayed.is_none());
}

/// Each launch makes a graph of the driver, and two streams for it, but no memory.
#[test]
fn streams_that_were_captured_do_not_pile_up() {
    let (device, raw, kernel) = scene();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let graph = device.record((writes::<i64, _>(LEN), writes::<i64, _>(LEN)), |stream, (mut x, mut y)| {
        let beside = stream.device().stream()?;
        let (one, two) = (stream.to_device(&[1_i64; LEN])?, beside.to_device(&[2_i64; LEN])?);
        kernel.launch(stream, &grid(), (1_i64, &one, &mut x))?;
        kernel.launch(&beside, &grid(), (1_i64, &two, &mut y))
    });
    let graph = graph.unwrap();
    let mut all: Vec<_> = (0..40_i64)
        .map(|_| (other.to_device(&[0_i64; LEN]).unwrap(), other.to_device(&[0_i64; LEN]).unwrap()))
        .collect();
    for _ in 0..5 {
        for (x, y) in &mut all {
            graph.launch(&stream, (x, y)).unwrap();
        }
        stream.synchronize().unwrap();
    }
    let streams = raw.host().counters().streams;
    assert!(streams < 60, "{streams} streams");
    is_filled(&all[39].0, 5);
    is_filled(&all[39].1, 10);
}

/// A stream that is dropped after a launch is waited for by other streams only.
#[test]
fn streams_that_come_and_go_leave_no_events() {
    for captures in [true, false] {
        let (device, raw) = device_of(HostOptions::new(), captures);
        let kernel = multiply_add().load(&device).unwrap();
        let (graph, main) = (steps(&device, &kernel), device.stream().unwrap());
        let (mut x, mut y) =
            (device.to_device(&[1_i64; LEN]).unwrap(), device.to_device(&[0_i64; LEN]).unwrap());
        for _ in 0..300 {
            let stream = device.stream().unwrap();
            kernel.launch(&stream, &grid(), (1_i64, &x, &mut y)).unwrap();
            graph.launch(&stream, (&mut x, &mut y)).unwrap();
            drop(stream);
            main.fill(&mut x, 1).unwrap();
            main.fill(&mut y, 0).unwrap();
            main.synchronize().unwrap();
        }
        let events = raw.host().counters().events;
        assert!(events < 100, "{events} events");
    }
}

#[test]
fn a_chain_is_one_call_of_the_driver() {
    let (device, raw, kernel) = scene();
    let stream = device.stream().unwrap();
    let (x, mut y) = (device.to_device(&[1_i64; LEN]).unwrap(), device.to_device(&[0_i64; LEN]).unwrap());
    let mut sum = 0;
    for count in [1, 2, 4, 16, 64, 256, 1024] {
        let graph = device.record((&x, &mut y), |stream, (x, mut y)| {
            (0..count).try_for_each(|_| kernel.launch(stream, &grid(), (1_i64, &x, &mut y)))
        });
        let graph = graph.unwrap();
        for round in 0..3 {
            raw.script().begin(None);
            graph.launch(&stream, (&x, &mut y)).unwrap();
            let calls = ["launch_graph", "begin_capture"].map(|call| raw.script().calls_of(call));
            assert_eq!(calls, [1, u64::from(round == 0)], "{count} kernels");
        }
        sum += 3 * count;
        is_filled(&y, sum);
        assert_eq!((graph.report().launches, graph.report().edges), (count as usize, count as usize - 1));
    }
}

#[test]
fn other_numbers_change_the_graph_of_the_driver_that_there_is() {
    let (device, raw, kernel) = scene();
    let stream = device.stream().unwrap();
    let (x, mut y) = (device.to_device(&[1_i64; LEN]).unwrap(), device.to_device(&[0_i64; LEN]).unwrap());
    let graph = device.record((&x, &mut y, 0_i64), |stream, (x, mut y, a)| {
        kernel.launch(stream, &grid(), (&a, &x, &mut y))?;
        kernel.launch(stream, &grid(), (7_i64, &x, &mut y))
    });
    let (graph, mut sum) = (graph.unwrap(), 0);
    raw.script().begin(None);
    for number in (0..100).chain([99, 99]) {
        graph.launch(&stream, (&x, &mut y, number)).unwrap();
        sum += number + 7;
    }
    is_filled(&y, sum);
    let calls = ["begin_capture", "set_launch", "launch_graph"].map(|call| raw.script().calls_of(call));
    assert_eq!(calls, [1, 99, 102], "the first number comes with the capture, and the last one stays");
    // A driver that takes no more numbers: this launch is enqueued call by call, and the next one has another graph.
    raw.script().begin(Some((0, Trouble::Refuse)));
    for number in [5, 6] {
        graph.launch(&stream, (&x, &mut y, number)).unwrap();
        sum += number + 7;
    }
    assert_eq!(raw.script().struck(), Some("set_launch"));
    is_filled(&y, sum);
    let calls = ["begin_capture", "launch_graph"].map(|call| raw.script().calls_of(call));
    assert_eq!((calls, graph.report().driver_graphs), ([1, 1], 1));
}

/// More arrays than there are graphs of the driver: while one thread launches such a graph, others make theirs in its place.
#[test]
fn threads_take_the_places_of_graphs_that_others_launch() {
    let (device, raw) = device_of(HostOptions::new().adversarial(9), true);
    let kernel = multiply_add().load(&device).unwrap();
    let graph =
        device.record((writes::<i64, _>(LEN), writes::<i64, _>(LEN), 0_i64), |stream, (mut x, mut y, a)| {
            kernel.launch(stream, &grid(), (a, &x, &mut y))?;
            kernel.launch(stream, &grid(), (1_i64, &y, &mut x))
        });
    let graph = graph.unwrap();
    let run = |thread: i64| {
        let stream = device.stream().unwrap();
        let array = |value| stream.to_device(&[value; LEN]).unwrap();
        let mut all: Vec<_> = (0..7_i64).map(|at| (array(thread), array(at), thread, at)).collect();
        for round in 0..6 {
            for (x, y, of_x, of_y) in &mut all {
                let a = (round + thread) % 3 - 1;
                graph.launch(&stream, (x, y, a)).unwrap();
                *of_y += a * *of_x;
                *of_x += *of_y;
            }
        }
        for (x, y, of_x, of_y) in &all {
            is_filled(x, *of_x);
            is_filled(y, *of_y);
        }
    };
    let run = &run;
    std::thread::scope(|scope| (0..4).for_each(|thread| drop(scope.spawn(move || run(thread)))));
    assert_eq!((graph.report().driver_graphs, graph.report().replayed), (16, None));
    device.synchronize().unwrap();
    device.flush().unwrap();
    assert_eq!((raw.graphs(), device.take_errors()), (16, vec![]));
}
