//! OpenCL on the processor, by the library that is installed.

use crate::Unavailable;
use anyhow::{Result, anyhow};
use opencl3::{
    command_queue::CommandQueue,
    context::Context,
    device::{CL_DEVICE_TYPE_CPU, Device},
    kernel::{ExecuteKernel, Kernel},
    memory::{Buffer, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE},
    platform::get_platforms,
    program::Program,
};
use std::{ffi::c_void, rc::Rc};

/// A queue on the processor.
#[derive(Debug)]
pub(super) struct OpenCl {
    context: Context,
    pub(super) queue: CommandQueue,
}

impl OpenCl {
    /// Opens PoCL's processor.
    pub(super) fn open() -> Result<Rc<Self>> {
        let missing = |why: String| anyhow::Error::new(Unavailable(why));
        let platforms = get_platforms().map_err(|error| missing(format!("no OpenCL: {error}")))?;
        for platform in platforms {
            if !platform.name().unwrap_or_default().contains("Portable Computing Language") {
                continue;
            }
            let devices = platform.get_devices(CL_DEVICE_TYPE_CPU).unwrap_or_default();
            if let Some(id) = devices.first() {
                let context = Context::from_device(&Device::new(*id)).map_err(|error| anyhow!("{error}"))?;
                #[allow(deprecated)] // PoCL 3 has it, as every older version
                let queue = CommandQueue::create_default(&context, 0).map_err(|error| anyhow!("{error}"))?;
                return Ok(Rc::new(Self { context, queue }));
            }
        }
        Err(missing("PoCL is not installed (Debian: pocl-opencl-icd)".to_owned()))
    }

    /// Compiles one of the kernels.
    pub(super) fn kernel(&self, name: &str) -> Result<Kernel> {
        let source = include_str!("kernels.cl");
        let program = Program::create_and_build_from_source(&self.context, source, "-cl-std=CL1.2")
            .map_err(|log| anyhow!("{log}"))?;
        Kernel::create(&program, name).map_err(|error| anyhow!("{name}: {error}"))
    }

    /// An array of these elements.
    pub(super) fn array<T>(&self, elements: &mut [T]) -> Result<Buffer<T>> {
        let flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
        let memory = elements.as_mut_ptr().cast::<c_void>();
        // SAFETY: the elements are copied during the call, and there are so many.
        let buffer = unsafe { Buffer::create(&self.context, flags, elements.len(), memory) };
        buffer.map_err(|error| anyhow!("{error}"))
    }

    /// Launches a kernel of set arguments, and waits for it.
    pub(super) fn run(&self, launch: &mut ExecuteKernel<'_>) -> Result<()> {
        // SAFETY: the arguments are those of the kernel, whose indices stay inside.
        unsafe { launch.enqueue_nd_range(&self.queue) }.map_err(|error| anyhow!("{error}"))?;
        self.queue.finish().map_err(|error| anyhow!("{error}"))
    }
}
