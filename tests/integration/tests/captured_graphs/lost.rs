//! A device that is lost while a graph is recorded, made and launched.

use super::{LEN, device_of, failures::graph};
use gpumem_core::{Error, Result};
use gpumem_host::HostOptions;
use host_double::{Script, Trouble};
use std::collections::BTreeSet;

fn is_lost(result: Result<impl Sized>, call: u64) {
    let error: Error = result.err().unwrap_or_else(|| panic!("call {call}: the device is not lost"));
    // This device, unlike a GPU, says which work was lost with it.
    let is_told = error.is_device_lost() || error.is_poisoned();
    assert!(is_told && error.to_string().contains(Script::CAUSE), "call {call}: {error}");
}

/// What was launched before is over or lost, each later call says why, and all goes quietly.
#[test]
fn a_device_that_is_lost_at_each_call_of_a_launch_is_lost_with_its_cause() {
    let mut struck = BTreeSet::new();
    for captures in [true, false] {
        for call in 0.. {
            let (device, raw) = device_of(HostOptions::new(), captures);
            let (stream, graph) = (device.stream().unwrap(), graph(&device));
            let (mut x, mut y) =
                (device.to_device(&[1_i64; LEN]).unwrap(), device.to_device(&[1_i64; LEN]).unwrap());
            device.synchronize().unwrap();
            raw.script().begin(Some((call, Trouble::Lose)));
            let mut all = Vec::new();
            // The second one changes the numbers of the first, and the third one has a graph of its own.
            for (second, a) in [(false, 1_i64), (false, 2), (true, 2)] {
                let array = if second { &mut y } else { &mut x };
                match graph.launch(&stream, (array, a)) {
                    Ok(z) => all.extend(second.then_some(z)),
                    Err(error) => is_lost(Err::<(), _>(error), call),
                }
            }
            let Some(at) = raw.script().struck() else { break };
            struck.insert(at);
            raw.script().begin(None);
            is_lost(stream.synchronize(), call);
            is_lost(graph.launch(&stream, (&mut x, 1_i64)), call);
            is_lost(x.copy_to_host(), call);
            for z in &all {
                is_lost(z.copy_to_host(), call);
            }
            is_lost(
                device
                    .record((&x,), |stream, (x,)| stream.to_device(&x))
                    .and_then(|graph| graph.launch(&stream, (&y,))),
                call,
            );
            drop((graph, all, x, y, stream));
            let _ = (device.flush(), device.take_errors());
        }
    }
    for call in ["begin_capture", "end_capture", "set_launch", "launch_graph", "launch"] {
        assert!(struck.contains(call), "{call}: {struck:?}");
    }
}
