//! The backend: its types, and what belongs to no value of them.

mod device;
mod stream;

use crate::{
    NAME, Roc, RocBarrier, RocBuffer, RocDevice, RocEvent, RocKernel, RocModule, RocStream, hiprtc, probe,
    registry,
};
use gpumem_core::{Backend, CompileOptions, DeviceInfo, DeviceSelector, Error, ErrorKind, LoadError, Result};

// SAFETY: the functions reach no memory of the caller's.
unsafe impl Backend for Roc {
    const NAME: &'static str = NAME;
    const WANTS_POISONING: bool = false;

    type Device = RocDevice;
    type Buffer = RocBuffer;
    type Stream = RocStream;
    type Event = RocEvent;
    type Barrier = RocBarrier;
    type Module = RocModule;
    type Kernel = RocKernel;

    fn probe() -> Result<(), LoadError> {
        probe::probe()
    }

    fn devices() -> Result<Vec<DeviceInfo>> {
        registry::devices("devices")
    }

    fn open(selector: &DeviceSelector) -> Result<RocDevice> {
        registry::open(selector)
    }

    fn compile_for(
        architecture: &str,
        text: &dyn Fn(u32) -> String,
        options: &CompileOptions,
    ) -> Result<Vec<u8>> {
        if !architecture.starts_with("gfx") {
            let what = "an architecture whose name is not like `gfx90a`";
            return Err(Error::new(NAME, "compile_for", ErrorKind::Unsupported { what }));
        }
        hiprtc::compile_for(architecture, text, options)
    }
}
