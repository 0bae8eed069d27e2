//! Bodies of kernels on the processor: against a plain loop, and what a barrier costs.

use crate::{Bench, Measure, Pair, Routine};
use anyhow::{Result, anyhow};
use gpumem_core::{BarrierScope::Local, HostFunction, HostLaunch, KernelArgument, LaunchDims};
use gpumem_simt::{Executor, Ids, Slice, SliceMut, WorkItem};
use rayon::prelude::*;
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

pub(super) fn all() -> Vec<Bench> {
    let mut benches = vec![flat("64Ki", 64 << 10), flat("1Mi", 1 << 20)];
    for wave in [32, 64] {
        benches.push(step("barrier", wave, group_steps(wave)));
        benches.push(step("wavebarrier", wave, wave_steps(wave)));
    }
    benches
}

const GROUP: u32 = 256;
/// As a device has.
const SHARED: usize = 64 << 10;

type Saxpy = (Slice<f32>, SliceMut<f32>, f32);

fn call(function: &HostFunction, dims: LaunchDims, arguments: &[KernelArgument]) -> Result<()> {
    function.call(HostLaunch { dims, arguments }).map_err(|fault| anyhow!(fault))
}

fn argument(bytes: &[u8]) -> Result<KernelArgument> {
    KernelArgument::from_bytes(bytes).ok_or_else(|| anyhow!("an argument of {} bytes", bytes.len()))
}

/// An array by address and length.
fn slice(array: &mut [f32]) -> Result<KernelArgument> {
    let words = [array.as_mut_ptr().expose_provenance() as u64, array.len() as u64];
    argument(&words.map(u64::to_ne_bytes).concat())
}

/// Saxpy without barriers, against rayon over the slices themselves.
fn flat(name: &str, len: usize) -> Bench {
    Bench::new(format!("kernels/host/saxpy/{name}"), "a rayon loop", Measure::Latency, move || {
        let body = |ids: &Ids<'_>, (x, y, a): &Saxpy| {
            let i = ids.global_id(0);
            if i < y.len() {
                y.set(i, a * x.get(i) + y.get(i));
            }
        };
        // SAFETY: called with the arrays below, which nobody else uses meanwhile; each work-item has its own elements.
        let function = unsafe { Executor::new(32, SHARED).flat_function::<Saxpy, _>(body) };
        let (mut x, mut y) = (vec![1f32; len], vec![2f32; len]);
        let (from, mut to) = (x.clone(), y.clone());
        let arguments = [slice(&mut x)?, slice(&mut y)?, argument(&1e-9f32.to_ne_bytes())?];
        let dims = LaunchDims::linear(u32::try_from(len)?.div_ceil(GROUP), GROUP);
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
                    y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x);
                });
                Ok(())
            }),
        })
    })
}

/// Steps of one launch.
const STEPS: usize = 64;

/// One step of one work-item: its part of the loop, and the barrier.
fn step(kind: &str, wave: u32, function: HostFunction) -> Bench {
    Bench::new(format!("kernels/host/{kind}/wave {wave}"), "what is allowed", Measure::Latency, move || {
        let mut out = vec![0f32; GROUP as usize];
        let arguments = [slice(&mut out)?];
        let ours = Routine::clocked(move |calls| {
            let of_one = u64::from(GROUP) * STEPS as u64;
            let launches = calls.div_ceil(of_one).max(1);
            let start = Instant::now();
            for _ in 0..launches {
                call(&function, LaunchDims::linear(1, GROUP), &arguments)?;
            }
            black_box(&out);
            Ok(start.elapsed().mul_f64(calls as f64 / (launches * of_one) as f64))
        });
        Ok(Pair { ours, reference: Routine::clocked(|calls| Ok(Duration::from_nanos(8 * calls))) })
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
    // SAFETY: called with an array that nobody else uses meanwhile; each work-item has its own element.
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
