//! The kernels of strided copies that a device has loaded.

use cudarc::driver::sys::CUfunction;
use gpumem_core::Result;
use gpumem_layout::pack::{PackKernel, UNITS};
use parking_lot::Mutex;

/// The functions of one generation of a device, by family and unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Functions {
    pub(crate) generation: u64,
    pub(crate) of: [[CUfunction; UNITS.len()]; PackKernel::ALL.len()],
}

// SAFETY: function handles are names that the driver takes from any thread.
unsafe impl Send for Functions {}

/// The kernels of a device, loaded on first use. The module is never unloaded: it ends with the context.
#[derive(Debug, Default)]
pub(crate) struct Packers(Mutex<Option<Functions>>);

impl Packers {
    /// Returns the functions of a generation, and loads them now if they are not.
    pub(crate) fn get(&self, generation: u64, load: impl FnOnce() -> Result<Functions>) -> Result<Functions> {
        let mut slot = self.0.lock();
        if let Some(functions) = slot.filter(|functions| functions.generation == generation) {
            return Ok(functions);
        }
        let functions = load()?;
        *slot = Some(functions);
        Ok(functions)
    }
}
