//! Recordings of the use of memory, and their replay.

use crate::{Lab, Level, Verdict, skip};
use gpumem_core::{Backend, ErrorKind};
use gpumem_runtime::{
    Device,
    memory::{MemoryResource, Pool, named},
    trace::{RecorderOptions, Recording, ReplayOptions, Trace, TraceEventKind},
};
use ndarray::Array1;
use std::{sync::Arc, thread};

cases! { Level::Stream;
    a_recording_holds_what_happened,
    a_recording_can_be_done_again,
}

fn record<B: Backend>(device: &Device<B>) -> Verdict<Recording<B>> {
    match device.record_memory(RecorderOptions::default()) {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidArgument { .. }) => {
            skip("this whole program is being recorded")
        }
        recording => Ok(recording?),
    }
}

/// Two streams use one array, which another thread drops; and one comes back through page-locked memory.
fn scenario<B: Backend>(device: &Device<B>) -> Verdict<Trace> {
    let recording = record(device)?;
    let (first, second) = (device.stream()?, device.stream()?);
    let mut array = named("recorded", || first.device_array::<f32, _>(50_000))?;
    second.fill(&mut array, 1.5)?;
    let back = second.copy_to_host(&array)?;
    thread::scope(|scope| {
        scope.spawn(move || drop(array));
    });
    let again = first.uninit_array::<f32, _>(50_000)?;
    second.synchronize()?;
    assert_eq!(back.view()?, Array1::from_elem(50_000, 1.5f32));
    drop((back, again));
    Ok(recording.finish())
}

fn a_recording_holds_what_happened<B: Backend>(lab: &Lab<B>) -> Verdict {
    let trace = scenario(lab.device())?;
    let count = |of: fn(&TraceEventKind) -> bool| trace.events.iter().filter(|event| of(&event.what)).count();
    let made = count(|what| matches!(what, TraceEventKind::Allocate { .. }));
    assert!(made >= 3 && trace.lost == 0, "{trace:?}");
    let freed = count(|what| matches!(what, TraceEventKind::Free { .. }));
    assert!(freed >= 3 && trace.streams.len() >= 2 && trace.threads.len() >= 2, "{trace:?}");
    assert!(count(|what| matches!(what, TraceEventKind::Use { write: true, stream: Some(_), .. })) >= 3);
    assert!(
        count(|what| matches!(what, TraceEventKind::Wait { stream: None, .. })) >= 1,
        "the host has waited"
    );
    let read = Trace::from_json(&trace.to_json());
    assert!(read.is_ok_and(|read| read == trace), "a written trace is read back unchanged");
    let peaks = trace.peaks();
    let holders = || peaks.iter().flat_map(|peak| &peak.holders);
    assert!(holders().any(|holder| holder.named && holder.name == "recorded" && holder.bytes == 200_000));
    assert!(
        peaks.iter().all(|peak| peak.bytes == peak.holders.iter().map(|holder| holder.bytes).sum::<u64>())
    );
    assert!(trace.to_perfetto().contains("recorded"));
    Ok(())
}

fn a_recording_can_be_done_again<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let trace = scenario(device)?;
    let driver = device.driver_memory();
    for pooled in [true, false] {
        for (threads, work) in [(true, 0), (true, 1 << 16), (false, 1 << 16)] {
            let options = ReplayOptions { threads, work, ..ReplayOptions::default() };
            let report = device.replay_memory(&trace, options, |kind| {
                let resource: Arc<dyn MemoryResource<B>> = match pooled {
                    true => Arc::new(Pool::new(driver.clone(), device.pool_options(kind))),
                    false => driver.clone(),
                };
                Ok(resource)
            })?;
            assert_eq!((report.failures, report.refused), (0, 0), "{report}");
            assert!(report.allocations >= 3 && report.frees >= 3 && report.uses > 0, "{report}");
            assert!(report.peak_reserved >= report.peak_used && report.peak_used >= 400_000, "{report}");
        }
    }
    Ok(())
}
