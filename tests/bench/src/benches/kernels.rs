//! Bodies of kernels on the processor, compared with a plain loop, and the cost of a barrier.

use crate::{Bench, Measure, Pair, Routine};
use anyhow::{Result, anyhow};
use gpumem_core::{BarrierScope::Local, HostFunction, HostLaunch, KernelArguments, LaunchConfig};
use gpumem_kernel::simt::{Executor, Slice, SliceMut, WorkItem, WorkItemIds};
use rayon::prelude::*;
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

pub(super) fn all() -> Vec<Bench> {
    let mut benches = Vec::new();
    for (size, len) in [("16Ki", 16 << 10), ("64Ki", 64 << 10), ("1Mi", 1 << 20)] {
        benches.push(flat(&format!("saxpy/{size}"), len, saxpy(), |y, x, a| *y += a * x));
        benches.push(flat(&format!("scale/{size}"), len, scale(), |y, x, a| *y = a * x));
        benches.push(flat(&format!("polynomial/{size}"), len, polynomial(), |y, x, a| *y = horner(x, a)));
    }
    for wave in [32, 64] {
        benches.push(step("barrier", wave, STEPS, 8, move || Ok(group_steps(wave))));
        benches.push(step("wavebarrier", wave, STEPS, 8, move || Ok(wave_steps(wave))));
        benches.push(step("both_barriers", wave, STEPS, 8, move || Ok(both_steps(wave))));
        benches.push(step("tree", wave, TREE_STEPS, 8, move || Ok(tree(wave))));
    }
    benches
}

const GROUP: u32 = 256;
/// As a device has.
const SHARED: usize = 64 << 10;

type Arguments = (Slice<f32>, SliceMut<f32>, f32);

pub(super) fn call(function: &HostFunction, dims: LaunchConfig, arguments: &KernelArguments) -> Result<()> {
    // SAFETY: the benches pass the arguments that their functions declare, and keep the arrays until the call returns.
    unsafe { function.call(HostLaunch { dims, arguments }) }.map_err(|fault| anyhow!(fault))
}

/// An array by address and length.
fn slice(array: &mut [f32]) -> [u64; 2] {
    [array.as_mut_ptr().expose_provenance() as u64, array.len() as u64]
}

/// A body without barriers over two arrays and a number.
fn flat_body(body: impl Fn(usize, &Arguments) + Send + Sync + 'static) -> HostFunction {
    let body = move |ids: &WorkItemIds<'_>, arguments: &Arguments| {
        let i = ids.global_id(0);
        if i < arguments.1.len() {
            body(i, arguments);
        }
    };
    // SAFETY: called with arrays that nothing else uses meanwhile; each work-item has its own elements.
    unsafe { Executor::new(32, SHARED).flat_function::<Arguments, _>(body) }
}

fn saxpy() -> HostFunction {
    flat_body(|i, (x, y, a)| y.set(i, a * x.get(i) + y.get(i)))
}

fn scale() -> HostFunction {
    flat_body(|i, (x, y, a)| y.set(i, a * x.get(i)))
}

/// Work for the processor instead of the memory.
fn polynomial() -> HostFunction {
    flat_body(|i, (x, y, a)| y.set(i, horner(x.get(i), *a)))
}

fn horner(x: f32, a: f32) -> f32 {
    (0..16).fold(a, |sum, _| sum * x + a)
}

/// A body without barriers, against the same over the slices themselves, shared out by rayon.
fn flat(
    name: &str,
    len: usize,
    function: HostFunction,
    plain: impl Fn(&mut f32, f32, f32) + Copy + Send + Sync + 'static,
) -> Bench {
    Bench::new(format!("kernels/host/{name}"), "a rayon loop", Measure::Latency, move || {
        let (mut x, mut y) = (vec![1f32; len], vec![2f32; len]);
        let (from, mut to) = (x.clone(), y.clone());
        let arguments = KernelArguments::new().with(slice(&mut x)).with(slice(&mut y)).with(1e-9f32);
        let dims = LaunchConfig::linear(u32::try_from(len)?.div_ceil(GROUP), GROUP);
        Ok(Pair {
            ours: Routine::call(move || {
                let _alive = (&x, &y);
                call(&function, dims, &arguments)
            }),
            reference: Routine::call(move || {
                let a = black_box(1e-9f32);
                // As many pieces as threads can share evenly, each long enough for the vector units.
                let piece = len.div_ceil(8 * rayon::current_num_threads());
                to.par_chunks_mut(piece).zip(from.par_chunks(piece)).for_each(|(y, x)| {
                    y.iter_mut().zip(x).for_each(|(y, x)| plain(y, *x, a));
                });
                Ok(())
            }),
        })
    })
}

/// Steps of one launch.
pub(super) const STEPS: usize = 64;
/// Barriers of the tree.
pub(super) const TREE_STEPS: usize = 9;

/// One step of one work-item: its part of the loop, and the barrier. So many nanoseconds are allowed.
pub(super) fn step(
    kind: &str,
    wave: u32,
    steps: usize,
    allowed: u64,
    function: impl FnOnce() -> Result<HostFunction> + 'static,
) -> Bench {
    Bench::new(format!("kernels/host/{kind}/wave_{wave}"), "what is allowed", Measure::Latency, move || {
        let function = function()?;
        let mut out = vec![0f32; GROUP as usize];
        let arguments = KernelArguments::new().with(slice(&mut out));
        let ours = Routine::clocked(move |calls| {
            let of_one = u64::from(GROUP) * steps as u64;
            let launches = calls.div_ceil(of_one).max(1);
            let start = Instant::now();
            for _ in 0..launches {
                call(&function, LaunchConfig::linear(1, GROUP), &arguments)?;
            }
            black_box(&out);
            Ok(start.elapsed().mul_f64(calls as f64 / (launches * of_one) as f64))
        });
        Ok(Pair { ours, reference: Routine::clocked(move |calls| Ok(Duration::from_nanos(allowed * calls))) })
    })
}

/// Each step takes a neighbour's element of the step before.
fn group_steps(wave: u32) -> HostFunction {
    let body = async |item: WorkItem<'_>, (out,): &(SliceMut<f32>,)| {
        let tile = item.shared::<f32, 2>([2, GROUP as usize]);
        let local = item.local_id(0);
        tile.set([0, local], local as f32);
        item.barrier(Local).await;
        for step in 1..STEPS {
            let value = tile.get([(step - 1) % 2, (local + 1) % GROUP as usize]);
            tile.set([step % 2, local], value + 1.0);
            item.barrier(Local).await;
        }
        out.set(local, tile.get([1, local]));
    };
    // SAFETY: called with an array that nothing else uses meanwhile; each work-item has its own element.
    unsafe { Executor::new(wave, SHARED).function::<(SliceMut<f32>,), _>(body) }
}

fn wave_steps(wave: u32) -> HostFunction {
    let body = async |item: WorkItem<'_>, (out,): &(SliceMut<f32>,)| {
        let tile = item.shared::<f32, 2>([2, GROUP as usize]);
        let local = item.local_id(0);
        // A division in each step would be measured with it.
        let neighbour = item.wave_id() * item.wave_size() + (item.lane() + 1) % item.wave_size();
        tile.set([0, local], local as f32);
        item.wavebarrier().await;
        for step in 1..STEPS {
            let value = tile.get([(step - 1) % 2, neighbour]);
            tile.set([step % 2, local], value + 1.0);
            item.wavebarrier().await;
        }
        out.set(local, tile.get([1, local]));
    };
    // SAFETY: as above.
    unsafe { Executor::new(wave, SHARED).function::<(SliceMut<f32>,), _>(body) }
}

/// Barriers of the wave and of the group in turn.
fn both_steps(wave: u32) -> HostFunction {
    let body = async |item: WorkItem<'_>, (out,): &(SliceMut<f32>,)| {
        let tile = item.shared::<f32, 2>([2, GROUP as usize]);
        let local = item.local_id(0);
        tile.set([0, local], local as f32);
        item.wavebarrier().await;
        item.barrier(Local).await;
        for step in 1..STEPS / 2 {
            let value = tile.get([(step - 1) % 2, (local + 1) % GROUP as usize]);
            tile.set([step % 2, local], value + 1.0);
            item.wavebarrier().await;
            item.barrier(Local).await;
        }
        out.set(local, tile.get([1, local]));
    };
    // SAFETY: as above.
    unsafe { Executor::new(wave, SHARED).function::<(SliceMut<f32>,), _>(body) }
}

/// The sum of a group: a short launch, most of whose steps leave most work-items idle.
fn tree(wave: u32) -> HostFunction {
    let body = async |item: WorkItem<'_>, (out,): &(SliceMut<f32>,)| {
        let tile = item.shared::<f32, 1>([GROUP as usize]);
        let local = item.local_id(0);
        tile.set(local, local as f32);
        item.barrier(Local).await;
        let mut distance = GROUP as usize / 2;
        while distance > 0 {
            if local < distance {
                tile.set(local, tile.get(local) + tile.get(local + distance));
            }
            item.barrier(Local).await;
            distance /= 2;
        }
        if local == 0 {
            out.set(item.group_id(0), tile.get(0));
        }
    };
    // SAFETY: as above; each group has its own element.
    unsafe { Executor::new(wave, SHARED).function::<(SliceMut<f32>,), _>(body) }
}
