//! Pieces of the driver's memory: when they are taken, joined, exchanged and freed.

use super::{MIB, device, refused::Altered, statistics};
use gpumem_core::{Attach, MemoryKind};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device, DeviceArray,
    memory::{MemoryResource as _, Pool, PoolOptions, Trim},
};
use ndarray::Ix1;
use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

#[test]
fn everything_is_freed_and_pieces_are_joined() {
    let (device, raw) = device(HostOptions::new().memory(256 * MIB));
    let arrays: Vec<_> = (1..500).map(|n| device.uninit_array::<u8, _>(n * 700).unwrap()).collect();
    let pinned: Vec<_> = (1..50).map(|n| device.pinned_array::<u8, _>(n * 700).unwrap()).collect();
    let managed = device.managed_array::<u8, _>(5000, Attach::Global).unwrap();
    let allocated = statistics(&device, MemoryKind::Device);
    assert_eq!(allocated.blocks, 499);
    assert!(
        allocated.allocated >= (1..500).map(|n| n * 700).sum() && allocated.allocated <= allocated.reserved
    );
    assert!(raw.counters().allocations < 100, "{:?}", raw.counters());
    assert_eq!(statistics(&device, MemoryKind::Pinned).blocks, 49);
    // Every second one first, so that there are holes everywhere.
    let (even, odd): (Vec<_>, Vec<_>) = arrays.into_iter().enumerate().partition(|(index, _)| index % 2 == 0);
    drop(even);
    drop(odd);
    drop((pinned, managed));
    let idle = statistics(&device, MemoryKind::Device);
    assert_eq!((idle.blocks, idle.allocated), (0, 0));
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

/// A request that no free block serves, so that the pool checks its unused memory. Returns the bytes of all other
/// pieces.
fn look(device: &Device<Host>, bytes: usize) -> usize {
    let large = device.uninit_array::<u8, _>(bytes).unwrap();
    let reserved = statistics(device, MemoryKind::Device).reserved;
    drop(large);
    reserved - bytes
}

#[test]
fn memory_above_the_idle_ratio_is_freed() {
    let options = || PoolOptions::device(256).chunks(MIB, MIB).release_empty_before_grow(false);
    for (ratio, kept) in [(1.0, 4), (0.75, 4), (0.5, 2), (0.25, 1), (0.0, 1)] {
        let (device, mut arrays) = pieces(options().max_idle_ratio(ratio));
        arrays.truncate(1);
        assert_eq!(statistics(&device, MemoryKind::Device).reserved, 4 * MIB, "a drop gives nothing back");
        assert_eq!(look(&device, 4 * MIB), kept * MIB, "a part of {ratio} may be unused");
        assert_eq!(arrays[0].get(MIB - 1).unwrap(), 1);
    }
}

/// Arrays that are too large for the free parts of pieces, again and again: the pool is no larger than it has to be,
/// and comes to rest.
#[test]
fn unused_pieces_are_exchanged_for_one_that_serves() {
    for exchange in [true, false] {
        let options = PoolOptions::device(256).chunks(MIB, 2 * MIB).release_empty_before_grow(exchange);
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
        // Without it, every size has a separate piece.
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
    let options = PoolOptions::device(256).chunks(MIB, 2 * MIB).max_idle_ratio(0.0);
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

/// A pool that no device knows leaves its pieces to the device of its requests.
#[test]
fn a_pool_that_is_dropped_gives_its_pieces_back() {
    let (device, raw) = device(HostOptions::new());
    let request = || device.memory_request(1000, MemoryKind::Device);
    for _ in 0..50 {
        let pools: [_; 2] = std::array::from_fn(|_| {
            let pool = Pool::new(device.driver_memory(), PoolOptions::device(256).chunks(MIB, MIB));
            let block = pool.allocate(&request()).unwrap();
            pool.recycle(block).unwrap();
            pool
        });
        let before = raw.counters();
        drop(pools);
        assert_eq!(raw.counters().releases, before.releases, "a drop calls no driver");
    }
    assert!(raw.counters().live_allocations < 20, "beyond the limits of the queue requests free them");
    // The pieces of the outer one come into the queue of the inner one.
    let inner = Arc::new(Pool::new(device.driver_memory(), PoolOptions::device(256).chunks(MIB, MIB)));
    let outer = Pool::new(inner, PoolOptions::device(256).chunks(MIB / 4, MIB / 4));
    outer.recycle(outer.allocate(&request()).unwrap()).unwrap();
    drop(outer);
    device.flush().unwrap();
    assert_eq!((raw.counters().live_allocations, device.take_errors()), (0, Vec::new()));
}

/// What is below a resource that gives nothing back goes back when the device is closed: after its last uses, which an adversarial
/// stream makes late.
#[test]
fn a_pool_below_one_that_trims_nothing_gives_its_pieces_back() {
    for is_on_pool in [false, true] {
        let (device, raw) = device(HostOptions::new().adversarial(3));
        let upstream = match is_on_pool {
            false => device.driver_memory(),
            true => device.memory_resource(MemoryKind::Device).unwrap(),
        };
        let pool = Arc::new(Pool::new(upstream, PoolOptions::device(256).chunks(MIB, MIB)));
        let above = Altered { upstream: pool, bytes: |bytes| bytes, align: None };
        device.set_memory_resource(MemoryKind::Device, Arc::new(above)).unwrap();
        let streams = [device.stream().unwrap(), device.stream().unwrap()];
        let arrays = [3, 5, 7].map(|size| device.device_array::<u32, _>(size * 1000).unwrap());
        for mut array in arrays {
            streams.iter().for_each(|stream| stream.fill(&mut array, 1).unwrap());
        }
        drop((streams, device));
        let is_free = || raw.counters().live_allocations == 0;
        let mut looks = (0..60_000).map(|_| thread::sleep(Duration::from_millis(1)));
        assert!(is_free() || looks.any(|()| is_free()), "on a pool: {is_on_pool}");
    }
}

#[test]
fn memory_is_never_unused_for_the_longest_time() {
    let options = PoolOptions::device(256).chunks(MIB, MIB).release_empty_before_grow(false);
    let (device, arrays) = pieces(options.idle_timeout(Duration::MAX));
    drop(arrays);
    device.trim(Trim { unused_for: Duration::MAX, ..Trim::UNUSED }).unwrap();
    assert_eq!(look(&device, 6 * MIB), 4 * MIB);
    device.trim(Trim::UNUSED).unwrap();
    assert_eq!(statistics(&device, MemoryKind::Device).reserved, 0);
}

#[test]
fn memory_unused_for_long_is_freed() {
    for by_itself in [true, false] {
        // A busy machine may take a thread away for as long as a piece is kept: then they are kept for longer.
        let times = [300, 1500, 7500].map(Duration::from_millis);
        assert!(times.into_iter().any(|time| keeps_for(time, by_itself)), "threads stand still for seconds");
    }
}

/// Checks how much a pool keeps for that time. Returns `false` if this thread was too slow to tell.
fn keeps_for(time: Duration, by_itself: bool) -> bool {
    let options = PoolOptions::device(256).chunks(MIB, MIB).release_empty_before_grow(false);
    let (device, mut arrays) = pieces(if by_itself { options.idle_timeout(time) } else { options });
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
    let unused = Instant::now();
    arrays.truncate(2);
    touch();
    let kept = trim();
    if unused.elapsed() >= time {
        return false;
    }
    assert_eq!(kept, 4, "nothing has been unused for long");
    thread::sleep(time / 2);
    // In use again, and unused anew: the time starts again.
    let again: DeviceArray<u8, Ix1, Host> = device.uninit_array(MIB).unwrap().fill(2).unwrap();
    device.synchronize().unwrap();
    let unused = Instant::now();
    drop(again);
    touch();
    thread::sleep(time * 2 / 3);
    let kept = trim();
    if unused.elapsed() >= time {
        return false;
    }
    assert_eq!(kept, 3, "one piece of two has been unused for long");
    // The pool is not asked meanwhile: the time of the free counts.
    arrays.truncate(1);
    touch();
    thread::sleep(time + time / 10);
    assert_eq!(trim(), 1);
    assert_eq!(arrays[0].get(0).unwrap(), 1);
    true
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
