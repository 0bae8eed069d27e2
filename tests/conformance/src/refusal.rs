//! Calls that must be refused.

use crate::{Stop, Verdict};
use gpumem_core::{DescriptorError, Error, ErrorKind, LayoutError};
use std::panic::Location;

/// Checks that a call failed, with an error of the right kind that names the device.
///
/// # Errors
/// When it succeeded, or failed otherwise.
#[track_caller]
pub fn refused<T>(result: Result<T, Error>, is_right: impl FnOnce(&ErrorKind) -> bool) -> Verdict {
    let at = Location::caller();
    match result {
        Ok(_) => {
            Err(Stop::Failed(format!("a call that must be refused succeeded ({}:{})", at.file(), at.line())))
        }
        Err(error) if is_right(error.kind()) => {
            if names_its_place(&error) {
                return Ok(());
            }
            let text = format!("the error names no device: {error} ({}:{})", at.file(), at.line());
            Err(Stop::Failed(text))
        }
        Err(error) => {
            let text = format!("refused for another reason: {error:?} ({}:{})", at.file(), at.line());
            Err(Stop::Failed(text))
        }
    }
}

/// Whether an error names the device, or comes from a call in which there was none yet.
fn names_its_place(error: &Error) -> bool {
    let is_of_no_device = matches!(
        error.kind(),
        ErrorKind::NoSuchDevice { .. }
            | ErrorKind::InvalidSelector { .. }
            | ErrorKind::UnknownBackend { .. }
            | ErrorKind::BackendNotEnabled { .. }
            | ErrorKind::Load(_)
            | ErrorKind::Descriptor(DescriptorError::Missing { .. })
    );
    error.backend() != "any" && (is_of_no_device || error.device().is_some())
}

/// As [`refused`], for a layout that does not fit.
///
/// # Errors
/// As [`refused`].
#[track_caller]
pub fn refused_layout<T>(result: Result<T, Error>, is_right: impl FnOnce(&LayoutError) -> bool) -> Verdict {
    refused(result, |kind| matches!(kind, ErrorKind::Layout(error) if is_right(error)))
}
