//! gpumem for Python: the words of Numba's `cuda` module, on every backend.

mod array;
mod body;
mod cleanup;
mod device;
mod device_array;
mod dtype;
mod element;
mod error;
mod event;
mod gpus;
mod host;
mod interchange;
mod ipc;
mod kernel;
mod locked;
mod make;
mod make_host;
mod number;
mod pinned;
mod signature;
mod stream;

use pyo3::prelude::*;

#[pymodule]
fn gpumem(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("GpuMemError", module.py().get_type::<error::GpuMemError>())?;
    module.add_class::<device::Device>()?;

    array::add(module)?;
    cleanup::add(module)?;
    device::add(module)?;
    event::add(module)?;
    gpus::add(module)?;
    ipc::add(module)?;
    kernel::add(module)?;
    locked::add(module)?;
    make::add(module)?;
    interchange::add(module)?;
    make_host::add(module)?;
    stream::add(module)
}
