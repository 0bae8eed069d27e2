//! Random programs with failing kernels, against a model that runs one operation after the other; and transfers that fail
//! half-way.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;
#[path = "poison/told.rs"]
mod told;
#[path = "poison/torn.rs"]
mod torn;

use common::{direct_double, double, host, packing_double};
use gpumem_core::{Backend, Error, ErrorKind};
use gpumem_host::HostOptions;
use gpumem_kernel::{Kernel, KernelDef, Slice, SliceMut, WorkItemIds, config_for_items};
use gpumem_runtime::{Device, DeviceArray, Event, Stream, TransferOptions, memory::Trim};
use host_double::Trouble;
use ndarray::{Array1, Ix1, s};
use std::{
    ops::{ControlFlow, Range},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

const ARRAYS: usize = 4;
const LEN: usize = 16;
const STREAMS: usize = 3;
const STEPS: usize = 60;

type One = (SliceMut<u32>,);
type Two = (Slice<u32>, SliceMut<u32>);

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn range(&mut self) -> Range<usize> {
        let start = self.below(LEN);
        start..start + 1 + self.below(LEN - start)
    }
}

/// A program and its expected results.
struct Program<B: Backend> {
    random: Random,
    device: Device<B>,
    bad: Kernel<One, B>,
    add: Kernel<Two, B>,
    arrays: Vec<DeviceArray<u32, Ix1, B>>,
    /// Streams, and whether each has failed since it was last waited for.
    streams: Vec<(Stream<B>, bool)>,
    /// Events, and whether work before them had failed that no wait for their stream had told.
    events: Vec<(Event<B>, bool)>,
    /// The elements; `None` for those that failed work was to write.
    model: Vec<Vec<Option<u32>>>,
    next: u32,
}

impl<B: Backend> Program<B> {
    fn new(device: Device<B>, seed: u64) -> Self {
        // SAFETY: there is no source.
        let (bad, add) = unsafe {
            (
                KernelDef::<One>::new("bad").host_loop(|ids: &WorkItemIds<'_>, (y,): &One| {
                    y.set(ids.global_id(0), 0xbad);
                    if ids.global_id(0) + 1 == y.len() {
                        y.get(1 << 30);
                    }
                }),
                KernelDef::<Two>::new("add").host_loop(|ids: &WorkItemIds<'_>, (x, y): &Two| {
                    let at = ids.global_id(0);
                    y.set(at, y.get(at).wrapping_mul(3).wrapping_add(x.get(at)));
                }),
            )
        };
        let (bad, add) = (bad.load(&device).unwrap(), add.load(&device).unwrap());
        let arrays = (0..ARRAYS).map(|_| device.to_device(&[1u32; LEN]).unwrap()).collect();
        let streams = (0..STREAMS).map(|_| (device.stream().unwrap(), false)).collect();
        let model = vec![vec![Some(1); LEN]; ARRAYS];
        let events = Vec::new();
        Self { random: Random(seed), device, bad, add, arrays, streams, events, model, next: 100 }
    }

    /// The elements are there, or the error is that of the kernel.
    #[track_caller]
    fn check_error(error: &Error) {
        let text = error.to_string();
        assert!(text.contains("kernel \"bad\""), "{text}");
    }

    /// Returns the outcome of an operation that uses `reads` and writes `new` to some elements.
    fn done(
        &mut self,
        (stream, result): (usize, gpumem_core::Result<()>),
        is_whole: bool,
        (to, range): (usize, Range<usize>),
        new: impl Fn(usize, &[Vec<Option<u32>>]) -> Option<u32>,
    ) {
        match result {
            // It was known already, and nothing has been enqueued.
            Err(error) if !is_whole => Self::check_error(&error),
            Err(error) => panic!("{error}"),
            Ok(()) if is_whole => {
                let values: Vec<_> = range.clone().map(|at| new(at, &self.model)).collect();
                range.zip(values).for_each(|(at, value)| self.model[to][at] = value);
            }
            Ok(()) => {
                range.for_each(|at| self.model[to][at] = None);
                self.streams[stream].1 = true;
            }
        }
    }

    fn step(&mut self) {
        let (from, to) = (self.random.below(ARRAYS), self.random.below(ARRAYS));
        let range = self.random.range();
        let at = self.random.below(STREAMS);
        match self.random.below(12) {
            0 | 1 => {
                self.next += 1;
                let value = self.next;
                let mut part = self.arrays[to].slice_mut(s![range.clone()]).unwrap();
                let result = self.streams[at].0.fill(&mut part, value);
                self.done((at, result), true, (to, range), |_, _| Some(value));
            }
            2 | 3 if from != to => {
                let start = self.random.below(LEN - range.len() + 1);
                let target = start..start + range.len();
                let is_whole = self.model[from][range.clone()].iter().all(Option::is_some);
                let [source, target_array] = self.arrays.get_disjoint_mut([from, to]).unwrap();
                let source = source.slice(s![range.clone()]).unwrap();
                let mut part = target_array.slice_mut(s![target.clone()]).unwrap();
                let result = self.streams[at].0.copy_to_device(&mut part, &source);
                let first = range.start;
                self.done((at, result), is_whole, (to, target), |at, model| model[from][at - start + first]);
            }
            4 | 5 if from != to => {
                let whole = |array: &[Option<u32>]| array[range.clone()].iter().all(Option::is_some);
                let is_whole = whole(&self.model[from]) && whole(&self.model[to]);
                let [source, target] = self.arrays.get_disjoint_mut([from, to]).unwrap();
                let source = source.slice(s![range.clone()]).unwrap();
                let mut part = target.slice_mut(s![range.clone()]).unwrap();
                let dims = config_for_items([range.len(), 1, 1], [range.len() as u32, 1, 1]);
                let result = self.add.launch(&self.streams[at].0, &dims, (&source, &mut part));
                self.done((at, result), is_whole, (to, range), |at, model| {
                    Some(model[to][at]?.wrapping_mul(3).wrapping_add(model[from][at]?))
                });
            }
            6 => {
                let mut part = self.arrays[to].slice_mut(s![range.clone()]).unwrap();
                let dims = config_for_items([range.len(), 1, 1], [range.len() as u32, 1, 1]);
                let result = self.bad.launch(&self.streams[at].0, &dims, (&mut part,));
                // It fails in any case.
                self.done((at, result), false, (to, range), |_, _| None);
            }
            7 => {
                // The old one may be in use.
                self.next += 1;
                self.arrays[to] = self.device.to_device(&[self.next; LEN]).unwrap();
                self.model[to] = vec![Some(self.next); LEN];
            }
            8 => {
                let (stream, failed) = &mut self.streams[at];
                Self::is_told(stream.synchronize(), std::mem::take(failed));
            }
            9 => {
                let (stream, failed) = &self.streams[at];
                self.events.push((stream.record_event().unwrap(), *failed));
            }
            10 => self.ask(),
            _ => self.read(to, range),
        }
    }

    #[track_caller]
    fn is_told(result: gpumem_core::Result<()>, failed: bool) {
        match result {
            Err(error) if failed => Self::check_error(&error),
            result => assert!(result.is_ok() && !failed, "{result:?} where failed is {failed}"),
        }
    }

    /// Asks an event how its work has ended. It says the same each time.
    fn ask(&mut self) {
        if self.events.is_empty() {
            return;
        }
        let at = self.random.below(self.events.len());
        let (event, failed) = &self.events[at];
        let is_query = self.random.below(2) == 0;
        let ended = match is_query {
            true => loop {
                match event.query() {
                    Ok(false) => std::thread::yield_now(),
                    Ok(true) => break Ok(()),
                    Err(error) => break Err(error),
                }
            },
            false => event.clone().synchronize(),
        };
        Self::is_told(ended, *failed);
    }

    fn read(&mut self, from: usize, range: Range<usize>) {
        let expected: Option<Vec<u32>> = self.model[from][range.clone()].iter().copied().collect();
        let is_there = expected.is_some();
        match (self.try_to_read(from, range, is_there), expected) {
            (Ok(found), Some(expected)) => assert_eq!(found, expected),
            (Err(error), None) => Self::check_error(&error),
            (found, expected) => panic!("{found:?} where {expected:?} is expected"),
        }
    }

    fn try_to_read(
        &mut self,
        from: usize,
        range: Range<usize>,
        is_there: bool,
    ) -> gpumem_core::Result<Vec<u32>> {
        let part = self.arrays[from].slice(s![range]).unwrap();
        // One that may have failed, or a new one, which may fail.
        let reader = match is_there {
            true => self.streams[self.random.below(STREAMS)].0.clone(),
            false => self.device.stream().unwrap(),
        };
        match self.random.below(3) {
            0 => reader.copy_to_host(&part).and_then(|pinned| pinned.view().map(|view| view.to_vec())),
            1 => {
                let mut elements = Array1::from_elem(part.len(), 0xdead);
                let landed = reader.scope(|scope| scope.copy_to_host(&part, &mut elements));
                let landed = landed.and_then(|inner| inner);
                if landed.is_err() {
                    assert!(elements.iter().all(|element| *element == 0xdead), "{elements}");
                }
                landed.map(|()| elements.to_vec())
            }
            _ => part.copy_to_host().map(|elements| elements.to_vec()),
        }
    }

    fn run(mut self) {
        for _ in 0..STEPS {
            self.step();
        }
        for (stream, failed) in &mut self.streams {
            if self.random.below(2) == 0 {
                Self::is_told(stream.synchronize(), std::mem::take(failed));
            }
        }
        (0..2 * self.events.len()).for_each(|_| self.ask());
        for from in 0..ARRAYS {
            for at in 0..LEN {
                self.read(from, at..at + 1);
            }
        }
        // Reads have failed on streams that are gone, and on the default stream.
        let told = self.device.synchronize();
        assert!(told.is_err() || self.streams.iter().all(|(_, failed)| !failed));
        self.device.synchronize().unwrap();
    }
}

fn seeds(few: u64) -> Range<u64> {
    0..std::env::var("GPUMEM_SEEDS").map_or(few, |text| text.parse().unwrap())
}

#[test]
fn programs_with_failures_agree_with_the_model() {
    for seed in seeds(40) {
        let options = || HostOptions::new().memory(64 << 20);
        println!("seed {seed}");
        Program::new(host(options().adversarial(seed)).0, seed).run();
        Program::new(host(options()).0, seed).run();
        Program::new(double(options().adversarial(seed)).0, seed).run();
        Program::new(direct_double(options().adversarial(seed)).0, seed).run();
        Program::new(packing_double(options().adversarial(seed)).0, seed).run();
    }
}

#[test]
fn a_transfer_that_fails_half_way_leaves_nothing_that_can_be_read() {
    // No pattern of the driver's: a first part goes up, and is doubled on the device.
    const VALUE: u64 = 0x0123_4567_89ab_cdef;
    const MANY: usize = 100_000;
    for make in [double, direct_double] {
        let (mut before, mut torn) = (0, 0);
        for number in 0..40 {
            let (device, raw) = make(HostOptions::new().adversarial(3).memory(64 << 20));
            let mut array = device.to_device(&Array1::from_elem(MANY, 1u64)).unwrap();
            device.synchronize().unwrap();
            raw.script().begin(Some((number, Trouble::Refuse)));
            let result = array.fill(VALUE);
            raw.script().begin(None);
            let read = array.copy_to_host();
            match (result, read) {
                (Ok(()), read) => assert!(read.unwrap().iter().all(|element| *element == VALUE)),
                // Nothing had been enqueued, or all of it, and it was the wait that was refused.
                (Err(_), Ok(read)) => {
                    let whole = |value| read.iter().all(|element| *element == value);
                    assert!(whole(1) || whole(VALUE), "call {number}");
                    before += 1;
                }
                (Err(_), Err(error)) => {
                    let ErrorKind::Poisoned { failure, .. } = error.kind() else { panic!("{error}") };
                    assert_eq!(failure.work, "fill", "{error}");
                    assert!(array.get(MANY - 1).unwrap_err().is_poisoned());
                    torn += 1;
                }
            }
            array.fill(3).unwrap();
            assert!(array.copy_to_host().unwrap().iter().all(|element| *element == 3));
        }
        assert!(before > 0 && torn > 0, "{before} before, {torn} torn");
    }
}

/// No wait was made for them, and there are more than are kept.
#[test]
fn the_failures_of_streams_that_are_gone_are_counted() {
    let (device, _) = host(HostOptions::new().memory(64 << 20));
    // SAFETY: there is no source.
    let bad = unsafe { KernelDef::<One>::new("bad") }
        .host_loop(|_: &WorkItemIds<'_>, (y,): &One| {
            y.get(1 << 30);
        })
        .load(&device)
        .unwrap();
    for _ in 0..40 {
        let (stream, mut array) = (device.stream().unwrap(), device.device_array::<u32, _>(1).unwrap());
        bad.launch(&stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut array,)).unwrap();
        while !stream.query().unwrap_or(true) {
            std::thread::yield_now();
        }
        drop((array, stream));
        // The memory does not keep the stream any more.
        device.trim(Trim::ALL).unwrap();
    }
    let error = device.synchronize().unwrap_err().to_string();
    assert!(error.ends_with("; and 36 more failures"), "{error}");
    device.synchronize().unwrap();
}

/// A panic of the caller's `progress` leaves an upload half done, as an error does.
fn unwound<B: Backend>(device: &Device<B>, bytes: usize) {
    device.set_transfer_options(TransferOptions::new().threads(2).block_bytes(16 << 10));
    let new = vec![9_u8; bytes];
    for call in [1, 2] {
        let mut array = device.to_device(&vec![1_u8; new.len()]).unwrap();
        let (mut calls, mut is_early) = (0, false);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let progress = |progress: gpumem_runtime::Progress| {
                calls += 1;
                if calls == call {
                    is_early = progress.done < progress.total;
                    resume_unwind(Box::new("on purpose"));
                }
                ControlFlow::Continue(())
            };
            array.copy_to_device_with_progress(&new, progress).map(drop)
        }));
        assert!(ended.is_err());
        match array.copy_to_host() {
            Err(error) => assert!(error.is_poisoned() && is_early, "{error}"),
            Ok(whole) => assert!(!is_early && whole.to_vec() == new),
        }
        array.copy_to_device(&new).unwrap();
        assert!(array.copy_to_host().unwrap().to_vec() == new);
    }
}

#[test]
fn a_panic_in_the_middle_of_an_upload_tears_the_array() {
    // The host reports its progress once in 16 MiB.
    unwound(&host(HostOptions::new()).0, 33 << 20);
    unwound(&double(HostOptions::new()).0, 1 << 20);
}
