//! Memory through the whole library: arrays made and dropped, by one thread and by eight, with many holes, in several
//! orders; compared with the backend's allocator.

use crate::{Bench, Measure, Pair, Routine};
use anyhow::{Context, Result};
use gpumem::memory::tlsf::{AllocatedBlock, Tlsf};
use gpumem_core::{AllocationRequest, Attach, DriverDevice, MemoryKind};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{Device, Stream};
use std::{
    hint::black_box,
    sync::Barrier,
    time::{Duration, Instant},
};

pub(super) fn all() -> Vec<Bench> {
    let mut benches: Vec<Bench> = [("256B", 256), ("4KiB", 4 << 10), ("1MiB", 1 << 20), ("64MiB", 64 << 20)]
        .map(|(name, bytes)| pair(name, bytes))
        .into();
    benches.push(resource("4KiB", 4 << 10));
    benches.push(pinned("64KiB", 64 << 10));
    benches.push(managed("64KiB", 64 << 10));
    benches.extend([2, 4, 8].map(threads));
    benches.extend([10, 1000, 100_000, 1_000_000].map(holes));
    benches.extend([Order::Same, Order::Reverse, Order::Shuffled].map(orders));
    benches
}

fn device() -> Result<Device<Host>> {
    Ok(Device::from_raw(Host::open_with(&HostOptions::new())?))
}

/// The backend's own allocation and release, for a kind of memory.
fn raw(device: &Device<Host>, bytes: usize, kind: MemoryKind) -> Routine {
    let raw = device.raw().clone();
    let request = AllocationRequest { bytes, align: 256, kind };
    Routine::call(move || {
        // SAFETY: well formed, never read, freed at once.
        let buffer = unsafe { raw.allocate(&request)? };
        // SAFETY: nothing uses it.
        Ok(unsafe { raw.release(buffer) }.map_err(|(_, error)| error)?)
    })
}

/// An array on a stream, made and dropped: the whole of what a user calls.
fn pair(name: &str, bytes: usize) -> Bench {
    Bench::new(format!("alloc_free/array/{name}"), "the backend's allocator", Measure::Latency, move || {
        let device = device()?;
        let stream = device.stream()?;
        let reference = raw(&device, bytes, MemoryKind::Device);
        let ours = Routine::call(move || Ok(black_box(stream.uninit_array::<u8, _>(bytes)?).shape()[0]));
        Ok(Pair { ours, reference })
    })
}

/// A block of the pool by itself, allocated and freed, as RMM's benches of its resources measure.
fn resource(name: &str, bytes: usize) -> Bench {
    Bench::new(format!("alloc_free/pool/{name}"), "the backend's allocator", Measure::Latency, move || {
        let device = device()?;
        let stream = device.stream()?;
        let reference = raw(&device, bytes, MemoryKind::Device);
        let pool = device.memory_resource(MemoryKind::Device)?;
        let ours = Routine::call(move || {
            let block = pool.allocate(&stream.device().memory_request(bytes, MemoryKind::Device))?;
            pool.recycle(black_box(block)).ok().context("a pool takes everything back")
        });
        Ok(Pair { ours, reference })
    })
}

fn pinned(name: &str, bytes: usize) -> Bench {
    Bench::new(format!("alloc_free/pinned/{name}"), "the backend's allocator", Measure::Latency, move || {
        let device = device()?;
        let reference = raw(&device, bytes, MemoryKind::Pinned);
        let ours =
            Routine::call(move || Ok(black_box(device.uninit_pinned_array::<u8, _>(bytes)?).shape()[0]));
        Ok(Pair { ours, reference })
    })
}

fn managed(name: &str, bytes: usize) -> Bench {
    Bench::new(format!("alloc_free/managed/{name}"), "the backend's allocator", Measure::Latency, move || {
        let device = device()?;
        let kind = MemoryKind::Managed(Attach::Global);
        let reference = raw(&device, bytes, kind);
        let ours = Routine::call(move || {
            Ok(black_box(device.uninit_managed_array::<u8, _>(bytes, Attach::Global)?).shape()[0])
        });
        Ok(Pair { ours, reference })
    })
}

/// Nanoseconds per pair over all threads, each on its own stream, compared with one thread. Less than 1 is a gain.
fn threads(count: usize) -> Bench {
    Bench::new(format!("alloc_free/threads/4KiB/{count}"), "one thread", Measure::Latency, move || {
        Ok(Pair { ours: together(count)?, reference: together(1)? })
    })
}

fn together(count: usize) -> Result<Routine> {
    let device = device()?;
    let streams: Vec<Stream<Host>> =
        (0..count).map(|_| device.stream()).collect::<gpumem_core::Result<_>>()?;
    Ok(Routine::clocked(move |calls| {
        let each = calls.div_ceil(count as u64);
        let (ready, done) = (Barrier::new(count + 1), Barrier::new(count + 1));
        let took: Result<Duration> = std::thread::scope(|scope| {
            let work = |stream: &Stream<Host>| -> Result<()> {
                ready.wait();
                let outcome = (0..each).try_for_each(|_| {
                    drop(black_box(stream.uninit_array::<u8, _>(4 << 10)?));
                    Ok(())
                });
                done.wait();
                outcome
            };
            let workers: Vec<_> = streams.iter().map(|stream| scope.spawn(move || work(stream))).collect();
            ready.wait();
            let start = Instant::now();
            done.wait();
            let took = start.elapsed();
            for worker in workers {
                worker.join().ok().context("a thread has panicked")??;
            }
            Ok(took)
        });
        Ok(took?.mul_f64(calls as f64 / (each * count as u64) as f64))
    }))
}

/// A block of 1 KiB from an allocator with so many free blocks, compared with ten. The blocks have many sizes.
fn holes(count: usize) -> Bench {
    Bench::new(format!("fragmentation/holes/{count}"), "ten holes", Measure::Scaling, move || {
        Ok(Pair { ours: with_holes(count)?, reference: with_holes(10)? })
    })
}

fn with_holes(count: usize) -> Result<Routine> {
    let mut tlsf = Tlsf::new(256);
    tlsf.add_region(0, 1 << 44).context("no region")?;
    let blocks: Vec<AllocatedBlock> = (0..2 * count)
        .map(|number| tlsf.allocate(Tlsf::IDLE, 1024 + 256 * (number as u64 % 61), 256))
        .collect::<Option<_>>()
        .context("no block")?;
    blocks.iter().step_by(2).for_each(|block| {
        tlsf.free(block.block, Tlsf::IDLE, 0);
    });
    Ok(Routine::call(move || {
        let block = tlsf.allocate(Tlsf::IDLE, 1024, 256).context("no block")?;
        Ok(tlsf.free(black_box(block).block, Tlsf::IDLE, 0))
    }))
}

/// The order in which blocks come back, as in Umpire's stress test of its pools.
#[derive(Debug, Clone, Copy)]
enum Order {
    Same,
    Reverse,
    Shuffled,
}

/// Nanoseconds of a block in a round of 512 of 64 KiB that are made, and then dropped in that order.
fn orders(order: Order) -> Bench {
    const BLOCKS: usize = 512;
    let name = format!("alloc_free/free_order/{}", format!("{order:?}").to_lowercase());
    Bench::new(name, "the backend's allocator", Measure::Latency, move || {
        let device = device()?;
        let reference = raw(&device, 64 << 10, MemoryKind::Device);
        let stream = device.stream()?;
        let mut random = 1u64;
        let ours = Routine::clocked(move |calls| {
            let (mut done, mut took) = (0, Duration::ZERO);
            while done < calls {
                let start = Instant::now();
                let mut arrays = Vec::with_capacity(BLOCKS);
                for _ in 0..BLOCKS {
                    arrays.push(Some(stream.uninit_array::<u8, _>(64 << 10)?));
                }
                took += start.elapsed();
                match order {
                    Order::Same => {}
                    Order::Reverse => arrays.reverse(),
                    Order::Shuffled => {
                        for index in (1..BLOCKS).rev() {
                            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                            arrays.swap(index, (random >> 33) as usize % (index + 1));
                        }
                    }
                }
                let start = Instant::now();
                arrays.iter_mut().for_each(|array| drop(array.take()));
                took += start.elapsed();
                done += BLOCKS as u64;
            }
            Ok(took.mul_f64(calls as f64 / done as f64))
        });
        Ok(Pair { ours, reference })
    })
}
