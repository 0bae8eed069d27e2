//! A process of several that use one device: threads send numbers and look whether these come back, while page-locked
//! memory is dropped and flushed with copies under way.

use crate::fixture::{Lab, Numbers};
use gpumem_cuda::Cuda;
use gpumem_runtime::{Device, DeviceArray, Stream};
use ndarray::{Array1, Ix1};
use std::{
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Processes at the same time.
pub(crate) const PROCESSES: usize = 4;
const THREADS: u32 = 25;
const LONGEST: usize = 40_000;
const LENGTH: Duration = Duration::from_secs(5);

struct Worker<'a> {
    device: &'a Device<Cuda>,
    stream: Stream<Cuda>,
    numbers: Numbers,
    have: Vec<(DeviceArray<u32, Ix1, Cuda>, u32)>,
}

impl Worker<'_> {
    fn send(&mut self, value: u32) {
        let Self { device, stream, numbers, have } = self;
        let len = 1 + numbers.below(LONGEST);
        let array = match numbers.below(4) {
            0 => device.to_device(&Array1::from_elem(len, value)).unwrap(),
            1 => stream.to_device(&Array1::from_elem(len, value)).unwrap(),
            // Dropped while the copy reads it.
            _ => {
                let mut pinned = device.pinned_array::<u32, _>(len).unwrap();
                pinned.view_mut().unwrap().fill(value);
                let mut array = stream.device_array::<u32, _>(len).unwrap();
                stream.copy_to_device(&mut array, &pinned).unwrap();
                array
            }
        };
        have.push((array, value));
    }

    /// How many arrays hold something else than was sent.
    fn wrong(&mut self) -> u32 {
        let is_wrong = |(array, value): &(DeviceArray<u32, Ix1, Cuda>, u32)| {
            array.copy_to_host().unwrap().iter().any(|found| found != value)
        };
        self.have.drain(..).filter(is_wrong).count() as u32
    }
}

pub(crate) fn part(lab: &Lab) {
    let device = Device::<Cuda>::from_raw(lab.device.clone());
    let (wrong, sent) = (AtomicU32::new(0), AtomicU32::new(0));
    let end = Instant::now() + LENGTH;
    thread::scope(|threads| {
        for number in 0..THREADS {
            let (device, wrong, sent) = (&device, &wrong, &sent);
            threads.spawn(move || {
                let (stream, numbers) = (device.stream().unwrap(), Numbers(u64::from(number) + 1));
                let mut worker = Worker { device, stream, numbers, have: Vec::new() };
                while Instant::now() < end {
                    worker.send(number << 24 | sent.fetch_add(1, Ordering::Relaxed) & 0xFF_FFFF);
                    if worker.numbers.below(4) == 0 {
                        wrong.fetch_add(worker.wrong(), Ordering::Relaxed);
                    }
                    if worker.numbers.below(20) == 0 {
                        device.flush().unwrap();
                    }
                }
                wrong.fetch_add(worker.wrong(), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(device.take_errors(), []);
    let (wrong, sent) = (wrong.into_inner(), sent.into_inner());
    assert_eq!(wrong, 0, "of {sent} arrays");
}
