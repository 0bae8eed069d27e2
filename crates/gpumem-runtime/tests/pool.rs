//! The pool under arrays: what reaches the driver, what waits, what comes back.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use gpumem_core::{Attach, Backend, Error, ErrorKind, MemoryKind, Result};
use gpumem_host::{Host, HostOptions, Injection, Operation};
use gpumem_runtime::{
    Device, DeviceArray, Stream,
    memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, Pool, PoolOptions, Trim, named},
};
use ndarray::{Array1, Ix1};
use std::{
    ptr::NonNull,
    sync::{Arc, Mutex},
};

const MIB: usize = 1 << 20;

fn device(options: HostOptions) -> (Device<Host>, gpumem_host::Device) {
    let raw = Host::open_with(&options).unwrap();
    (Device::from_raw(raw.clone()), raw)
}

fn statistics(device: &Device<Host>, kind: MemoryKind) -> MemoryStatistics {
    device.memory_resource(kind).unwrap().statistics()
}

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
fn another_stream_waits_only_for_what_it_gets() {
    let mut passed_over = 0;
    for seed in 0..40 {
        let (device, raw) = device(HostOptions::new().memory(64 * MIB).adversarial(seed));
        let options = PoolOptions::device(256).chunks(8 * MIB, 8 * MIB);
        let pool = Arc::new(Pool::new(device.driver_memory(), options.limit(16 * MIB)));
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
        // Nothing else is left: `two` gets it, and waits when it uses it, on the device.
        let synchronizations = raw.counters().synchronizations;
        let uninit = two.uninit_array::<u8, _>(6 * MIB).unwrap();
        assert_eq!((device.counters().waits, pool.statistics().reserved), (waits, 16 * MIB));
        let stream_order = two.record().unwrap();
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

/// Arrays of every kind and on every stream, dropped in flight, with the contents checked. Finds memory that is lent
/// while somebody still writes it.
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
        let pool =
            Pool::new(device.driver_memory(), PoolOptions::device(256).chunks(32 << 10, 65536).limit(80_000));
        device.set_memory_resource(MemoryKind::Device, Arc::new(pool)).unwrap();
        assert!(churn(&device, seed).unwrap(), "seed {seed}");
        device.synchronize().unwrap();
        device.flush().unwrap();
        assert_eq!((device.take_errors(), raw.counters().live_allocations), (Vec::new(), 0), "seed {seed}");
    }
}

/// A resource that lends memory again without a word about who still uses it.
#[derive(Debug)]
struct Careless {
    upstream: Arc<dyn MemoryResource<Host>>,
    free: Mutex<Vec<(MemoryBlock<Host>, usize)>>,
}

impl MemoryResource<Host> for Careless {
    fn name(&self) -> &'static str {
        "careless"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        let mut free = self.free.lock().unwrap();
        let block = match free.pop() {
            Some((block, _)) => block,
            None => self.upstream.allocate(&request.for_bytes(1 << 16, 256))?,
        };
        let (address, bytes) = (block.address(), block.bytes());
        free.insert(0, (block, 0));
        let last = free.len() - 1;
        free.swap(0, last);
        let (held, _) = free.pop().unwrap();
        Box::leak(Box::new(held));
        // SAFETY: deliberately not: work may still be using it.
        Ok(unsafe { MemoryBlock::new(address, None::<NonNull<u8>>, bytes, 0) })
    }

    fn recycle(&self, block: MemoryBlock<Host>) -> Result<(), MemoryBlock<Host>> {
        // SAFETY: as above.
        let stripped = unsafe { MemoryBlock::new(block.address(), None, block.bytes(), 0) };
        self.free.lock().unwrap().push((stripped, 0));
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
        let careless = Careless { upstream: device.driver_memory(), free: Mutex::default() };
        device.set_memory_resource(MemoryKind::Device, Arc::new(careless)).unwrap();
        !churn(&device, seed).unwrap()
    });
    assert!(found, "no seed finds the planted fault");
}

#[test]
fn everything_goes_back_and_pieces_are_joined() {
    let (device, raw) = device(HostOptions::new().memory(256 * MIB));
    let arrays: Vec<_> = (1..500).map(|n| device.uninit_array::<u8, _>(n * 700).unwrap()).collect();
    let pinned: Vec<_> = (1..50).map(|n| device.pinned_array::<u8, _>(n * 700).unwrap()).collect();
    let managed = device.managed_array::<u8, _>(5000, Attach::Global).unwrap();
    let lent = statistics(&device, MemoryKind::Device);
    assert_eq!(lent.blocks, 499);
    assert!(lent.lent >= (1..500).map(|n| n * 700).sum() && lent.lent <= lent.reserved);
    assert!(raw.counters().allocations < 100, "{:?}", raw.counters());
    assert_eq!(statistics(&device, MemoryKind::Pinned).blocks, 49);
    // Every second one first, so that there are holes everywhere.
    let (even, odd): (Vec<_>, Vec<_>) = arrays.into_iter().enumerate().partition(|(index, _)| index % 2 == 0);
    drop(even);
    drop(odd);
    drop((pinned, managed));
    let idle = statistics(&device, MemoryKind::Device);
    assert_eq!((idle.blocks, idle.lent), (0, 0));
    assert_eq!(device.trim(Trim { keep: idle.reserved, ..Trim::UNUSED }).unwrap(), 0);
    assert!(device.trim(Trim::UNUSED).unwrap() >= idle.reserved);
    assert_eq!(raw.counters().live_allocations, 0);
    assert_eq!(statistics(&device, MemoryKind::Device).reserved, 0);
}

/// Four pieces of 1 MiB, each with one array that takes it as a whole, and one that only starts a piece.
fn pieces(options: PoolOptions) -> (Device<Host>, Vec<DeviceArray<u8, Ix1, Host>>) {
    let (device, _) = device(HostOptions::new().memory(64 * MIB));
    let pool = Pool::new(device.driver_memory(), options);
    device.set_memory_resource(MemoryKind::Device, Arc::new(pool)).unwrap();
    let arrays = (0..4).map(|_| device.uninit_array(MIB).unwrap().fill(1).unwrap()).collect();
    device.synchronize().unwrap();
    (device, arrays)
}

/// A request that nothing free serves, which is when a pool looks at what it keeps. Bytes of all other pieces.
fn look(device: &Device<Host>, bytes: usize) -> usize {
    let large = device.uninit_array::<u8, _>(bytes).unwrap();
    let reserved = statistics(device, MemoryKind::Device).reserved;
    drop(large);
    reserved - bytes
}

#[test]
fn what_exceeds_the_part_that_may_be_unused_goes_back() {
    let options = || PoolOptions::device(256).chunks(MIB, MIB).exchange(false);
    for (ratio, kept) in [(1.0, 4), (0.75, 4), (0.5, 2), (0.25, 1), (0.0, 1)] {
        let (device, mut arrays) = pieces(options().keep_ratio(ratio));
        arrays.truncate(1);
        assert_eq!(statistics(&device, MemoryKind::Device).reserved, 4 * MIB, "a drop gives nothing back");
        assert_eq!(look(&device, 4 * MIB), kept * MIB, "a part of {ratio} may be unused");
        assert_eq!(arrays[0].get(MIB - 1).unwrap(), 1);
    }
}

/// Arrays that are too large for what is free in pieces, again and again: the pool is no larger than it has to be, and
/// comes to rest.
#[test]
fn unused_pieces_are_exchanged_for_one_that_serves() {
    for exchange in [true, false] {
        let options = PoolOptions::device(256).chunks(MIB, 2 * MIB).exchange(exchange);
        let (device, raw) = device(HostOptions::new().memory(64 * MIB));
        let pool = Arc::new(Pool::new(device.driver_memory(), options));
        device.set_memory_resource(MemoryKind::Device, pool.clone()).unwrap();
        let grow = |from: usize| {
            for mib in from..9 {
                drop(device.uninit_array::<u8, _>(mib * MIB).unwrap().fill(1).unwrap());
                device.synchronize().unwrap();
            }
        };
        grow(1);
        // Without, every size has a piece of its own.
        let peak = pool.statistics().peak_reserved;
        assert!(if exchange { peak <= 10 * MIB } else { peak >= 30 * MIB }, "{peak}");
        let before = raw.counters();
        (0..5).for_each(|_| grow(1));
        assert_eq!(raw.counters().allocations, before.allocations, "a steady program makes no driver call");
    }
}

#[test]
fn nothing_is_exchanged_inside_defer_cleanup() {
    let (device, raw) = device(HostOptions::new().memory(64 * MIB));
    let options = PoolOptions::device(256).chunks(MIB, 2 * MIB).keep_ratio(0.0);
    device
        .set_memory_resource(MemoryKind::Device, Arc::new(Pool::new(device.driver_memory(), options)))
        .unwrap();
    drop(device.uninit_array::<u8, _>(MIB).unwrap());
    let deferred = device.defer_cleanup();
    drop(device.uninit_array::<u8, _>(4 * MIB).unwrap());
    assert_eq!(raw.counters().releases, 0);
    drop(deferred);
    drop(device.uninit_array::<u8, _>(12 * MIB).unwrap());
    assert_eq!(raw.counters().releases, 2);
}

#[test]
fn what_has_been_unused_for_long_goes_back() {
    let time = std::time::Duration::from_millis(300);
    let options = PoolOptions::device(256).chunks(MIB, MIB).exchange(false);
    for by_itself in [true, false] {
        let (device, mut arrays) = pieces(if by_itself { options.keep_time(time) } else { options });
        // A fifth piece, of which something is in use all the time.
        let _small = device.uninit_array::<u8, _>(256).unwrap();
        // The time of a block counts from the next request on that it does not serve.
        let touch = || drop(device.uninit_array::<u8, _>(256).unwrap());
        let mut larger = 4 * MIB;
        let mut trim = || {
            let pieces = match by_itself {
                true => {
                    larger += MIB;
                    look(&device, larger)
                }
                false => {
                    device.trim(Trim { unused_for: time, ..Trim::UNUSED }).unwrap();
                    statistics(&device, MemoryKind::Device).reserved
                }
            };
            touch();
            pieces / MIB - 1
        };
        arrays.truncate(2);
        touch();
        assert_eq!(trim(), 4, "nothing has been unused for long");
        std::thread::sleep(time / 2);
        // In use again, and unused anew: the time starts again.
        let again: DeviceArray<u8, Ix1, Host> = device.uninit_array(MIB).unwrap().fill(2).unwrap();
        device.synchronize().unwrap();
        drop(again);
        touch();
        std::thread::sleep(time * 2 / 3);
        assert_eq!(trim(), 3, "one piece of two has been unused for long");
        // Nobody looks meanwhile: what counts is when it was given back.
        arrays.truncate(1);
        touch();
        std::thread::sleep(time + time / 10);
        assert_eq!(trim(), 1);
        assert_eq!(arrays[0].get(0).unwrap(), 1);
    }
}

#[test]
fn the_largest_alignment_is_met_and_blocks_know_their_piece() {
    let (device, _) = device(HostOptions::new());
    let small = device.uninit_array::<u8, _>(100).unwrap().fill(1).unwrap();
    let array = device.uninit_array::<u8, _>(100).unwrap().fill(1).unwrap();
    let (base, len) = array.driver_block();
    assert!(base <= array.address() && array.address() + 100 <= base + len as u64 && len > 200);
    assert_eq!(small.driver_block(), (base, len));
    let pinned = device.pinned_array::<u8, _>(100).unwrap();
    assert_eq!(pinned.view().unwrap().as_ptr() as usize % 16, 0);
}

/// Asks a pool for an alignment that there is not.
#[derive(Debug)]
struct Senseless(Arc<dyn MemoryResource<Host>>, usize);

impl MemoryResource<Host> for Senseless {
    fn name(&self) -> &'static str {
        "senseless"
    }
    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        self.0.allocate(&request.for_bytes(request.bytes, self.1))
    }
    fn recycle(&self, block: MemoryBlock<Host>) -> Result<(), MemoryBlock<Host>> {
        self.0.recycle(block)
    }
    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.0.deallocate(block)
    }
    fn forget(&self) {}
    fn statistics(&self) -> MemoryStatistics {
        self.0.statistics()
    }
}

#[test]
fn an_alignment_that_is_none_is_refused_whatever_came_back_last() {
    for align in [0, 3, 48, usize::MAX] {
        let (device, _) = device(HostOptions::new());
        let pool = device.memory_resource(MemoryKind::Device).unwrap();
        drop(device.uninit_array::<u8, _>(1000).unwrap());
        device.set_memory_resource(MemoryKind::Device, Arc::new(Senseless(pool, align))).unwrap();
        let error = device.uninit_array::<u8, _>(1000).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{align}: {error}");
    }
}

/// Another process sees the driver's block as a whole, so what is exported has one of its own.
#[test]
fn an_array_to_be_exported_shares_its_block_with_nobody() {
    let (device, raw) = device(HostOptions::new().memory(64 * MIB));
    let pooled = device.to_device(&[1u32, 2, 3]).unwrap();
    // SAFETY: refused.
    let error = unsafe { pooled.export() }.unwrap_err();
    let is_told =
        matches!(error.kind(), ErrorKind::InvalidArgument { why } if why.contains("exportable_array"));
    assert!(is_told, "{error}");
    let arrays: Vec<_> =
        (0..3).map(|_| named("shared", || device.exportable_array::<u32, _>(3)).unwrap()).collect();
    for array in &arrays {
        assert_eq!((array.driver_block(), array.kind()), ((array.address(), 2 * MIB), MemoryKind::Device));
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [0; 3]);
        // SAFETY: refused, by the backend: the host shares no memory.
        let error = unsafe { array.export() }.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    }
    assert_eq!(device.memory_report().holders[0].bytes, 36);
    let (pending, live) = (device.pending().0, raw.counters().live_allocations);
    drop(arrays);
    assert_eq!(device.pending().0, pending + 3, "their memory goes through the queue");
    drop(pooled);
    device.flush().unwrap();
    assert!(live >= 4 && raw.counters().live_allocations == 0 && device.memory_report().holders.is_empty());
    let error = device.exportable_array::<u8, _>(100 * MIB).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    assert!(device.exportable_array::<u8, _>(0).unwrap().is_empty());
    // Memory that a pool holds and has not lent makes room.
    drop(device.uninit_array::<u8, _>(40 * MIB).unwrap());
    device.exportable_array::<u8, _>(40 * MIB).unwrap();
}

#[test]
fn out_of_memory_by_holes_recovers_when_they_are_joined() {
    for seed in 0..30 {
        recover_from_holes(seed);
    }
}

fn recover_from_holes(seed: u64) {
    let (device, raw) = device(HostOptions::new().memory(10 * MIB).adversarial(seed));
    let stream = device.stream().unwrap();
    let other = device.stream().unwrap();
    // Nine tenths of the memory, in pieces that are used by two streams, and dropped in flight.
    let arrays: Vec<_> = (0..9)
        .map(|_| {
            let mut array = stream.device_array::<u8, _>(MIB).unwrap();
            other.fill(&mut array, 1).unwrap();
            array
        })
        .collect();
    drop(arrays);
    let large = device.uninit_array::<u8, _>(9 * MIB).unwrap().fill(5).unwrap();
    assert_eq!(large.get(8 * MIB).unwrap(), 5);
    drop(large);
    device.flush().unwrap();
    assert_eq!(raw.counters().live_allocations, 0);
}

#[test]
fn out_of_memory_says_who_holds_it() {
    let (device, _) = device(HostOptions::new().memory(32 * MIB));
    let weights = named("weights", || device.device_array::<u8, _>(10 * MIB)).unwrap();
    let more = named("weights", || device.device_array::<u8, _>(5 * MIB)).unwrap();
    let cache = named("cache", || named("inner", || device.device_array::<u8, _>(3 * MIB))).unwrap();
    let error = device.device_array::<u8, _>(30 * MIB).unwrap_err();
    let ErrorKind::OutOfMemory { requested, total, pressure: Some(pressure), .. } = error.kind() else {
        panic!("{error}")
    };
    assert_eq!((*requested, *total), (30 * MIB, 32 * MIB));
    assert_eq!(pressure.holders, [("weights".to_owned(), 15 * MIB), ("inner".to_owned(), 3 * MIB)]);
    let pool = pressure.resources.iter().find(|each| each.kind == "device").unwrap();
    assert!(pool.lent >= 18 * MIB && pool.reserved >= pool.lent && !pressure.deferred);
    assert!(error.to_string().contains("\"weights\" holds 15728640"), "{error}");
    let report = device.memory_report();
    assert!(report.to_string().contains("weights: 15.0 MiB in 2"), "{report}");
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["kinds"][0]["resources"][0]["resource"], "pool");
    assert_eq!(json["kinds"][0]["resources"][1]["resource"], "driver");
    assert_eq!(json["holders"][0]["bytes"], 15 * MIB);
    drop((weights, more, cache));
    assert!(device.memory_report().holders.is_empty());
}

/// Every allocation of the driver fails once, with and without there being nothing left.
#[test]
fn a_pool_whose_growth_fails_is_none_the_worse() {
    for number in 0..6 {
        for out_of_memory in [true, false] {
            let (device, raw) = device(HostOptions::new().memory(64 * MIB));
            let kind = match out_of_memory {
                true => {
                    ErrorKind::OutOfMemory { requested: 1, kind: "device", free: 0, total: 0, pressure: None }
                }
                false => ErrorKind::Driver { code: 3, name: "REFUSED" },
            };
            raw.inject(Injection::next(Operation::Allocate, kind).after(number));
            let work = || -> Result<()> {
                let _arrays: Vec<DeviceArray<u8, Ix1, Host>> =
                    (0..8).map(|_| device.device_array(5 * MIB)).collect::<Result<_>>()?;
                Ok(())
            };
            match work() {
                Ok(()) => {}
                Err(error) => assert!(
                    !out_of_memory && matches!(error.kind(), ErrorKind::Driver { code: 3, .. }),
                    "{error}"
                ),
            }
            raw.clear_injections();
            work().unwrap();
            device.flush().unwrap();
            assert_eq!((raw.counters().live_allocations, device.take_errors()), (0, Vec::new()));
        }
    }
}

/// Lends what is not what was asked for.
#[derive(Debug)]
struct Wrong(Arc<dyn MemoryResource<Host>>);

impl MemoryResource<Host> for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }
    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        self.0.allocate(&request.for_bytes(request.bytes / 2, request.align))
    }
    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.0.deallocate(block)
    }
    fn forget(&self) {}
    fn statistics(&self) -> MemoryStatistics {
        self.0.statistics()
    }
}

#[test]
fn a_resource_that_lends_too_little_is_found_out() {
    let (device, raw) = device(HostOptions::new());
    let before =
        device.set_memory_resource(MemoryKind::Device, Arc::new(Wrong(device.driver_memory()))).unwrap();
    assert!(before.is_none());
    let error: Error = device.uninit_array::<u8, _>(100).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    device.flush().unwrap();
    assert_eq!(raw.counters().live_allocations, 0);
    assert_eq!(Host::memory_info(&raw).unwrap().free, Host::memory_info(&raw).unwrap().total);
}
