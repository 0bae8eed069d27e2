//! The kernels that ship, as Rust functions, against their C++ that was written by hand, in turns: both without checks of indices,
//! and both with them, as kernels in Rust have by default.

use super::device;
use crate::{Bench, Measure, Pair, Routine, Unavailable};
use anyhow::Result;
use gpumem_core::{ErrorKind, LaunchConfig};
use gpumem_cuda::Cuda;
use gpumem_kernel::{Kernel, KernelDef, Parameters, Value, config_for_items};
use gpumem_kernel_suite::{
    by_hand::{self, Twin},
    convolution, update,
};
use gpumem_runtime::Stream;
use ndarray::{Array1, Array2, Array3};
use std::rc::Rc;

/// One launch of a kernel; the arrays are in it.
type Launch<P> = Box<dyn FnMut(&Kernel<P, Cuda>, &Stream<Cuda>) -> gpumem_core::Result<()>>;

/// Elements of vectors.
const LEN: usize = 1 << 24;
/// Elements along each side of images.
const SIDE: usize = 1 << 12;

pub(super) fn all() -> Vec<Bench> {
    let mut benches = Vec::new();
    for bounds in [false, true] {
        benches.extend([
            bench("saxpy", bounds, by_hand::saxpy, |stream| {
                let (x, mut y) = (floats(stream, LEN)?, floats(stream, LEN)?);
                let dims = config_for_items(LEN, 256);
                Ok(Box::new(move |kernel, stream| kernel.launch(stream, &dims, (&x, &mut y, 1e-9))))
            }),
            bench("update", bounds, by_hand::update, |stream| {
                let particle = update::Particle { place: [1.0; 2], speed: [2.0; 2], steps: 0 };
                let mut particles = stream.to_device(&Array1::from_elem(LEN / 4, particle))?;
                let (dims, by) =
                    (config_for_items(LEN / 4, 256), update::Step { time: 1e-9, pull: [1.0; 2] });
                Ok(Box::new(move |kernel, stream| kernel.launch(stream, &dims, (&mut particles, Value(by)))))
            }),
            bench("stencil", bounds, by_hand::stencil, |stream| {
                let (before, mut after) = (image(stream, SIDE)?, image(stream, SIDE)?);
                let dims = config_for_items((SIDE, SIDE), (32, 8));
                Ok(Box::new(move |kernel, stream| kernel.launch(stream, &dims, (&before, &mut after))))
            }),
            bench("transpose", bounds, by_hand::transpose, |stream| {
                let (input, mut output) = (image(stream, SIDE)?, image(stream, SIDE)?);
                let dims = config_for_items((SIDE, SIDE), (16, 16));
                Ok(Box::new(move |kernel, stream| kernel.launch(stream, &dims, (&input, &mut output))))
            }),
            bench("matmul", bounds, by_hand::matmul, |stream| {
                let (a, b) = (image(stream, SIDE / 4)?, image(stream, SIDE / 4)?);
                let mut c = image(stream, SIDE / 4)?;
                let dims = config_for_items((SIDE / 4, SIDE / 4), (16, 16));
                Ok(Box::new(move |kernel, stream| kernel.launch(stream, &dims, (&a, &b, &mut c))))
            }),
            bench("reduce", bounds, by_hand::reduce, |stream| {
                let x = floats(stream, LEN)?;
                let (mut tree, mut wave) = (floats(stream, LEN / 256)?, floats(stream, LEN / 256)?);
                let dims = config_for_items(LEN, 256);
                Ok(Box::new(move |kernel, stream| kernel.launch(stream, &dims, (&x, &mut tree, &mut wave))))
            }),
            bench("scan", bounds, by_hand::scan, |stream| {
                let x = stream.to_device(&Array1::<u32>::ones(LEN))?;
                let before = stream.device_array::<u32, _>(0)?;
                let mut totals = stream.device_array::<u32, _>(LEN / 256)?;
                let mut out = stream.device_array::<u32, _>(LEN)?;
                let dims = config_for_items(LEN, 256);
                Ok(Box::new(move |kernel, stream| {
                    kernel.launch(stream, &dims, (&x, &before, &mut totals, &mut out))
                }))
            }),
            bench("histogram", bounds, by_hand::histogram, |stream| {
                let values = Array1::from_shape_fn(4 * LEN, |at| ((at * 2_654_435_761) >> 13) as u8);
                let (values, mut totals) = (stream.to_device(&values)?, stream.device_array::<u32, _>(256)?);
                let dims = LaunchConfig::linear(1024, 256);
                Ok(Box::new(move |kernel, stream| kernel.launch(stream, &dims, (&values, &mut totals))))
            }),
            bench("convolution", bounds, by_hand::convolution, |stream| {
                let extents = (SIDE / 2, SIDE / 2, 3);
                let pixels =
                    Array3::from_shape_fn(extents, |(y, x, channel)| (y * 7 + x * 3 + channel) as u8);
                let (image, mut result) =
                    (stream.to_device(&pixels)?, stream.device_array::<u8, _>(extents)?);
                let dims = config_for_items((extents.1, extents.0, extents.2), convolution::GROUP);
                let (weights, shift) = convolution::BLUR;
                Ok(Box::new(move |kernel, stream| {
                    kernel.launch(stream, &dims, (&image, &mut result, weights, shift))
                }))
            }),
        ]);
    }
    benches
}

type Vector = gpumem_runtime::DeviceArray<f32, ndarray::Ix1, Cuda>;
type Image = gpumem_runtime::DeviceArray<f32, ndarray::Ix2, Cuda>;

fn floats(stream: &Stream<Cuda>, len: usize) -> Result<Vector> {
    Ok(stream.to_device(&Array1::from_shape_fn(len, |at| (at % 97) as f32))?)
}

fn image(stream: &Stream<Cuda>, side: usize) -> Result<Image> {
    Ok(stream.to_device(&Array2::from_shape_fn((side, side), |(y, x)| ((y * 3 + x) % 97) as f32))?)
}

fn bench<P: Parameters + 'static>(
    name: &str,
    bounds: bool,
    twin: fn() -> Twin<P>,
    launch: fn(&Stream<Cuda>) -> Result<Launch<P>>,
) -> Bench {
    let checked = if bounds { "checked" } else { "unchecked" };
    let name = format!("kernels/against_cpp/{name}/{checked}");
    Bench::new(name, "C++ by hand", Measure::Latency, move || {
        let stream = Rc::new(device()?.stream()?);
        let Twin { rust, cpp } = twin().bounds_checks(bounds);
        Ok(Pair { ours: routine(&stream, &rust, launch)?, reference: routine(&stream, &cpp, launch)? })
    })
}

fn routine<P: Parameters + 'static>(
    stream: &Rc<Stream<Cuda>>,
    kernel: &KernelDef<P>,
    launch: fn(&Stream<Cuda>) -> Result<Launch<P>>,
) -> Result<Routine> {
    let kernel = kernel.load(stream.device()).map_err(|error| match error.kind() {
        ErrorKind::Load(_) => anyhow::Error::new(Unavailable(error.to_string())),
        _ => error.into(),
    })?;
    let (stream, mut launch) = (stream.clone(), launch(stream)?);
    Ok(Routine::batch(move |iterations| {
        for _ in 0..iterations {
            launch(&kernel, &stream)?;
        }
        Ok(stream.synchronize()?)
    }))
}
