//! The room that a kernel in Rust has: its variables on the stack of a thread, its constants and shared arrays on an NVIDIA GPU.

use crate::{
    HostForm,
    source::{CONSTANT_ALIGN, MOST_CONSTANT_BYTES},
};
use gpumem_core::{Error, ErrorKind, HostFunction, Result};

/// Bytes that the variables of a kernel may have together. A build without optimisation keeps values that are moved twice, and the
/// engine and the caller need the rest.
const MOST: usize = (HostFunction::STACK_BYTES - (1 << 20)) / 2;

/// Bytes of shared arrays that NVIDIA's compiler takes, whatever the device has. AMD's devices have 64 KiB.
const MOST_SHARED: usize = 48 << 10;

/// Bytes that a kernel in Rust needs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Needs {
    /// For the variables that are there at one time.
    pub(crate) variables: usize,
    /// In constant memory, for constants that are arrays.
    pub(crate) tables: usize,
    /// In shared arrays of fixed extents.
    pub(crate) shared: usize,
}

impl Needs {
    /// Refuses a kernel that a device has no room for, on every device. The stack of a thread would overflow, which ends the process,
    /// and no GPU has as much for a work-item.
    /// Returns [`ErrorKind::Build`].
    pub(super) fn check(self, form: Option<HostForm>, uses_constants: bool) -> Result<()> {
        let (variables, kind) = match form {
            Some(HostForm::Loop) | None => (MOST, "a kernel"),
            // Where work-items wait, a variable is also on its way to the memory that keeps it, and back.
            Some(HostForm::Phases | HostForm::WorkItems) => (MOST / 2, "a kernel whose work-items wait"),
        };
        // What is left is for the parameters that lie there: at least one array.
        let tables = MOST_CONSTANT_BYTES - if uses_constants { CONSTANT_ALIGN } else { 0 };
        for (what, bytes, kind, most) in [
            ("variables", self.variables, kind, variables),
            ("constants that are arrays", self.tables, "a kernel", tables),
            ("shared arrays", self.shared, "a kernel", MOST_SHARED),
        ] {
            if bytes > most {
                let log = format!("the {what} have {bytes} bytes together, and {kind} has room for {most}");
                return Err(Error::new("", "load", ErrorKind::Build { log }));
            }
        }
        Ok(())
    }
}
