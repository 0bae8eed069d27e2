//! Host memory that is reused while a copy may still read its last owner's data.

use super::tools::{fail, same};
use crate::{Lab, Level, Verdict, skip};
use gpumem_core::{Attach, Backend, MappedOptions, MemoryKind, Result};
use gpumem_runtime::{Device, DeviceArray, HostArray, HostKind, Stream, memory::Pool};
use ndarray::{Array1, Ix1, s};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

cases! { Level::Pinned;
    uploads_keep_out_of_dropped_pinned_arrays,
    new_host_arrays_keep_out_of_dropped_ones,
    uploads_keep_out_of_flushed_blocks,
    uploads_keep_out_of_blocks_after_a_shortage,
}

/// 64 KiB of `u32`: a length that pools and staging round to the same.
const LEN: usize = 16 << 10;
const ROUNDS: u32 = 4;

/// A device array, and the number that all of its elements have.
type Filled<B> = (DeviceArray<u32, Ix1, B>, u32);

fn check<B: Backend>(arrays: Vec<Filled<B>>) -> Verdict {
    for (array, value) in arrays {
        same(array.copy_to_host()?.view(), Array1::from_elem(array.len(), value).view());
    }
    Ok(())
}

/// Runs `body` while a kind of memory comes from a pool without further memory: if a request can be served without the
/// driver, it gets the block that was just freed.
fn tight<B: Backend>(lab: &Lab<B>, kind: MemoryKind, body: impl FnOnce() -> Verdict) -> Verdict {
    let device = lab.device();
    let before = device.memory_resource(kind)?;
    let options = device.pool_options(kind).chunks(LEN, LEN);
    device.set_memory_resource(kind, Arc::new(Pool::new(device.driver_memory(), options)))?;
    let verdict = body();
    device.set_memory_resource(kind, before)?;
    verdict
}

/// Uploads on every way through page-locked blocks.
fn uploads<B: Backend>(
    device: &Device<B>,
    other: &Stream<B>,
    len: usize,
    value: u32,
) -> Result<Vec<Filled<B>>> {
    let host = |value| Array1::from_elem(len, value);
    let wide = Array1::from_elem(2 * len, value + 3);
    Ok(vec![
        (device.to_device(&host(value))?, value),
        (other.to_device(&host(value + 1))?, value + 1),
        (device.to_device(&host(value + 2).slice(s![..;-1]))?, value + 2),
        (other.to_device(&wide.slice(s![..;2]))?, value + 3),
    ])
}

/// Enqueues copies out of host arrays after a delay, and drops these at once.
fn drop_in_flight<K: HostKind, B: Backend>(
    lab: &Lab<B>,
    stream: &Stream<B>,
    len: usize,
    value: u32,
    make: impl Fn() -> Result<HostArray<K, u32, Ix1, B>>,
) -> Result<Vec<Filled<B>>> {
    let mut late = Vec::new();
    for value in value..value + 4 {
        let mut source = make()?;
        source.view_mut()?.fill(value);
        let mut array = stream.device_array::<u32, _>(len)?;
        if late.is_empty() {
            lab.delay(stream)?;
        }
        stream.copy_to_device(&mut array, &source)?;
        late.push((array, value));
    }
    Ok(late)
}

fn uploads_keep_out_of_dropped_pinned_arrays<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let (stream, other) = (device.stream()?, device.stream()?);
    tight(lab, MemoryKind::Pinned, || {
        for len in [LEN, 32 * LEN] {
            for round in 0..ROUNDS {
                // The uploads of the round before have left blocks that would serve these.
                device.flush()?;
                let value = 100 * round + len as u32;
                let late = drop_in_flight(lab, &stream, len, value, || device.pinned_array(len))?;
                check(uploads(device, &other, len, value + 50)?)?;
                check(late)?;
            }
        }
        Ok(())
    })
}

fn new_host_arrays_keep_out_of_dropped_ones<B: Backend>(lab: &Lab<B>) -> Verdict {
    fn of_kind<K: HostKind, B: Backend>(
        lab: &Lab<B>,
        kind: MemoryKind,
        make: impl Fn() -> Result<HostArray<K, u32, Ix1, B>>,
    ) -> Verdict {
        tight(lab, kind, || {
            let stream = lab.device().stream()?;
            for round in 0..ROUNDS {
                let late = drop_in_flight(lab, &stream, LEN, 100 * round, &make)?;
                let mut fresh = (0..4).map(|_| make()).collect::<Result<Vec<_>>>()?;
                for array in &mut fresh {
                    same(array.view()?, Array1::zeros(LEN).view());
                    array.view_mut()?.fill(9);
                }
                check(late)?;
            }
            Ok(())
        })
    }
    let device = lab.device();
    of_kind(lab, MemoryKind::Pinned, || device.pinned_array(LEN))?;
    of_kind(lab, MemoryKind::Pinned, || device.uninit_pinned_array(LEN)?.fill(0))?;
    let has = device.capabilities();
    if has.mapped {
        let options = MappedOptions::default();
        of_kind(lab, MemoryKind::Mapped(options), || device.mapped_array(LEN, options))?;
    }
    if has.managed {
        let attach = Attach::Global;
        of_kind(lab, MemoryKind::Managed(attach), || device.managed_array(LEN, attach))?;
    }
    Ok(())
}

/// The next caller may get memory that a flush took out of the staging pool, while copies still read it.
fn uploads_keep_out_of_flushed_blocks<B: Backend>(lab: &Lab<B>) -> Verdict {
    uploads_keep_out_while(lab, |device| Ok(device.flush()?))
}

/// As a flush does, so does an allocation that finds no memory.
fn uploads_keep_out_of_blocks_after_a_shortage<B: Backend>(lab: &Lab<B>) -> Verdict {
    let total = lab.device().info().total_memory;
    let Some(much) = total.checked_mul(2).filter(|much| *much < isize::MAX as usize) else {
        return skip("there is no end to its memory");
    };
    uploads_keep_out_while(lab, |device| match device.uninit_array::<u8, _>(much) {
        Err(error) if error.is_out_of_memory() => Ok(()),
        found => fail(format!("{much} bytes of {total}: {found:?}")),
    })
}

/// Uploads on one stream, while a thread runs `empty` and late copies read the blocks of another stream's uploads.
/// `empty` frees these blocks and then waits for the copies: no copy is late when it returns.
fn uploads_keep_out_while<B: Backend>(lab: &Lab<B>, empty: impl Fn(&Device<B>) -> Verdict + Sync) -> Verdict {
    let device = lab.device();
    let (stream, other) = (device.stream()?, device.stream()?);
    tight(lab, MemoryKind::Pinned, || {
        for round in 0..ROUNDS {
            let value = 1000 * round;
            let late = staged(lab, &stream, value)?;
            let is_over = AtomicBool::new(false);
            let early = thread::scope(|threads| -> Verdict<Vec<Filled<B>>> {
                let emptying = threads.spawn(|| {
                    let verdict = empty(device);
                    is_over.store(true, Ordering::Release);
                    verdict
                });
                let mut early = Vec::new();
                while !is_over.load(Ordering::Acquire) && early.len() < 64 {
                    early.extend(uploads(device, &other, LEN, value + 10 + early.len() as u32)?);
                    thread::yield_now();
                }
                emptying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                Ok(early)
            })?;
            check(late)?;
            check(early)?;
        }
        Ok(())
    })
}

/// Uploads under way, each in a separate block, after a delay.
fn staged<B: Backend>(lab: &Lab<B>, stream: &Stream<B>, first: u32) -> Result<Vec<Filled<B>>> {
    lab.delay(stream)?;
    (first..first + 4).map(|value| Ok((stream.to_device(&Array1::from_elem(LEN, value))?, value))).collect()
}
