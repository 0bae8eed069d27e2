//! The cost of ordering and memory: events on one stream (none), enqueuing, allocating.

use crate::{Bench, Measure, Pair, Routine};
use anyhow::Result;
use gpumem::{Device, DeviceArray, any::Typed};
use gpumem_core::{
    AllocationRequest, CopyRegion, DeviceBuffer, DriverDevice, MemoryKind, Space, Stream as _,
};
use gpumem_host::Host;
use ndarray::Ix1;
use std::hint::black_box;

const BYTES: usize = 4 << 10;

pub(super) fn all() -> Vec<Bench> {
    vec![events(), enqueue(), allocate("4KiB", 4 << 10), allocate("1MiB", 1 << 20)]
}

/// Uploads, copies, fills and downloads on one stream make no event. The reference is the allowed number.
fn events() -> Bench {
    Bench::new("order/events/one_stream", "none", Measure::Count, || {
        let ours = Routine::count(|| {
            let device = crate::device()?;
            let stream = device.stream()?;
            let before = (device.counters(), events_created(&device));
            let mut array = stream.to_device(&vec![1.0_f32; 1000])?;
            for value in 0..100 {
                let copy = stream.to_device(&array)?;
                stream.fill(&mut array, value as f32)?;
                stream.copy_to_device(&mut array, &copy)?;
            }
            black_box(stream.copy_to_host(&array)?.copy_to_host()?);
            stream.synchronize()?;
            let after = (device.counters(), events_created(&device));
            let recorded = after.0.records + after.0.waits - before.0.records - before.0.waits;
            Ok(recorded + after.1 - before.1)
        });
        Ok(Pair { ours, reference: Routine::count(|| Ok(0)) })
    })
}

/// Events of the host backend; the others do not count theirs. The library records every event once.
fn events_created(device: &Device) -> u64 {
    let host: Option<&gpumem_host::Device> = Typed::<Host>::as_typed(device.raw());
    host.map_or(0, |host| host.counters().events_created)
}

/// A copy of 4 KiB between two arrays, through the runtime and through the backend trait. Waited for every 64 copies.
fn enqueue() -> Bench {
    const BATCH: u64 = 64;
    Bench::new("order/enqueue/4KiB", "the backend alone", Measure::Latency, || {
        let device = crate::device()?;
        let make = || -> Result<DeviceArray<u8, Ix1>> { Ok(device.device_array(BYTES)?) };
        let (source, mut destination, stream) = (make()?, make()?, device.stream()?);
        let (from, to) = (make()?, make()?);
        let raw = device.raw().create_stream(&gpumem_core::StreamOptions::default())?;
        let space = Space::Device(device.info().ordinal);
        let region = CopyRegion::linear((from.address(), space), (to.address(), space), BYTES);
        Ok(Pair {
            ours: Routine::batch(move |calls| {
                for call in 1..=calls {
                    stream.copy_to_device(&mut destination, &source)?;
                    if call % BATCH == 0 || call == calls {
                        stream.synchronize()?;
                    }
                }
                Ok(())
            }),
            reference: Routine::batch(move |calls| {
                let _alive = (&from, &to);
                for call in 1..=calls {
                    // SAFETY: both arrays are alive and as long as the region, and nothing else uses them.
                    unsafe { raw.copy(&region)? };
                    if call % BATCH == 0 || call == calls {
                        raw.synchronize()?;
                    }
                }
                Ok(())
            }),
        })
    })
}

/// Memory made and dropped, its freeing included, compared with the allocator's own zeroed memory.
fn allocate(name: &str, bytes: usize) -> Bench {
    Bench::new(format!("alloc_free/backend/{name}"), "calloc and free", Measure::Latency, move || {
        let device = crate::device()?;
        let request = AllocationRequest { bytes, align: 64, kind: MemoryKind::Device };
        // SAFETY: well formed, never written, and freed at once.
        let probe = unsafe { device.raw().allocate(&request)? };
        anyhow::ensure!(probe.len() == bytes, "a block has the length that was asked for");
        // SAFETY: nothing uses it.
        unsafe { device.raw().release(probe) }.map_err(|(_, error)| error)?;
        Ok(Pair {
            ours: Routine::call(move || Ok(black_box(device.uninit_array::<u8, _>(bytes)?).shape()[0])),
            reference: Routine::call(move || Ok(black_box(vec![0_u8; black_box(bytes)]).len())),
        })
    })
}
