//! The backend: its types, and what belongs to no value of them.

mod device;
mod stream;

use crate::{
    Cuda, CudaBarrier, CudaBuffer, CudaDevice, CudaEvent, CudaKernel, CudaModule, CudaStream, NAME, nvrtc,
    probe, registry,
};
use gpumem_core::{Backend, CompileOptions, DeviceInfo, DeviceSelector, Error, ErrorKind, LoadError, Result};

// SAFETY: the functions reach no memory of the caller's.
unsafe impl Backend for Cuda {
    const NAME: &'static str = NAME;
    const WANTS_POISONING: bool = false;

    type Device = CudaDevice;
    type Buffer = CudaBuffer;
    type Stream = CudaStream;
    type Event = CudaEvent;
    type Barrier = CudaBarrier;
    type Module = CudaModule;
    type Kernel = CudaKernel;

    fn probe() -> Result<(), LoadError> {
        probe::probe()
    }

    fn devices() -> Result<Vec<DeviceInfo>> {
        registry::devices()
    }

    fn open(selector: &DeviceSelector) -> Result<CudaDevice> {
        registry::open(selector)
    }

    fn compile_for(
        architecture: &str,
        text: &dyn Fn(u32) -> String,
        options: &CompileOptions,
    ) -> Result<Vec<u8>> {
        if !architecture.starts_with("sm_") {
            let what = "an architecture whose name is not like `sm_90`";
            return Err(Error::new(NAME, "compile_for", ErrorKind::Unsupported { what }));
        }
        nvrtc::compile_for(architecture, &text(nvrtc::WAVE_SIZE), options)
    }
}
