//! gpumem for Python: the words of Numba's `cuda` module, on every backend.

mod array;
mod body;
mod cleanup;
mod device;
mod dtype;
mod element;
mod error;
mod host;
mod interchange;
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
    module.add_class::<stream::Stream>()?;
    array::add(module)?;
    cleanup::add(module)?;
    device::add(module)?;
    kernel::add(module)?;
    locked::add(module)?;
    make::add(module)?;
    interchange::add(module)?;
    make_host::add(module)?;
    stream::add(module)
}
