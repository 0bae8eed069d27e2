//! The memory of a graph, as the library's trace, its report and a resource of the user's see it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use gpumem::ops::ArrayOps as _;
use gpumem_core::{Error, ErrorKind, MemoryInfo, MemoryKind, Result};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device, DeviceArray, Graph, GraphMemory, PinnedArray, Stream,
    memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics},
    reads,
    trace::{RecorderOptions, Trace, TraceEvent, TraceEventKind},
    writes,
};
use ndarray::{Array2, Ix1, s};
use parking_lot::Mutex;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn device() -> Device<Host> {
    Device::from_raw(Host::open_with(&HostOptions::new()).unwrap())
}

const WIDE: usize = 64 * KIB;

/// An element that is aligned to more than the library's memory is.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(65536))]
struct Wide([u8; WIDE]);

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

type Hook = Box<dyn FnOnce() + Send>;

/// A pool that does something else while it allocates a block for an alignment that it has not by itself.
struct Meanwhile {
    upstream: Arc<dyn MemoryResource<Host>>,
    hook: Mutex<Option<Hook>>,
    aligns: Mutex<Vec<usize>>,
}

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl MemoryResource<Host> for Meanwhile {
    fn name(&self) -> &'static str {
        "meanwhile"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        self.aligns.lock().push(request.align);
        if request.align == WIDE {
            let hook = self.hook.lock().take();
            hook.into_iter().for_each(|hook| hook());
        }
        self.upstream.allocate(request)
    }

    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.upstream.deallocate(block)
    }

    fn forget(&self) {
        self.upstream.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        self.upstream.statistics()
    }
}

impl Meanwhile {
    fn of(device: &Device<Host>) -> Arc<Self> {
        let upstream = device.memory_resource(MemoryKind::Device).unwrap();
        let own = Arc::new(Self { upstream, hook: Mutex::default(), aligns: Mutex::default() });
        device.set_memory_resource(MemoryKind::Device, own.clone()).unwrap();
        own
    }
}

/// A graph whose temporary has one wide element.
fn wide(device: &Device<Host>, memory: &GraphMemory<Host>) -> Graph<(), PinnedArray<Wide, Ix1, Host>, Host> {
    let body = |stream: &Stream<Host>, ()| {
        let mut inside = stream.device_array::<Wide, _>(1)?;
        stream.fill(&mut inside, Wide([5; WIDE]))?;
        stream.copy_to_host(&inside)
    };
    device.record_in(memory, (), body).unwrap()
}

/// A graph whose temporary has so many bytes.
fn long(
    device: &Device<Host>,
    memory: &GraphMemory<Host>,
    bytes: usize,
) -> Graph<(), PinnedArray<u8, Ix1, Host>, Host> {
    let body = |stream: &Stream<Host>, ()| {
        let mut inside = stream.device_array::<u8, _>(bytes)?;
        stream.fill(&mut inside, 9)?;
        stream.copy_to_host(&inside)
    };
    device.record_in(memory, (), body).unwrap()
}

#[test]
fn memory_that_grows_for_one_graph_is_aligned_for_all() {
    let device = device();
    let watching = Meanwhile::of(&device);
    let memory = GraphMemory::new(&device);
    let (wide, _long) = (wide(&device, &memory), long(&device, &memory, 4 * WIDE));
    assert_eq!(*watching.aligns.lock(), [WIDE, WIDE]);
    let stream = device.stream().unwrap();
    assert_eq!(wide.launch(&stream, ()).unwrap().view().unwrap()[0].0, [5; WIDE]);
}

#[test]
fn memory_that_two_threads_make_is_large_enough_for_both() {
    let device = device();
    let (watching, memory) = (Meanwhile::of(&device), GraphMemory::new(&device));
    // What the pool gives next lies after it, and is aligned to no more than is asked for.
    let _first = device.device_array::<u8, _>(1).unwrap();
    let made = Arc::new(Mutex::new(None));
    let hook = {
        let (device, memory, made) = (device.clone(), memory.clone(), made.clone());
        move || *made.lock() = Some(long(&device, &memory, MIB))
    };
    *watching.hook.lock() = Some(Box::new(hook));
    let wide = wide(&device, &memory);
    let long = made.lock().take().unwrap();
    let (stream, behind) = (device.stream().unwrap(), device.to_device(&vec![1_u8; 4 * MIB]).unwrap());
    for _ in 0..2 {
        assert!(long.launch(&stream, ()).unwrap().view().unwrap().iter().all(|byte| *byte == 9));
        assert_eq!(wide.launch(&stream, ()).unwrap().view().unwrap()[0].0, [5; WIDE]);
    }
    assert!(
        behind.copy_to_host().unwrap().iter().all(|byte| *byte == 1),
        "a launch wrote what is not its own"
    );
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
    // Of each launch: its argument is read, and the arena and both results are written.
    let used = |writes: bool| {
        let of_graph = |event: &&TraceEvent| match event.what {
            TraceEventKind::Use { write, operation, .. } => {
                write == writes && trace.operations[operation as usize] == "graph"
            }
            _ => false,
        };
        trace.events.iter().filter(of_graph).count()
    };
    assert_eq!((used(false), used(true)), (30, 90));
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

/// As arrays without elements that no graph has made.
#[test]
fn results_without_elements_are_aligned() {
    let device = device();
    let stream = device.stream().unwrap();
    let graph = device.record((reads::<f64, _>(4),), |stream, (x,)| {
        let none = x.slice(s![..0])?;
        let wide = stream.device_array::<Wide, _>(0)?;
        Ok((stream.to_device(&none)?, stream.copy_to_host(&none)?, wide))
    });
    let x = device.to_device(&[1.0; 4]).unwrap();
    let (array, pinned, wide) = graph.unwrap().launch(&stream, (&x,)).unwrap();
    let align = device.capabilities().allocation_alignment as u64;
    assert_eq!((array.address() % align, wide.address() % WIDE as u64), (0, 0));
    assert_eq!(array.reinterpret::<u64>().unwrap().len() + pinned.view().unwrap().len(), 0);
}

/// Gives out so many blocks, and then says that there is no memory.
#[derive(Debug)]
struct Ending {
    upstream: Arc<dyn MemoryResource<Host>>,
    left: Arc<AtomicUsize>,
}

impl MemoryResource<Host> for Ending {
    fn name(&self) -> &'static str {
        "ending"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        let next = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok() {
            return self.upstream.allocate(request);
        }
        let nothing = MemoryInfo { free: 0, total: 0 };
        Err(Error::new("host", "allocate", ErrorKind::out_of_memory(request.bytes, "device", nothing)))
    }

    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.upstream.deallocate(block)
    }

    fn forget(&self) {
        self.upstream.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        self.upstream.statistics()
    }
}

/// A scan, sums, a place and copies of other layouts, of which each takes memory.
#[test]
fn memory_may_end_at_each_allocation_of_a_graph() {
    let numbers = Array2::from_shape_fn((60, 70), |(row, column)| (row * 100 + column) as i64);
    for kind in [MemoryKind::Device, MemoryKind::Pinned] {
        for more in 0.. {
            let device = device();
            let (stream, x) = (device.stream().unwrap(), device.to_device(&numbers).unwrap());
            let (mut y, mut value) = (device.to_device(&[5_i64; 70]).unwrap(), 5);
            let left = Arc::new(AtomicUsize::new(usize::MAX));
            let upstream = device.memory_resource(kind).unwrap();
            let ending = Ending { upstream: upstream.clone(), left: left.clone() };
            device.set_memory_resource(kind, Arc::new(ending)).unwrap();
            let run = |y: &mut DeviceArray<i64, Ix1, Host>, value: &mut i64| {
                let graph = device.record((&x, &mut *y), |stream, (x, mut y)| {
                    stream.copy_to_device(&mut y, &x.slice(s![59, ..])?)?;
                    let scan = x.t().on(stream).inclusive_scan(1)?;
                    let sums = x.slice(s![..;2, ..;-1])?.on(stream).sum_axis(0)?;
                    let place = x.on(stream).argmax()?;
                    let turned = stream.to_device(&scan.t())?;
                    Ok((
                        stream.to_device(&turned)?,
                        stream.copy_to_host(&sums)?,
                        stream.copy_to_host(&place)?,
                    ))
                })?;
                let (scan, sums, place) = graph.launch(&stream, (&x, y))?;
                *value = 5900;
                let seen = (scan.copy_to_host()?, sums.copy_to_host()?, place.copy_to_host()?[()]);
                stream.synchronize()?;
                Ok::<_, Error>(seen)
            };
            left.store(more, Ordering::Relaxed);
            let run_out = run(&mut y, &mut value);
            let is_over = left.swap(usize::MAX, Ordering::Relaxed) > 0;
            if let Err(error) = &run_out {
                assert!(error.is_out_of_memory() && !is_over, "{kind:?} {more}: {error}");
            }
            assert_eq!(x.copy_to_host().unwrap(), numbers);
            // As it was, unless the graph was launched.
            assert_eq!(y.copy_to_host().unwrap()[0], value, "{kind:?} {more}");
            for found in run_out.into_iter().chain([run(&mut y, &mut value).unwrap()]) {
                let mut scan = numbers.clone();
                for row in 1..60 {
                    let above = scan.row(row - 1).to_owned();
                    scan.row_mut(row).zip_mut_with(&above, |one, above| *one += above);
                }
                assert_eq!(found.0, scan, "{kind:?} {more}");
                assert_eq!(found.1, numbers.slice(s![..;2, ..;-1]).sum_axis(ndarray::Axis(0)));
                assert_eq!(found.2, 60 * 70 - 1);
            }
            drop((x, y, stream));
            device.synchronize().unwrap();
            device.flush().unwrap();
            assert_eq!(
                (upstream.statistics().allocated, device.take_errors()),
                (0, vec![]),
                "{kind:?} {more}"
            );
            if is_over {
                assert!(more > 2, "{kind:?}: {more} allocations");
                break;
            }
        }
    }
}

/// The pool asks whether a loan's work is over before others get the memory. A recording's stream has no work that could be.
#[test]
fn a_loan_that_is_refused_in_a_recording_holds_no_memory() {
    let device = device();
    let stream = device.stream().unwrap();
    let mut reserved = None;
    for _ in 0..4 {
        let mut outside = stream.device_array::<u8, _>(8 * MIB).unwrap();
        let recorded = device.record((), |inside, ()| {
            assert!(matches!(outside.lend(inside).unwrap_err().kind(), ErrorKind::NotRecordable { .. }));
            assert!(matches!(outside.lend_mut(inside).unwrap_err().kind(), ErrorKind::NotRecordable { .. }));
            Ok(())
        });
        drop(recorded.unwrap());
        drop(outside);
        device.synchronize().unwrap();
        let now = device.memory_resource(MemoryKind::Device).unwrap().statistics().reserved;
        assert_eq!(*reserved.get_or_insert(now), now, "the next array takes the same memory");
    }
    device.flush().unwrap();
    assert_eq!(device.memory_resource(MemoryKind::Device).unwrap().statistics().reserved, 0);
}
