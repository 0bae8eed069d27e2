//! Errors as the exceptions that Numba and NumPy raise for them.

use gpumem::{DescriptorError, Error, ErrorKind, FileError, FileFailure, LayoutError};
use pyo3::{create_exception, exceptions::*, prelude::*};

create_exception!(gpumem, GpuMemError, PyRuntimeError, "An error that a driver or a device reports.");

/// The exception for an error.
pub(crate) fn raise(error: Error) -> PyErr {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::OutOfMemory { .. } => PyMemoryError::new_err(text),
        ErrorKind::Unsupported { .. } => PyNotImplementedError::new_err(text),
        ErrorKind::Layout(LayoutError::IndexOutOfBounds { .. }) => PyIndexError::new_err(text),
        ErrorKind::Layout(LayoutError::NeedsCopy { .. }) => PyNotImplementedError::new_err(text),
        ErrorKind::Layout(LayoutError::CannotBroadcast { from, to }) if error.operation() == "assign" => {
            PyValueError::new_err(cannot_assign(from, to))
        }
        ErrorKind::Descriptor(error) => descriptor(error, text),
        ErrorKind::File(error) => file(error, text),
        ErrorKind::Layout(_)
        | ErrorKind::Overlap { .. }
        | ErrorKind::InvalidArgument { .. }
        | ErrorKind::InvalidSelector { .. }
        | ErrorKind::BackendNotEnabled { .. }
        | ErrorKind::UnknownBackend { .. }
        | ErrorKind::LaunchTooLarge { .. }
        | ErrorKind::BackendMismatch { .. }
        | ErrorKind::WrongDevice { .. } => PyValueError::new_err(text),
        _ => GpuMemError::new_err(text),
    }
}

/// As [`raise`], for a layout that cannot be.
pub(crate) fn raise_layout(error: LayoutError) -> PyErr {
    raise(Error::new("", "layout", error))
}

/// NumPy's words, which leave out leading axes of length one of the source.
fn cannot_assign(from: &[usize], to: &[usize]) -> String {
    let tuple = |shape: &[usize]| match shape {
        [one] => format!("({one},)"),
        shape => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(",")),
    };
    let ones = from.iter().take_while(|length| **length == 1).count().min(from.len().saturating_sub(1));
    format!("could not broadcast input array from shape {} into shape {}", tuple(&from[ones..]), tuple(to))
}

fn file(error: &FileError, text: String) -> PyErr {
    match &error.failure {
        // From its number Python chooses the class: FileNotFoundError, PermissionError.
        FileFailure::Io { code } if cfg!(unix) => {
            PyOSError::new_err((*code, error.failure.to_string(), error.path.as_os_str().to_owned()))
        }
        FileFailure::NoSuchTensor { .. } => PyKeyError::new_err(text),
        FileFailure::Element { .. } => PyTypeError::new_err(text),
        FileFailure::Format { .. } | FileFailure::TooLarge { .. } | FileFailure::Range { .. } => {
            PyValueError::new_err(text)
        }
        _ => PyOSError::new_err(text),
    }
}

fn descriptor(error: &DescriptorError, text: String) -> PyErr {
    match error {
        DescriptorError::Missing { .. }
        | DescriptorError::TypeName { .. }
        | DescriptorError::ElementType { .. } => PyTypeError::new_err(text),
        DescriptorError::Mask => PyNotImplementedError::new_err("Masked arrays are not supported"),
        DescriptorError::Inexpressible { .. } => PyBufferError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// As [`raise`], for a wrong description of memory.
pub(crate) fn raise_descriptor(error: DescriptorError) -> PyErr {
    let text = error.to_string();
    descriptor(&error, text)
}
