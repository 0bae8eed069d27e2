//! The memory of a graph, as the library's trace, its report and a resource of the user's see it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use gpumem_core::{ErrorKind, MemoryKind, Result};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device, GraphMemory,
    memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics},
    reads,
    trace::{RecorderOptions, Trace, TraceEvent, TraceEventKind},
    writes,
};
use ndarray::s;
use parking_lot::Mutex;
use std::sync::Arc;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn device() -> Device<Host> {
    Device::from_raw(Host::open_with(&HostOptions::new()).unwrap())
}

/// Notes the bytes of each block that it gives out, and of each that comes back.
#[derive(Debug)]
struct Watching {
    upstream: Arc<dyn MemoryResource<Host>>,
    given: Mutex<Vec<usize>>,
    returned: Mutex<Vec<usize>>,
}

impl Watching {
    fn of(device: &Device<Host>) -> Arc<Self> {
        let upstream = device.driver_memory();
        let watching = Arc::new(Self { upstream, given: Mutex::default(), returned: Mutex::default() });
        device.set_memory_resource(MemoryKind::Device, watching.clone()).unwrap();
        watching
    }

    /// What was given out and what came back since the last call.
    fn take(&self, device: &Device<Host>) -> (Vec<usize>, Vec<usize>) {
        device.synchronize().unwrap();
        device.flush().unwrap();
        (std::mem::take(&mut *self.given.lock()), std::mem::take(&mut *self.returned.lock()))
    }
}

impl MemoryResource<Host> for Watching {
    fn name(&self) -> &'static str {
        "watching"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        let block = self.upstream.allocate(request)?;
        self.given.lock().push(block.bytes());
        Ok(block)
    }

    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.returned.lock().push(block.bytes());
        self.upstream.deallocate(block)
    }

    fn forget(&self) {
        self.upstream.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        self.upstream.statistics()
    }
}

/// The allocations of a trace, all of which are freed in it: the operation, and the bytes.
fn allocated(trace: &Trace) -> Vec<(&str, u64)> {
    trace.check().unwrap();
    let freed = trace.events.iter().filter(|event| matches!(event.what, TraceEventKind::Free { .. })).count();
    let of = |event: &TraceEvent| {
        let TraceEventKind::Allocate { memory } = event.what else { return None };
        let allocation = &trace.allocations[memory as usize];
        Some((trace.operations[allocation.operation? as usize].as_str(), allocation.bytes))
    };
    let allocated: Vec<_> = trace.events.iter().filter_map(of).collect();
    assert_eq!(freed, allocated.len());
    allocated
}

#[test]
fn a_trace_has_the_arena_once_and_each_result() {
    let device = device();
    let stream = device.stream().unwrap();
    let x = device.to_device(&[3_u8; KIB]).unwrap();
    device.synchronize().unwrap();
    let held = || {
        device.flush().unwrap();
        let report = device.memory_report().unwrap();
        let of = |one: &gpumem_runtime::memory::KindReport| one.resources[0].statistics.allocated;
        report.kinds.iter().map(|one| (one.kind, of(one))).collect::<Vec<_>>()
    };
    let round = || {
        let graph = device
            .record((reads::<u8, _>(KIB),), |stream, (x,)| {
                let inside = stream.to_device(&x)?;
                Ok((stream.to_device(&inside)?, stream.copy_to_host(&inside)?))
            })
            .unwrap();
        for _ in 0..3 {
            let (copy, host) = graph.launch(&stream, (&x,)).unwrap();
            assert_eq!(host.view().unwrap()[KIB - 1], 3);
            drop(copy);
        }
        stream.synchronize().unwrap();
    };
    // Streams and blocks for transfers are made on first use.
    round();
    let before = held();
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    (0..10).for_each(|_| round());
    assert_eq!(held(), before);
    let trace = recording.finish();
    // The arena, and for each launch an array of the device and a page-locked one. Nothing for what is made inside.
    let of_round = [[("record", KIB as u64)].as_slice(), &[("graph", KIB as u64); 2 * 3]].concat();
    assert_eq!(allocated(&trace), of_round.repeat(10));
}

#[test]
fn a_resource_sees_the_arena_come_and_go_once() {
    let device = device();
    let watching = Watching::of(&device);
    let (stream, mut y) = (device.stream().unwrap(), device.device_array::<u8, _>(3).unwrap());
    watching.take(&device);
    // Each is over before the next begins.
    let graph = device
        .record((writes::<u8, _>(3),), |stream, (mut y,)| {
            for at in 0..3_usize {
                let mut temporary = stream.device_array::<u8, _>(64 * MIB)?;
                stream.fill(&mut temporary, at as u8 + 1)?;
                let last = temporary.slice(s![64 * MIB - 1..])?;
                stream.copy_to_device(&mut y.slice_mut(s![at..=at])?, &last)?;
            }
            Ok(())
        })
        .unwrap();
    let report = graph.report();
    assert_eq!((report.arena_bytes, report.temporary_bytes), (64 * MIB, 3 * 64 * MIB));
    assert_eq!(watching.take(&device), (vec![64 * MIB], vec![]));
    graph.launch(&stream, (&mut y,)).unwrap();
    graph.clone().launch(&stream, (&mut y,)).unwrap();
    assert_eq!(y.copy_to_host().unwrap().to_vec(), [1, 2, 3]);
    assert_eq!(watching.take(&device), (vec![], vec![]));
    drop(graph);
    assert_eq!(watching.take(&device), (vec![], vec![64 * MIB]));
}

#[test]
fn results_belong_to_the_launch() {
    let device = device();
    let watching = Watching::of(&device);
    let stream = device.stream().unwrap();
    watching.take(&device);
    let graph = device
        .record((), |stream, ()| {
            let mut y = stream.device_array::<u8, _>(4 * KIB)?;
            stream.fill(&mut y, 7)?;
            Ok(y)
        })
        .unwrap();
    assert_eq!(watching.take(&device), (vec![], vec![]), "a graph without temporaries has no memory");
    let (mut first, second) = (graph.launch(&stream, ()).unwrap(), graph.launch(&stream, ()).unwrap());
    drop(graph);
    assert_eq!(watching.take(&device), (vec![4 * KIB; 2], vec![]));
    stream.fill(&mut first, 8).unwrap();
    drop(first);
    assert_eq!(watching.take(&device), (vec![], vec![4 * KIB]));
    assert_eq!(second.copy_to_host().unwrap().to_vec(), vec![7; 4 * KIB]);
    drop(second);
    assert_eq!(watching.take(&device), (vec![], vec![4 * KIB]));
}

#[test]
fn graphs_do_not_share_memory_of_another_device() {
    let (one, other) = (device(), device());
    let memory = GraphMemory::new(&other);
    let graph = |device: &Device<Host>| {
        device.record_in(&memory, (reads::<u8, _>(KIB),), |stream, (x,)| {
            let inside = stream.to_device(&x)?;
            stream.copy_to_host(&inside)
        })
    };
    let refused = graph(&one).map(drop).unwrap_err();
    let names = |kind: &ErrorKind| matches!(kind, ErrorKind::WrongDevice { what: "memory of graphs", .. });
    assert!(names(refused.kind()), "{refused}");
    let graph = graph(&other).unwrap();
    let x = other.to_device(&ndarray::Array1::from(vec![7_u8; KIB])).unwrap();
    let found = graph.launch(&other.stream().unwrap(), (&x,)).unwrap();
    assert_eq!(found.view().unwrap().to_vec(), vec![7; KIB]);
}
