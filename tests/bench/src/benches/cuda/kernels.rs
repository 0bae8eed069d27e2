//! Launching a kernel, and a kernel that is launched, compared with the driver's own launch of the same program.

use super::{
    device,
    ordering::{as_found, batches, named},
    raw::{Context, Stream, check},
};
use crate::{Bench, Measure, Pair, Routine, Unavailable};
use anyhow::{Context as _, Result, ensure};
use cudarc::driver::sys;
use gpumem_core::{CompileOptions, DriverDevice, DriverModule, ErrorKind, KernelSource, LaunchConfig};
use gpumem_cuda::{Cuda, CudaExt, CudaKernel};
use gpumem_kernel::{Kernel, KernelDef, Parameters, Slice, SliceMut, config_for_items};
use gpumem_kernel_suite::convolution;
use gpumem_runtime::{Device, DeviceArray};
use ndarray::{Array3, Ix1, Ix3};
use std::{
    ffi::c_void,
    ptr::{from_ref, null_mut},
    rc::Rc,
    time::Instant,
};

pub(super) fn all() -> Vec<Bench> {
    vec![launch(false), launch(true), convolution()]
}

/// The kernel, or why there is none: a machine without NVRTC.
pub(super) fn load<P: Parameters>(
    device: &Device<Cuda>,
    declaration: &KernelDef<P>,
) -> Result<Kernel<P, Cuda>> {
    declaration.load(device).map_err(|error| match error.kind() {
        ErrorKind::Load(_) => Unavailable(error.to_string()).into(),
        _ => error.into(),
    })
}

/// The same program as the driver takes it.
pub(super) struct Raw {
    function: sys::CUfunction,
    /// Keeps the function loaded.
    _kernel: CudaKernel,
}

impl Raw {
    pub(super) fn of<P: Parameters>(device: &Device<Cuda>, declaration: &KernelDef<P>) -> Result<Self> {
        let text = declaration.portable_text(device.capabilities().wave_size, false);
        let source = KernelSource::Text(text.context("the kernel has no source")?);
        let module = device.raw().compile(&source, &CompileOptions::default())?;
        let kernel = module.kernel(declaration.name())?;
        Ok(Self { function: Cuda::function(&kernel), _kernel: kernel })
    }

    /// # Safety
    /// The arguments are those of the kernel, and the memory that they name is alive and as long as they say.
    pub(super) unsafe fn launch(
        &self,
        stream: &Stream,
        dims: &LaunchConfig,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let ([gx, gy, gz], [x, y, z]) = (dims.groups, dims.group_size);
        let (function, arguments) = (self.function, arguments.as_mut_ptr());
        // SAFETY: the caller's promise; function and stream are alive.
        let status = unsafe {
            sys::cuLaunchKernel(function, gx, gy, gz, x, y, z, 0, stream.raw, arguments, null_mut())
        };
        check(status, "cuLaunchKernel")
    }

    /// A launch as a node of a graph has it.
    pub(super) fn node_parameters(
        &self,
        dims: &LaunchConfig,
        arguments: &mut [*mut c_void],
    ) -> sys::CUDA_KERNEL_NODE_PARAMS {
        let ([x, y, z], [block_x, block_y, block_z]) = (dims.groups, dims.group_size);
        sys::CUDA_KERNEL_NODE_PARAMS {
            func: self.function,
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: 0,
            kernelParams: arguments.as_mut_ptr(),
            extra: null_mut(),
            kern: null_mut(),
            ctx: null_mut(),
        }
    }
}

/// A place that the driver copies an argument from.
pub(super) fn place<T>(value: &T) -> *mut c_void {
    from_ref(value).cast_mut().cast()
}

type Line = (Slice<f32>, SliceMut<f32>, f32, f32);

/// Enqueuing a kernel with two arrays and two scalars, tracking included.
fn launch(current: bool) -> Bench {
    const LEN: usize = 1024;
    let name = named("cuda/enqueue/kernel/two_arrays_two_scalars", current);
    Bench::new(name, "cuLaunchKernel", Measure::Latency, move || {
        let device = device()?;
        let context = Context::of(&device);
        // SAFETY: each work-item uses its own elements.
        let declaration = unsafe { KernelDef::<Line>::new("line") }.source(
            "using namespace gpumem;
            GPUMEM_KERNEL line(slice<const float> x, slice<float> y, float a, float b) {
                u64 i = global_id(0);
                if (i < y.size()) y[i] = a * x[i] + b;
            }",
        );
        let kernel = load(&device, &declaration)?;
        let reference = Raw::of(&device, &declaration)?;
        let dims = config_for_items([LEN, 1, 1], [256, 1, 1]);
        let array = || device.device_array::<f32, _>(LEN);
        let (x, mut y): (DeviceArray<f32, Ix1, Cuda>, DeviceArray<f32, Ix1, Cuda>) = (array()?, array()?);
        let (other_x, other_y) = (array()?, array()?);
        let (stream, raw, ours_context) = (device.stream()?, context.stream()?, context.clone());
        let ours = Routine::clocked(move |calls| {
            as_found(&ours_context, current, || {
                let enqueue = || Ok(kernel.launch(&stream, &dims, (&x, &mut y, 2.0f32, 1.0f32))?);
                batches(calls, enqueue, || Ok(stream.synchronize()?))
            })
        });
        let reference = Routine::clocked(move |calls| {
            let slices = [&other_x, &other_y].map(|array| [array.address(), LEN as u64]);
            context.within(|| {
                let enqueue = || {
                    let [x, y] = &slices;
                    let mut arguments = [place(x), place(y), place(&2.0f32), place(&1.0f32)];
                    // SAFETY: the arguments are those of the declaration, and the arrays have this length.
                    unsafe { reference.launch(&raw, &dims, &mut arguments) }
                };
                batches(calls, enqueue, || raw.synchronize())
            })
        });
        Ok(Pair { ours, reference })
    })
}

const IMAGE: (usize, usize, usize) = (2160, 3840, 3);

/// Blurring an image, with the time that the device takes.
fn convolution() -> Bench {
    let bytes = 2 * (IMAGE.0 * IMAGE.1 * IMAGE.2) as u64;
    let name = "cuda/kernel/convolution/3840x2160";
    Bench::new(name, "cuLaunchKernel", Measure::Throughput { bytes }, || {
        let device = device()?;
        let context = Context::of(&device);
        let declaration = convolution::convolution();
        let kernel = load(&device, &declaration)?;
        let other = Raw::of(&device, &declaration)?;
        let (height, width, channels) = IMAGE;
        let dims = config_for_items([width, height, channels], convolution::GROUP);
        let host = Array3::from_shape_fn(IMAGE, |(y, x, channel)| (y * 7 + x * 13 + channel * 50) as u8);
        let image: Rc<DeviceArray<u8, Ix3, Cuda>> = Rc::new(device.to_device(&host)?);
        let array = || device.device_array::<u8, _>(IMAGE);
        let (mut result, other_result): (DeviceArray<u8, Ix3, Cuda>, _) = (array()?, array()?);
        let (stream, raw) = (device.stream()?, context.stream()?);
        let (weights, shift) = convolution::BLUR;

        let views = [&*image, &other_result].map(|array| {
            let strides = array.strides().iter().map(|stride| *stride as u64);
            let extents = array.shape().iter().map(|extent| *extent as u64);
            [array.address()].into_iter().chain(extents).chain(strides).collect::<Vec<u64>>()
        });
        let raw_stream = raw.clone();
        let raw_launch = move || -> Result<()> {
            let [image, result] = &views;
            let mut arguments = [
                image.as_ptr().cast_mut().cast(),
                result.as_ptr().cast_mut().cast(),
                place(&weights),
                place(&shift),
            ];
            // SAFETY: the arguments are those of the declaration, and the views are those of the arrays, which live as
            // long as this.
            unsafe { other.launch(&raw_stream, &dims, &mut arguments) }
        };
        // Both compute the same before either is measured. The driver's stream does not wait for gpumem's work.
        device.synchronize()?;
        kernel.launch(&stream, &dims, (&*image, &mut result, weights, shift))?;
        context.within(|| raw_launch().and_then(|()| raw.synchronize()))?;
        ensure!(result.copy_to_host()? == other_result.copy_to_host()?, "the two launches differ");

        let (ours_image, raw_image) = (image.clone(), image);
        let ours = Routine::batch(move |calls| {
            for _ in 0..calls {
                kernel.launch(&stream, &dims, (&*ours_image, &mut result, weights, shift))?;
            }
            Ok(stream.synchronize()?)
        });
        let reference = Routine::clocked(move |calls| {
            let _arrays = (&raw_image, &other_result);
            context.within(|| {
                let start = Instant::now();
                for _ in 0..calls {
                    raw_launch()?;
                }
                raw.synchronize()?;
                Ok(start.elapsed())
            })
        });
        Ok(Pair { ours, reference })
    })
}
