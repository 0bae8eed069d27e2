//! Pools that grow where they end: one range of addresses, cut where it ends, whatever fails on the way.
#![cfg(unix)]

use super::{MIB, device};
use gpumem_core::{Backend, ErrorKind, MemoryKind, Result};
use gpumem_host::{Host, HostOptions, Injection, Operation};
use gpumem_runtime::{
    Device, DeviceArray,
    memory::{LimitingResource, MemoryResource, MemoryStatistics, Pool, PoolOptions, Trim},
};
use ndarray::Ix1;
use std::{sync::Arc, time::Duration};

type Array = DeviceArray<u8, Ix1, Host>;

fn options() -> PoolOptions {
    PoolOptions::device(256).chunks(MIB, MIB).expandable(true)
}

fn over(
    upstream: Arc<dyn MemoryResource<Host>>,
    device: &Device<Host>,
    options: PoolOptions,
) -> Arc<Pool<Host>> {
    let pool = Arc::new(Pool::new(upstream, options));
    device.set_memory_resource(MemoryKind::Device, pool.clone()).unwrap();
    pool
}

fn growing(memory: usize, options: PoolOptions) -> (Device<Host>, gpumem_host::Device, Arc<Pool<Host>>) {
    let (device, raw) = device(HostOptions::new().memory(memory));
    let pool = over(device.driver_memory(), &device, options);
    (device, raw, pool)
}

fn made(device: &Device<Host>, count: usize, bytes: usize) -> Vec<Array> {
    (0..count).map(|number| device.uninit_array(bytes).unwrap().fill(number as u8).unwrap()).collect()
}

fn is_right(array: &Array, value: u8) -> bool {
    array.copy_to_host().unwrap().iter().all(|found| *found == value)
}

#[test]
fn arrays_lie_across_what_was_taken_at_different_times() {
    let (device, raw, pool) = growing(64 * MIB, options());
    let first = made(&device, 1, MIB * 3 / 4);
    // The tail of a quarter is no border: each block begins where the one before ends.
    let arrays = made(&device, 20, MIB * 3 / 4);
    let ends = first.iter().chain(&arrays).map(|array| array.address() + (MIB * 3 / 4) as u64);
    let begins = arrays.iter().map(|array| array.address());
    assert!(ends.zip(begins).all(|(end, begin)| end == begin));
    assert_eq!(pool.statistics().reserved, 16 * MIB, "{:?}", pool.statistics());
    assert_eq!(raw.counters().allocations, 16, "a step of one MiB each");
    assert!(arrays.iter().enumerate().all(|(number, array)| is_right(array, number as u8)));
    // Copies and fills of the device over several steps at once.
    let whole = device.to_device(&(0..5 * MIB as u32 / 4).collect::<Vec<u32>>()).unwrap();
    let copy = device.to_device(&whole).unwrap();
    assert!(copy.copy_to_host().unwrap().iter().enumerate().all(|(at, value)| at as u32 == *value));
    assert_eq!(first[0].driver_block(), (first[0].address(), pool.statistics().reserved));
    drop((first, arrays, whole, copy));
    device.flush().unwrap();
    assert_eq!((pool.statistics().reserved, raw.counters().live_allocations), (0, 0));
    assert_eq!((device.take_errors(), Host::memory_info(&raw).unwrap().free), (Vec::new(), 64 * MIB));
}

#[test]
fn the_end_goes_back_and_what_is_lent_stays() {
    let (device, raw, pool) = growing(64 * MIB, options());
    let mut arrays = made(&device, 8, MIB);
    let last = arrays[7].address();
    let reserved = || pool.statistics().reserved;
    drop(arrays.remove(3));
    assert_eq!((device.trim(Trim::UNUSED).unwrap(), reserved()), (0, 8 * MIB), "a hole is no end");
    arrays.truncate(5); // those of 0 1 2 4 5
    assert_eq!(pool.statistics().largest_free, 2 * MIB);
    let kept = Trim { keep: 7 * MIB, ..Trim::UNUSED };
    assert_eq!((device.trim(kept).unwrap(), reserved()), (MIB, 7 * MIB));
    let old = Trim { unused_for: Duration::from_secs(3600), ..Trim::UNUSED };
    assert_eq!(device.trim(old).unwrap(), 0);
    {
        let _defer = device.defer_cleanup();
        assert_eq!(device.trim(Trim::UNUSED).unwrap(), 0);
    }
    assert_eq!((device.trim(Trim::UNUSED).unwrap(), reserved()), (MIB, 6 * MIB));
    assert_eq!(raw.counters().live_allocations, 6);
    assert!([0, 1, 2, 4, 5].iter().zip(&arrays).all(|(value, array)| is_right(array, *value)));
    // It grows again, in the same place, and what is new there holds nothing of what was.
    let again: Array = device.device_array(MIB).unwrap();
    assert!(again.address() < last);
    let more = made(&device, 2, MIB);
    assert_eq!(more[1].address(), last);
    assert!(is_right(&again, 0));
    drop((arrays, again, more));
    assert_eq!(device.trim(Trim::UNUSED).unwrap(), 8 * MIB);
    assert_eq!((reserved(), raw.counters().live_allocations), (0, 0));
    assert_eq!(pool.statistics().peak_reserved, 8 * MIB);
}

#[test]
fn what_exceeds_the_part_that_may_be_unused_goes_back_from_the_end() {
    let unused = [(options().max_idle_ratio(0.5), 2), (options().max_idle_ratio(0.0), 3), (options(), 0)];
    // Where a part of it is lent, the idle time of the rest is unknown.
    let old = [(options().idle_timeout(Duration::ZERO), 0)];
    for (options, gone) in unused.into_iter().chain(old) {
        let (device, raw, pool) = growing(64 * MIB, options);
        let mut arrays = made(&device, 4, MIB);
        arrays.truncate(1);
        // A request that nothing free serves, which is when a pool looks at what it keeps.
        drop(made(&device, 1, 8 * MIB));
        assert_eq!((raw.counters().releases, pool.statistics().reserved), (gone, 9 * MIB), "{options:?}");
        arrays.clear();
        drop(made(&device, 1, 20 * MIB));
        assert_eq!(
            raw.counters().releases > gone,
            options.max_idle_ratio < 1.0 || options.idle_timeout.is_some(),
            "{options:?}"
        );
    }
}

#[test]
fn without_such_memory_the_pool_takes_pieces() {
    // A limit between the pool and the driver says nothing of memory that grows.
    let (device, raw) = device(HostOptions::new().memory(64 * MIB));
    let limit = Arc::new(LimitingResource::new(device.driver_memory(), 16 * MIB));
    let pool = over(limit, &device, options());
    let arrays = made(&device, 4, MIB * 3 / 4);
    assert_eq!((pool.statistics().reserved, raw.counters().allocations), (4 * MIB, 4));
    assert!(arrays.iter().all(|array| array.driver_block() == (array.address(), MIB)), "each has a piece");
    drop(arrays);
    device.flush().unwrap();
    assert_eq!(raw.counters().live_allocations, 0);
    // Page-locked memory has none.
    let pinned = Arc::new(Pool::new(device.driver_memory(), options()));
    device.set_memory_resource(MemoryKind::Pinned, pinned.clone()).unwrap();
    let array = device.pinned_array::<u8, _>(1000).unwrap();
    assert!(pinned.statistics().reserved >= MIB);
    drop(array);
    device.flush().unwrap();
    assert_eq!(raw.counters().live_allocations, 0);
}

#[test]
fn a_limit_of_the_pool_holds_to_the_page() {
    for limit in [MIB + 300, 8 * MIB, 1000] {
        let (device, raw, pool) = growing(64 * MIB, options().max_size(limit));
        let mut arrays: Vec<Array> = Vec::new();
        let error = loop {
            match device.device_array(MIB / 8) {
                Ok(array) => arrays.push(array),
                Err(error) => break error,
            }
        };
        assert!(error.is_out_of_memory(), "{error}");
        let seen: MemoryStatistics = pool.statistics();
        assert!(seen.reserved <= limit && arrays.len() == limit / (MIB / 8), "{seen:?} of {limit}");
        drop(arrays);
        device.flush().unwrap();
        assert_eq!(raw.counters().live_allocations, 0);
    }
}

#[test]
fn out_of_memory_takes_smaller_steps_and_then_climbs() {
    let (device, raw, pool) =
        growing(10 * MIB, PoolOptions::device(256).chunks(4 * MIB, 4 * MIB).expandable(true));
    // Two steps of four, one of two, for there is no more.
    let mut arrays = made(&device, 10, MIB);
    assert_eq!(pool.statistics().reserved, 10 * MIB);
    let error = device.device_array::<u8, _>(MIB).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    arrays.truncate(9);
    let pinned_like = device.ipc_array::<u8, _>(100).unwrap_err();
    assert!(pinned_like.is_out_of_memory(), "it needs two MiB of its own");
    arrays.truncate(8);
    // The ladder cuts the end for memory of another resource.
    let alone = device.ipc_array::<u8, _>(100).unwrap();
    assert_eq!(pool.statistics().reserved, 8 * MIB);
    drop((alone, arrays));
    device.flush().unwrap();
    assert_eq!((raw.counters().live_allocations, device.take_errors()), (0, Vec::new()));
}

fn small() -> PoolOptions {
    PoolOptions::device(256).chunks(64 << 10, 64 << 10).expandable(true)
}

/// Each call for such memory fails once, with and without there being nothing left.
#[test]
fn whatever_fails_nothing_is_lost() {
    let out = ErrorKind::OutOfMemory { requested: 1, kind: "device", free: 0, total: 0, pressure: None };
    let kinds =
        [out, ErrorKind::Driver { code: 3, name: "REFUSED" }, ErrorKind::Unsupported { what: "that" }];
    for operation in [Operation::Reserve, Operation::Commit, Operation::Decommit, Operation::Unreserve] {
        for (number, kind) in (0..12).flat_map(|number| kinds.iter().map(move |kind| (number, kind))) {
            let (device, raw, pool) = growing(MIB, small());
            raw.inject(Injection::next(operation, kind.clone()).after(number));
            let work = || -> Result<()> {
                let arrays: Vec<Array> =
                    (0..6).map(|_| device.device_array(48 << 10)).collect::<Result<_>>()?;
                assert!(arrays.iter().all(|array| is_right(array, 0)));
                drop(arrays);
                device.trim(Trim { keep: 64 << 10, ..Trim::UNUSED })?;
                let _one: Array = device.device_array(128 << 10)?;
                Ok(())
            };
            let outcome = work().and_then(|()| work());
            let told = device.take_errors();
            let is_told = |error: &gpumem_core::Error| {
                std::mem::discriminant(error.kind()) == std::mem::discriminant(kind)
            };
            assert!(
                outcome.as_ref().err().is_none_or(is_told) && told.iter().all(is_told),
                "{outcome:?} {told:?}"
            );
            raw.clear_injections();
            work().unwrap();
            device.flush().unwrap();
            let left = told.iter().chain(&device.take_errors()).count();
            let seen = pool.statistics();
            assert_eq!((seen.reserved, seen.allocated), (0, 0), "{operation:?} {number}");
            assert_eq!(raw.counters().live_allocations, 0, "{operation:?} {number} {kind:?} {left}");
            assert_eq!(Host::memory_info(&raw).unwrap().free, MIB);
        }
    }
}

#[test]
fn a_reset_takes_all_of_it() {
    let (device, raw, pool) = growing(64 * MIB, options());
    let old = made(&device, 4, MIB);
    // SAFETY: nothing of the device is used again.
    unsafe { device.reset() }.unwrap();
    assert_eq!(pool.statistics().reserved, 0);
    let new = made(&device, 4, MIB);
    drop(old);
    assert_eq!(pool.statistics().blocks, 4);
    assert!(new.iter().enumerate().all(|(number, array)| is_right(array, number as u8)));
    drop(new);
    device.flush().unwrap();
    assert_eq!(raw.counters().live_allocations, 0);
}
