//! RMM's workload through the pool alone, and through the whole library: device arrays made and dropped. The pool's pieces
//! are addresses without memory, so it runs anywhere, whatever the cell needs.

use super::workload::Step;
use crate::Routine;
use anyhow::{Context as _, Result};
use gpumem_core::MemoryKind;
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device, UninitArray,
    memory::{
        MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, Pool, PoolOptions, ResourceId, Trim,
    },
};
use ndarray::Ix1;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Allocates addresses without memory.
#[derive(Debug)]
struct Addresses {
    id: ResourceId,
    next: AtomicU64,
}

impl MemoryResource<Host> for Addresses {
    fn name(&self) -> &'static str {
        "addresses"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> gpumem_core::Result<MemoryBlock<Host>> {
        let bytes = request.bytes.next_multiple_of(2 << 20);
        let address = self.next.fetch_add(bytes as u64, Ordering::Relaxed);
        // SAFETY: the arrays of this bench are made and dropped, and never used; no two blocks share an address.
        Ok(unsafe { MemoryBlock::new(self.id, request, (address, None, bytes), 0) })
    }

    fn deallocate(&self, _: MemoryBlock<Host>) -> gpumem_core::Result<()> {
        Ok(())
    }

    fn forget(&self) {}

    fn statistics(&self) -> MemoryStatistics {
        MemoryStatistics::default()
    }
}

type Alive = Vec<UninitArray<u8, Ix1, Host>>;

/// A device of addresses only, and its pool. The chunks are those of a GPU.
fn device(options: PoolOptions) -> Result<(Device<Host>, Arc<Pool<Host>>)> {
    let device = Device::<Host>::from_raw(Host::open_with(&HostOptions::new())?);
    let pool = Arc::new(Pool::new(
        Arc::new(Addresses { id: ResourceId::new(), next: AtomicU64::new(1 << 40) }),
        options,
    ));
    device.set_memory_resource(MemoryKind::Device, pool.clone())?;
    Ok((device, pool))
}

/// Nanoseconds of one step that allocates from the pool or frees to it, as RMM measures its pool.
pub(super) fn each_block(steps: Vec<Step>) -> Result<Routine> {
    let (device, pool) = device(PoolOptions::device(256))?;
    let stream = device.stream()?;
    let mut alive: Vec<MemoryBlock<Host>> = Vec::new();
    Ok(Routine::clocked(move |calls| {
        let (mut done, mut took) = (0, Duration::ZERO);
        let give_back = |block| pool.recycle(block).ok().context("a pool takes everything back");
        while done < calls {
            let start = Instant::now();
            for step in &steps {
                match *step {
                    Step::Allocate(bytes) => {
                        let request = stream.device().memory_request(bytes as usize, MemoryKind::Device);
                        alive.push(pool.allocate(&request)?);
                    }
                    Step::Free(index) => give_back(alive.swap_remove(index as usize))?,
                }
            }
            took += start.elapsed();
            alive.drain(..).try_for_each(give_back)?;
            done += steps.len() as u64;
        }
        Ok(took.mul_f64(calls as f64 / done as f64))
    }))
}

/// Nanoseconds of one step.
pub(super) fn each_step(steps: Vec<Step>) -> Result<Routine> {
    let (device, _) = device(PoolOptions::device(256))?;
    let stream = device.stream()?;
    let mut alive: Alive = Vec::new();
    Ok(Routine::clocked(move |calls| {
        let (mut done, mut took) = (0, Duration::ZERO);
        while done < calls {
            let start = Instant::now();
            for step in &steps {
                match *step {
                    Step::Allocate(bytes) => alive.push(stream.uninit_array(bytes as usize)?),
                    Step::Free(index) => drop(alive.swap_remove(index as usize)),
                }
            }
            took += start.elapsed();
            alive.clear();
            done += steps.len() as u64;
        }
        Ok(took.mul_f64(calls as f64 / done as f64))
    }))
}

/// The most that the pool ever reserved, in MiB with its pieces and all.
pub(super) fn reserved(steps: &[Step]) -> Result<u64> {
    let (device, pool) = device(PoolOptions::device(256))?;
    let stream = device.stream()?;
    let mut alive: Alive = Vec::new();
    for step in steps {
        match *step {
            Step::Allocate(bytes) => alive.push(stream.uninit_array(bytes as usize)?),
            Step::Free(index) => drop(alive.swap_remove(index as usize)),
        }
    }
    drop(alive);
    let peak = pool.statistics().peak_reserved as u64 >> 20;
    device.trim(Trim::UNUSED)?;
    anyhow::ensure!(pool.statistics().reserved == 0, "every piece has become whole again");
    Ok(peak)
}
