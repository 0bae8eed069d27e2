//! The pool against a model of it: any sequence of requests on three streams, of an adversarial device, with alignments
//! from 16 bytes to 2 MiB. Blocks never overlap, free neighbours are joined, no byte is lost, and the numbers are
//! right.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests")]

mod observed_resource;

use gpumem_core::MemoryKind;
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device, DeviceArray, Stream,
    memory::{MemoryResource, Pool, PoolOptions, Trim},
};
use ndarray::Ix1;
use observed_resource::{Chunks, Observed};
use proptest::prelude::*;
use std::sync::Arc;

const KIB: usize = 1 << 10;
const LIMIT: usize = 1 << 20;

#[derive(Debug, Clone)]
enum Step {
    /// A stream makes zeros; stream 3 is none.
    Make {
        stream: usize,
        bytes: usize,
        align: u32,
    },
    /// Any stream writes an array.
    Fill {
        which: usize,
        stream: usize,
        value: u8,
    },
    Drop {
        which: usize,
    },
    Trim {
        keep: usize,
        wait: bool,
    },
    /// Everything that is free becomes idle, and is compared with the gaps of the model.
    Settle,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = prop_oneof![6 => 1..4 * KIB, 3 => 1..64 * KIB, 1 => 1..512 * KIB];
    // Alignments of more than a page take a piece of their own more often than not.
    let align = prop_oneof![6 => 4..12u32, 1 => 12..22u32];
    let step = prop_oneof![
        8 => (0..4usize, bytes, align).prop_map(|(stream, bytes, align)| Step::Make { stream, bytes, align }),
        4 => (any::<usize>(), 0..3usize, any::<u8>())
            .prop_map(|(which, stream, value)| Step::Fill { which, stream, value }),
        7 => any::<usize>().prop_map(|which| Step::Drop { which }),
        1 => (0..LIMIT, any::<bool>()).prop_map(|(keep, wait)| Step::Trim { keep, wait }),
        1 => Just(Step::Settle),
    ];
    prop::collection::vec(step, 1..120)
}

struct World {
    device: Device<Host>,
    streams: Vec<Stream<Host>>,
    observed: Arc<Observed>,
    arrays: Vec<(DeviceArray<u8, Ix1, Host>, u8)>,
}

impl World {
    fn new(seed: u64, granule: usize) -> (Self, gpumem_host::Device) {
        let raw = Host::open_with(&HostOptions::new().adversarial(seed).memory(64 << 20)).unwrap();
        let device = Device::from_raw(raw.clone());
        let chunks = Arc::new(Chunks::over(device.driver_memory()));
        let options = PoolOptions::device(granule).chunks(32 * KIB, 128 * KIB).max_size(LIMIT);
        let pool = Arc::new(Pool::new(chunks.clone(), options));
        let observed = Arc::new(Observed::over(pool, chunks, granule));
        device.set_memory_resource(MemoryKind::Device, observed.clone()).unwrap();
        let streams = (0..3).map(|_| device.stream().unwrap()).collect();
        (Self { device, streams, observed, arrays: Vec::new() }, raw)
    }

    fn run(&mut self, step: &Step) {
        let count = self.arrays.len();
        match *step {
            Step::Make { stream, bytes, align } => {
                self.observed.align_next(1 << align);
                let made = match self.streams.get(stream) {
                    Some(stream) => stream.device_array(bytes),
                    None => self.device.device_array(bytes),
                };
                match made {
                    Ok(array) => self.arrays.push((array, 0)),
                    Err(error) => {
                        assert!(error.is_out_of_memory(), "{error}");
                        // The ladder has joined everything, so that the gaps of the model are those of the pool.
                        self.observed.could_not_serve(bytes, 1 << align, LIMIT);
                    }
                }
            }
            Step::Fill { which, stream, value } if count > 0 => {
                let (array, now) = &mut self.arrays[which % count];
                self.streams[stream].fill(array, value).unwrap();
                *now = value;
            }
            Step::Drop { which } if count > 0 => drop(self.arrays.swap_remove(which % count)),
            Step::Trim { keep, wait } => {
                self.device.trim(Trim { keep, wait, ..Trim::UNUSED }).unwrap();
            }
            Step::Settle => {
                self.device.trim(Trim { keep: usize::MAX, ..Trim::ALL }).unwrap();
                self.observed.is_joined();
            }
            _ => {}
        }
        self.observed.counts_right();
    }

    /// Tells whether the last writes are there.
    fn is_right(&self) -> bool {
        let is_right = |(array, value): &(DeviceArray<u8, Ix1, Host>, u8)| {
            array.copy_to_host().unwrap().iter().all(|found| found == value)
        };
        self.arrays.iter().all(is_right)
    }

    /// The last writes are there; then everything is freed.
    fn end(mut self, raw: &gpumem_host::Device) {
        assert!(self.is_right());
        self.arrays.clear();
        self.run(&Step::Settle);
        assert_eq!(self.observed.statistics().blocks, 0);
        self.device.trim(Trim::ALL).unwrap();
        assert_eq!((self.observed.statistics().reserved, self.observed.chunks().bytes()), (0, 0));
        assert_eq!((self.device.take_errors(), raw.counters().live_allocations), (Vec::new(), 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_pool_agrees_with_its_model(
        seed in any::<u64>(), granule in 4..13u32, steps in steps()
    ) {
        let (mut world, raw) = World::new(seed, 1 << granule);
        steps.iter().for_each(|step| world.run(step));
        world.end(&raw);
    }
}

/// Arrays of few sizes that go from stream to stream as fast as they can.
fn hand_over(seed: u64, plant: bool) -> bool {
    let (mut world, raw) = World::new(seed, 256);
    if plant {
        world.observed.forget_uses();
    }
    let mut is_right = true;
    for round in 0..60usize {
        let (stream, bytes) = ((round + seed as usize) % 3, KIB << (round % 4));
        world.run(&Step::Make { stream, bytes, align: 8 });
        world.run(&Step::Fill { which: round, stream: round % 3, value: round as u8 });
        if round % 3 > 0 {
            world.run(&Step::Drop { which: round / 2 });
        }
        // A pending write may later reach an array that has the memory by now.
        is_right &= !plant || round % 6 < 5 || world.is_right();
    }
    is_right &= world.is_right();
    if !plant {
        world.end(&raw);
    }
    is_right
}

#[test]
fn no_schedule_finds_memory_that_is_still_written() {
    assert!((0..40).all(|seed| hand_over(seed, false)));
}

#[test]
#[cfg_attr(gpumem_asan, ignore = "the sanitizer finds the fault as well, and ends the process")]
fn reuse_without_waiting_is_found() {
    let found = (0..20).filter(|seed| !hand_over(*seed, true)).count();
    assert!(found > 3, "{found} of 20 schedules find the planted fault");
}

/// Alignments up to the largest one, each met, and the allocator stays consistent.
#[test]
fn every_alignment_is_met() {
    let (mut world, raw) = World::new(1, 16);
    for align in (4..22).chain((4..22).rev()) {
        world.run(&Step::Make { stream: 0, bytes: 100, align });
        world.run(&Step::Make { stream: 3, bytes: 3000, align });
        world.run(&Step::Drop { which: align as usize });
    }
    world.end(&raw);
}

/// Threads on streams of their own and without one: the model sees each block once, and all comes back.
#[test]
fn threads_share_one_pool() {
    let raw = Host::open_with(&HostOptions::new().memory(256 << 20)).unwrap();
    let device = Device::from_raw(raw.clone());
    let chunks = Arc::new(Chunks::over(device.driver_memory()));
    let pool = Arc::new(Pool::new(chunks.clone(), PoolOptions::device(256).chunks(64 * KIB, LIMIT)));
    let observed = Arc::new(Observed::over(pool, chunks, 256));
    device.set_memory_resource(MemoryKind::Device, observed.clone()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let device = device.clone();
            scope.spawn(move || {
                let stream = device.stream().unwrap();
                let mut kept: Vec<(DeviceArray<u8, Ix1, Host>, u8)> = Vec::new();
                for round in 0..400usize {
                    let bytes = 1 + (round * 7919 + usize::from(thread) * 104_729) % (24 * KIB);
                    let mut array = match round % 3 {
                        0 => device.uninit_array(bytes).unwrap().fill(0).unwrap(),
                        _ => stream.device_array(bytes).unwrap(),
                    };
                    let value = thread * 50 + (round % 50) as u8;
                    stream.fill(&mut array, value).unwrap();
                    kept.push((array, value));
                    if kept.len() > 12 {
                        let (array, value) = kept.swap_remove(round % 12);
                        if round % 5 == 0 {
                            assert!(array.copy_to_host().unwrap().iter().all(|found| *found == value));
                        }
                    }
                    if round % 97 == 0 {
                        device.trim(Trim { keep: 64 * KIB, ..Trim::UNUSED }).unwrap();
                    }
                }
            });
        }
    });
    device.trim(Trim { keep: usize::MAX, ..Trim::ALL }).unwrap();
    observed.counts_right();
    observed.is_joined();
    assert_eq!(observed.statistics().blocks, 0);
    device.flush().unwrap();
    assert_eq!(device.take_errors(), [], "what `observed` asserts");
    assert_eq!((observed.chunks().bytes(), raw.counters().live_allocations), (0, 0));
}
