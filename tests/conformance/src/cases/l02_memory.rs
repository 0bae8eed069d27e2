//! Where memory comes from and how it goes back: the pool, the deferred queue, resources of the user's.

use crate::{Lab, Level, Verdict, refused, skip};
use gpumem_core::{Attach, Backend, ErrorKind, MemoryKind};
use gpumem_runtime::{
    Device,
    memory::{DeferredLimits, MemoryResource, Pool, StatisticsResource, Trim, named},
};
use ndarray::Array1;
use std::sync::Arc;

cases! { Level::Allocate;
    freed_memory_is_used_again_without_the_driver,
    memory_goes_from_stream_to_stream,
    ten_pending_stay_and_eleven_go,
    pending_bytes_count,
    cleanup_can_be_deferred,
    memory_can_be_freed_at_once,
    every_kind_can_have_its_own_resource,
    reports_add_up,
    trimming_gives_back_what_is_unused,
}

/// A skip where the environment has switched the pool off.
fn needs_the_pool<B: Backend>(device: &Device<B>) -> Verdict {
    match device.memory_resource(MemoryKind::Device)?.name() {
        "driver" => skip("device memory comes straight from the driver"),
        _ => Ok(()),
    }
}

/// Lets the driver serve device memory until the case is over.
struct Direct<'a, B: Backend>(&'a Device<B>, Arc<dyn MemoryResource<B>>, DeferredLimits);

impl<'a, B: Backend> Direct<'a, B> {
    fn new(device: &'a Device<B>) -> Verdict<Self> {
        let (before, limits) = (device.memory_resource(MemoryKind::Device)?, device.deferred_limits());
        device.flush()?;
        device.set_memory_resource(MemoryKind::Device, device.driver_memory())?;
        Ok(Self(device, before, limits))
    }
}

impl<B: Backend> Drop for Direct<'_, B> {
    fn drop(&mut self) {
        self.0.set_deferred_limits(self.2);
        let _ = self.0.set_memory_resource(MemoryKind::Device, self.1.clone());
    }
}

fn drop_some<B: Backend>(device: &Device<B>, count: usize, bytes: usize) -> Verdict {
    let arrays: Vec<_> = (0..count).map(|_| device.uninit_array::<u8, _>(bytes)).collect::<Result<_, _>>()?;
    drop(arrays);
    Ok(())
}

fn freed_memory_is_used_again_without_the_driver<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    needs_the_pool(device)?;
    let stream = device.stream()?;
    let round = |bytes: usize| -> Verdict {
        let mut array = stream.device_array::<u8, _>(bytes)?;
        stream.fill(&mut array, 3)?;
        let _copy = stream.to_device(&array)?;
        Ok(())
    };
    [100, 5000, 70_000].into_iter().try_for_each(round)?;
    let before = device.counters();
    [70_000, 100, 5000, 90, 4000].into_iter().try_for_each(round)?;
    let after = device.counters();
    assert_eq!((after.allocations, after.releases), (before.allocations, before.releases));
    assert_eq!((after.records, after.waits), (before.records, before.waits));
    Ok(())
}

fn memory_goes_from_stream_to_stream<B: Backend>(lab: &Lab<B>) -> Verdict {
    const LEN: usize = 50_000;
    let device = lab.device();
    let streams = [device.stream()?, device.stream()?, device.stream()?];
    let mut held = Vec::new();
    for round in 0..12u32 {
        let (one, two) = (&streams[round as usize % 3], &streams[(round as usize + 1) % 3]);
        if round % 4 == 0 {
            lab.delay(one)?;
        }
        let mut array = one.device_array::<u32, _>(LEN)?;
        two.fill(&mut array, round)?;
        held.push((one.copy_to_host(&array)?, round));
        // Both streams may still be using the memory; its next user waits.
        drop(array);
        let next = two.uninit_array::<u32, _>(LEN)?.fill(!round)?;
        held.push((two.copy_to_host(&next)?, !round));
    }
    for (copy, value) in held {
        assert!(copy.view()?.iter().all(|found| *found == value), "memory was written while it was in use");
    }
    Ok(())
}

fn ten_pending_stay_and_eleven_go<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let _direct = Direct::new(device)?;
    device.set_deferred_limits(DeferredLimits::default());
    let before = device.counters();
    drop_some(device, 10, 16)?;
    let kept = device.uninit_array::<u8, _>(16)?;
    assert_eq!((device.pending_frees().0, device.counters().releases), (10, before.releases));
    drop_some(device, 1, 16)?;
    assert_eq!((device.pending_frees().0, device.counters().releases), (11, before.releases));
    drop(device.uninit_array::<u8, _>(16)?);
    assert_eq!((device.pending_frees().0, device.counters().releases), (1, before.releases + 11));
    drop(kept);
    Ok(())
}

fn pending_bytes_count<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let _direct = Direct::new(device)?;
    // A limit of very few bytes, however large the device.
    device.set_deferred_limits(DeferredLimits { items: usize::MAX, ratio: 0.0 });
    let before = device.counters().releases;
    drop_some(device, 1, 16)?;
    assert_eq!((device.pending_frees(), device.counters().releases), ((1, 16), before));
    drop(device.uninit_array::<u8, _>(16)?);
    assert_eq!(device.counters().releases, before + 1);
    Ok(())
}

fn cleanup_can_be_deferred<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let _direct = Direct::new(device)?;
    let before = device.counters().releases;
    {
        let _outer = device.defer_cleanup();
        {
            let _inner = device.defer_cleanup();
            drop_some(device, 12, 16)?;
        }
        // Not everywhere: other devices of the process may be under test at the same time.
        drop_some(device, 12, 16)?;
        device.flush()?;
        assert_eq!(device.trim(Trim::ALL)?, 0);
        assert_eq!((device.pending_frees().0, device.counters().releases), (24, before));
        refused(
            device.uninit_array::<u8, _>(1 << 60),
            |kind| matches!(kind, ErrorKind::OutOfMemory { pressure: Some(pressure), .. } if pressure.deferred),
        )?;
        assert_eq!(device.counters().releases, before);
    }
    assert_eq!(device.counters().releases, before, "its end frees nothing by itself");
    drop_some(device, 1, 16)?;
    assert_eq!(device.counters().releases, before + 24);
    Ok(())
}

fn memory_can_be_freed_at_once<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let stream = device.stream()?;
    {
        let _direct = Direct::new(device)?;
        let mut array = stream.device_array::<u32, _>(1000)?;
        lab.delay(&stream)?;
        stream.fill(&mut array, 1)?;
        let before = device.counters().releases;
        array.free()?;
        assert_eq!(device.counters().releases, before + 1, "after its last use");
    }
    let array = device.to_device(&Array1::from_elem(1000, 7u32))?;
    array.free()?;
    device.pinned_array::<u8, _>(100)?.free()?;
    Ok(())
}

fn every_kind_can_have_its_own_resource<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let mut kinds = vec![MemoryKind::Device, MemoryKind::Pinned];
    if device.capabilities().managed {
        kinds.push(MemoryKind::Managed(Attach::Global));
    }
    for kind in kinds {
        let before = device.memory_resource(kind)?;
        let pool = Pool::new(device.driver_memory(), device.pool_options(kind).chunks(4096, 1 << 20));
        let counting = Arc::new(StatisticsResource::new(Arc::new(pool)));
        device.set_memory_resource(kind, counting.clone())?;
        let make = || -> Verdict {
            match kind {
                MemoryKind::Device => drop(device.to_device(&[1u8; 100])?),
                MemoryKind::Pinned => drop(device.pinned_array::<u8, _>(100)?),
                _ => drop(device.managed_array::<u8, _>(100, Attach::Global)?),
            }
            Ok(())
        };
        let made = make().and_then(|()| make());
        device.set_memory_resource(kind, before)?;
        made?;
        let seen = counting.statistics();
        assert!(seen.allocations >= 2 && seen.blocks == 0 && seen.reserved > 0, "{kind:?}: {seen:?}");
        device.flush()?;
        assert_eq!(counting.statistics().reserved, 0);
    }
    Ok(())
}

fn reports_add_up<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let array = named("a row of ten thousand", || device.device_array::<f32, _>(10_000))?;
    let report = device.memory_report()?;
    assert_eq!(report.device, device.name());
    assert_eq!(report.total, device.info().total_memory);
    let Some(kind) = report.kinds.iter().find(|kind| kind.kind == "device") else {
        return Err(crate::Stop::Failed("no device memory in the report".to_owned()));
    };
    let (first, last) = (&kind.resources[0], &kind.resources[kind.resources.len() - 1]);
    assert_eq!(last.resource, "driver");
    assert!(first.statistics.allocated >= 40_000 && first.statistics.allocated <= last.statistics.reserved);
    assert!(
        report.holders.iter().any(|holder| holder.name.ends_with("ten thousand") && holder.bytes == 40_000)
    );
    assert!(report.to_string().contains("a row of ten thousand") && report.to_json().contains("40000"));
    drop(array);
    assert!(!device.memory_report()?.to_json().contains("ten thousand"));
    Ok(())
}

fn trimming_gives_back_what_is_unused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    needs_the_pool(device)?;
    device.flush()?;
    let alive = || device.counters().allocations - device.counters().releases;
    let kept = device.to_device(&[1u8; 1000])?;
    let large = device.uninit_array::<u8, _>(40 << 20)?;
    let with_both = alive();
    drop(large);
    assert_eq!(alive(), with_both);
    assert!(device.trim(Trim::UNUSED)? >= 40 << 20);
    assert!(alive() < with_both);
    assert_eq!(kept.copy_to_host()?.to_vec(), [1; 1000]);
    Ok(())
}
