//! Arrays that leave the device when its memory is short: what was enqueued before has their bytes, and so has who brings them back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic of a case is its failure")]

use super::tools::same;
use crate::{Lab, Level, Verdict, skip};
use gpumem_core::{Backend, MemoryKind, Result};
use gpumem_runtime::{
    Device, SpillManager, SpillOptions, SpillOrder, Spillable, Stream,
    memory::{LimitingResource, MemoryResource},
};
use ndarray::{Array1, Ix1};
use std::sync::Arc;

cases! { Level::Spill;
    arrays_take_turns_in_little_memory,
    enqueued_work_has_the_bytes_of_an_array_that_has_left,
    a_view_keeps_its_array,
    a_handle_in_another_process_keeps_its_array,
    arrays_sleep_and_wake,
}

const LEN: usize = 1 << 16;
const BYTES: usize = 4 * LEN;

/// Limits device memory until the case is over.
struct Limited<'a, B: Backend>(&'a Device<B>, Arc<dyn MemoryResource<B>>);

impl<'a, B: Backend> Limited<'a, B> {
    /// To `arrays` arrays.
    fn new(device: &'a Device<B>, arrays: usize) -> Result<Self> {
        let before = device.memory_resource(MemoryKind::Device)?;
        let limited = LimitingResource::new(before.clone(), arrays * BYTES);
        device.set_memory_resource(MemoryKind::Device, Arc::new(limited))?;
        Ok(Self(device, before))
    }
}

impl<B: Backend> Drop for Limited<'_, B> {
    fn drop(&mut self) {
        let _ = self.0.set_memory_resource(MemoryKind::Device, self.1.clone());
    }
}

/// Elements that tell their array and how often it was written.
fn numbers(array: usize, version: usize) -> Array1<u32> {
    (0..LEN).map(|at| (at + 100_000 * array + 10_000_000 * version) as u32).collect()
}

fn arrays<B: Backend>(
    spilling: &SpillManager<B>,
    stream: &Stream<B>,
    count: usize,
) -> Verdict<Vec<Spillable<u32, Ix1, B>>> {
    let add = |array| spilling.add(stream.to_device(&numbers(array, 0))?).map_err(|(_, error)| error);
    Ok((0..count).map(add).collect::<Result<_>>()?)
}

fn arrays_take_turns_in_little_memory<B: Backend>(lab: &Lab<B>) -> Verdict {
    const COUNT: usize = 9;
    let device = lab.device();
    let _limited = Limited::new(device, 4)?;
    for order in [SpillOrder::LeastRecent, SpillOrder::MostRecent] {
        let spilling = SpillManager::new(device, SpillOptions::new().order(order))?;
        let streams = [device.stream()?, device.stream()?];
        let mut all = arrays(&spilling, &streams[0], COUNT)?;
        let mut copies = Vec::new();
        for round in 0..3 {
            for (number, array) in all.iter_mut().enumerate() {
                let stream = &streams[(round + number) % 2];
                if (round + number) % 3 == 0 {
                    lab.delay(stream)?;
                }
                copies.push((number, round, stream.copy_to_host(&array.get(stream)?)?));
                let mut view = array.get_mut(stream)?;
                stream.copy_to_device(&mut view, &numbers(number, round + 1))?;
            }
            for (number, version, copy) in copies.drain(..) {
                same(copy.view()?, numbers(number, version).view());
            }
        }
        assert!(spilling.report().device_bytes <= 4 * BYTES);
        assert!(spilling.report().downloaded_bytes >= 5 * BYTES);
        for (number, array) in all.into_iter().enumerate() {
            let array = array.into_array(&streams[0]).map_err(|(_, error)| error)?;
            same(array.copy_to_host()?.view(), numbers(number, 3).view());
        }
    }
    Ok(())
}

fn enqueued_work_has_the_bytes_of_an_array_that_has_left<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let _limited = Limited::new(device, 1)?;
    let spilling = SpillManager::new(device, SpillOptions::new())?;
    let (one, two) = (device.stream()?, device.stream()?);
    for round in 0..4 {
        let mut array = arrays(&spilling, &one, 1)?.remove(0);
        lab.delay(&one)?;
        one.copy_to_device(&mut array.get_mut(&one)?, &numbers(0, round + 1))?;
        let copy = one.copy_to_host(&array.get(&one)?)?;
        let mut other = two.device_array::<u32, _>(LEN)?;
        two.fill(&mut other, 0xbad)?;
        assert!(!array.is_resident()?);
        drop(other);
        same(array.get(&two)?.copy_to_host()?.view(), numbers(0, round + 1).view());
        same(copy.view()?, numbers(0, round + 1).view());
    }
    Ok(())
}

fn a_view_keeps_its_array<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let _limited = Limited::new(device, 2)?;
    let spilling = SpillManager::new(device, SpillOptions::new())?;
    let stream = device.stream()?;
    let all = arrays(&spilling, &stream, 3)?;
    let view = all[0].get(&stream)?;
    assert!(!all[0].evict()?);
    // Others leave for it.
    same(all[1].get(&stream)?.copy_to_host()?.view(), numbers(1, 0).view());
    let held = all[2].get(&stream)?;
    assert!(device.device_array::<u32, _>(LEN).is_err_and(|error| error.is_out_of_memory()));
    same(view.copy_to_host()?.view(), numbers(0, 0).view());
    drop((view, held));
    assert!(all[0].evict()? || !all[0].is_resident()?);
    Ok(())
}

fn a_handle_in_another_process_keeps_its_array<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let spilling = SpillManager::new(device, SpillOptions::new())?;
    let mut given = device.ipc_array::<u32, _>(LEN)?;
    given.fill(1)?;
    // SAFETY: it is never opened.
    let handle = unsafe { given.ipc_handle() };
    let own = device.ipc_array::<u32, _>(LEN)?;
    let [given, own] = [given, own].map(|array| spilling.add(array).map_err(|(_, error)| error));
    let (given, own) = (given?, own?);
    assert!(own.evict()?, "one that nothing else has");
    if let Err(error) = handle {
        return skip(error);
    }
    assert!(!given.evict()?);
    same(given.get(&stream)?.copy_to_host()?.view(), Array1::from_elem(LEN, 1).view());
    Ok(())
}

fn arrays_sleep_and_wake<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let spilling = SpillManager::new(device, SpillOptions::new())?;
    let stream = device.stream()?;
    let all = arrays(&spilling, &stream, 5)?;
    let plain = device.to_device(&numbers(7, 0))?;
    for _ in 0..2 {
        let slept = spilling.sleep()?;
        assert_eq!((slept.evicted, slept.kept, slept.error), (5 * BYTES, 0, None));
        assert_eq!(spilling.report().device_bytes, 0);
        assert_eq!(spilling.wake(&stream)?, 5 * BYTES);
        assert_eq!(spilling.report().device_bytes, 5 * BYTES);
    }
    for (number, array) in all.iter().enumerate() {
        same(array.get(&stream)?.copy_to_host()?.view(), numbers(number, 0).view());
    }
    same(plain.copy_to_host()?.view(), numbers(7, 0).view());
    Ok(())
}
