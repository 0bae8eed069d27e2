//! A driver that only records calls: their order, and which are proven to be done.
//!
//! Every stream has a vector clock. Work ticks it, an event copies it, a wait joins it, and a wait of the host joins it
//! into what is done. Two uses of the same bytes, one of them a write, must be ordered by the clocks; memory may only
//! be freed, and the host may only access it, when its uses are done. Violations are recorded.

use gpumem_core::{
    AllocationRequest, Backend, BarrierPoint, Capabilities, CompileOptions, CopyRegion, DeviceBuffer,
    DeviceInfo, DeviceSelector, DriverDevice, DriverModule, Error, ErrorKind, EventOptions, Fill,
    KernelArguments, KernelSource, LaunchConfig, LoadError, Lowering, MemoryInfo, MemoryKind, RawStream,
    Result, StreamOptions,
};
use std::{
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
struct CallRecord {
    streams: Vec<Clock>,
    done: Clock,
    uses: Vec<Use>,
    free: Vec<Range<u64>>,
    next_address: u64,
    live: usize,
    troubles: Vec<String>,
}

fn meet(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

impl CallRecord {
    /// The rule for a use: everything that conflicts is ordered before it.
    fn touch(&mut self, stream: usize, bytes: Range<u64>, write: bool) {
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
        let next_address = 64 + ((ordinal as u64) << 16);
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

    fn record<R>(&self, act: impl FnOnce(&mut CallRecord) -> R) -> R {
        self.pulse.fetch_add(1, Ordering::Relaxed);
        act(&mut self.record.lock().unwrap())
    }

    /// The host looks at memory.
    pub fn host(&self, bytes: Range<u64>, write: bool) {
        self.record(|record| record.must_be_done("host access", &bytes, write));
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
    lab: Arc<Lab>,
    number: usize,
}

#[derive(Debug)]
pub struct Event {
    lab: Arc<Lab>,
    clock: Mutex<Clock>,
}

#[derive(Debug, Clone)]
pub struct Nothing;

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

    fn host_address(&self) -> Option<NonNull<u8>> {
        None
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

fn lacks<T>(what: &'static str) -> Result<T> {
    Err(Error::new(Mock::NAME, "mock", ErrorKind::Unsupported { what }))
}

// SAFETY: a double without memory, for the order of streams alone.
unsafe impl Backend for Mock {
    const NAME: &'static str = "mock";

    type Device = Device;
    type Buffer = Buffer;
    type Stream = Stream;
    type Event = Event;
    type Barrier = Nothing;
    type Module = Nothing;
    type Kernel = Nothing;

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
            let address = record.next_address;
            record.next_address += request.bytes as u64;
            record.live += 1;
            address
        });
        Ok(Buffer(address, *request))
    }

    unsafe fn release(&self, buffer: Buffer) -> Result<(), (Buffer, Error)> {
        let bytes = buffer.0..buffer.0 + buffer.1.bytes as u64;
        self.lab.record(|record| {
            record.must_be_done("release", &bytes, true);
            record.free.push(bytes);
            record.live -= 1;
        });
        Ok(())
    }

    fn create_stream(&self, _: &StreamOptions) -> Result<Stream> {
        let number = self.lab.record(|record| {
            record.streams.push(Clock::default());
            record.streams.len() - 1
        });
        Ok(Stream { lab: self.lab.clone(), number })
    }

    fn create_event(&self, _: EventOptions) -> Result<Event> {
        Ok(Event { lab: self.lab.clone(), clock: Mutex::default() })
    }

    fn compile(&self, _: &KernelSource, _: &CompileOptions) -> Result<Nothing> {
        lacks("kernels")
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

    unsafe fn copy(&self, _: &CopyRegion) -> Result<()> {
        lacks("copies")
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

    unsafe fn launch(&self, _: &Nothing, _: &LaunchConfig, _: &KernelArguments) -> Result<()> {
        lacks("kernels")
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
    fn kernel(&self, _: &str) -> Result<Nothing> {
        lacks("kernels")
    }
}
