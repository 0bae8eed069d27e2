//! What a communicator is made with: options, and the library of collectives.

use crate::{device::package_folders, error::raise};
use gpumem::collectives::{self, CollectiveLibrary, Options};
use pyo3::{exceptions::PyValueError, prelude::*};
use std::{path::PathBuf, time::Duration};

/// The options that a call names.
pub(super) fn options(timeout: Option<f64>, check: Option<bool>) -> PyResult<Options> {
    let mut options = Options::default();
    if let Some(seconds) = timeout {
        let wrong = |_| PyValueError::new_err("the timeout is no number of seconds");
        options = options.timeout(Duration::try_from_secs_f64(seconds).map_err(wrong)?);
    }
    Ok(check.map_or(options.clone(), |check| options.check(check)))
}

/// Has NVIDIA's packages of this Python looked into for libraries.
pub(super) fn look_in_packages(py: Python<'_>) -> PyResult<()> {
    package_folders(py, &["nvidia/nccl/lib"])?.into_iter().for_each(collectives::add_library_folder);
    Ok(())
}

/// The library of that name: its file and its version.
pub(super) fn library(py: Python<'_>, name: &str) -> PyResult<(PathBuf, String)> {
    let library = match name {
        "nccl" => CollectiveLibrary::Nccl,
        "rccl" => CollectiveLibrary::Rccl,
        _ => return Err(PyValueError::new_err(format!("the library is 'nccl' or 'rccl', not {name:?}"))),
    };
    look_in_packages(py)?;
    let found = py.detach(|| collectives::find_library(library));
    let found = found.map_err(|error| raise(gpumem::Error::new("", "library", error)))?;
    Ok((found.path, found.version))
}
