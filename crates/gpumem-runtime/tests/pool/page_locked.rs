//! Bounds the idle host memory of pools by the limits of the deferred queue.

use super::{MIB, device, statistics};
use gpumem_core::{Attach, MappedOptions, MemoryKind};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device, Pinned, UninitHostArray,
    memory::{DeferredLimits, Pool},
};
use ndarray::Ix1;
use std::sync::Arc;

/// A device of 1 GiB.
const TOTAL: usize = 1024 * MIB;
/// A fifth of it.
const LIMIT: usize = TOTAL / 5;

fn open() -> Device<Host> {
    device(HostOptions::new().memory(TOTAL)).0
}

/// Idle bytes of a kind.
fn idle(device: &Device<Host>, kind: MemoryKind) -> usize {
    let has = statistics(device, kind);
    has.reserved - has.allocated
}

/// It is never written, so that the test takes no memory of the machine.
fn pinned(device: &Device<Host>, bytes: usize) -> UninitHostArray<Pinned, u8, Ix1, Host> {
    device.uninit_pinned_array(bytes).unwrap()
}

#[test]
fn arrays_made_and_dropped_by_turns_use_one_piece() {
    let device = open();
    for round in 0..50 {
        let array = pinned(&device, 40 * MIB);
        assert_eq!(statistics(&device, MemoryKind::Pinned).reserved, 40 * MIB, "round {round}");
        drop(array);
    }
    // Every size: a piece is the request's, or holds two.
    for mib in [1, 2, 5, 12, 31, 32, 33, 40, 63, 64, 65] {
        let device = open();
        let array = pinned(&device, mib * MIB);
        let reserved = statistics(&device, MemoryKind::Pinned).reserved;
        let fits = if mib <= 32 { 2 * mib } else { mib };
        assert!(reserved >= mib * MIB && reserved <= fits * MIB * 33 / 32, "{mib} MiB: {reserved}");
        drop(array);
    }
}

#[test]
fn many_arrays_dropped_at_once_are_freed_by_the_next_allocation() {
    let device = open();
    let arrays: Vec<_> = (0..11).map(|_| pinned(&device, 40 * MIB)).collect();
    assert_eq!(statistics(&device, MemoryKind::Pinned).reserved, 440 * MIB);
    drop(arrays);
    // Of any kind.
    let small = device.uninit_array::<u8, _>(1).unwrap();
    let left = idle(&device, MemoryKind::Pinned);
    assert!((LIMIT - 40 * MIB..=LIMIT).contains(&left), "{left}: as much as is allowed stays");
    drop(small);
    let sizes: Vec<usize> = (0..35).map(|at| 33 + (at * 7) % 31).collect();
    for some in sizes.chunks(7) {
        let arrays: Vec<_> = some.iter().map(|mib| pinned(&device, mib * MIB)).collect();
        assert!(idle(&device, MemoryKind::Pinned) <= LIMIT, "{some:?}");
        drop(arrays);
    }
}

#[test]
fn kinds_share_the_limit() {
    let device = open();
    let mapped = MappedOptions::default();
    for _ in 0..4 {
        let all = (
            [(); 3].map(|()| pinned(&device, 40 * MIB)),
            [(); 3].map(|()| device.uninit_mapped_array::<u8, _>(40 * MIB, mapped).unwrap()),
            [(); 3].map(|()| device.uninit_managed_array::<u8, _>(40 * MIB, Attach::Global).unwrap()),
        );
        drop(all);
        drop(device.uninit_array::<u8, _>(1).unwrap());
        let kinds = [MemoryKind::Pinned, MemoryKind::Mapped(mapped), MemoryKind::Managed(Attach::Global)];
        let all: usize = kinds.iter().map(|kind| idle(&device, *kind)).sum();
        assert!(all <= LIMIT, "{all}");
    }
}

#[test]
fn the_limit_is_the_one_that_is_set() {
    let device = open();
    let drop_some = || drop([(); 5].map(|()| pinned(&device, 40 * MIB)));
    for (ratio, at_most) in [(0.1, TOTAL / 10), (0.0, 0), (1.0, TOTAL)] {
        device.set_deferred_limits(DeferredLimits { items: 10, ratio });
        drop_some();
        drop(device.uninit_array::<u8, _>(1).unwrap());
        let left = idle(&device, MemoryKind::Pinned);
        assert!(left <= at_most && (ratio < 1.0 || left == 200 * MIB), "{ratio}: {left}");
    }
    // No memory is freed inside `defer_cleanup`, and the excess is freed after it.
    device.set_deferred_limits(DeferredLimits { items: 10, ratio: 0.1 });
    let deferred = device.defer_cleanup();
    drop(device.uninit_array::<u8, _>(1).unwrap());
    assert_eq!(idle(&device, MemoryKind::Pinned), 200 * MIB);
    drop(deferred);
    drop(device.uninit_array::<u8, _>(1).unwrap());
    assert!(idle(&device, MemoryKind::Pinned) <= TOTAL / 10);
}

/// A piece is freed when no part of it is allocated.
#[test]
fn a_piece_that_is_partly_allocated_stays() {
    let device = open();
    device.set_deferred_limits(DeferredLimits { items: 10, ratio: 0.01 });
    let mut arrays: Vec<_> = (0..24).map(|_| Some(pinned(&device, MIB))).collect();
    arrays.iter_mut().step_by(2).for_each(|array| drop(array.take()));
    drop(device.uninit_array::<u8, _>(1).unwrap());
    assert_eq!(idle(&device, MemoryKind::Pinned), 12 * MIB);
    drop(arrays);
    drop(device.uninit_array::<u8, _>(1).unwrap());
    assert!(idle(&device, MemoryKind::Pinned) <= TOTAL / 100);
}

/// A small array would keep all of the piece that it lies in.
#[test]
fn small_arrays_keep_no_large_piece() {
    let device = open();
    // No multiple of the pages of a driver.
    drop(pinned(&device, 200_000_000));
    let small = pinned(&device, 64 << 10);
    assert_eq!(idle(&device, MemoryKind::Pinned) / 100_000_000, 2, "no call has asked for it");
    // As large as the piece, or nearly so.
    drop(pinned(&device, 190_000_000));
    let another = pinned(&device, 1000);
    device.flush().unwrap();
    assert!(statistics(&device, MemoryKind::Pinned).reserved <= 8 * MIB);
    drop((small, another));

    // Of a piece of many arrays, at once with the large one.
    let large = pinned(&device, 200_000_000);
    let small = pinned(&device, 64 << 10);
    drop(large);
    device.flush().unwrap();
    assert!(statistics(&device, MemoryKind::Pinned).reserved <= 8 * MIB);
    drop(small);
}

/// Where a pool cannot grow, small arrays use what there is.
#[test]
fn small_arrays_use_a_large_piece_where_there_is_no_other_memory() {
    let device = open();
    let options = device.pool_options(MemoryKind::Pinned).max_size(200 * MIB);
    let pool = Pool::new(device.driver_memory(), options);
    device.set_memory_resource(MemoryKind::Pinned, Arc::new(pool)).unwrap();
    drop(pinned(&device, 200 * MIB));
    let deferred = device.defer_cleanup();
    let small = pinned(&device, 1000);
    assert_eq!(statistics(&device, MemoryKind::Pinned).reserved, 200 * MIB);
    drop((small, deferred));
}

/// Copies may still read dropped memory: the first allocation that finds them done frees it.
#[test]
fn memory_in_flight_is_freed_once_it_is_idle() {
    let (device, _) = device(HostOptions::new().memory(TOTAL).adversarial(3));
    device.set_deferred_limits(DeferredLimits { items: 10, ratio: 0.01 });
    let stream = device.stream().unwrap();
    let mut array = stream.device_array::<u8, _>(MIB).unwrap();
    for _ in 0..24 {
        let source = device.pinned_array::<u8, _>(MIB).unwrap();
        stream.copy_to_device(&mut array, &source).unwrap();
    }
    stream.synchronize().unwrap();
    drop(device.uninit_array::<u8, _>(1).unwrap());
    let left = idle(&device, MemoryKind::Pinned);
    assert!(left <= TOTAL / 100, "{left}");
}
