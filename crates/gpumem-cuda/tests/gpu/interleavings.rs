//! Eight threads, sixteen streams, random copies and drops: right contents, no error, nothing left.
//!
//! `GPUMEM_INTERLEAVE_SECONDS` says for how long; 5 by default.

use crate::{
    Case, Skip,
    fixture::{Lab, Numbers},
};
use gpumem_cuda::Cuda;
use gpumem_runtime::{Device, DeviceArray, PinnedArray, Stream, memory::Trim};
use ndarray::{Array1, Ix1, s};
use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

pub(crate) const CASES: &[Case] = &[("interleavings_of_threads_and_streams", interleavings)];

const THREADS: u64 = 8;
const STREAMS: usize = 16;
/// Arrays that go from thread to thread.
const SHARED: usize = 32;

/// An array, and its contents after all enqueued work.
type Known = (DeviceArray<u32, Ix1, Cuda>, Array1<u32>);
/// A download, and the contents that must arrive.
type Arriving = (PinnedArray<u32, Ix1, Cuda>, Array1<u32>);

fn interleavings(_: &Lab) -> Result<(), Skip> {
    let seconds = std::env::var("GPUMEM_INTERLEAVE_SECONDS").ok().and_then(|text| text.parse().ok());
    let device: Device<Cuda> = Device::open("cuda:0").unwrap();
    let streams: Vec<_> = (0..STREAMS).map(|_| device.stream().unwrap()).collect();
    device.trim(Trim::ALL).unwrap();
    let (whole, mut operations) = (Duration::from_secs(seconds.unwrap_or(5)), 0);
    // A driver keeps memory of its own for streams, of which it has most when most were alive at once: the first
    // quarter of the time shows that, the next that no more is lost. A leak of this library would show after each.
    let mut free = Vec::new();
    for _ in 0..4 {
        operations += round(&device, &streams, whole / 4);
        empty(&device);
        free.push(device.memory_info().unwrap().free);
    }
    println!("    {operations} operations on {THREADS} threads and {STREAMS} streams; bytes free: {free:?}");
    assert_eq!(device.take_errors(), []);
    assert!(free.windows(2).any(|two| two[0] == two[1]), "bytes of free memory: {free:?}");
    Ok(())
}

/// Gives everything back to the driver.
fn empty(device: &Device<Cuda>) {
    device.synchronize().unwrap();
    device.flush().unwrap();
    device.trim(Trim::ALL).unwrap();
    assert_eq!(device.pending_frees(), (0, 0));
    let counters = device.counters();
    assert_eq!(counters.allocations - counters.releases, 0, "blocks of the driver");
}

fn round(device: &Device<Cuda>, streams: &[Stream<Cuda>], length: Duration) -> u64 {
    let shared: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let end = Instant::now() + length;
    let operations = std::thread::scope(|scope| {
        let work = |thread| {
            let (streams, shared) = (&streams, &shared);
            move || Worker::new(device, streams, shared, thread).run(end)
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    for (array, expected) in shared.into_inner().unwrap() {
        assert_eq!(array.copy_to_host().unwrap(), expected);
    }
    operations
}

struct Worker<'a> {
    device: &'a Device<Cuda>,
    streams: &'a [Stream<Cuda>],
    shared: &'a Mutex<Vec<Known>>,
    random: Numbers,
    arriving: Vec<Arriving>,
}

impl<'a> Worker<'a> {
    fn new(
        device: &'a Device<Cuda>,
        streams: &'a [Stream<Cuda>],
        shared: &'a Mutex<Vec<Known>>,
        thread: u64,
    ) -> Self {
        Self { device, streams, shared, random: Numbers(thread + 1), arriving: Vec::new() }
    }

    fn stream(&mut self) -> &'a Stream<Cuda> {
        &self.streams[self.random.below(self.streams.len())]
    }

    /// A new array with contents of its own.
    fn fresh(&mut self) -> Known {
        let most = if self.random.below(8) == 0 { 1 << 20 } else { 1 << 12 };
        let length = 1 + self.random.below(most);
        let start = self.random.next() as u32;
        let numbers = Array1::from_shape_fn(length, |i| start.wrapping_add(i as u32));
        (self.stream().to_device(&numbers).unwrap(), numbers)
    }

    /// An array of one actor, which no other actor uses meanwhile.
    fn take(&mut self) -> Known {
        let place = self.random.below(SHARED);
        let mut shared = self.shared.lock().unwrap();
        if place < shared.len() {
            return shared.swap_remove(place);
        }
        drop(shared);
        self.fresh()
    }

    fn give(&mut self, known: Known) {
        let mut shared = self.shared.lock().unwrap();
        if shared.len() < SHARED {
            shared.push(known);
        }
    }

    fn run(mut self, end: Instant) -> u64 {
        let mut operations = 0;
        while Instant::now() < end {
            operations += 1;
            self.step();
            while self.arriving.len() > 4 {
                let (pinned, expected) = self.arriving.remove(0);
                assert_eq!(pinned.view().unwrap(), expected);
            }
        }
        for (pinned, expected) in self.arriving.drain(..) {
            assert_eq!(pinned.view().unwrap(), expected);
        }
        operations
    }

    fn step(&mut self) {
        let (mut array, mut numbers) = self.take();
        match self.random.below(9) {
            0 => {
                let value = self.random.next() as u32;
                self.stream().fill(&mut array, value).unwrap();
                numbers.fill(value);
            }
            1 => {
                // Every third element, backwards.
                let value = self.random.next() as u32;
                self.stream().fill(&mut array.slice_mut(s![..;-3]).unwrap(), value).unwrap();
                numbers.slice_mut(s![..;-3]).fill(value);
            }
            2 => {
                let copy = self.stream().to_device(&array).unwrap();
                self.give((copy, numbers.clone()));
            }
            3 => {
                let copy = self.stream().to_device(&array.slice(s![..;-1]).unwrap()).unwrap();
                let reversed = numbers.slice(s![..;-1]).to_owned();
                self.give((copy, reversed));
            }
            4 => {
                let other = self.take();
                let length = other.1.len().min(numbers.len());
                let source = other.0.slice(s![..length]).unwrap();
                self.stream().copy_to_device(&mut array.slice_mut(s![..length]).unwrap(), &source).unwrap();
                numbers.slice_mut(s![..length]).assign(&other.1.slice(s![..length]));
                self.give(other);
            }
            5 => {
                let pinned = self.stream().copy_to_host(&array).unwrap();
                self.arriving.push((pinned, numbers.clone()));
            }
            6 => {
                // Dropped in flight, and so is the page-locked array that is read.
                drop(self.stream().copy_to_host(&array).unwrap());
                let mut pinned = self.device.pinned_array::<u32, _>(numbers.len()).unwrap();
                pinned.view_mut().unwrap().assign(&numbers);
                self.stream().copy_to_device(&mut array, &pinned).unwrap();
            }
            7 => {
                let stream = self.device.stream().unwrap();
                stream.fill(&mut array, 1).unwrap();
                numbers.fill(1);
                // The stream is dropped with work in flight.
            }
            _ => return,
        }
        self.give((array, numbers));
    }
}
