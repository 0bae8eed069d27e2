//! Kernels in Rust, which the host splits at their barriers: the time of a work-item from one barrier to the next. The same steps
//! as those of [`kernels`](super::kernels) that await.

use super::kernels::{STEPS, TREE_STEPS, step};
use crate::{Bench, Measure, Pair, Routine};
use gpumem::kernel::{KernelDef, config_for_items, prelude::*};
use gpumem_core::HostFunction;
use gpumem_host::Host;
use gpumem_runtime::Device;
use ndarray::Array2;
use rayon::prelude::*;

/// Nanoseconds that a step may take.
const ALLOWED: u64 = 2;
/// As a device has.
const SHARED: usize = 64 << 10;

pub(super) fn all() -> Vec<Bench> {
    let mut benches = Vec::new();
    for wave in [32, 64] {
        let mut add = |kind: &str, steps, kernel: fn() -> KernelDef<(SliceMut<f32>,)>| {
            benches.push(step(&format!("split/{kind}"), wave, steps, ALLOWED, move || {
                function(&kernel(), wave)
            }));
        };
        add("barrier", STEPS, group_steps);
        add("wavebarrier", STEPS, wave_steps);
        add("both_barriers", STEPS, both_steps);
        add("tree", TREE_STEPS, tree);
        add("carried", STEPS, carried);
    }
    benches.push(matrix_product());
    benches
}

/// Rows and columns of the matrices.
const SIDE: usize = 256;

/// The kernel with tiles in shared memory, against three loops whose rows rayon shares out.
fn matrix_product() -> Bench {
    Bench::new(format!("kernels/host/matmul/{SIDE}"), "three loops, by rayon", Measure::Latency, || {
        let stream = Device::<Host>::open("host")?.stream()?;
        let kernel = gpumem_kernel_suite::matmul::matmul().load(stream.device())?;
        let values = Array2::from_shape_fn((SIDE, SIDE), |(y, x)| ((y * 3 + x) % 97) as f32);
        let (a, b) = (stream.to_device(&values)?, stream.to_device(&values)?);
        let mut product = stream.to_device(&values)?;
        let mut plain = vec![0.0; SIDE * SIDE];
        let dims = config_for_items((SIDE, SIDE), (16, 16));
        Ok(Pair {
            ours: Routine::call(move || {
                kernel.launch(&stream, &dims, (&a, &b, &mut product))?;
                Ok(stream.synchronize()?)
            }),
            reference: Routine::call(move || {
                plain.par_chunks_mut(SIDE).enumerate().for_each(|(y, row)| {
                    for (x, sum) in row.iter_mut().enumerate() {
                        *sum = (0..SIDE).map(|at| values[[y, at]] * values[[at, x]]).sum();
                    }
                });
                Ok(())
            }),
        })
    })
}

/// The body for the host of a wave size.
fn function(kernel: &KernelDef<(SliceMut<f32>,)>, wave: u32) -> anyhow::Result<HostFunction> {
    let entry = kernel.entry(wave, SHARED);
    entry.map(|entry| entry.function().clone()).ok_or_else(|| anyhow::anyhow!("it has no body for the host"))
}

/// Each step takes a neighbour's element of the step before.
// SAFETY: each work-item writes its own elements, which others read after a barrier.
#[gpumem::kernel(unsafe)]
fn group_steps(out: SliceMut<f32>) {
    let tile = shared::<f32>([2, 256]);
    let local = local_id(0);
    tile[[0, local]] = local as f32;
    barrier(Local);
    for step in 1..64 {
        let value = tile[[(step - 1) % 2, (local + 1) % 256]];
        tile[[step % 2, local]] = value + 1.0;
        barrier(Local);
    }
    out[local] = tile[[1, local]];
}

// SAFETY: as above, within a wave.
#[gpumem::kernel(unsafe)]
fn wave_steps(out: SliceMut<f32>) {
    let tile = shared::<f32>([2, 256]);
    let local = local_id(0);
    // A division in each step would be measured with it.
    let neighbour = wave_id() * wave_size() + (lane() + 1) % wave_size();
    tile[[0, local]] = local as f32;
    wavebarrier();
    for step in 1..64 {
        let value = tile[[(step - 1) % 2, neighbour]];
        tile[[step % 2, local]] = value + 1.0;
        wavebarrier();
    }
    out[local] = tile[[1, local]];
}

/// Barriers of the wave and of the group in turn.
// SAFETY: as above.
#[gpumem::kernel(unsafe)]
fn both_steps(out: SliceMut<f32>) {
    let tile = shared::<f32>([2, 256]);
    let local = local_id(0);
    tile[[0, local]] = local as f32;
    wavebarrier();
    barrier(Local);
    for step in 1..32 {
        let value = tile[[(step - 1) % 2, (local + 1) % 256]];
        tile[[step % 2, local]] = value + 1.0;
        wavebarrier();
        barrier(Local);
    }
    out[local] = tile[[1, local]];
}

/// The sum of a group: a short launch, most of whose steps leave most work-items idle.
// SAFETY: as above.
#[gpumem::kernel(unsafe)]
fn tree(out: SliceMut<f32>) {
    let tile = shared::<f32>([256]);
    let local = local_id(0);
    tile[local] = local as f32;
    barrier(Local);
    let mut distance = 128;
    while distance > 0 {
        if local < distance {
            tile[local] += tile[local + distance];
        }
        barrier(Local);
        distance /= 2;
    }
    if local == 0 {
        out[group_id(0)] = tile[0];
    }
}

/// A value that each work-item keeps across all barriers.
// SAFETY: each work-item writes its own element.
#[gpumem::kernel(unsafe)]
fn carried(out: SliceMut<f32>) {
    let mut value = local_id(0) as f32;
    for _ in 0..64 {
        value = value * 0.5 + 1.0;
        barrier(Local);
    }
    out[local_id(0)] = value;
}
