//! Memory allocated and freed, compared with the driver's two allocators.

use super::{
    KIB, MIB, device,
    raw::{Context, check},
    size,
};
use crate::{Bench, Measure, Pair, Routine};
use anyhow::{Context as _, Result};
use cudarc::driver::sys;
use gpumem_core::MemoryKind;
use std::{hint::black_box, ptr::null_mut};

pub(super) fn all() -> Vec<Bench> {
    let mut benches = Vec::new();
    for bytes in [256, 64 * KIB, MIB, 64 * MIB, 256 * MIB] {
        benches.push(beside_the_driver(bytes));
        benches.push(beside_its_pool("stream_ordered_alloc_free", bytes, ours));
    }
    benches.push(beside_its_pool("pool_alloc_free", 64 * KIB, pool));
    for bytes in [64 * KIB, MIB, 64 * MIB] {
        benches.push(pinned(bytes));
    }
    benches
}

fn ours(bytes: usize) -> Result<Routine> {
    let device = device()?;
    Ok(Routine::call(move || Ok(black_box(device.uninit_array::<u8, _>(bytes)?).shape()[0])))
}

/// A block of the pool by itself, as RMM's benches of its resources measure.
fn pool(bytes: usize) -> Result<Routine> {
    let device = device()?;
    let stream = device.stream()?;
    let pool = device.memory_resource(MemoryKind::Device)?;
    Ok(Routine::call(move || {
        let block = pool.allocate(&stream.device().memory_request(bytes, MemoryKind::Device))?;
        pool.recycle(black_box(block)).ok().context("a pool takes everything back")
    }))
}

fn beside_the_driver(bytes: usize) -> Bench {
    let name = format!("cuda/alloc_free/{}", size(bytes));
    Bench::new(name, "cuMemAlloc, cuMemFree", Measure::Latency, move || {
        let context = Context::of(&device()?);
        let reference = Routine::clocked(move |calls| {
            context.time(|| {
                for _ in 0..calls {
                    let mut address = 0;
                    // SAFETY: a place for an address; the block is freed unused.
                    unsafe {
                        check(sys::cuMemAlloc_v2(&mut address, bytes), "cuMemAlloc")?;
                        check(sys::cuMemFree_v2(black_box(address)), "cuMemFree")?;
                    }
                }
                Ok(())
            })
        });
        Ok(Pair { ours: ours(bytes)?, reference })
    })
}

fn beside_its_pool(what: &str, bytes: usize, ours: fn(usize) -> Result<Routine>) -> Bench {
    let name = format!("cuda/{what}/{}", size(bytes));
    Bench::new(name, "cuMemAllocAsync, cuMemFreeAsync", Measure::Latency, move || {
        let context = Context::of(&device()?);
        let stream = context.stream()?;
        keep_memory(&context)?;
        let reference = Routine::clocked(move |calls| {
            let took = context.time(|| {
                for _ in 0..calls {
                    let mut address = 0;
                    // SAFETY: a place for an address; the block is freed unused.
                    unsafe {
                        check(sys::cuMemAllocAsync(&mut address, bytes, stream.raw), "cuMemAllocAsync")?;
                        check(sys::cuMemFreeAsync(black_box(address), stream.raw), "cuMemFreeAsync")?;
                    }
                }
                Ok(())
            })?;
            context.within(|| stream.synchronize())?;
            Ok(took)
        });
        Ok(Pair { ours: ours(bytes)?, reference })
    })
}

/// Tells the driver's pool to keep its memory. By default it releases everything at every wait, which would be measured
/// too.
fn keep_memory(context: &Context) -> Result<()> {
    context.within(|| {
        let (mut pool, mut threshold) = (null_mut(), u64::MAX);
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: a place for a handle; the attribute is a number of 64 bits.
        unsafe {
            check(sys::cuDeviceGetDefaultMemPool(&mut pool, context.ordinal()), "cuDeviceGetDefaultMemPool")?;
            let value = (&raw mut threshold).cast();
            check(sys::cuMemPoolSetAttribute(pool, attribute, value), "cuMemPoolSetAttribute")
        }
    })
}

fn pinned(bytes: usize) -> Bench {
    let name = format!("cuda/pinned_alloc_free/{}", size(bytes));
    Bench::new(name, "cuMemHostAlloc, cuMemFreeHost", Measure::Latency, move || {
        let device = device()?;
        let context = Context::of(&device);
        let ours =
            Routine::call(move || Ok(black_box(device.uninit_pinned_array::<u8, _>(bytes)?).shape()[0]));
        let reference = Routine::clocked(move |calls| {
            context.time(|| {
                for _ in 0..calls {
                    let mut pointer = null_mut();
                    // SAFETY: a place for a pointer; the block is freed unused.
                    unsafe {
                        let flags = sys::CU_MEMHOSTALLOC_PORTABLE;
                        check(sys::cuMemHostAlloc(&mut pointer, bytes, flags), "cuMemHostAlloc")?;
                        check(sys::cuMemFreeHost(black_box(pointer)), "cuMemFreeHost")?;
                    }
                }
                Ok(())
            })
        });
        Ok(Pair { ours, reference })
    })
}
