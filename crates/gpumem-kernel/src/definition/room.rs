//! The room that the variables of a kernel have: on the host, the stack of a thread.

use crate::HostForm;
use gpumem_core::{Error, ErrorKind, HostFunction, Result};

/// Bytes that the variables of a kernel may have together. A build without optimisation keeps values that are moved twice, and the
/// engine and the caller need the rest.
const MOST: usize = (HostFunction::STACK_BYTES - (1 << 20)) / 2;

/// Refuses a kernel whose variables would overflow the stack, which ends the process. On every device: no GPU has as much for a
/// work-item.
/// Returns [`ErrorKind::Build`].
pub(super) fn check(variables: usize, form: Option<HostForm>) -> Result<()> {
    let (most, kind) = match form {
        Some(HostForm::Loop) | None => (MOST, "a kernel"),
        // Where work-items wait, a variable is also on its way to the memory that keeps it, and back.
        Some(HostForm::Phases | HostForm::WorkItems) => (MOST / 2, "a kernel whose work-items wait"),
    };
    if variables <= most {
        return Ok(());
    }
    let log = format!("the variables have {variables} bytes together, and {kind} has room for {most}");
    Err(Error::new("", "load", ErrorKind::Build { log }))
}
