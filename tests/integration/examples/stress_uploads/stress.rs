//! Threads that send numbers to a device on every way, and look whether these come back.

use gpumem::{
    Device, DeviceArray, Stream,
    ndarray::{Array1, ArrayView1, Ix1},
    s,
};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// Ways of sending, from 1.
pub(crate) const MODES: u32 = 10;
/// Wrong arrays that are described.
const TOLD: usize = 6;
/// Elements of an array, at most; the last mode has longer ones.
const LONGEST: u64 = 5000;
const LONG: usize = 40_000;

/// The work to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) mode: u32,
    pub(crate) threads: u64,
    pub(crate) rounds: u64,
    /// Each thread calls `flush` after one round in twenty.
    pub(crate) flushes: bool,
    /// Each thread waits for the device after one round in ten.
    pub(crate) synchronizes: bool,
}

/// The findings.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Arrays that were compared.
    pub(crate) arrays: u64,
    pub(crate) wrong: u64,
    /// A line for each of the first wrong ones.
    pub(crate) first: Vec<String>,
}

/// Has all threads send and compare.
pub(crate) fn run(device: &Device, plan: &Plan) -> Outcome {
    assert!((1..=MODES).contains(&plan.mode), "modes are 1 to {MODES}");
    let found = Found::default();
    thread::scope(|threads| {
        for thread in 0..plan.threads {
            let found = &found;
            threads.spawn(move || {
                let stream = device.stream().unwrap();
                let mut numbers = Numbers(thread.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
                for round in 0..plan.rounds {
                    let round = Round { device, stream: &stream, found, thread, round };
                    round.run(plan.mode, 1 + numbers.below(LONGEST) as usize);
                    if plan.synchronizes && numbers.below(10) == 0 {
                        device.synchronize().unwrap();
                    }
                    if plan.flushes && numbers.below(20) == 0 {
                        device.flush().unwrap();
                    }
                }
            });
        }
    });
    Outcome {
        arrays: found.arrays.into_inner(),
        wrong: found.wrong.into_inner(),
        first: found.first.into_inner().unwrap(),
    }
}

#[derive(Default)]
struct Found {
    arrays: AtomicU64,
    wrong: AtomicU64,
    first: Mutex<Vec<String>>,
}

/// A number that differs from call to call; the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// One round of one thread. Each has different numbers, so that a wrong value tells which thread wrote it.
struct Round<'a> {
    device: &'a Device,
    stream: &'a Stream,
    found: &'a Found,
    thread: u64,
    round: u64,
}

impl Round<'_> {
    fn value(&self) -> i64 {
        (self.thread * 1_000_000 + 10 * self.round) as i64
    }

    fn is(&self, what: &str, array: ArrayView1<'_, i64>, value: i64) {
        self.found.arrays.fetch_add(1, Ordering::Relaxed);
        let Some((at, got)) = array.iter().enumerate().find(|(_, got)| **got != value) else { return };
        self.found.wrong.fetch_add(1, Ordering::Relaxed);
        let mut first = self.found.first.lock().unwrap();
        if first.len() < TOLD {
            let Self { thread, round, .. } = self;
            let len = array.len();
            first.push(format!("{what}: thread {thread}, round {round}: {got} at {at} of {len} for {value}"));
        }
    }

    /// Downloads at once, on the default stream.
    fn check(&self, what: &str, array: &DeviceArray<i64, Ix1>) {
        self.is(what, array.copy_to_host().unwrap().view(), self.value());
    }

    /// Downloads in the order of the stream.
    fn check_on_stream(&self, what: &str, array: &DeviceArray<i64, Ix1>) {
        self.is(what, self.stream.copy_to_host(array).unwrap().view().unwrap(), self.value());
    }

    fn check_reversed(&self, what: &str, array: &DeviceArray<i64, Ix1>) {
        let reversed = self.stream.copy_to_host(&array.slice(s![..;-1]).unwrap()).unwrap();
        self.is(what, reversed.view().unwrap(), self.value());
    }

    fn on_stream(&self, len: usize) -> DeviceArray<i64, Ix1> {
        self.stream.device_array(len).unwrap()
    }

    fn copied(&self, source: &DeviceArray<i64, Ix1>) -> DeviceArray<i64, Ix1> {
        let mut copy = self.on_stream(source.len());
        self.stream.copy_to_device(&mut copy, source).unwrap();
        copy
    }

    /// Uploads a page-locked array, which is dropped at once.
    fn sent_from_pinned(&self, len: usize, value: i64) -> DeviceArray<i64, Ix1> {
        let mut pinned = self.device.pinned_array::<i64, _>(len).unwrap();
        pinned.view_mut().unwrap().fill(value);
        let mut array = self.on_stream(len);
        self.stream.copy_to_device(&mut array, &pinned).unwrap();
        array
    }

    fn run(&self, mode: u32, len: usize) {
        let sent = || self.device.to_device(&Array1::from_elem(len, self.value())).unwrap();
        match mode {
            1 => self.check("sent", &sent()),
            2 => self.check_on_stream("sent", &sent()),
            3 => {
                let array = self.stream.to_device(&Array1::from_elem(len, self.value())).unwrap();
                self.check_on_stream("copied", &self.copied(&array));
            }
            4 => {
                let array = sent();
                self.check_on_stream("copied", &self.copied(&array));
                self.check("sent, afterwards", &array);
            }
            5 => {
                let array = sent();
                let copy = self.copied(&array);
                self.check_reversed("copied, reversed", &copy);
                self.check("sent, afterwards", &array);
                self.check("copied, afterwards", &copy);
            }
            6 => {
                let array = sent();
                let copy = self.copied(&array);
                drop(array);
                self.check_on_stream("copied, source dropped", &copy);
                self.check("copied, afterwards", &copy);
            }
            7 | 8 => {
                let mut array = self.on_stream(len);
                self.stream.fill(&mut array, self.value()).unwrap();
                match mode {
                    7 => self.check_on_stream("filled", &array),
                    _ => self.check_reversed("filled, reversed", &array),
                }
                self.check("filled, afterwards", &array);
            }
            9 => self.check_on_stream("from pinned", &self.sent_from_pinned(len, self.value())),
            _ => {
                let dropped: Vec<_> =
                    (0..4).map(|more| (self.sent_from_pinned(LONG, self.value() + more), more)).collect();
                let array = self.device.to_device(&Array1::from_elem(LONG, self.value())).unwrap();
                self.check("sent beside", &array);
                for (array, more) in &dropped {
                    let what = "from dropped pinned";
                    self.is(what, array.copy_to_host().unwrap().view(), self.value() + more);
                }
            }
        }
    }
}
