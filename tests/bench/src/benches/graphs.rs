//! What a node of a graph costs the host: graphs of tiny kernels and copies, against the calls one by one, and against the work alone.

use super::kernels::call;
use crate::{Bench, Measure, Pair, Routine};
use anyhow::{Result, anyhow};
use gpumem::kernel::prelude::*;
use gpumem_core::{KernelArguments, LaunchConfig};
use gpumem_host::Host;
use gpumem_runtime::{Device, DeviceArray, DeviceViewMut, Graph, Stream, WriteForm, writes};
use ndarray::Ix1;
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// Nodes of a graph.
const NODES: u64 = 64;
/// Nodes between two waits: the wake-up of a thread is no part of what is measured.
const BATCH: u64 = 64 * NODES;
const LEN: usize = 16;

type Array = DeviceArray<f32, Ix1, Host>;
type View<'a> = DeviceViewMut<'a, f32, Ix1, Host>;
type Chain = Graph<(WriteForm<f32, Ix1>, WriteForm<f32, Ix1>), (), Host>;

pub(super) fn all() -> Vec<Bench> {
    vec![kernels_one_by_one(), copies_one_by_one(), kernels_alone(), copies_alone()]
}

#[gpumem::kernel]
fn tiny(x: Slice<f32>, y: Own<f32>) {
    let at = global_id(0);
    if at == 0 {
        y[own()] = 0.5 * x[at];
    }
}

fn dims() -> LaunchConfig {
    LaunchConfig::linear(1, 1)
}

/// A chain of so many nodes, each of which reads what the one before has written.
fn chain(
    device: &Device<Host>,
    node: impl Fn(&Stream<Host>, &View<'_>, &mut View<'_>) -> gpumem_core::Result<()>,
) -> Result<Chain> {
    let like = (writes::<f32, _>(LEN), writes::<f32, _>(LEN));
    let graph = device.record(like, |stream, (mut x, mut y)| {
        for _ in 0..NODES / 2 {
            node(stream, &x, &mut y)?;
            node(stream, &y, &mut x)?;
        }
        Ok(())
    })?;
    Ok(graph)
}

fn arrays(device: &Device<Host>) -> Result<(Array, Array)> {
    Ok((device.to_device(&[1.0f32; LEN])?, device.to_device(&[1.0f32; LEN])?))
}

/// The time of so many nodes, of which one call does `each`.
fn of_nodes(nodes: u64, each: u64, mut call: impl FnMut() -> Result<()>) -> Result<Duration> {
    let calls = nodes.div_ceil(each).max(1);
    let start = Instant::now();
    (0..calls).try_for_each(|_| call())?;
    Ok(start.elapsed().mul_f64(nodes as f64 / (calls * each) as f64))
}

/// The nodes of a graph that is launched many times between two waits.
fn launches(device: &Device<Host>, graph: Chain) -> Result<Routine> {
    let (stream, (mut x, mut y)) = (device.stream()?, arrays(device)?);
    Ok(Routine::clocked(move |nodes| {
        of_nodes(nodes, BATCH, || {
            for _ in 0..BATCH / NODES {
                graph.launch(&stream, (&mut x, &mut y))?;
            }
            Ok(stream.synchronize()?)
        })
    }))
}

/// The same calls one by one.
fn calls(
    device: &Device<Host>,
    node: impl Fn(&Stream<Host>, &Array, &mut Array) -> gpumem_core::Result<()> + 'static,
) -> Result<Routine> {
    let (stream, (mut x, mut y)) = (device.stream()?, arrays(device)?);
    Ok(Routine::clocked(move |nodes| {
        of_nodes(nodes, BATCH, || {
            for _ in 0..BATCH / 2 {
                node(&stream, &x, &mut y)?;
                node(&stream, &y, &mut x)?;
            }
            Ok(stream.synchronize()?)
        })
    }))
}

fn kernel_graph(device: &Device<Host>) -> Result<Chain> {
    let kernel = tiny().load(device)?;
    chain(device, |stream, x, y| kernel.launch(stream, &dims(), (x, y)))
}

fn copy_graph(device: &Device<Host>) -> Result<Chain> {
    chain(device, |stream, x, y| stream.copy_to_device(y, x))
}

fn kernels_one_by_one() -> Bench {
    Bench::new("graph/host/kernels/64", "launches one by one", Measure::Latency, || {
        let device = Device::<Host>::open("host")?;
        let kernel = tiny().load(&device)?;
        Ok(Pair {
            ours: launches(&device, kernel_graph(&device)?)?,
            reference: calls(&device, move |stream, x, y| kernel.launch(stream, &dims(), (x, y)))?,
        })
    })
}

fn copies_one_by_one() -> Bench {
    Bench::new("graph/host/copies/64", "copies one by one", Measure::Latency, || {
        let device = Device::<Host>::open("host")?;
        Ok(Pair {
            ours: launches(&device, copy_graph(&device)?)?,
            reference: calls(&device, |stream, x, y| stream.copy_to_device(y, x))?,
        })
    })
}

fn kernels_alone() -> Bench {
    Bench::new("graph/host/kernels_alone/64", "calls of the body", Measure::Latency, || {
        let device = Device::<Host>::open("host")?;
        let definition = tiny();
        let entry = definition.entry(device.capabilities().wave_size, device.capabilities().shared_memory);
        let function = entry.map(|entry| entry.function().clone());
        let function = function.ok_or_else(|| anyhow!("it has no body for the host"))?;
        let (x, y) = arrays(&device)?;
        let slice = |array: &Array| [array.address(), LEN as u64];
        let arguments = KernelArguments::new().with(slice(&x)).with(slice(&y));
        Ok(Pair {
            ours: launches(&device, kernel_graph(&device)?)?,
            reference: Routine::clocked(move |nodes| {
                let _alive = (&x, &y);
                of_nodes(nodes, 1, || call(&function, dims(), &arguments))
            }),
        })
    })
}

fn copies_alone() -> Bench {
    Bench::new("graph/host/copies_alone/64", "the same memcpy", Measure::Latency, || {
        let device = Device::<Host>::open("host")?;
        let (from, mut to) = ([1.0f32; LEN], [0.0f32; LEN]);
        Ok(Pair {
            ours: launches(&device, copy_graph(&device)?)?,
            reference: Routine::clocked(move |nodes| {
                of_nodes(nodes, 1, || {
                    black_box(&mut to).copy_from_slice(black_box(&from));
                    Ok(())
                })
            }),
        })
    })
}
