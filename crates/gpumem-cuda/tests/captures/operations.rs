//! What the library does beside captures.

use crate::capture::{TheirStream, carefully, device};
use cudarc::driver::sys;
use gpumem_core::{
    Advice, Attach, CompileOptions, DriverDevice, ErrorKind, KernelSource, Location, MappedOptions, Result,
};
use gpumem_cuda::Cuda;
use gpumem_runtime::{
    CudaArrayInterface, Device, DeviceArray, ElementType, Event, Graph, InterchangeStream, PinnedArray,
    ReadForm, SpillManager, SpillOptions, Stream, WriteForm,
    internal::{FoundStream, ServedMemory, ServedStreams},
    memory::Trim,
    reads, writes,
};
use ndarray::{Array1, Ix1, s};
use std::{sync::Arc, thread};

type Array = DeviceArray<u32, Ix1, Cuda>;
type Recorded = Graph<(ReadForm<u32, Ix1>, WriteForm<u32, Ix1>), (), Cuda>;

/// Elements of the arrays.
const LEN: usize = 1000;
/// Bytes of arrays that need a new piece of the pool.
const PIECE: usize = 48 << 20;
/// Bytes of transfers that are staged in several parts.
const PARTS: usize = 5 << 20;

/// How an operation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Refused,
    /// It is on the legacy stream.
    RefusedBesideBlocking,
    /// Refused. The driver does not show captures of non-blocking streams: beside one of these it refuses the call and ends the capture.
    WaitsForAllStreams,
    /// Done, but asks whether all streams are done: that ends a capture of a non-blocking stream.
    AsksForAllStreams,
    /// The double has no kernels, and shares no memory.
    Either,
}

/// What an operation begins with: none of it is captured, and some of it is under way.
pub(crate) struct Place {
    device: Device<Cuda>,
    streams: [Stream<Cuda>; 2],
    array: Option<Array>,
    other: Array,
    pinned: PinnedArray<u32, Ix1, Cuda>,
    event: Event<Cuda>,
    graph: Recorded,
    foreign: Arc<TheirStream>,
}

fn graph(device: &Device<Cuda>) -> Result<Recorded> {
    device.record((reads::<u32, _>(LEN), writes::<u32, _>(LEN)), |stream, (from, mut to)| {
        let inside = stream.to_device(&from)?;
        stream.copy_to_device(&mut to, &inside)?;
        stream.fill(&mut to.slice_mut(s![..10])?, 9)
    })
}

impl Place {
    pub(crate) fn new() -> Result<Self> {
        let device = Device::from_raw(device());
        let streams = [device.stream()?, device.stream()?];
        let array = streams[0].to_device(&[1u32; LEN])?;
        let mut other = device.device_array::<u32, _>(LEN)?;
        let pinned = device.pinned_array::<u32, _>(LEN)?;
        let graph = graph(&device)?;
        graph.launch(&streams[1], (&array, &mut other))?;
        let event = streams[1].record_event()?;
        Ok(Self {
            device,
            streams,
            array: Some(array),
            other,
            pinned,
            event,
            graph,
            foreign: TheirStream::new(false),
        })
    }

    pub(crate) fn end(self) -> Result<()> {
        let device = self.device.clone();
        drop(self);
        device.flush()
    }

    fn array(&mut self) -> &mut Array {
        self.array.as_mut().unwrap()
    }

    /// Another library's stream, as the library's.
    fn theirs(&self, stream: &Arc<TheirStream>) -> Result<Stream<Cuda>> {
        // SAFETY: the owner keeps the stream.
        unsafe { self.device.external_stream(stream.raw(), stream.clone()) }
    }

    /// An array of another library, whose elements are ready after the work of a stream.
    fn import(&self, stream: Option<i64>) -> Result<()> {
        let mut address = 0;
        // SAFETY: a place for an address; a context is current.
        carefully(|| unsafe { sys::cuMemAlloc_v2(&mut address, 4 * LEN) }).result().unwrap();
        let descriptor = CudaArrayInterface {
            shape: vec![LEN as i64],
            typestr: ElementType::of::<u32>(),
            data: (address, false),
            strides: None,
            descr: None,
            mask: false,
            version: 3,
            stream,
        };
        // SAFETY: the memory is never freed, and holds integers.
        let imported = unsafe { self.device.from_cuda_array_interface::<u32, Ix1>(&descriptor, ()) }?;
        self.streams[0].copy_to_host(&imported)?.view()?;
        imported.copy_to_host()?;
        drop(imported);
        self.device.flush()
    }
}

/// Errors that the operation is about are none.
fn expect(result: Result<impl Sized>, is_expected: impl Fn(&ErrorKind) -> bool) -> Result<()> {
    match result {
        Err(error) if is_expected(error.kind()) => Ok(()),
        other => other.map(drop),
    }
}

pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) outcome: Outcome,
    /// It is given the stream that another library captures.
    pub(crate) run: fn(&mut Place, &Arc<TheirStream>) -> Result<()>,
}

macro_rules! operations {
    ($($outcome:ident $name:literal |$place:pat_param, $captured:pat_param| $body:block)*) => {
        pub(crate) const OPERATIONS: &[Operation] =
            &[$(Operation { name: $name, outcome: Outcome::$outcome, run: |$place, $captured| $body }),*];
    };
}

operations! {
    Done "allocating" |p, _| { p.streams[0].device_array::<u32, _>(LEN).map(drop) }
    Done "a pool that grows" |p, _| {
        let arrays = [p.device.uninit_array::<u8, _>(PIECE)?, p.device.uninit_array::<u8, _>(PIECE)?];
        drop(arrays);
        p.device.flush()
    }
    Done "memory that is exhausted" |p, _| {
        expect(p.device.uninit_array::<u8, _>(1 << 45), |kind| matches!(kind, ErrorKind::OutOfMemory { .. }))
    }
    Done "freeing" |p, _| { p.array.take().unwrap().free() }
    Done "dropping and flushing" |p, _| { p.array = None; p.device.flush() }
    Done "trimming" |p, _| {
        p.array = None;
        p.device.trim(Trim::UNUSED)?;
        p.device.trim(Trim::ALL).map(drop)
    }
    Done "deferring frees" |p, _| {
        let deferred = p.device.defer_cleanup();
        p.array = None;
        p.device.flush()?;
        drop(deferred);
        p.device.flush()
    }
    Done "memory of the host" |p, _| {
        let mut pinned = p.device.pinned_array::<u32, _>(LEN)?;
        pinned.view_mut()?.fill(3);
        p.streams[0].copy_to_device(&mut p.other, &pinned)?;
        let mapped = p.device.mapped_array::<u32, _>(LEN, MappedOptions::default())?;
        let mut managed = p.device.managed_array::<u32, _>(LEN, Attach::Global)?;
        p.streams[1].copy_to_device(&mut managed.device_view_mut(), &p.other)?;
        managed.prefetch(&p.streams[0], Location::Device)?;
        managed.advise(Advice::ReadMostly(true))?;
        assert_eq!(managed.view()?[7], 3);
        drop((pinned, mapped, managed));
        p.device.flush()
    }
    Done "uploads" |p, _| {
        p.array().copy_to_device(&[2u32; LEN])?;
        let large = p.streams[0].to_device(&vec![1u8; PARTS])?;
        large.copy_to_host().map(drop)
    }
    Done "downloads" |p, _| {
        let host = p.streams[1].copy_to_host(&p.other)?;
        assert_eq!(host.view()?.as_slice(), p.other.copy_to_host()?.as_slice());
        p.streams[0].copy_to_host_into(&p.other, &mut p.pinned)?;
        p.pinned.view()?;
        p.other.get(3).map(drop)
    }
    Done "fills and copies" |p, _| {
        let [one, two] = p.streams.clone();
        one.fill(p.array(), 7)?;
        two.copy_to_device(&mut p.other, p.array.as_ref().unwrap())?;
        p.array().set(1, 8)?;
        p.array().try_clone()?.fill(3)
    }
    Either "strided copies" |p, _| { p.other.slice(s![..;3])?.copy_to_host().map(drop) }
    Done "a scope" |p, _| {
        let mut host = Array1::zeros(LEN);
        p.streams[0].scope(|scope| scope.copy_to_host(&p.other, host.view_mut()))?
    }
    Done "page-locking" |p, _| {
        let registered = p.device.register(Array1::from_elem(PARTS, 1u8)).map_err(|refused| refused.error)?;
        let array = p.streams[0].to_device(&registered)?;
        registered.deregister().map_err(|refused| refused.error)?;
        let mut host = array.copy_to_host()?;
        p.device.pinned([host.view_mut()], |[host]| p.streams[1].to_device(host))?.map(drop)
    }
    Done "events" |p, _| {
        let (begin, end) = (p.streams[0].record_timed_event()?, p.streams[0].record_timed_event()?);
        p.streams[1].wait(&end)?;
        end.synchronize()?;
        end.elapsed_since(&begin)?;
        p.event.query()?;
        p.event.synchronize()
    }
    Done "streams" |p, _| {
        let stream = p.device.stream()?;
        stream.fill(&mut p.other, 1)?;
        stream.query()?;
        stream.synchronize()?;
        drop(stream);
        p.device.flush()
    }
    Done "callbacks" |p, _| {
        let (sender, receiver) = std::sync::mpsc::channel();
        p.streams[0].add_callback(move |outcome| drop(sender.send(outcome)))?;
        receiver.recv().unwrap()
    }
    Done "the per-thread stream" |p, _| {
        let stream = p.device.per_thread_stream()?;
        stream.fill(&mut p.other, 1)?;
        stream.synchronize()
    }
    RefusedBesideBlocking "the legacy stream" |p, _| { p.device.legacy_stream()?.fill(&mut p.other, 1) }
    RefusedBesideBlocking "waiting for the legacy stream" |p, _| { p.device.legacy_stream()?.synchronize() }
    WaitsForAllStreams "waiting for the device" |p, _| { p.device.synchronize() }
    Done "information about the device" |p, _| {
        p.device.memory_info()?;
        p.device.memory_report()?;
        p.device.counters();
        p.device.raw().pointer_info(p.other.address())?;
        Device::<Cuda>::list()?;
        p.device.take_errors();
        Ok(())
    }
    Done "other devices" |p, _| {
        let second = match Device::<Cuda>::open("cuda:1") {
            Err(error) if matches!(error.kind(), ErrorKind::NoSuchDevice { .. }) => return Ok(()),
            second => second?,
        };
        p.device.set_peer_access(&second, p.device.can_access_peer(&second)?)?;
        let mut there = second.to_device(&[5u32; LEN])?;
        p.streams[0].copy_to_device(&mut p.other, &there)?;
        second.stream()?.copy_to_device(&mut there, &p.other)?;
        assert_eq!(there.get(4)?, 5);
        drop(there);
        second.flush()?;
        p.device.set_peer_access(&second, false)
    }
    Done "recording a graph" |p, _| {
        let graph = graph(&p.device)?;
        graph.launch(&p.streams[0], (p.array.as_ref().unwrap(), &mut p.other))?;
        assert_eq!(p.other.get(3)?, 9);
        drop(graph);
        p.device.flush()
    }
    Done "launching a graph again" |p, _| {
        let mut third = p.device.device_array::<u32, _>(LEN)?;
        p.graph.launch(&p.streams[0], (p.array.as_ref().unwrap(), &mut p.other))?;
        p.graph.launch(&p.streams[1], (&p.other, &mut third))?;
        third.get(3).map(drop)
    }
    Either "programs" |p, _| {
        let text = ".version 7.0\n.target sm_52\n.address_size 64\n".to_owned();
        p.device.raw().compile(&KernelSource::Ptx(text), &CompileOptions::default()).map(drop)
    }
    Either "memory of other processes" |p, _| {
        let array = p.device.ipc_array::<u32, _>(LEN)?;
        // SAFETY: no other process opens it.
        unsafe { array.ipc_handle() }.map(drop)
    }
    Done "arrays that leave the device" |p, _| {
        let manager = SpillManager::new(&p.device, SpillOptions::new())?;
        let array = manager.add(p.array.take().unwrap()).map_err(|(_, error)| error)?;
        array.evict()?;
        assert_eq!(array.get(&p.streams[1])?.get(3)?, 1);
        drop(array);
        p.device.flush()
    }
    Done "drops on another thread" |p, _| {
        let all = (p.array.take(), p.streams[0].record_event()?, p.device.stream()?, p.device.clone());
        thread::spawn(move || {
            let (array, event, stream, device) = all;
            drop((array, event, stream));
            device.flush()
        })
        .join()
        .unwrap()
    }
    Done "memory for another library" |p, _| {
        let (streams, device) = (ServedStreams::default(), p.device.clone());
        // SAFETY: the stream is alive.
        let stream = unsafe { streams.find(&device, p.foreign.raw().0) }?;
        for stream in [&stream, &FoundStream::AnyStream, &stream] {
            ServedMemory::allocate(&device, LEN, stream)?.free(stream);
            drop(ServedMemory::allocate(&device, LEN, stream)?);
        }
        Ok(())
    }
    Done "memory of another library whose stream has ended" |p, _| {
        let (streams, ended) = (ServedStreams::default(), TheirStream::new(false));
        // SAFETY: the stream is alive.
        let stream = unsafe { streams.find(&p.device, ended.raw().0) }?;
        ServedMemory::allocate(&p.device, PIECE, &stream)?.free(&stream);
        drop((stream, ended));
        // The memory is given out again, and to the driver: neither uses the stream.
        drop(p.streams[0].uninit_array::<u8, _>(PIECE)?);
        p.device.trim(Trim::ALL)?;
        assert_eq!(p.device.take_errors().len(), 0);
        Ok(())
    }
    Done "memory of another library that ends on a captured stream" |p, captured| {
        let (streams, device) = (ServedStreams::default(), p.device.clone());
        // SAFETY: the stream is alive.
        let stream = unsafe { streams.find(&device, p.foreign.raw().0) }?;
        // SAFETY: as above.
        let captured = unsafe { streams.find(&device, captured.raw().0) }?;
        assert!(matches!(captured, FoundStream::Captured));
        ServedMemory::allocate(&device, LEN, &stream)?.free(&captured);
        Ok(())
    }
    Refused "memory for another library's captured stream" |p, captured| {
        // SAFETY: the stream is alive.
        let captured = unsafe { ServedStreams::default().find(&p.device, captured.raw().0) }?;
        ServedMemory::allocate(&p.device, LEN, &captured).map(drop)
    }
    Done "a loan on a stream" |p, _| {
        let [stream, other] = p.streams.clone();
        let loan = p.array().lend_mut(&stream)?;
        other.fill(p.array(), 5)?;
        loan.describe();
        drop(loan);
        assert_eq!(p.array().get(1)?, 5);
        Ok(())
    }
    Done "a loan to a stream of another library" |p, _| {
        let stream = InterchangeStream::Handle(p.foreign.raw());
        // SAFETY: the stream is alive.
        let loan = unsafe { p.array().lend_to_handle(stream) }?;
        drop(loan);
        Ok(())
    }
    WaitsForAllStreams "a use of an array that is lent to any stream" |p, _| {
        let stream = p.streams[0].clone();
        let _loan = p.array().lend_mut(&stream)?.on_any_stream();
        stream.fill(p.array(), 5)
    }
    AsksForAllStreams "reusing memory that was lent to any stream" |p, _| {
        let loan = p.array.as_ref().unwrap().lend(&p.streams[0])?.on_any_stream();
        drop((loan, p.array.take()));
        p.device.trim(Trim::UNUSED).map(drop)
    }
    Done "a tensor" |p, _| {
        let stream = p.streams[0].clone();
        let tensor = p.array().lend(&stream)?.into_dlpack()?;
        let imported = p.device.from_dlpack::<u32, Ix1>(tensor, Some(&stream))?;
        imported.copy_to_host().map(drop)
    }
    Done "an array that comes back" |p, _| {
        let loan = p.array.as_ref().unwrap().lend(&p.streams[0])?;
        let imported = p.device.as_cuda_array::<u32, Ix1, _>(loan)?;
        imported.copy_to_host().map(drop)
    }
    Done "an array of another library" |p, _| { p.import(None) }
    Done "an array of another library, after a stream" |p, _| { p.import(Some(p.foreign.raw().0 as i64)) }
    RefusedBesideBlocking "an array of another library, after the legacy stream" |p, _| { p.import(Some(1)) }
    Refused "an array of another library, after a captured stream" |p, captured| { p.import(Some(captured.raw().0 as i64)) }
    Done "a stream of another library" |p, _| {
        let stream = p.theirs(&p.foreign)?;
        stream.fill(&mut p.other, 2)?;
        stream.record_event()?.synchronize()?;
        stream.synchronize()
    }
    Refused "waiting for a captured stream" |p, captured| { p.theirs(captured)?.synchronize() }
    Refused "asking for a captured stream" |p, captured| { p.theirs(captured)?.query().map(drop) }
    Refused "an event of a captured stream" |p, captured| { p.theirs(captured)?.record_event().map(drop) }
    Refused "an event for a captured stream" |p, captured| { p.theirs(captured)?.wait(&p.event) }
    Refused "a captured stream that has to wait" |p, captured| { p.theirs(captured)?.fill(&mut p.other, 1) }
    Refused "a loan to a captured stream" |p, captured| {
        let stream = InterchangeStream::Handle(captured.raw());
        // SAFETY: the stream is alive.
        unsafe { p.other.lend_to_handle(stream) }.map(drop)
    }
    Refused "prefetching on a captured stream" |p, captured| {
        p.device.managed_array::<u32, _>(LEN, Attach::Global)?.prefetch(&p.theirs(captured)?, Location::Device)
    }
    Refused "a graph on a captured stream" |p, captured| {
        p.streams[0].synchronize()?;
        p.streams[1].synchronize()?;
        let stream = p.theirs(captured)?;
        let launched = p.graph.launch(&stream, (p.array.as_ref().unwrap(), &mut p.other));
        let text = launched.as_ref().unwrap_err().to_string();
        // The driver would take the launch, as a part of the other library's graph.
        assert!(text.contains("a stream that another library captures"), "{text}");
        launched
    }
    Refused "an upload on a captured stream" |p, captured| { p.theirs(captured)?.to_device(&[1u32; LEN]).map(drop) }
    Refused "a download on a captured stream" |p, captured| {
        p.streams[0].synchronize()?;
        p.streams[1].synchronize()?;
        p.theirs(captured)?.copy_to_host(&p.other)?.view().map(drop)
    }
    Done "work after refused work" |p, captured| {
        p.streams[0].synchronize()?;
        p.streams[1].synchronize()?;
        let stream = p.streams[0].clone();
        p.theirs(captured)?.fill(p.array(), 4).unwrap_err();
        stream.fill(p.array(), 3)?;
        assert_eq!(p.array().get(1)?, 3);
        Ok(())
    }
    Refused "a fill on a captured stream" |p, captured| {
        p.streams[0].synchronize()?;
        p.streams[1].synchronize()?;
        p.theirs(captured)?.fill(p.array(), 4)
    }
    Refused "a copy on a captured stream" |p, captured| {
        p.streams[0].synchronize()?;
        p.streams[1].synchronize()?;
        let stream = p.theirs(captured)?;
        stream.copy_to_device(&mut p.other, p.array.as_ref().unwrap()).map(drop)
    }
    Refused "an array for a captured stream" |p, captured| {
        p.theirs(captured)?.device_array::<u32, _>(LEN).map(drop)
    }
}
