//! The kernels that ship, on the processor: their Rust functions, against OpenCL C that PoCL compiles with LLVM. Each launch is waited
//! for. Skipped without PoCL.

mod opencl;

use crate::{Bench, Measure, Pair, Routine};
use anyhow::Result;
use gpumem_core::LaunchConfig;
use gpumem_host::Host;
use gpumem_kernel::{Kernel, KernelDef, Parameters, Value, config_for_items};
use gpumem_kernel_suite::{convolution, histogram, matmul, reduce, saxpy, scan, stencil, transpose, update};
use gpumem_runtime::{Device, Stream};
use ndarray::{Array1, Array2, Array3};
use opencl::OpenCl;
use opencl3::{kernel::ExecuteKernel, memory::Buffer};
use std::rc::Rc;

/// One launch of a kernel of the library; the arrays are in it.
type Launch<P> = Box<dyn FnMut(&Kernel<P, Host>, &Stream<Host>) -> gpumem_core::Result<()>>;
/// One launch by OpenCL; the arrays are in it.
type Reference = Box<dyn FnMut() -> Result<()>>;

/// Elements of vectors.
const LEN: usize = 1 << 20;
/// Elements along each side of images.
const SIDE: usize = 1 << 10;

/// Checks of indices are off on both sides.
fn unchecked<P: Parameters>(kernel: KernelDef<P>) -> KernelDef<P> {
    // SAFETY: the tests of the kernel show that its indices are inside.
    unsafe { kernel.unsealed() }.bounds_checks(false)
}

fn bench<P: Parameters + 'static>(
    name: &'static str,
    kernel: fn() -> KernelDef<P>,
    ours: impl Fn(&Stream<Host>) -> Result<Launch<P>> + 'static,
    reference: impl Fn(&Rc<OpenCl>) -> Result<Reference> + 'static,
) -> Bench {
    Bench::new(format!("kernels/host/pocl/{name}"), "PoCL", Measure::Latency, move || {
        let opencl = OpenCl::open()?;
        let stream = Device::<Host>::open("host")?.stream()?;
        let kernel = unchecked(kernel()).load(stream.device())?;
        let (mut ours, reference) = (ours(&stream)?, reference(&opencl)?);
        Ok(Pair {
            ours: Routine::call(move || {
                ours(&kernel, &stream)?;
                Ok(stream.synchronize()?)
            }),
            reference: Routine::call(reference),
        })
    })
}

fn floats(len: usize) -> Vec<f32> {
    (0..len).map(|at| (at % 97) as f32).collect()
}

fn image(side: usize) -> Array2<f32> {
    Array2::from_shape_fn((side, side), |(y, x)| ((y * 3 + x) % 97) as f32)
}

/// A launch by OpenCL: the kernel, its arrays and numbers in order, the sizes.
macro_rules! opencl {
    ($opencl:ident, $name:literal, [$($array:ident),*], [$($number:expr),*], $global:expr, $local:expr) => {{
        let (kernel, opencl) = ($opencl.kernel($name)?, $opencl.clone());
        Ok(Box::new(move || {
            let mut launch = ExecuteKernel::new(&kernel);
            // SAFETY: the arguments are those of the kernel of this name.
            unsafe {
                $(launch.set_arg(&$array);)*
                $(launch.set_arg(&$number);)*
            }
            launch.set_global_work_sizes(&$global).set_local_work_sizes(&$local);
            opencl.run(&mut launch)
        }) as Reference)
    }};
}

fn saxpy_of(name: &'static str, len: usize) -> Bench {
    bench(
        name,
        saxpy::saxpy,
        move |stream| {
            let (x, mut y) = (stream.to_device(&floats(len))?, stream.to_device(&floats(len))?);
            let dims = config_for_items(len, 256);
            Ok(Box::new(move |kernel, stream| kernel.launch(stream, &dims, (&x, &mut y, 1e-9))))
        },
        move |opencl| {
            let (x, y): (Buffer<f32>, Buffer<f32>) =
                (opencl.array(&mut floats(len))?, opencl.array(&mut floats(len))?);
            opencl!(opencl, "saxpy", [x, y], [len as u64, 1e-9f32], [len], [256])
        },
    )
}

pub(super) fn all() -> Vec<Bench> {
    let side = SIDE as u64;
    vec![
        saxpy_of("saxpy/16Ki", 16 << 10),
        saxpy_of("saxpy/1Mi", LEN),
        bench(
            "update",
            update::update,
            |stream| {
                let particle = update::Particle { place: [1.0; 2], speed: [2.0; 2], steps: 0 };
                let mut particles = stream.to_device(&Array1::from_elem(LEN / 4, particle))?;
                let (dims, by) =
                    (config_for_items(LEN / 4, 256), update::Step { time: 1e-9, pull: [1.0; 2] });
                Ok(Box::new(move |kernel, stream| kernel.launch(stream, &dims, (&mut particles, Value(by)))))
            },
            |opencl| {
                let particle = update::Particle { place: [1.0; 2], speed: [2.0; 2], steps: 0 };
                let particles = opencl.array(&mut vec![particle; LEN / 4])?;
                opencl!(
                    opencl,
                    "update",
                    [particles],
                    [(LEN / 4) as u64, 1e-9f32, 1f32, 1f32],
                    [LEN / 4],
                    [256]
                )
            },
        ),
        bench(
            "stencil",
            stencil::stencil,
            |stream| {
                let (before, mut after) = (stream.to_device(&image(SIDE))?, stream.to_device(&image(SIDE))?);
                let dims = config_for_items((SIDE, SIDE), (32, 8));
                Ok(Box::new(move |kernel, stream| kernel.launch(stream, &dims, (&before, &mut after))))
            },
            move |opencl| {
                let (before, after) =
                    (opencl.array(&mut floats(SIDE * SIDE))?, opencl.array(&mut floats(SIDE * SIDE))?);
                opencl!(opencl, "stencil", [before, after], [side], [SIDE, SIDE], [32, 8])
            },
        ),
        bench(
            "transpose",
            transpose::transpose,
            |stream| {
                let (input, mut output) = (stream.to_device(&image(SIDE))?, stream.to_device(&image(SIDE))?);
                let dims = config_for_items((SIDE, SIDE), (16, 16));
                Ok(Box::new(move |kernel, stream| kernel.launch(stream, &dims, (&input, &mut output))))
            },
            move |opencl| {
                let (input, output) =
                    (opencl.array(&mut floats(SIDE * SIDE))?, opencl.array(&mut floats(SIDE * SIDE))?);
                opencl!(opencl, "transpose", [input, output], [side], [SIDE, SIDE], [16, 16])
            },
        ),
        bench(
            "matmul",
            matmul::matmul,
            |stream| {
                let side = SIDE / 4;
                let (a, b) = (stream.to_device(&image(side))?, stream.to_device(&image(side))?);
                let mut c = stream.to_device(&image(side))?;
                let dims = config_for_items((side, side), (16, 16));
                Ok(Box::new(move |kernel, stream| kernel.launch(stream, &dims, (&a, &b, &mut c))))
            },
            |opencl| {
                let side = SIDE / 4;
                let (a, b) =
                    (opencl.array(&mut floats(side * side))?, opencl.array(&mut floats(side * side))?);
                let c = opencl.array(&mut floats(side * side))?;
                opencl!(opencl, "matmul", [a, b, c], [side as u64], [side, side], [16, 16])
            },
        ),
        bench(
            "reduce",
            reduce::reduce,
            |stream| {
                let x = stream.to_device(&floats(LEN))?;
                let (mut tree, mut wave) =
                    (stream.to_device(&floats(LEN / 256))?, stream.to_device(&floats(LEN / 256))?);
                let dims = config_for_items(LEN, 256);
                Ok(Box::new(move |kernel, stream| kernel.launch(stream, &dims, (&x, &mut tree, &mut wave))))
            },
            |opencl| {
                let x = opencl.array(&mut floats(LEN))?;
                let (tree, wave) =
                    (opencl.array(&mut floats(LEN / 256))?, opencl.array(&mut floats(LEN / 256))?);
                opencl!(opencl, "reduce", [x, tree, wave], [LEN as u64], [LEN], [256])
            },
        ),
        bench(
            "scan",
            scan::scan,
            |stream| {
                let x = stream.to_device(&Array1::<u32>::ones(LEN))?;
                let before = stream.device_array::<u32, _>(0)?;
                let mut totals = stream.device_array::<u32, _>(LEN / 256)?;
                let mut out = stream.device_array::<u32, _>(LEN)?;
                let dims = config_for_items(LEN, 256);
                Ok(Box::new(move |kernel, stream| {
                    kernel.launch(stream, &dims, (&x, &before, &mut totals, &mut out))
                }))
            },
            |opencl| {
                let (x, totals) =
                    (opencl.array(&mut vec![1u32; LEN])?, opencl.array(&mut vec![0u32; LEN / 256])?);
                let out = opencl.array(&mut vec![0u32; LEN])?;
                opencl!(opencl, "scan", [x, totals, out], [LEN as u64], [LEN], [256])
            },
        ),
        bench(
            "histogram",
            histogram::histogram,
            |stream| {
                let values = Array1::from_iter(bytes(4 * LEN));
                let (values, mut totals) = (stream.to_device(&values)?, stream.device_array::<u32, _>(256)?);
                let dims = LaunchConfig::linear(64, 256);
                Ok(Box::new(move |kernel, stream| kernel.launch(stream, &dims, (&values, &mut totals))))
            },
            |opencl| {
                let mut values: Vec<u8> = bytes(4 * LEN).collect();
                let (values, totals) = (opencl.array(&mut values)?, opencl.array(&mut vec![0u32; 256])?);
                opencl!(opencl, "histogram", [values, totals], [4 * LEN as u64], [64 * 256], [256])
            },
        ),
        bench(
            "convolution",
            convolution::convolution,
            |stream| {
                let pixels = Array3::from_shape_vec((SIDE, SIDE, 3), bytes(SIDE * SIDE * 3).collect())?;
                let (image, mut result) =
                    (stream.to_device(&pixels)?, stream.device_array::<u8, _>((SIDE, SIDE, 3))?);
                let dims = config_for_items((SIDE, SIDE, 3), convolution::GROUP);
                let (weights, shift) = convolution::BLUR;
                Ok(Box::new(move |kernel, stream| {
                    kernel.launch(stream, &dims, (&image, &mut result, weights, shift))
                }))
            },
            move |opencl| {
                let mut pixels: Vec<u8> = bytes(SIDE * SIDE * 3).collect();
                let (image, result) =
                    (opencl.array(&mut pixels)?, opencl.array(&mut vec![0u8; SIDE * SIDE * 3])?);
                let (weights, shift) = convolution::BLUR;
                let (opencl, kernel) = (opencl.clone(), opencl.kernel("convolution")?);
                let weights = opencl.array(&mut weights.0.to_vec())?;
                Ok(Box::new(move || {
                    let mut launch = ExecuteKernel::new(&kernel);
                    // SAFETY: the arguments are those of the kernel.
                    unsafe {
                        launch
                            .set_arg(&image)
                            .set_arg(&result)
                            .set_arg(&side)
                            .set_arg(&weights)
                            .set_arg(&shift);
                    }
                    launch.set_global_work_sizes(&[SIDE, SIDE, 3]).set_local_work_sizes(&[32, 8, 1]);
                    opencl.run(&mut launch)
                }))
            },
        ),
    ]
}

fn bytes(len: usize) -> impl Iterator<Item = u8> {
    (0..len).map(|at| ((at * 2_654_435_761) >> 13) as u8)
}
