//! Launching a graph, compared with the driver's own graph of the same kernels, and with the launches one by one.

use super::{
    device,
    kernels::{Raw, load, place},
    ordering::batches_of,
    raw::{Context, Stream, check},
};
use crate::{Bench, Measure, Pair, Routine};
use anyhow::{Context as _, Result};
use cudarc::driver::{CudaContext, sys};
use gpumem_core::LaunchConfig;
use gpumem_cuda::Cuda;
use gpumem_kernel::{KernelDef, Slice, SliceMut, config_for_items};
use gpumem_runtime::{Device, DeviceArray, Graph, Stream as OwnStream, WriteForm, writes};
use ndarray::Ix1;
use std::{
    mem::{ManuallyDrop, swap},
    ptr::null_mut,
    rc::Rc,
};

/// Small arrays: what is measured is the cost on the host.
const LEN: usize = 256;
/// Kernels enqueued between two waits: too few to fill the driver's queue.
const KERNELS: usize = 512;

pub(super) fn all() -> Vec<Bench> {
    let mut benches: Vec<_> = [1, 4, 16, 64, 256].map(chain).into();
    benches.extend([16, 64].map(one_by_one));
    benches.extend([ping_pong(), number(), beside_cudarc()]);
    benches
}

type Line = (Slice<f32>, SliceMut<f32>, f32);
type Array = DeviceArray<f32, Ix1, Cuda>;
type Form = WriteForm<f32, Ix1>;

fn declaration() -> KernelDef<Line> {
    // SAFETY: each work-item uses its own elements.
    unsafe { KernelDef::<Line>::new("graph_line") }.source(
        "using namespace gpumem;
        GPUMEM_KERNEL graph_line(slice<const float> x, slice<float> y, float a) {
            u64 i = global_id(0);
            if (i < y.size()) y[i] = a * x[i];
        }",
    )
}

fn dims() -> LaunchConfig {
    config_for_items([LEN, 1, 1], [256, 1, 1])
}

/// So many kernels, each of which reads what the one before has written.
fn record(device: &Device<Cuda>, kernels: usize) -> Result<Graph<(Form, Form), (), Cuda>> {
    let kernel = load(device, &declaration())?;
    let like = (writes::<f32, _>(LEN), writes::<f32, _>(LEN));
    Ok(device.record(like, |stream, (mut x, mut y)| {
        for _ in 0..kernels {
            kernel.launch(stream, &dims(), (&x, &mut y, 0.5f32))?;
            swap(&mut x, &mut y);
        }
        Ok(())
    })?)
}

fn arrays(device: &Device<Cuda>) -> Result<(Array, Array)> {
    Ok((device.device_array::<f32, _>(LEN)?, device.device_array::<f32, _>(LEN)?))
}

/// The driver's graph of a chain.
struct RawGraph {
    raw: sys::CUgraphExec,
    captured: sys::CUgraph,
    /// The first launch.
    first: sys::CUgraphNode,
    context: Context,
    kept: (Raw, Array, Array),
}

impl RawGraph {
    fn of(device: &Device<Cuda>, kernels: usize) -> Result<Self> {
        let (context, kernel) = (Context::of(device), Raw::of(device, &declaration())?);
        let (x, y) = arrays(device)?;
        let stream = context.stream()?;
        let (mut graph, mut raw, mut first) = (null_mut(), null_mut(), null_mut());
        context.within(|| {
            let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
            // SAFETY: the stream is alive.
            check(unsafe { sys::cuStreamBeginCapture_v2(stream.raw, mode) }, "cuStreamBeginCapture")?;
            launch_chain(&kernel, &stream, [&x, &y], kernels)?;
            // SAFETY: places for handles; the graph is ours.
            unsafe {
                check(sys::cuStreamEndCapture(stream.raw, &mut graph), "cuStreamEndCapture")?;
                let mut count = 1;
                check(sys::cuGraphGetRootNodes(graph, &mut first, &mut count), "cuGraphGetRootNodes")?;
                check(sys::cuGraphInstantiateWithFlags(&mut raw, graph, 0), "cuGraphInstantiateWithFlags")
            }
        })?;
        Ok(Self { raw, captured: graph, first, context, kept: (kernel, x, y) })
    }

    /// Gives the first kernel another factor.
    fn set_first(&self, factor: f32) -> Result<()> {
        let (kernel, x, y) = &self.kept;
        let (x, y) = ([x.address(), LEN as u64], [y.address(), LEN as u64]);
        let mut arguments = [place(&x), place(&y), place(&factor)];
        let parameters = kernel.node_parameters(&dims(), &mut arguments);
        // SAFETY: all handles are alive, and the arguments are those of the declaration.
        let status = unsafe { sys::cuGraphExecKernelNodeSetParams_v2(self.raw, self.first, &parameters) };
        check(status, "cuGraphExecKernelNodeSetParams")
    }

    fn launch(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both are alive.
        check(unsafe { sys::cuGraphLaunch(self.raw, stream.raw) }, "cuGraphLaunch")
    }
}

impl Drop for RawGraph {
    fn drop(&mut self) {
        // SAFETY: nothing uses the graph any more.
        let _ = self.context.within(|| unsafe {
            check(sys::cuGraphExecDestroy(self.raw), "cuGraphExecDestroy")?;
            check(sys::cuGraphDestroy(self.captured), "cuGraphDestroy")
        });
    }
}

fn launch_chain(kernel: &Raw, stream: &Stream, arrays: [&Array; 2], kernels: usize) -> Result<()> {
    let slices = arrays.map(|array| [array.address(), LEN as u64]);
    for at in 0..kernels {
        let (x, y) = (&slices[at % 2], &slices[(at + 1) % 2]);
        let mut arguments = [place(x), place(y), place(&0.5f32)];
        // SAFETY: the arguments are those of the declaration, and the arrays have this length.
        unsafe { kernel.launch(stream, &dims(), &mut arguments)? };
    }
    Ok(())
}

/// A graph's routine that clocks launches.
fn launches(
    stream: OwnStream<Cuda>,
    kernels: usize,
    mut launch: impl FnMut(&OwnStream<Cuda>) -> Result<()> + 'static,
) -> Routine {
    Routine::clocked(move |calls| {
        batches_of((KERNELS / kernels) as u64, calls, || launch(&stream), || Ok(stream.synchronize()?))
    })
}

fn raw_launches(
    context: Context,
    stream: Rc<Stream>,
    kernels: usize,
    mut launch: impl FnMut(&Stream) -> Result<()> + 'static,
) -> Routine {
    Routine::clocked(move |calls| {
        let batch = (KERNELS / kernels) as u64;
        context.within(|| batches_of(batch, calls, || launch(&stream), || stream.synchronize()))
    })
}

/// Launching a chain of kernels as a graph.
fn chain(kernels: usize) -> Bench {
    Bench::new(format!("cuda/graph/chain/{kernels}"), "cuGraphLaunch", Measure::Latency, move || {
        let device = device()?;
        let (graph, (mut x, mut y)) = (record(&device, kernels)?, arrays(&device)?);
        let (raw, context) = (RawGraph::of(&device, kernels)?, Context::of(&device));
        let stream = context.stream()?;
        let launch = move |stream: &OwnStream<Cuda>| Ok(graph.launch(stream, (&mut x, &mut y))?);
        Ok(Pair {
            ours: launches(device.stream()?, kernels, launch),
            reference: raw_launches(context, stream, kernels, move |stream| raw.launch(stream)),
        })
    })
}

/// Launching a chain as a graph, compared with launches one by one.
fn one_by_one(kernels: usize) -> Bench {
    let reference = "cuLaunchKernel for each kernel";
    Bench::new(format!("cuda/graph/one_by_one/{kernels}"), reference, Measure::Latency, move || {
        let device = device()?;
        let (graph, (mut x, mut y)) = (record(&device, kernels)?, arrays(&device)?);
        let (kernel, context) = (Raw::of(&device, &declaration())?, Context::of(&device));
        let (other_x, other_y) = arrays(&device)?;
        let stream = context.stream()?;
        let launch = move |stream: &OwnStream<Cuda>| Ok(graph.launch(stream, (&mut x, &mut y))?);
        let raw = move |stream: &Stream| launch_chain(&kernel, stream, [&other_x, &other_y], kernels);
        Ok(Pair {
            ours: launches(device.stream()?, kernels, launch),
            reference: raw_launches(context, stream, kernels, raw),
        })
    })
}

/// Two arrays that change places with each launch, compared with two graphs of the driver in turn.
fn ping_pong() -> Bench {
    const KERNELS: usize = 16;
    Bench::new("cuda/graph/ping_pong/16", "two graphs of the driver in turn", Measure::Latency, || {
        let device = device()?;
        let (graph, (mut x, mut y)) = (record(&device, KERNELS)?, arrays(&device)?);
        let raw = [RawGraph::of(&device, KERNELS)?, RawGraph::of(&device, KERNELS)?];
        let context = Context::of(&device);
        let stream = context.stream()?;
        let launch = move |stream: &OwnStream<Cuda>| {
            graph.launch(stream, (&mut x, &mut y))?;
            swap(&mut x, &mut y);
            Ok(())
        };
        let mut at = 0;
        let launch_raw = move |stream: &Stream| {
            at += 1;
            raw[at % 2].launch(stream)
        };
        Ok(Pair {
            ours: launches(device.stream()?, KERNELS, launch),
            reference: raw_launches(context, stream, KERNELS, launch_raw),
        })
    })
}

/// A chain of 16 kernels of which one takes a number of each launch, compared with a driver's graph whose node is set before each launch.
fn number() -> Bench {
    const KERNELS: usize = 16;
    let reference = "cuGraphExecKernelNodeSetParams and cuGraphLaunch";
    Bench::new("cuda/graph/number/16", reference, Measure::Latency, || {
        let device = device()?;
        let (kernel, (mut x, mut y)) = (load(&device, &declaration())?, arrays(&device)?);
        let like = (writes::<f32, _>(LEN), writes::<f32, _>(LEN), 0.0f32);
        let graph = device.record(like, |stream, (mut x, mut y, factor)| {
            kernel.launch(stream, &dims(), (&x, &mut y, factor))?;
            for _ in 1..KERNELS {
                swap(&mut x, &mut y);
                kernel.launch(stream, &dims(), (&x, &mut y, 0.5f32))?;
            }
            Ok(())
        })?;
        let (raw, context) = (RawGraph::of(&device, KERNELS)?, Context::of(&device));
        let stream = context.stream()?;
        let mut at = 0.0f32;
        let launch = move |stream: &OwnStream<Cuda>| {
            at += 1.0;
            Ok(graph.launch(stream, (&mut x, &mut y, at))?)
        };
        let mut at = 0.0;
        let launch_raw = move |stream: &Stream| {
            at += 1.0;
            raw.set_first(at)?;
            raw.launch(stream)
        };
        Ok(Pair {
            ours: launches(device.stream()?, KERNELS, launch),
            reference: raw_launches(context, stream, KERNELS, launch_raw),
        })
    })
}

/// A chain of 16 kernels, compared with cudarc's graph of it.
fn beside_cudarc() -> Bench {
    const KERNELS: usize = 16;
    Bench::new("cuda/graph/cudarc/16", "cudarc's CudaGraph::launch", Measure::Latency, || {
        let device = device()?;
        let (graph, (mut x, mut y)) = (record(&device, KERNELS)?, arrays(&device)?);
        let launch = move |stream: &OwnStream<Cuda>| Ok(graph.launch(stream, (&mut x, &mut y))?);
        let (kernel, context) = (Raw::of(&device, &declaration())?, Context::of(&device));
        let (other_x, other_y) = arrays(&device)?;
        let stream = CudaContext::new(device.info().ordinal)?.new_stream()?;
        stream.begin_capture(sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED)?;
        // cudarc destroys its stream.
        let own = ManuallyDrop::new(Stream { raw: stream.cu_stream(), context });
        launch_chain(&kernel, &own, [&other_x, &other_y], KERNELS)?;
        let captured = stream.end_capture(sys::CUgraphInstantiate_flags_enum(0))?;
        let captured = captured.context("cudarc has captured nothing")?;
        let kept = (kernel, other_x, other_y);
        let theirs = Routine::clocked(move |calls| {
            let _ = &kept;
            let batch = (self::KERNELS / KERNELS) as u64;
            batches_of(batch, calls, || Ok(captured.launch()?), || Ok(stream.synchronize()?))
        });
        Ok(Pair { ours: launches(device.stream()?, KERNELS, launch), reference: theirs })
    })
}
