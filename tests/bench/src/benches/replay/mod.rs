//! The cost of recording, and recorded traces replayed over a pool and over the driver itself.
//!
//! `replay/..` gives nanoseconds of an allocation or a free, with all costs of one: the handle, the access log, the
//! deferred queue. `replay/peak_MiB/..` compares the most that a pool held with the most that was in use.

mod synthetic;

use crate::{Bench, Measure, Pair, Routine, device};
use anyhow::{Result, ensure};
use gpumem::{
    AnyBackend, Device, MemoryKind,
    memory::{MemoryResource, Pool},
    trace::{RecorderOptions, ReplayOptions, ReplayReport, Trace},
};
use std::{
    collections::HashMap,
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};
use synthetic::Synthetic;

/// The photo example, recorded on the host.
const PHOTO: &str = include_str!("photo.json");

pub(super) fn all() -> Vec<Bench> {
    let few = Synthetic { seed: 1, threads: 1, streams: 1, steps: 4000, most_bytes: 64 << 20, foreign: 0 };
    let many = Synthetic { seed: 2, threads: 4, streams: 8, foreign: 25, ..few };
    type Make = Box<dyn Fn() -> Result<Trace>>;
    let traces: [(&str, Make); 3] = [
        ("photo", Box::new(|| Ok(Trace::from_json(PHOTO)?))),
        ("1_thread_1_stream", Box::new(move || few.trace())),
        ("4_threads_8_streams", Box::new(move || many.trace())),
    ];
    let mut benches = vec![recorded("memory", RecorderOptions::default())];
    benches.push(recorded("full", RecorderOptions { limit_bytes: 1 << 20, ..RecorderOptions::default() }));
    for (name, make) in traces {
        let make: Arc<dyn Fn() -> Result<Trace>> = Arc::from(make);
        let again = make.clone();
        benches.push(Bench::new(
            format!("replay/{name}"),
            "the driver's own memory",
            Measure::Latency,
            move || {
                let trace = Arc::new(make()?);
                Ok(Pair {
                    ours: each_operation(trace.clone(), true)?,
                    reference: each_operation(trace, false)?,
                })
            },
        ));
        benches.push(Bench::new(
            format!("replay/peak_MiB/{name}"),
            "what is in use",
            Measure::Count,
            move || {
                let trace = again()?;
                let report = Replay::new(trace, true)?.run()?;
                let mib = |bytes: u64| Routine::count(move || Ok(bytes.div_ceil(1 << 20)));
                Ok(Pair { ours: mib(report.peak_reserved), reference: mib(report.peak_used) })
            },
        ));
    }
    benches
}

/// An array made and dropped while that is recorded, compared with the same without: two events.
fn recorded(name: &str, options: RecorderOptions) -> Bench {
    Bench::new(format!("record/pair/{name}"), "not recorded", Measure::Latency, move || {
        Ok(Pair { ours: pair(Some(options))?, reference: pair(None)? })
    })
}

fn pair(options: Option<RecorderOptions>) -> Result<Routine> {
    let device = device()?;
    let stream = device.stream()?;
    Ok(Routine::clocked(move |calls| {
        // Both sides are the same device, so the recording lasts for the sample.
        let recording = options.map(|options| device.record_memory(options)).transpose()?;
        let start = Instant::now();
        for _ in 0..calls {
            drop(black_box(stream.uninit_array::<u8, _>(4 << 10)?));
        }
        let took = start.elapsed();
        drop(recording);
        Ok(took)
    }))
}

/// A trace with the device and the resources over which it is done again and again.
struct Replay {
    trace: Arc<Trace>,
    device: Device,
    pooled: bool,
    resources: HashMap<MemoryKind, Arc<dyn MemoryResource<AnyBackend>>>,
}

impl Replay {
    fn new(trace: impl Into<Arc<Trace>>, pooled: bool) -> Result<Self> {
        Ok(Self { trace: trace.into(), device: device()?, pooled, resources: HashMap::new() })
    }

    fn run(&mut self) -> Result<ReplayReport> {
        let Self { trace, device, pooled, resources } = self;
        let driver = device.driver_memory();
        let report = device.replay_memory(trace, ReplayOptions::default(), |kind| {
            let make = || -> Arc<dyn MemoryResource<AnyBackend>> {
                match *pooled {
                    true => Arc::new(Pool::new(driver.clone(), device.pool_options(kind))),
                    false => driver.clone(),
                }
            };
            Ok(resources.entry(kind).or_insert_with(make).clone())
        })?;
        ensure!(report.failures == 0 && report.refused == 0, "{report}");
        Ok(report)
    }
}

/// Nanoseconds of an allocation or a free.
fn each_operation(trace: Arc<Trace>, pooled: bool) -> Result<Routine> {
    let mut replay = Replay::new(trace, pooled)?;
    Ok(Routine::clocked(move |calls| {
        let (mut done, mut took) = (0, Duration::ZERO);
        while done < calls {
            let report = replay.run()?;
            took += report.allocating + report.freeing;
            done += (report.allocations + report.frees).max(1);
        }
        Ok(took.mul_f64(calls as f64 / done as f64))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_trace_has_the_current_format() {
        let trace = Trace::from_json(PHOTO).unwrap();
        assert_eq!(trace.streams.len(), 3);
        assert!(trace.peaks().iter().any(|peak| peak.bytes > 6_000_000));
    }

    #[test]
    fn a_seed_gives_one_trace_in_which_threads_free_what_others_made() {
        let recipe =
            Synthetic { seed: 3, threads: 3, streams: 5, steps: 500, most_bytes: 1 << 20, foreign: 25 };
        let trace = recipe.trace().unwrap();
        assert_eq!(trace, recipe.trace().unwrap());
        assert_ne!(trace, Synthetic { seed: 4, ..recipe }.trace().unwrap());
        assert_eq!((trace.threads.len(), trace.streams.len()), (3, 5));
        assert!(trace.peaks()[0].bytes <= 1 << 20);
        assert!(synthetic::freed_by_others(&trace) > 10);
        let mut replay = Replay::new(trace, true).unwrap();
        let report = replay.run().unwrap();
        assert_eq!(report.allocations, report.frees);
        assert!(report.peak_reserved >= report.peak_used);
    }
}
