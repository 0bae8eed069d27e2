//! A driver that only records calls: their order, and which are proven to be done.
//!
//! Every stream has a vector clock. Work ticks it, an event copies it, a wait joins it, and a wait of the host joins it
//! into what is done. Two uses of the same bytes, one of them a write, must be ordered by the clocks; memory may only
//! be freed, and the host may only access it, when its uses are done. Violations are recorded.

use super::captured::{Graph, KernelCall, Launched};
use gpumem_core::{
    AllocationRequest, Backend, BarrierPoint, Capabilities, CaptureStart, CompileOptions, CopyRegion,
    DeviceBuffer, DeviceInfo, DeviceSelector, DriverDevice, DriverModule, Error, ErrorKind, EventOptions,
    ExecutableGraph, Fill, GraphNode, KernelArguments, KernelSource, LaunchConfig, LoadError, Lowering,
    MemoryInfo, MemoryKind, RawStream, Result, StreamOptions,
};
use std::{
    collections::BTreeMap,
    ops::Range,
    ptr::NonNull,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The history of each stream, by its number.
#[derive(Debug, Clone, Default)]
struct Clock(Vec<u64>);

impl Clock {
    fn at(&self, stream: usize) -> u64 {
        self.0.get(stream).copied().unwrap_or(0)
    }

    fn join(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }

    fn is_behind(&self, other: &Self) -> bool {
        (0..self.0.len()).all(|stream| self.at(stream) <= other.at(stream))
    }
}

#[derive(Debug)]
struct Use {
    stream: usize,
    tick: u64,
    bytes: Range<u64>,
    write: bool,
}

#[derive(Debug, Default)]
pub struct CallRecord {
    streams: Vec<Clock>,
    done: Clock,
    uses: Vec<Use>,
    free: Vec<Range<u64>>,
    next_address: u64,
    live: usize,
    pub launches: Vec<Launched>,
    /// The number that was written to the memory that begins there.
    pub numbers: BTreeMap<u64, u32>,
    /// Bytes of the device.
    room: Option<usize>,
    taken: usize,
    /// Copies that fail.
    failing: usize,
    troubles: Vec<String>,
}

fn meet(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

impl CallRecord {
    /// The rule for a use: everything that conflicts is ordered before it.
    pub fn touch(&mut self, stream: usize, bytes: Range<u64>, write: bool) {
        let mut clock = self.streams[stream].clone();
        clock.join(&self.done);
        for old in self.uses.iter().filter(|old| meet(&old.bytes, &bytes) && (old.write || write)) {
            if clock.at(old.stream) < old.tick {
                self.troubles.push(format!("stream {stream} on {bytes:?} is not ordered after {old:?}"));
            }
        }
        if self.free.iter().any(|free| meet(free, &bytes)) {
            self.troubles.push(format!("stream {stream} uses {bytes:?} after it was freed"));
        }
        let mut own = clock;
        own.0.resize(own.0.len().max(stream + 1), 0);
        own.0[stream] += 1;
        self.uses.push(Use { stream, tick: own.0[stream], bytes, write });
        self.streams[stream] = own;
    }

    /// A kernel's use of an array.
    pub fn run(&mut self, stream: usize, call: &KernelCall) {
        self.touch(stream, call.bytes(), call.writes);
        if call.writes {
            self.numbers.insert(call.array, call.number);
        } else if !self.numbers.is_empty() && self.numbers.get(&call.array) != Some(&call.number) {
            self.troubles.push(format!("{:?} is read in place of {call:?}", self.numbers.get(&call.array)));
        }
    }

    /// Addresses for something that lives until it is [ended](Self::end).
    pub fn make(&mut self, bytes: usize) -> u64 {
        let address = self.next_address;
        self.next_address += bytes as u64;
        self.live += 1;
        address
    }

    /// The end of what was made: its uses are done, and it has none from now on.
    pub fn end(&mut self, what: &str, bytes: Range<u64>) {
        self.must_be_done(what, &bytes, true);
        self.numbers.retain(|at, _| !bytes.contains(at));
        self.free.push(bytes);
        self.live -= 1;
    }

    /// The rule for the host and for freeing: everything that conflicts is done.
    fn must_be_done(&mut self, what: &str, bytes: &Range<u64>, write: bool) {
        for old in self.uses.iter().filter(|old| meet(&old.bytes, bytes) && (old.write || write)) {
            if self.done.at(old.stream) < old.tick {
                self.troubles.push(format!("{what} of {bytes:?} while {old:?} may be running"));
            }
        }
    }
}

/// When enqueued work gets done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// When a thread waits for it: the device is as slow as possible.
    WhenWaitedFor,
    /// When a thread polls: the device is as fast as possible.
    WhenAsked,
}

/// The device of one execution of a model.
#[derive(Debug)]
pub struct Lab {
    record: Mutex<CallRecord>,
    progress: Progress,
    /// Makes every driver call a point where loom may switch threads.
    pulse: loom::sync::atomic::AtomicUsize,
}

impl Lab {
    pub fn device(progress: Progress) -> Device {
        static ORDINAL: AtomicUsize = AtomicUsize::new(0);
        // A new device for each execution, so that one never finds the last one's still open, with addresses of its own: poison is found
        // by them.
        let ordinal = ORDINAL.fetch_add(1, Ordering::Relaxed);
        let next_address = 64 + ((ordinal as u64) << 32);
        let record = Mutex::new(CallRecord { next_address, ..CallRecord::default() });
        let info = DeviceInfo {
            backend: Mock::NAME,
            ordinal,
            name: String::new(),
            uuid: None,
            pci: None,
            // So small that every pending byte makes an allocation look after it.
            total_memory: 0,
            architecture: String::new(),
        };
        let lab = Arc::new(Lab { record, progress, pulse: loom::sync::atomic::AtomicUsize::new(0) });
        Device { lab, info: Arc::new((info, Capabilities::minimal())) }
    }

    pub fn record<R>(&self, act: impl FnOnce(&mut CallRecord) -> R) -> R {
        self.pulse.fetch_add(1, Ordering::Relaxed);
        act(&mut self.record.lock().unwrap())
    }

    /// The host looks at memory.
    pub fn host(&self, bytes: Range<u64>, write: bool) {
        self.record(|record| record.must_be_done("host access", &bytes, write));
    }

    /// Says how many bytes the device has.
    pub fn set_room(&self, bytes: usize) {
        self.record(|record| record.room = Some(bytes));
    }

    /// The next copies fail.
    pub fn fail_copies(&self, copies: usize) {
        self.record(|record| record.failing = copies);
    }

    /// A point where threads may be switched, for what loom does not see: a count of references.
    pub fn pause(&self) {
        self.record(|_| ());
    }

    /// What was launched on the streams, in the order of its calls.
    pub fn launches(&self) -> Vec<Launched> {
        self.record(|record| record.launches.clone())
    }

    /// Asserts that no rule was violated, and that nothing is left.
    pub fn check(&self) {
        self.record(|record| {
            assert!(record.troubles.is_empty(), "{:#?}", record.troubles);
            assert_eq!(record.live, 0, "blocks are left");
        });
    }

    fn finish(&self, clock: impl FnOnce(&CallRecord) -> Clock) {
        self.record(|record| {
            let clock = clock(record);
            record.done.join(&clock);
        });
    }

    fn ask(&self, clock: impl FnOnce(&CallRecord) -> Clock) -> bool {
        self.record(|record| {
            let clock = clock(record);
            if self.progress == Progress::WhenAsked {
                record.done.join(&clock);
            }
            clock.is_behind(&record.done)
        })
    }
}

#[derive(Debug, Clone)]
pub struct Mock;

#[derive(Debug, Clone)]
pub struct Device {
    pub lab: Arc<Lab>,
    info: Arc<(DeviceInfo, Capabilities)>,
}

#[derive(Debug)]
pub struct Buffer(u64, AllocationRequest);

#[derive(Debug)]
pub struct Stream {
    pub lab: Arc<Lab>,
    pub number: usize,
    captured: Mutex<Option<Vec<KernelCall>>>,
}

#[derive(Debug)]
pub struct Event {
    lab: Arc<Lab>,
    clock: Mutex<Clock>,
}

#[derive(Debug, Clone)]
pub struct Nothing;

/// Reads an array, whose number is given, or writes a number.
#[derive(Debug, Clone)]
pub struct Kernel {
    pub writes: bool,
}

impl Stream {
    /// Work that uses memory.
    pub fn touch(&self, bytes: Range<u64>, write: bool) -> Result<()> {
        self.lab.record(|record| record.touch(self.number, bytes, write));
        Ok(())
    }

    fn clock(&self) -> impl FnOnce(&CallRecord) -> Clock {
        let number = self.number;
        move |record| record.streams[number].clone()
    }
}

impl Event {
    fn clock(&self) -> impl FnOnce(&CallRecord) -> Clock {
        let clock = self.clock.lock().unwrap().clone();
        move |_| clock
    }
}

// SAFETY: a double without memory, for the order of streams alone.
unsafe impl DeviceBuffer for Buffer {
    fn address(&self) -> u64 {
        self.0
    }

    /// No memory: in no model the host looks there.
    fn host_address(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.0 as *mut u8).filter(|_| self.1.kind == MemoryKind::Pinned)
    }

    fn len(&self) -> usize {
        self.1.bytes
    }

    fn kind(&self) -> MemoryKind {
        self.1.kind
    }
}

// SAFETY: a double without memory, for the order of streams alone.
unsafe impl gpumem_core::Barrier for Nothing {
    fn wave_size(&self) -> u32 {
        32
    }

    fn lowering(&self, _: BarrierPoint) -> Lowering {
        Lowering::Suspend
    }
}

pub fn lacks<T>(what: &'static str) -> Result<T> {
    Err(Error::new(Mock::NAME, "mock", ErrorKind::Unsupported { what }))
}

// SAFETY: a double without memory, for the order of streams alone.
unsafe impl Backend for Mock {
    const NAME: &'static str = "mock";
    const WANTS_POISONING: bool = false;

    type Device = Device;
    type Buffer = Buffer;
    type Stream = Stream;
    type Event = Event;
    type Barrier = Nothing;
    type Module = Nothing;
    type Kernel = Kernel;

    fn probe() -> Result<(), LoadError> {
        Ok(())
    }

    fn devices() -> Result<Vec<DeviceInfo>> {
        Ok(Vec::new())
    }

    fn open(_: &DeviceSelector) -> Result<Device> {
        lacks("open")
    }
}

// SAFETY: a double without memory, for the order of streams alone.
unsafe impl DriverDevice<Mock> for Device {
    fn info(&self) -> &DeviceInfo {
        &self.info.0
    }

    fn capabilities(&self) -> &Capabilities {
        &self.info.1
    }

    fn barrier(&self) -> Nothing {
        Nothing
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        Ok(MemoryInfo::default())
    }

    fn synchronize(&self) -> Result<()> {
        self.lab.finish(|record| {
            let mut all = Clock::default();
            record.streams.iter().for_each(|stream| all.join(stream));
            all
        });
        Ok(())
    }

    unsafe fn reset(&self) -> Result<()> {
        lacks("reset")
    }

    unsafe fn allocate(&self, request: &AllocationRequest) -> Result<Buffer> {
        let address = self.lab.record(|record| {
            if request.kind == MemoryKind::Device {
                let taken = record.taken + request.bytes;
                if record.room.is_some_and(|room| taken > room) {
                    return Err(record.room.unwrap_or(0).saturating_sub(record.taken));
                }
                record.taken = taken;
            }
            Ok(record.make(request.bytes))
        });
        let address = address.map_err(|free| {
            let kind = ErrorKind::out_of_memory(request.bytes, "device", MemoryInfo { free, total: 0 });
            Error::new(Mock::NAME, "allocate", kind)
        })?;
        Ok(Buffer(address, *request))
    }

    unsafe fn release(&self, buffer: Buffer) -> Result<(), (Buffer, Error)> {
        let bytes = buffer.0..buffer.0 + buffer.1.bytes as u64;
        self.lab.record(|record| {
            if buffer.1.kind == MemoryKind::Device {
                record.taken -= buffer.1.bytes;
            }
            record.end("release", bytes);
        });
        Ok(())
    }

    fn create_stream(&self, _: &StreamOptions) -> Result<Stream> {
        let number = self.lab.record(|record| {
            record.streams.push(Clock::default());
            record.streams.len() - 1
        });
        Ok(Stream { lab: self.lab.clone(), number, captured: Mutex::default() })
    }

    fn create_event(&self, _: EventOptions) -> Result<Event> {
        Ok(Event { lab: self.lab.clone(), clock: Mutex::default() })
    }

    fn compile(&self, _: &KernelSource, _: &CompileOptions) -> Result<Nothing> {
        Ok(Nothing)
    }
}

// SAFETY: a double without memory, for the order of streams alone.
unsafe impl gpumem_core::Stream<Mock> for Stream {
    fn synchronize(&self) -> Result<()> {
        self.lab.finish(self.clock());
        Ok(())
    }

    fn query(&self) -> Result<bool> {
        Ok(self.lab.ask(self.clock()))
    }

    fn raw(&self) -> RawStream {
        RawStream(self.number as u64)
    }

    fn destroy(self) -> Result<()> {
        Ok(())
    }

    unsafe fn copy(&self, region: &CopyRegion) -> Result<()> {
        let at = |start: u64| start..start + region.total_bytes().unwrap_or(0) as u64;
        let (source, destination) = (at(region.source.address), at(region.destination.address));
        let is_done = self.lab.record(|record| {
            if record.failing > 0 {
                record.failing -= 1;
                return false;
            }
            record.touch(self.number, source.clone(), false);
            record.touch(self.number, destination.clone(), true);
            record.numbers.retain(|at, _| !destination.contains(at));
            if let Some(number) = record.numbers.get(&source.start).copied() {
                record.numbers.insert(destination.start, number);
            }
            true
        });
        if is_done { Ok(()) } else { lacks("this copy") }
    }

    unsafe fn fill(&self, _: &Fill) -> Result<()> {
        lacks("fills")
    }

    fn record(&self, event: &Event) -> Result<()> {
        let clock = self.lab.record(|record| record.streams[self.number].clone());
        *event.clock.lock().unwrap() = clock;
        Ok(())
    }

    fn wait(&self, event: &Event) -> Result<()> {
        let clock = event.clock.lock().unwrap().clone();
        self.lab.record(|record| record.streams[self.number].join(&clock));
        Ok(())
    }

    unsafe fn launch(&self, kernel: &Kernel, _: &LaunchConfig, arguments: &KernelArguments) -> Result<()> {
        let call = KernelCall::of(kernel, arguments);
        if let Some(captured) = &mut *self.captured.lock().unwrap() {
            captured.push(call);
            return Ok(());
        }
        self.lab.record(|record| {
            record.run(self.number, &call);
            record.launches.push(Launched { by_graph: false, calls: vec![call] });
        });
        Ok(())
    }

    fn is_capturing(&self) -> Result<bool> {
        Ok(self.captured.lock().unwrap().is_some())
    }

    unsafe fn begin_capture(&self) -> Result<CaptureStart> {
        *self.captured.lock().unwrap() = Some(Vec::new());
        Ok(CaptureStart::BegunAlone)
    }

    fn captured_node(&self) -> Result<GraphNode> {
        let last = self.captured.lock().unwrap().as_ref().map_or(0, Vec::len) - 1;
        Ok(GraphNode(last as u64))
    }

    fn end_capture(&self, _: bool) -> Result<Box<dyn ExecutableGraph<Mock>>> {
        let calls = self.captured.lock().unwrap().take().unwrap();
        Ok(Box::new(Graph::new(&self.lab, calls)))
    }
}

// SAFETY: a double without memory, for the order of streams alone.
unsafe impl gpumem_core::Event for Event {
    fn query(&self) -> Result<bool> {
        Ok(self.lab.ask(self.clock()))
    }

    fn synchronize(&self) -> Result<()> {
        self.lab.finish(self.clock());
        Ok(())
    }

    fn destroy(self) -> Result<()> {
        Ok(())
    }

    fn elapsed(&self, _: &Self) -> Result<f32> {
        lacks("time")
    }
}

// SAFETY: a double without memory, for the order of streams alone.
unsafe impl DriverModule<Mock> for Nothing {
    fn kernel(&self, name: &str) -> Result<Kernel> {
        Ok(Kernel { writes: name == "writes" })
    }
}
