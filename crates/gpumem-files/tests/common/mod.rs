//! What the tests share.

use gpumem_core::{Error, ErrorKind, FileFailure};
use gpumem_host::Host;
use gpumem_runtime::Device;

pub(crate) fn device() -> Device<Host> {
    Device::open("host").unwrap()
}

/// What is wrong with a file.
pub(crate) fn failure(error: &Error) -> &FileFailure {
    match error.kind() {
        ErrorKind::File(error) => &error.failure,
        other => panic!("{other}"),
    }
}
