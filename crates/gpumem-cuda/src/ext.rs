//! Functions that only CUDA has.

use crate::{Cuda, CudaBuffer, CudaDevice, CudaEvent, CudaKernel, CudaModule, buffer::Provenance, registry};
use cudarc::driver::sys::{CUcontext, CUdeviceptr, CUfunction};
use gpumem_core::{Backend, DriverDevice, DriverModule, EventOptions, RawStream, Result};

/// Functions of the CUDA driver that other backends lack: contexts and memory of other libraries, and queries of the
/// driver.
pub trait CudaExt: Backend {
    /// Takes a context of another library without owning it. Where it is the primary context of a device that is
    /// open here, the result is that device.
    ///
    /// # Safety
    /// The context is alive, and stays so for as long as the device and anything made with it is used. A device of the runtime over it
    /// is the only one of its GPU: while it is open, others who open the GPU get the same one, and while another one is open, it is not
    /// wrapped.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Load`](gpumem_core::ErrorKind::Load) without a driver,
    /// [`ErrorKind::InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for a null handle, and the driver's
    /// error.
    unsafe fn from_context(context: CUcontext) -> Result<Self::Device>;

    /// The device's context, for use with other libraries. A reset may give it another one.
    fn context(device: &Self::Device) -> CUcontext;

    /// Takes device memory of another library without owning it: releasing the buffer does nothing.
    ///
    /// # Safety
    /// The `bytes` bytes at `address` are memory that the device can reach, and stay so for as long as the buffer
    /// is used.
    unsafe fn wrap_memory(device: &Self::Device, address: CUdeviceptr, bytes: usize) -> Self::Buffer;

    /// Takes a stream of another library without owning it, by its driver handle.
    ///
    /// # Safety
    /// As for [`DriverDevice::wrap_stream`](gpumem_core::DriverDevice::wrap_stream).
    ///
    /// # Errors
    /// As for [`DriverDevice::wrap_stream`](gpumem_core::DriverDevice::wrap_stream).
    unsafe fn wrap_cuda_stream(device: &Self::Device, stream: crate::CUstream) -> Result<Self::Stream> {
        // SAFETY: passed on to the caller.
        unsafe { device.wrap_stream(RawStream(stream.expose_provenance() as u64)) }
    }

    /// Makes an event for which a waiting host thread sleeps instead of spinning: later by some microseconds, and
    /// without keeping a processor busy.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn create_blocking_event(device: &Self::Device, options: EventOptions) -> Result<Self::Event>;

    /// Beginning and length in bytes of the allocation that an address lies in.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if it lies in none.
    fn allocation_of(device: &Self::Device, address: u64) -> Result<(u64, usize)>;

    /// Position of the device whose memory an address belongs to, or `None` for memory that the driver does not
    /// know.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn ordinal_of(device: &Self::Device, address: u64) -> Result<Option<usize>>;

    /// Address and length in bytes of a module's variable in global or constant memory.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if there is none of that name.
    fn global(module: &Self::Module, name: &str) -> Result<(CUdeviceptr, usize)>;

    /// The driver's handle of a kernel, which is valid while the kernel or a clone of it is alive.
    fn function(kernel: &Self::Kernel) -> CUfunction;
}

impl CudaExt for Cuda {
    unsafe fn from_context(context: CUcontext) -> Result<CudaDevice> {
        // SAFETY: passed on to the caller.
        unsafe { registry::adopt(context) }
    }

    fn context(device: &CudaDevice) -> CUcontext {
        device.context()
    }

    unsafe fn wrap_memory(device: &CudaDevice, address: CUdeviceptr, bytes: usize) -> CudaBuffer {
        CudaBuffer::elsewhere(device, address, bytes, Provenance::Foreign)
    }

    fn create_blocking_event(device: &CudaDevice, options: EventOptions) -> Result<CudaEvent> {
        CudaEvent::create(device, options, true)
    }

    fn allocation_of(device: &CudaDevice, address: u64) -> Result<(u64, usize)> {
        let _current = device.enter("cuMemGetAddressRange")?;
        device.allocation(address)
    }

    fn ordinal_of(device: &CudaDevice, address: u64) -> Result<Option<usize>> {
        Ok(device.pointer_info(address)?.map(|found| found.ordinal))
    }

    fn global(module: &CudaModule, name: &str) -> Result<(CUdeviceptr, usize)> {
        module.variable(name)
    }

    fn function(kernel: &CudaKernel) -> CUfunction {
        kernel.function()
    }
}
