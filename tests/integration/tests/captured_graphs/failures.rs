//! What fails while a graph of the driver is made, changed and launched.

use super::{LEN, device, grid, multiply_add};
use gpumem_core::ErrorKind;
use gpumem_runtime::{Device, DeviceArray, Graph, Stream, WriteForm, reads, writes};
use host_double::{Double, Trouble};
use ndarray::Ix1;
use std::collections::BTreeSet;

pub(super) type Numbered = Graph<(WriteForm<i64, Ix1>, i64), DeviceArray<i64, Ix1, Double>, Double>;

/// `x += a`, `z = a * x` on another stream, `x += a * z`. Returns `z`.
pub(super) fn graph(device: &Device<Double>) -> Numbered {
    let kernel = multiply_add().load(device).unwrap();
    let graph = device.record((writes::<i64, _>(LEN), 0_i64), |stream, (mut x, a)| {
        let other = stream.device().stream()?;
        let one = stream.to_device(&[1_i64; LEN])?;
        let mut z = other.device_array::<i64, _>(LEN)?;
        kernel.launch(stream, &grid(), (&a, &one, &mut x))?;
        kernel.launch(&other, &grid(), (&a, &x, &mut z))?;
        kernel.launch(stream, &grid(), (&a, &z, &mut x))?;
        Ok(z)
    });
    graph.unwrap()
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
    for array in &refused {
        graph.launch(&stream, (array, &mut y)).unwrap_err();
        assert_eq!((graph.report().driver_graphs, graph.report().replayed), (1, None));
    }
    graph.launch(&stream, (&x, &mut y)).unwrap();
    assert_eq!(graph.report().driver_graphs, 1);
    assert_eq!(y.copy_to_host().unwrap().to_vec(), [7; LEN]);
}
