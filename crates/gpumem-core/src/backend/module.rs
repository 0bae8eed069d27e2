//! Loaded programs.

use super::{Backend, lacks};
use crate::Result;
use std::fmt::Debug;

/// A loaded program. Clones are the same program.
///
/// # Safety
/// A variable that [`variable`](Self::variable) returns is memory of the device, as long as it says.
pub unsafe trait DriverModule<B: Backend>: Clone + Debug + Send + Sync + 'static {
    /// Finds a variable of a module by name: its device address, and its length in bytes. It is there as long as the
    /// module is loaded.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if there is none of that name,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) by default: then modules have no variables.
    fn variable(&self, name: &str) -> Result<(u64, usize)> {
        let _ = name;
        lacks::<B, _>("variable", "variables of modules")
    }

    /// Finds a kernel by name.
    ///
    /// # Errors
    /// Returns [`NoSuchKernel`](crate::ErrorKind::NoSuchKernel) if the module has no kernel of that name.
    fn kernel(&self, name: &str) -> Result<B::Kernel>;
}
