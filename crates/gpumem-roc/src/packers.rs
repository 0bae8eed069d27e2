//! The kernels of strided copies that a device has loaded.

use gpumem_core::Result;
use gpumem_layout::pack::{PackKernel, UNITS};
use gpumem_sys::hip::hipFunction_t;
use parking_lot::Mutex;
use std::{any::Any, fmt, sync::Arc};

/// The functions of one unit and of one generation of a device.
#[derive(Clone)]
pub(crate) struct Functions {
    pub(crate) generation: u64,
    /// By family.
    pub(crate) of: [hipFunction_t; PackKernel::ALL.len()],
    /// Keeps the module loaded that the functions belong to.
    pub(crate) _module: Arc<dyn Any + Send + Sync>,
}

// SAFETY: function handles are names that HIP takes from any thread.
unsafe impl Send for Functions {}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions").field("generation", &self.generation).finish_non_exhaustive()
    }
}

/// The kernels of a device, by unit, once they have been needed. They are never unloaded, but by a reset.
#[derive(Debug, Default)]
pub(crate) struct Packers(Mutex<[Option<Functions>; UNITS.len()]>);

impl Packers {
    /// Returns the functions of a unit in a generation, and compiles them now if they are not. Other threads that need
    /// them wait.
    pub(crate) fn get(
        &self,
        unit: usize,
        generation: u64,
        compile: impl FnOnce() -> Result<Functions>,
    ) -> Result<Functions> {
        let mut slots = self.0.lock();
        let slot = &mut slots[unit.trailing_zeros() as usize];
        if let Some(functions) = slot.as_ref().filter(|functions| functions.generation == generation) {
            return Ok(functions.clone());
        }
        Ok(slot.insert(compile()?).clone())
    }
}
