//! The cost of enqueuing and ordering. The clock runs while work is enqueued and stops while it is waited for.

use super::{
    KIB, device,
    raw::{Context, Event, check},
};
use crate::{Bench, Measure, Pair, Routine};
use anyhow::Result;
use cudarc::driver::sys;
use gpumem_cuda::Cuda;
use gpumem_runtime::{DeviceArray, PinnedArray, RawAccess};
use ndarray::Ix1;
use std::time::{Duration, Instant};

/// Calls enqueued between two waits: too few to fill the driver's queue, in which case a call would wait for the
/// device.
const BATCH: u64 = 64;
const BYTES: usize = 4 * KIB;

pub(super) fn all() -> Vec<Bench> {
    let mut benches = Vec::new();
    for current in [false, true] {
        benches.extend([upload(current), fill(current), edge(current), fills(current), added(current)]);
    }
    benches
}

pub(super) fn named(name: &str, current: bool) -> String {
    if current { format!("{name}/context_current") } else { name.to_owned() }
}

/// Runs `body` as the library finds a thread: with its context current, or with none.
pub(super) fn as_found<R>(context: &Context, current: bool, body: impl FnOnce() -> Result<R>) -> Result<R> {
    if current { context.within(body) } else { body() }
}

/// Time of `calls` calls of `enqueue`, in batches that are each waited for by `wait`.
pub(super) fn batches(
    calls: u64,
    enqueue: impl FnMut() -> Result<()>,
    wait: impl FnMut() -> Result<()>,
) -> Result<Duration> {
    batches_of(BATCH, calls, enqueue, wait)
}

/// As [`batches`], of so many calls.
pub(super) fn batches_of(
    batch: u64,
    calls: u64,
    mut enqueue: impl FnMut() -> Result<()>,
    mut wait: impl FnMut() -> Result<()>,
) -> Result<Duration> {
    let (mut left, mut spent) = (calls, Duration::ZERO);
    while left > 0 {
        let now = left.min(batch);
        let start = Instant::now();
        for _ in 0..now {
            enqueue()?;
        }
        spent += start.elapsed();
        wait()?;
        left -= now;
    }
    Ok(spent)
}

/// Enqueuing a copy of 4 KiB from page-locked memory.
fn upload(current: bool) -> Bench {
    let name = named("cuda/enqueue/h2d/4KiB", current);
    Bench::new(name, "cuMemcpyHtoDAsync", Measure::Latency, move || {
        let device = device()?;
        let context = Context::of(&device);
        let mut array: DeviceArray<u8, Ix1, Cuda> = device.device_array(BYTES)?;
        let pinned: PinnedArray<u8, Ix1, Cuda> = device.pinned_array(BYTES)?;
        let other: DeviceArray<u8, Ix1, Cuda> = device.device_array(BYTES)?;
        let source: PinnedArray<u8, Ix1, Cuda> = device.pinned_array(BYTES)?;
        let (stream, raw, ours_context) = (device.stream()?, context.stream()?, context.clone());
        let ours = Routine::clocked(move |calls| {
            as_found(&ours_context, current, || {
                let enqueue = || Ok(stream.copy_to_device(&mut array, &pinned)?);
                batches(calls, enqueue, || Ok(stream.synchronize()?))
            })
        });
        let reference = Routine::clocked(move |calls| {
            let from = source.view()?.as_ptr();
            context.within(|| {
                let enqueue = || {
                    // SAFETY: both blocks are alive and as long as the copy.
                    let status =
                        unsafe { sys::cuMemcpyHtoDAsync_v2(other.address(), from.cast(), BYTES, raw.raw) };
                    check(status, "cuMemcpyHtoDAsync")
                };
                batches(calls, enqueue, || raw.synchronize())
            })
        });
        Ok(Pair { ours, reference })
    })
}

/// Enqueuing a fill of 4 KiB on one stream: the baseline of `ordering/cross_stream_fill`.
fn fill(current: bool) -> Bench {
    let name = named("cuda/enqueue/fill/4KiB", current);
    Bench::new(name, "cuMemsetD8Async", Measure::Latency, move || {
        let device = device()?;
        let context = Context::of(&device);
        let mut array: DeviceArray<u8, Ix1, Cuda> = device.device_array(BYTES)?;
        let other: DeviceArray<u8, Ix1, Cuda> = device.device_array(BYTES)?;
        let (stream, raw, ours_context) = (device.stream()?, context.stream()?, context.clone());
        let ours = Routine::clocked(move |calls| {
            as_found(&ours_context, current, || {
                batches(calls, || Ok(stream.fill(&mut array, 7)?), || Ok(stream.synchronize()?))
            })
        });
        let reference = Routine::clocked(move |calls| {
            context.within(|| {
                let enqueue = || {
                    // SAFETY: the block is alive and as long as the fill.
                    let status = unsafe { sys::cuMemsetD8Async(other.address(), 7, BYTES, raw.raw) };
                    check(status, "cuMemsetD8Async")
                };
                batches(calls, enqueue, || raw.synchronize())
            })
        });
        Ok(Pair { ours, reference })
    })
}

/// Only the work of a stream before it uses memory that another one used last: the strictest reading of the cost of a
/// cross-stream use. The use is by work that the library does not see, which takes part in the access logs before and
/// after.
fn edge(current: bool) -> Bench {
    let name = named("ordering/cross_stream_wait", current);
    Bench::new(name, "cuEventRecord, cuStreamWaitEvent", Measure::Latency, move || {
        let device = device()?;
        let context = Context::of(&device);
        let mut array: DeviceArray<u8, Ix1, Cuda> = device.device_array(BYTES)?;
        let (streams, ours_context) = ([device.stream()?, device.stream()?], context.clone());
        let mut turn = 0;
        let ours = Routine::clocked(move |calls| {
            as_found(&ours_context, current, || {
                let enqueue = || {
                    turn ^= 1;
                    // SAFETY: nothing is enqueued.
                    unsafe { streams[turn].raw_scope(&[RawAccess::write(&mut array)], |_| ())? };
                    Ok(())
                };
                let wait = || streams.iter().try_for_each(|stream| Ok(stream.synchronize()?));
                batches(calls, enqueue, wait)
            })
        });
        let mut reference = RawPair::new(&context)?;
        let reference = Routine::clocked(move |calls| {
            context.within(|| {
                let pair = std::cell::RefCell::new(&mut reference);
                batches(calls, || pair.borrow_mut().turn().map(drop), || pair.borrow().wait())
            })
        });
        Ok(Pair { ours, reference })
    })
}

/// Fills of one array on two streams in turn: a cross-stream use as programs have it, compared with the same calls of
/// the driver.
fn fills(current: bool) -> Bench {
    let name = named("ordering/cross_stream_fill/4KiB", current);
    let reference_name = "cuEventRecord, cuStreamWaitEvent, cuMemsetD8Async";
    Bench::new(name, reference_name, Measure::Latency, move || {
        let device = device()?;
        let context = Context::of(&device);
        let mut array: DeviceArray<u8, Ix1, Cuda> = device.device_array(BYTES)?;
        let other: DeviceArray<u8, Ix1, Cuda> = device.device_array(BYTES)?;
        let (streams, ours_context) = ([device.stream()?, device.stream()?], context.clone());
        let mut turn = 0;
        let ours = Routine::clocked(move |calls| {
            as_found(&ours_context, current, || {
                let enqueue = || {
                    turn ^= 1;
                    Ok(streams[turn].fill(&mut array, 7)?)
                };
                let wait = || streams.iter().try_for_each(|stream| Ok(stream.synchronize()?));
                batches(calls, enqueue, wait)
            })
        });
        let mut reference = RawPair::new(&context)?;
        let reference = Routine::clocked(move |calls| {
            context.within(|| {
                let pair = std::cell::RefCell::new(&mut reference);
                let enqueue = || {
                    let stream = pair.borrow_mut().turn()?;
                    // SAFETY: the block is alive and as long as the fill.
                    let status = unsafe { sys::cuMemsetD8Async(other.address(), 7, BYTES, stream) };
                    check(status, "cuMemsetD8Async")
                };
                batches(calls, enqueue, || pair.borrow().wait())
            })
        });
        Ok(Pair { ours, reference })
    })
}

/// The cost that a cross-stream use adds to work: fills of one array on two streams in turn, less fills of another on
/// one stream, beside the same difference of the driver's calls. Its noise is that of both parts, so it complements
/// [`edge`] and [`fills`] and replaces neither.
fn added(current: bool) -> Bench {
    let name = named("ordering/cross_stream_fill_overhead/4KiB", current);
    let reference_name = "the same, of cuEventRecord, cuStreamWaitEvent, cuMemsetD8Async";
    Bench::new(name, reference_name, Measure::Latency, move || {
        let device = device()?;
        let context = Context::of(&device);
        let array = || device.device_array(BYTES);
        let (mut shared, mut own): (DeviceArray<u8, Ix1, Cuda>, DeviceArray<u8, Ix1, Cuda>) =
            (array()?, array()?);
        let other: DeviceArray<u8, Ix1, Cuda> = array()?;
        let (streams, ours_context) =
            ([device.stream()?, device.stream()?, device.stream()?], context.clone());
        let mut turn = 0;
        let ours = Routine::clocked(move |calls| {
            as_found(&ours_context, current, || {
                let across = || {
                    turn ^= 1;
                    Ok(streams[turn].fill(&mut shared, 7)?)
                };
                let alone = || Ok(streams[2].fill(&mut own, 7)?);
                difference(calls, across, alone, || {
                    streams.iter().try_for_each(|stream| Ok(stream.synchronize()?))
                })
            })
        });
        let mut pair = RawPair::new(&context)?;
        let raw = context.stream()?;
        let reference = Routine::clocked(move |calls| {
            let fill = |stream| {
                // SAFETY: the block is alive and as long as the fill.
                let status = unsafe { sys::cuMemsetD8Async(other.address(), 7, BYTES, stream) };
                check(status, "cuMemsetD8Async")
            };
            context.within(|| {
                let pair = std::cell::RefCell::new(&mut pair);
                let across = || pair.borrow_mut().turn().and_then(fill);
                difference(
                    calls,
                    across,
                    || fill(raw.raw),
                    || {
                        pair.borrow().wait()?;
                        raw.synchronize()
                    },
                )
            })
        });
        Ok(Pair { ours, reference })
    })
}

/// The most calls for which a difference is measured: it is a small part of their time, and a full-length sample would
/// run many times longer.
const MOST_OF_A_DIFFERENCE: u64 = 32 * BATCH;

/// How much longer `calls` calls of `more` take than as many of `less`, in batches that take turns and are waited for
/// by `wait`; more than a few thousand calls are measured by a part of them. For few calls the difference may be
/// negative, which counts as zero.
fn difference(
    calls: u64,
    mut more: impl FnMut() -> Result<()>,
    mut less: impl FnMut() -> Result<()>,
    mut wait: impl FnMut() -> Result<()>,
) -> Result<Duration> {
    let made = calls.min(MOST_OF_A_DIFFERENCE);
    let (mut left, mut spent, mut saved) = (made, Duration::ZERO, Duration::ZERO);
    while left > 0 {
        let now = left.min(BATCH);
        spent += batches(now, &mut more, &mut wait)?;
        saved += batches(now, &mut less, &mut wait)?;
        left -= now;
    }
    Ok(spent.saturating_sub(saved).mul_f64(calls as f64 / made.max(1) as f64))
}

/// Two streams of the driver that take turns.
struct RawPair {
    streams: [std::rc::Rc<super::raw::Stream>; 2],
    events: [Event; 2],
    turn: usize,
}

impl RawPair {
    fn new(context: &Context) -> Result<Self> {
        let streams = [context.stream()?, context.stream()?];
        Ok(Self { streams, events: [context.event()?, context.event()?], turn: 0 })
    }

    /// Makes the next stream wait for the one before.
    fn turn(&mut self) -> Result<sys::CUstream> {
        let before = self.turn;
        self.turn ^= 1;
        self.streams[before].record(&self.events[before])?;
        self.streams[self.turn].wait(&self.events[before])?;
        Ok(self.streams[self.turn].raw)
    }

    fn wait(&self) -> Result<()> {
        self.streams.iter().try_for_each(|stream| stream.synchronize())
    }
}
