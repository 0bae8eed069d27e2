//! Traces that are done again.

use super::{busy, count, device, is_allocation, is_free};
use gpumem_core::{MemoryKind, Result};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device,
    memory::{LimitingResource, MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, Pool},
    trace::{RecorderOptions, ReplayOptions, ReplayReport, Trace, TraceEventKind},
};
use std::sync::Arc;

/// Replays over a pool, and checks that nothing is left anywhere.
fn replay(trace: &Trace, options: ReplayOptions, host: &HostOptions) -> ReplayReport {
    let raw = Host::open_with(host).unwrap();
    let device: Device<Host> = Device::from_raw(raw.clone());
    let mut pools: Vec<Arc<dyn MemoryResource<Host>>> = Vec::new();
    let report = device
        .replay_memory(trace, options, |kind| {
            let pool = Arc::new(Pool::new(device.driver_memory(), device.pool_options(kind)));
            pools.push(pool.clone());
            Ok(pool)
        })
        .unwrap();
    device.flush().unwrap();
    for pool in pools {
        let left = pool.statistics();
        assert_eq!((left.allocated, left.blocks, left.in_flight, left.reserved), (0, 0, 0, 0), "{trace:?}");
    }
    assert_eq!(device.pending_frees(), (0, 0));
    assert!(device.memory_report().unwrap().holders.is_empty());
    let counters = device.counters();
    assert_eq!(counters.allocations, counters.releases);
    assert_eq!(raw.counters().live_allocations, 0);
    assert!(device.take_errors().is_empty());
    report
}

/// Says that it has held all memory that there can be, or panics.
#[derive(Debug)]
struct Boasting(Arc<dyn MemoryResource<Host>>, bool);

impl MemoryResource<Host> for Boasting {
    fn name(&self) -> &'static str {
        "boasting"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        self.0.allocate(request)
    }

    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.0.deallocate(block)
    }

    fn forget(&self) {}

    fn statistics(&self) -> MemoryStatistics {
        assert!(!self.1, "on purpose");
        let mut statistics = self.0.statistics();
        statistics.peak_reserved = usize::MAX;
        statistics
    }
}

#[test]
fn a_replay_survives_what_resources_say_of_themselves() {
    let recorded = device();
    let recording = recorded.record_memory(RecorderOptions::default()).unwrap();
    drop(recorded.uninit_array::<u8, _>(1000).unwrap());
    drop(recorded.pinned_array::<u8, _>(1000).unwrap());
    let trace = recording.finish();
    for (panics, peak) in [(false, u64::MAX), (true, 0)] {
        let device = device();
        let boasting =
            |_| Ok(Arc::new(Boasting(device.driver_memory(), panics)) as Arc<dyn MemoryResource<_>>);
        let report = device.replay_memory(&trace, ReplayOptions::default(), boasting).unwrap();
        assert_eq!((report.allocations, report.peak_reserved), (2, peak));
    }
}

#[test]
fn a_replay_repeats_the_recording() {
    let device = device();
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    busy(&device, 300);
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let mut array = first.device_array::<u32, _>(5000).unwrap();
    second.fill(&mut array, 2).unwrap();
    let back = second.copy_to_host(&array).unwrap();
    // Freed by another thread than the one that made it.
    std::thread::scope(|scope| {
        scope.spawn(move || drop(array));
    });
    back.view().unwrap();
    drop(back);
    let trace = recording.finish();
    let report = replay(&trace, ReplayOptions::default(), &HostOptions::new());
    assert_eq!(report.allocations as usize, count(&trace, is_allocation));
    assert_eq!(report.frees as usize, count(&trace, is_free));
    assert_eq!((report.failures, report.refused), (0, 0), "{report}");
    assert!(report.uses > 0 && report.peak_reserved >= report.peak_used && report.threads >= 5, "{report}");
    assert!(report.peak_used > 0 && report.nanoseconds() > 0.0);
    // Recording the replay gives the same allocations again.
    let again = super::device();
    let recording = again.record_memory(RecorderOptions::default()).unwrap();
    let options = ReplayOptions { threads: false, ..ReplayOptions::default() };
    again.replay_memory(&trace, options, |kind| again.memory_resource(kind)).unwrap();
    let second = recording.finish();
    let sizes = |trace: &Trace| -> Vec<(u64, Option<String>)> {
        let made = trace.events.iter().filter_map(|event| match event.what {
            TraceEventKind::Allocate { memory } => Some(&trace.allocations[memory as usize]),
            _ => None,
        });
        made.map(|made| (made.bytes, made.name.map(|name| trace.names[name as usize].clone()))).collect()
    };
    assert_eq!(sizes(&second), sizes(&trace));
}

#[test]
fn a_replay_over_too_little_memory_counts_what_fails() {
    let recorded = device();
    let recording = recorded.record_memory(RecorderOptions::default()).unwrap();
    let arrays: Vec<_> = (0..10).map(|_| recorded.uninit_array::<u8, _>(1000).unwrap()).collect();
    drop(arrays);
    let trace = recording.finish();
    let device = device();
    let before = device.memory_resource(MemoryKind::Device).unwrap();
    let limited = |_| -> gpumem_core::Result<Arc<dyn MemoryResource<Host>>> {
        Ok(Arc::new(LimitingResource::new(device.driver_memory(), 4000)))
    };
    let report = device.replay_memory(&trace, ReplayOptions::default(), limited).unwrap();
    assert_eq!((report.allocations, report.failures, report.frees), (4, 6, 4), "{report}");
    assert!(report.first_error.as_ref().unwrap().is_out_of_memory());
    assert_eq!(report.peak_used, 4000);
    let after = device.memory_resource(MemoryKind::Device).unwrap();
    assert!(Arc::ptr_eq(&before, &after), "the device has its own resource again");
}

mod properties {
    use super::*;
    use crate::random::Recipe;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn a_written_trace_is_read_back_unchanged(recipe in Recipe::any()) {
            let trace = recipe.trace();
            trace.check().unwrap();
            prop_assert_eq!(Trace::from_json(&trace.to_json()).unwrap(), trace);
        }

        #[test]
        fn any_trace_replays_and_leaves_every_counter_at_zero(recipe in Recipe::any(), seed: u64, threads: bool) {
            let trace = recipe.trace();
            let options = ReplayOptions { work: 4096, threads, ..ReplayOptions::default() };
            let report = replay(&trace, options, &HostOptions::new().adversarial(seed));
            prop_assert_eq!((report.failures, report.refused), (0, 0));
            let older = trace.allocations.len() - count(&trace, |what| {
                matches!(what, TraceEventKind::Allocate { .. } | TraceEventKind::Fail { .. })
            });
            prop_assert_eq!(report.allocations as usize, count(&trace, is_allocation) + older);
            if !threads {
                let most = trace.peaks().iter().map(|peak| peak.bytes).sum::<u64>();
                prop_assert!(report.peak_used <= most);
            }
        }

        #[test]
        fn the_peak_equals_the_sum_of_its_holders(recipe in Recipe::any()) {
            for peak in recipe.trace().peaks() {
                prop_assert_eq!(peak.bytes, peak.holders.iter().map(|holder| holder.bytes).sum::<u64>());
            }
        }
    }
}
