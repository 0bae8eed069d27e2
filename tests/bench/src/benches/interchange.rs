//! What it costs to take in memory of others and to lend ours: descriptors, no copies.

use crate::{Bench, Measure, Pair, Routine};
use anyhow::Result;
use gpumem_core::Backend;
use gpumem_host::Host;
use gpumem_runtime::{Device, ImportedArray, Stream, StreamHandle};
use ndarray::Ix2;
use std::hint::black_box;

pub(super) fn all() -> Vec<Bench> {
    vec![
        lend(),
        lend_to_handle(),
        dlpack(),
        dlpack_and_back(false),
        dlpack_and_back(true),
        import(false),
        import(true),
    ]
}

type Parts = (Device<Host>, Stream<Host>);

fn parts() -> Result<Parts> {
    let device = Device::<Host>::open("host")?;
    let stream = device.stream()?;
    Ok((device, stream))
}

/// What ordering by events costs at least: one recorded, one waited for.
fn edge(device: &Device<Host>) -> Result<Routine> {
    let options = gpumem_core::StreamOptions::default();
    let streams =
        (Host::create_stream(device.raw(), &options)?, Host::create_stream(device.raw(), &options)?);
    let event = Host::create_event(device.raw(), gpumem_core::EventOptions::default())?;
    Ok(Routine::call(move || {
        Host::record(&streams.0, &event)?;
        Ok(Host::wait(&streams.1, &event)?)
    }))
}

/// A loan with its descriptor, made and ended.
fn lend() -> Bench {
    Bench::new("interchange/lend/cuda array", "an event and a wait", Measure::Latency, || {
        let (device, stream) = parts()?;
        let (array, reference) = (device.device_array::<f32, _>((64, 64))?, edge(&device)?);
        let ours = Routine::call(move || Ok(black_box(array.lend(&stream)?.describe()).version));
        Ok(Pair { ours, reference })
    })
}

/// A DLPack tensor, made and deleted.
fn dlpack() -> Bench {
    Bench::new("interchange/lend/dlpack", "an event and a wait", Measure::Latency, || {
        let (device, _) = parts()?;
        let (array, reference) = (device.device_array::<f32, _>((64, 64))?, edge(&device)?);
        device.synchronize()?;
        let ours = Routine::call(move || Ok(black_box(array.lend_to_host()?.into_dlpack()?).is_versioned()));
        Ok(Pair { ours, reference })
    })
}

/// A loan to a stream of somebody else, which is only known by its handle.
fn lend_to_handle() -> Bench {
    Bench::new("interchange/lend/to a handle", "an event and a wait", Measure::Latency, || {
        let (device, stream) = parts()?;
        let (array, reference) = (device.device_array::<f32, _>((64, 64))?, edge(&device)?);
        let handle = StreamHandle::Handle(stream.raw_handle()?);
        let ours = Routine::call(move || {
            // SAFETY: the stream lives as long as this routine.
            let loan = unsafe { array.lend_to_handle(handle)? };
            Ok((black_box(loan.describe()).version, stream.query()?))
        });
        Ok(Pair { ours, reference })
    })
}

/// A DLPack tensor made, taken in again, with and without a stream that its producer was told of, and deleted.
fn dlpack_and_back(waits: bool) -> Bench {
    let name =
        if waits { "interchange/dlpack out and in, with a stream" } else { "interchange/dlpack out and in" };
    Bench::new(name, "an event and a wait", Measure::Latency, move || {
        let (device, stream) = parts()?;
        let (array, reference) = (device.device_array::<f32, _>((64, 64))?, edge(&device)?);
        device.synchronize()?;
        let ours = Routine::call(move || {
            let tensor = array.lend_to_host()?.into_dlpack()?;
            let taken: ImportedArray<f32, Ix2, Host> =
                device.from_dlpack(tensor, waits.then_some(&stream))?;
            Ok(black_box(taken.len()))
        });
        Ok(Pair { ours, reference })
    })
}

/// A descriptor taken as an array and let go again, with and without a stream to wait for.
fn import(waits: bool) -> Bench {
    let name = if waits {
        "interchange/import/cuda array, with its stream"
    } else {
        "interchange/import/cuda array"
    };
    Bench::new(name, "an event and a wait", Measure::Latency, move || {
        let (device, stream) = parts()?;
        let (array, reference) = (device.device_array::<f32, _>((64, 64))?, edge(&device)?);
        let mut descriptor = array.lend(&stream)?.describe();
        descriptor.stream = descriptor.stream.filter(|_| waits);
        let ours = Routine::call(move || {
            // SAFETY: the array outlives what is made of its descriptor.
            let taken: ImportedArray<f32, Ix2, Host> =
                unsafe { device.from_cuda_array_interface(&descriptor, ())? };
            Ok((black_box(taken.len()), array.len()))
        });
        Ok(Pair { ours, reference })
    })
}
