//! Blocks that go from stream to stream: every new user waits for the old one.

use super::{MIB, device};
use gpumem_core::{MemoryKind, Result};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device, DeviceArray, Stream,
    memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, Pool, PoolOptions, ResourceId},
};
use ndarray::{Array1, Ix1};
use std::sync::{Arc, Mutex};

#[test]
fn a_single_stream_makes_no_driver_call_in_steady_state() {
    for options in [HostOptions::new().brief_bytes(0), HostOptions::new().adversarial(1)] {
        let (device, raw) = device(options);
        let stream = device.stream().unwrap();
        let round = |size: usize| {
            let mut a = stream.device_array::<u8, _>(size).unwrap();
            let b = stream.to_device(&a).unwrap();
            stream.copy_to_device(&mut a, &b).unwrap();
        };
        (1..60).for_each(|n| round(n * 1000));
        let before = (device.counters(), raw.counters());
        (1..60).rev().for_each(|n| round(n * 1000));
        let after = (device.counters(), raw.counters());
        assert_eq!(after.0.allocations, before.0.allocations);
        assert_eq!((after.0.records, after.0.waits), (before.0.records, before.0.waits));
        assert_eq!(after.1.events_created, before.1.events_created);
        assert_eq!(after.1.synchronizations, before.1.synchronizations);
    }
}

/// Memory that one stream still uses is passed over while another block fits, and waited for when none does.
#[test]
fn another_stream_waits_only_for_the_block_that_it_gets() {
    let mut passed_over = 0;
    for seed in 0..40 {
        let (device, raw) = device(HostOptions::new().memory(64 * MIB).adversarial(seed));
        let options = PoolOptions::device(256).chunks(8 * MIB, 8 * MIB);
        let pool = Arc::new(Pool::new(device.driver_memory(), options.max_size(16 * MIB)));
        device.set_memory_resource(MemoryKind::Device, pool.clone()).unwrap();
        let (one, two) = (device.stream().unwrap(), device.stream().unwrap());
        let used =
            |stream: &Stream<Host>| -> DeviceArray<u8, Ix1, Host> { stream.device_array(6 * MIB).unwrap() };
        let address = used(&one).address();
        let waits = device.counters().waits;
        // In flight on `one`, unless the schedule has been quick: `two` gets another piece, and does not wait.
        let other = used(&two);
        assert_eq!(device.counters().waits, waits);
        if other.address() == address {
            continue;
        }
        // `one` gets its own back at once.
        assert_eq!(used(&one).address(), address);
        assert_eq!(device.counters().waits, waits);
        // No other block is left: `two` gets it, and waits on the device when it uses it.
        let synchronizations = raw.counters().synchronizations;
        let uninit = two.uninit_array::<u8, _>(6 * MIB).unwrap();
        assert_eq!((device.counters().waits, pool.statistics().reserved), (waits, 16 * MIB));
        let stream_order = two.record_event().unwrap();
        // SAFETY: the memory was zeroed for the array that had it before.
        let last = unsafe { uninit.assume_init() };
        assert_eq!(last.address(), address);
        let copy = two.copy_to_host(&last.slice(ndarray::s![..9]).unwrap()).unwrap();
        assert_eq!(raw.counters().synchronizations, synchronizations, "the host waits for nothing");
        // One wait for the block, or none because the driver has said that it is done.
        assert!(device.counters().waits <= waits + 1);
        passed_over += device.counters().waits - waits;
        assert_eq!(copy.view().unwrap().to_vec(), [0; 9], "in the order of the fill");
        drop(stream_order);
    }
    assert!(passed_over > 0, "no schedule kept the block in flight");
}

/// A piece of another pool may still be in use when it is taken. So is what is made of it: the array itself, and the rest of the
/// piece.
#[test]
fn the_uses_of_a_piece_go_over_to_its_parts() {
    let mut in_flight = 0;
    for seed in 0..40 {
        for users in [1, 2] {
            let (device, _) = device(HostOptions::new().memory(64 * MIB).adversarial(seed));
            let options = PoolOptions::device(256).chunks(8 * MIB, 8 * MIB);
            let lower = Arc::new(Pool::new(device.driver_memory(), options.max_size(8 * MIB)));
            let upper = Pool::new(lower.clone(), PoolOptions::device(256).chunks(6 * MIB, 6 * MIB));
            device.set_memory_resource(MemoryKind::Device, lower.clone()).unwrap();
            let streams = [device.stream().unwrap(), device.stream().unwrap()];
            let mut array: DeviceArray<u8, Ix1, Host> = device.device_array(8 * MIB).unwrap();
            for (stream, value) in streams.iter().zip([7, 8]).take(users) {
                stream.fill(&mut array, value).unwrap();
            }
            drop(array);
            in_flight += usize::from(lower.statistics().in_flight > 0);
            device.set_memory_resource(MemoryKind::Device, Arc::new(upper)).unwrap();
            let filled: Vec<_> = (0..3)
                .map(|part| device.uninit_array::<u8, _>(2 * MIB).unwrap().fill(part).unwrap())
                .collect();
            assert_eq!(lower.statistics().reserved, 8 * MIB);
            streams.iter().for_each(|stream| stream.synchronize().unwrap());
            for (part, filled) in (0..).zip(&filled) {
                let found = filled.copy_to_host().unwrap();
                assert!(found.iter().all(|byte| *byte == part), "seed {seed}, {users} users, part {part}");
            }
        }
    }
    assert!(in_flight > 0, "no schedule kept the piece in flight");
}

/// Arrays of every kind and on every stream, dropped in flight, with the contents checked. Finds memory that is reused
/// while it is still being written.
fn churn(device: &Device<Host>, seed: u64) -> Result<bool> {
    let streams: Vec<Stream<Host>> = (0..3).map(|_| device.stream()).collect::<Result<_>>()?;
    let mut random = seed;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut kept: Vec<(DeviceArray<u32, Ix1, Host>, u32)> = Vec::new();
    for round in 0..120u32 {
        let stream = &streams[next(3) as usize];
        let other = &streams[next(3) as usize];
        let length = 64 * (1 + next(40) as usize);
        let mut array = match next(3) {
            0 => device.uninit_array(length)?.fill(round)?,
            _ => {
                let mut array = stream.device_array(length)?;
                stream.fill(&mut array, round)?;
                array
            }
        };
        if next(2) == 0 {
            other.fill(&mut array, round + 1000)?;
            kept.push((array, round + 1000));
        } else {
            kept.push((array, round));
        }
        while kept.len() > 4 {
            let (array, value) = kept.swap_remove(next(kept.len() as u64) as usize);
            if next(2) == 0 {
                let back = other.copy_to_host(&array)?;
                drop(array);
                if back.view()?.iter().any(|found| *found != value) {
                    return Ok(false);
                }
            }
        }
    }
    for (array, value) in kept {
        if array.copy_to_host()? != Array1::from_elem(array.len(), value) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[test]
fn no_schedule_finds_memory_that_is_still_written() {
    for seed in 0..150 {
        let (device, raw) = device(HostOptions::new().adversarial(seed).memory(4 * MIB));
        // So little that blocks go from stream to stream all the time.
        let pool = Pool::new(
            device.driver_memory(),
            PoolOptions::device(256).chunks(32 << 10, 65536).max_size(80_000),
        );
        device.set_memory_resource(MemoryKind::Device, Arc::new(pool)).unwrap();
        assert!(churn(&device, seed).unwrap(), "seed {seed}");
        device.synchronize().unwrap();
        device.flush().unwrap();
        assert_eq!((device.take_errors(), raw.counters().live_allocations), (Vec::new(), 0), "seed {seed}");
    }
}

/// A resource that reuses memory without its pending uses.
#[derive(Debug)]
struct Careless {
    upstream: Arc<dyn MemoryResource<Host>>,
    id: ResourceId,
    /// Addresses and lengths.
    free: Mutex<Vec<(u64, usize)>>,
}

impl MemoryResource<Host> for Careless {
    fn name(&self) -> &'static str {
        "careless"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        let mut free = self.free.lock().unwrap();
        let (address, bytes) = match free.pop() {
            Some(place) => place,
            None => {
                let block = Box::leak(Box::new(self.upstream.allocate(&request.for_bytes(1 << 16, 256))?));
                (block.address(), block.bytes())
            }
        };
        // SAFETY: deliberately not: work may still be using it.
        Ok(unsafe { MemoryBlock::new(self.id, request, (address, None, bytes), 0) })
    }

    fn recycle(&self, block: MemoryBlock<Host>) -> Result<(), MemoryBlock<Host>> {
        self.free.lock().unwrap().push((block.address(), block.bytes()));
        Ok(())
    }

    fn deallocate(&self, _: MemoryBlock<Host>) -> Result<()> {
        Ok(())
    }

    fn forget(&self) {}

    fn statistics(&self) -> MemoryStatistics {
        MemoryStatistics::default()
    }
}

#[test]
fn reuse_without_waiting_is_found() {
    let found = (0..20).any(|seed| {
        let (device, _) = device(HostOptions::new().adversarial(seed));
        let careless =
            Careless { upstream: device.driver_memory(), id: ResourceId::new(), free: Mutex::default() };
        device.set_memory_resource(MemoryKind::Device, Arc::new(careless)).unwrap();
        !churn(&device, seed).unwrap()
    });
    assert!(found, "no seed finds the planted fault");
}
