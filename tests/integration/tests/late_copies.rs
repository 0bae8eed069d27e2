//! Copies that read their source as late as is legal, while page-locked memory is freed and reused in every possible
//! way: the data must arrive intact.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::is_clean;
use gpumem_core::{Attach, MappedOptions, MemoryKind, Result};
use gpumem_host::HostOptions;
use gpumem_runtime::{
    Device, DeviceArray, Stream, TransferOptions,
    memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, Pool, Trim},
};
use host_double::{Double, DoubleDevice, DoubleOptions};
use ndarray::{Array1, Ix1, s};
use std::{
    fmt,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// 64 KiB of `u64`: a length that pools and staging round to the same.
const LEN: usize = 8 << 10;
/// Bytes of device memory.
const MEMORY: usize = 64 << 20;

fn open(seed: u64, page_locked: u64) -> (Device<Double>, DoubleDevice) {
    let host = HostOptions::new().adversarial(seed).memory(MEMORY);
    let raw = Double::open_with(&DoubleOptions { host, page_locked, ..DoubleOptions::default() }).unwrap();
    let device = Device::from_raw(raw.clone());
    device.set_transfer_options(
        TransferOptions::new().threads(2).block_bytes(LEN * 8).single_block_bytes(LEN * 8),
    );
    (device, raw)
}

/// As [`open`], with pools of host memory that keep no free memory.
fn open_tight(seed: u64) -> (Device<Double>, DoubleDevice) {
    let (device, raw) = open(seed, u64::MAX);
    for kind in [
        MemoryKind::Pinned,
        MemoryKind::Mapped(MappedOptions::default()),
        MemoryKind::Managed(Attach::Global),
    ] {
        let options = device.pool_options(kind).chunks(LEN, LEN);
        device.set_memory_resource(kind, Arc::new(Pool::new(device.driver_memory(), options))).unwrap();
    }
    (device, raw)
}

/// Schedules in which nothing runs before a thread waits, and as many others.
fn seeds(each: usize) -> Vec<u64> {
    let is_late = |seed: &u64| {
        let (device, raw) = open(*seed, u64::MAX);
        let stream = device.stream().unwrap();
        for _ in 0..4 {
            drop(stream.to_device(&Array1::<u64>::zeros(LEN)).unwrap());
        }
        raw.host().schedule_trace().is_empty()
    };
    let (late, others): (Vec<u64>, Vec<u64>) = (0..40 * each as u64).partition(is_late);
    assert!(late.len() >= each && others.len() >= each);
    late.into_iter().take(each).chain(others.into_iter().take(each)).collect()
}

/// How elements get to the device.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// In one block, waiting.
    SingleBlock,
    /// In one block, in stream order.
    Staged,
    /// Through the pipeline, several blocks.
    Pipeline,
    /// One run through the pipeline, in one block that is used as a ring.
    LongRun,
    /// A value whose halves differ, which is sent and then doubled.
    Fill,
    /// Out of an array of the library, which is dropped at once.
    Pinned,
    Mapped,
    Managed,
}

const WAYS: [Way; 8] = [
    Way::SingleBlock,
    Way::Staged,
    Way::Pipeline,
    Way::LongRun,
    Way::Fill,
    Way::Pinned,
    Way::Mapped,
    Way::Managed,
];

/// The operations that free memory between two uploads.
#[derive(Debug, Clone, Copy)]
enum Event {
    Nothing,
    Flush,
    Trim,
    TrimAll,
    /// A request that no memory serves.
    Shortage,
    /// Arrays are dropped, and a stream with them.
    Drops,
}

const EVENTS: [Event; 6] =
    [Event::Nothing, Event::Flush, Event::Trim, Event::TrimAll, Event::Shortage, Event::Drops];

/// Arrays on one device, with the number that all of their elements must have.
struct Arrays {
    device: Device<Double>,
    stream: Stream<Double>,
    have: Vec<(DeviceArray<u64, Ix1, Double>, u64)>,
    next: u64,
}

impl Arrays {
    fn new(device: &Device<Double>, first: u64) -> Self {
        let stream = device.stream().unwrap();
        Self { device: device.clone(), stream, have: Vec::new(), next: first }
    }

    /// Sends a new number on that way.
    fn send(&mut self, way: Way) -> Result<()> {
        let Self { device, stream, .. } = self;
        // The halves differ.
        self.next += 1 + (3 << 32);
        let value = self.next;
        let packed = |len| Array1::from_elem(len, value);
        let array = match way {
            Way::SingleBlock => device.to_device(&packed(LEN))?,
            Way::Staged => stream.to_device(&packed(LEN))?,
            Way::Pipeline => stream.to_device(&packed(6 * LEN).slice(s![..;-2]))?,
            Way::LongRun => {
                let before = device.transfer_options();
                device.set_transfer_options(before.parallel_bytes(1).single_block_bytes(0));
                let array = stream.to_device(&packed(16 * LEN));
                device.set_transfer_options(before);
                array?
            }
            Way::Fill => stream_array(stream, |array| stream.fill(array, value))?,
            Way::Pinned => {
                let mut source = device.pinned_array::<u64, _>(LEN)?;
                source.view_mut()?.fill(value);
                stream_array(stream, |array| stream.copy_to_device(array, &source))?
            }
            Way::Mapped => {
                let mut source = device.mapped_array::<u64, _>(LEN, MappedOptions::default())?;
                source.view_mut()?.fill(value);
                stream_array(stream, |array| stream.copy_to_device(array, &source))?
            }
            Way::Managed => {
                let mut source = device.managed_array::<u64, _>(LEN, Attach::Global)?;
                source.view_mut()?.fill(value);
                stream_array(stream, |array| stream.copy_to_device(array, &source))?
            }
        };
        self.have.push((array, value));
        Ok(())
    }

    fn meet(&mut self, event: Event) {
        match event {
            Event::Nothing => {}
            Event::Flush => self.device.flush().unwrap(),
            Event::Trim => drop(self.device.trim(Trim::UNUSED).unwrap()),
            Event::TrimAll => drop(self.device.trim(Trim::ALL).unwrap()),
            Event::Shortage => {
                let found = self.device.uninit_array::<u8, _>(2 * MEMORY);
                assert!(found.is_err_and(|error| error.is_out_of_memory()));
            }
            Event::Drops => {
                self.have.drain(..self.have.len() / 2);
                self.stream = self.device.stream().unwrap();
            }
        }
    }

    /// Returns how many arrays differ from the data that was sent.
    fn wrong(&self) -> usize {
        let is_wrong = |(array, value): &&(DeviceArray<u64, Ix1, Double>, u64)| {
            let host = array.copy_to_host().unwrap();
            host.as_slice() != Some(&vec![*value; host.len()])
        };
        self.have.iter().filter(is_wrong).count()
    }
}

fn stream_array<R>(
    stream: &Stream<Double>,
    write: impl FnOnce(&mut DeviceArray<u64, Ix1, Double>) -> Result<R>,
) -> Result<DeviceArray<u64, Ix1, Double>> {
    let mut array = stream.device_array::<u64, _>(LEN)?;
    write(&mut array)?;
    Ok(array)
}

#[test]
fn every_way_beside_every_other() {
    let mut wrong = Vec::new();
    for seed in seeds(2) {
        for first in WAYS {
            for second in WAYS {
                for event in EVENTS {
                    let (device, raw) = open_tight(seed);
                    let mut arrays = Arrays::new(&device, 0);
                    arrays.send(first).unwrap();
                    arrays.send(first).unwrap();
                    arrays.meet(event);
                    arrays.send(second).unwrap();
                    if arrays.wrong() > 0 {
                        wrong.push((seed, first, event, second));
                    }
                    drop(arrays);
                    is_clean(&device, raw.host());
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} programs, such as {:?}", wrong.len(), &wrong[..wrong.len().min(8)]);
}

/// A number that differs from call to call; the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        ((self.0 >> 33) % end as u64) as usize
    }
}

/// Any order of anything, with as much page-locked memory as one wants, and with hardly any.
#[test]
fn random_programs() {
    let mut wrong = Vec::new();
    for (seed, page_locked) in (0..60).map(|seed| (seed, [u64::MAX, 1 << 20, 640 << 10][seed as usize % 3])) {
        let (device, raw) = match seed % 4 {
            0 => open_tight(seed),
            _ => open(seed, page_locked),
        };
        let mut numbers = Numbers(seed);
        let mut arrays = Arrays::new(&device, 0);
        let mut sent = 0;
        for _ in 0..40 {
            match arrays.send(WAYS[numbers.below(WAYS.len())]) {
                Ok(()) => sent += 1,
                Err(error) => assert!(error.is_out_of_memory() && page_locked < u64::MAX, "{error}"),
            }
            if numbers.below(4) == 0 {
                arrays.meet(EVENTS[numbers.below(EVENTS.len())]);
            }
        }
        assert!(sent > 20, "seed {seed}: {sent} of 40 were sent");
        if arrays.wrong() > 0 {
            wrong.push((seed, arrays.wrong()));
        }
        drop(arrays);
        is_clean(&device, raw.host());
    }
    assert!(wrong.is_empty(), "seeds and wrong arrays: {wrong:?}");
}

/// No memory is freed inside `defer_cleanup`: a call that runs out of memory there fails, or waits for its own blocks.
#[test]
fn without_cleanup() {
    for seed in 0..6 {
        for second in WAYS {
            let (device, raw) = open(seed, 320 << 10);
            let mut arrays = Arrays::new(&device, 0);
            let deferred = device.defer_cleanup();
            for first in [Way::Pinned, Way::Staged, Way::Pinned, Way::Staged, second, second] {
                if let Err(error) = arrays.send(first) {
                    assert!(error.is_out_of_memory(), "{error}");
                }
            }
            drop(deferred);
            assert_eq!(arrays.wrong(), 0, "seed {seed}, {second:?}");
            drop(arrays);
            is_clean(&device, raw.host());
        }
    }
}

/// Page-locked memory that lets another thread run at each call.
struct Interrupted {
    inner: Arc<dyn MemoryResource<Double>>,
    calls: AtomicUsize,
    /// The call at which the other thread runs.
    at: AtomicUsize,
    is_busy: AtomicBool,
    other: Mutex<Box<dyn FnMut() + Send>>,
}

impl Interrupted {
    fn interrupt(&self) {
        if self.is_busy.load(Ordering::Relaxed) {
            return;
        }
        if self.calls.fetch_add(1, Ordering::Relaxed) == self.at.load(Ordering::Relaxed) {
            self.is_busy.store(true, Ordering::Relaxed);
            let mut other = self.other.lock().unwrap();
            thread::scope(|threads| threads.spawn(&mut *other).join().unwrap());
            self.is_busy.store(false, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Interrupted").field(&self.inner).finish()
    }
}

impl MemoryResource<Double> for Interrupted {
    fn name(&self) -> &'static str {
        "interrupted"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Double>) -> Result<MemoryBlock<Double>> {
        self.interrupt();
        let block = self.inner.allocate(request);
        self.interrupt();
        block
    }

    fn recycle(&self, block: MemoryBlock<Double>) -> Result<(), MemoryBlock<Double>> {
        self.interrupt();
        let taken = self.inner.recycle(block);
        self.interrupt();
        taken
    }

    fn deallocate(&self, block: MemoryBlock<Double>) -> Result<()> {
        self.inner.deallocate(block)
    }

    fn trim(&self, how: Trim, failed: &mut dyn FnMut(gpumem_core::Error)) -> usize {
        self.interrupt();
        let bytes = self.inner.trim(how, failed);
        self.interrupt();
        bytes
    }

    fn forget(&self) {
        self.inner.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        self.inner.statistics()
    }

    fn upstream(&self) -> Option<&dyn MemoryResource<Double>> {
        Some(&*self.inner)
    }
}

/// A program during which another thread sends, at one call to the pool of page-locked memory. Whether there was such a
/// call, and how many arrays are wrong.
fn interrupted((first, second): (Way, Way), event: Event, seed: u64, at: usize) -> (bool, usize) {
    let (device, raw) = open_tight(seed);
    let theirs = Arc::new(Mutex::new(Arrays::new(&device, 1 << 20)));
    let weak: Weak<Mutex<Arrays>> = Arc::downgrade(&theirs);
    let turn = move || {
        let theirs = weak.upgrade().unwrap();
        let mut theirs = theirs.lock().unwrap();
        theirs.send(second).unwrap();
        theirs.send(Way::SingleBlock).unwrap();
    };
    let resource = Arc::new(Interrupted {
        inner: device.memory_resource(MemoryKind::Pinned).unwrap(),
        calls: AtomicUsize::new(0),
        at: AtomicUsize::new(at),
        is_busy: AtomicBool::new(false),
        other: Mutex::new(Box::new(turn)),
    });
    device.set_memory_resource(MemoryKind::Pinned, resource.clone()).unwrap();
    let mut ours = Arrays::new(&device, 0);
    for _ in 0..3 {
        ours.send(first).unwrap();
    }
    ours.meet(event);
    ours.send(Way::SingleBlock).unwrap();
    resource.at.store(usize::MAX, Ordering::Relaxed);
    let was_met = resource.calls.load(Ordering::Relaxed) > at;
    let wrong = ours.wrong() + theirs.lock().unwrap().wrong();
    drop((ours, theirs));
    is_clean(&device, raw.host());
    (was_met, wrong)
}

#[test]
fn another_thread_at_every_call_of_the_pool() {
    let (mut wrong, mut programs) = (Vec::new(), 0);
    let ways =
        [(Way::Staged, Way::Staged), (Way::SingleBlock, Way::LongRun), (Way::Pinned, Way::SingleBlock)];
    for seed in seeds(2) {
        for (ways, event) in ways.iter().flat_map(|ways| EVENTS.map(|event| (*ways, event))) {
            for at in 0.. {
                let (was_met, found) = interrupted(ways, event, seed, at);
                programs += 1;
                if found > 0 {
                    wrong.push((seed, ways, event, at));
                }
                if !was_met {
                    break;
                }
            }
        }
    }
    assert!(programs > 200, "{programs} programs");
    assert!(wrong.is_empty(), "{} of {programs}, such as {:?}", wrong.len(), &wrong[..wrong.len().min(8)]);
}

/// Threads that send, and some that flush, on a device whose copies are late.
#[test]
fn many_threads() {
    for seed in seeds(3) {
        let (device, raw) = open(seed, u64::MAX);
        let wrong = AtomicUsize::new(0);
        thread::scope(|threads| {
            for number in 0..6 {
                let (device, wrong) = (&device, &wrong);
                threads.spawn(move || {
                    let mut numbers = Numbers(seed << 8 | number);
                    let mut arrays = Arrays::new(device, number << 16);
                    for _ in 0..25 {
                        arrays.send(WAYS[numbers.below(WAYS.len())]).unwrap();
                        if numbers.below(10) == 0 {
                            device.flush().unwrap();
                        }
                        if numbers.below(3) == 0 {
                            wrong.fetch_add(arrays.wrong(), Ordering::Relaxed);
                            arrays.have.clear();
                        }
                    }
                    wrong.fetch_add(arrays.wrong(), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(wrong.into_inner(), 0, "seed {seed}");
        is_clean(&device, raw.host());
    }
}

/// Checks that the options select the ways above.
#[test]
fn options_select_the_way_they_name() {
    let (device, raw) = open(1, u64::MAX);
    let copies = |way| {
        let mut arrays = Arrays::new(&device, 0);
        let before = raw.host().counters().copies;
        arrays.send(way).unwrap();
        device.synchronize().unwrap();
        raw.host().counters().copies - before
    };
    assert_eq!(copies(Way::SingleBlock), 1);
    assert_eq!(copies(Way::Pinned), 1);
    assert!(copies(Way::Pipeline) > 1 && copies(Way::LongRun) > 1);
    assert_eq!(copies(Way::Fill), 1);
}
