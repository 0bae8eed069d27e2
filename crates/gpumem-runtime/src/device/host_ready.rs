//! Memory that the host may write at once.

use super::{Allocation, AllocationRef};
use gpumem_core::{Backend, HostAccess, Result};

/// Memory of the host that no work of a device used when this was made. Code that writes to it before a device does
/// gets it as this type, which can only be made by waiting for the work that uses the memory.
#[derive(Debug)]
pub(crate) struct HostReady<B: Backend>(AllocationRef<B>);

impl<B: Backend> HostReady<B> {
    /// Waits until nothing uses the memory. A pool gives the host idle memory, so there is hardly ever anything to wait
    /// for; a resource of the user's may give out memory in use.
    ///
    /// Failures of earlier work are not reported here, where the device goes on after them: the memory had another owner then.
    /// Returns the error of the wait. The memory is freed after its uses.
    #[inline]
    pub(crate) fn wait(mut memory: AllocationRef<B>, operation: &'static str) -> Result<Self> {
        if AllocationRef::get_mut(&mut memory).is_some_and(Allocation::is_unused) {
            return Ok(Self(memory));
        }
        let wait_outcome = memory.wait_until_unused();
        match wait_outcome.result {
            Ok(()) => Ok(Self(memory)),
            Err(error) => Err(error.in_operation(operation)),
        }
    }

    /// Writes zeros over all of it.
    /// Returns the driver's error, where managed memory needs a device at rest.
    pub(crate) fn zero(&self, operation: &'static str) -> Result<()> {
        let memory = &self.0;
        if memory.is_placeholder() {
            // Each launch writes the zeros.
            return Ok(());
        }
        if let Some(host) = memory.host()
            && memory.len() > 0
        {
            memory.wait_for_host(operation, &(0..memory.len()), HostAccess::Write)?;
            // SAFETY: fresh memory of that length, which no work uses and no other code knows.
            unsafe { host.as_ptr().write_bytes(0, memory.len()) };
        }
        Ok(())
    }

    pub(crate) fn into_memory(self) -> AllocationRef<B> {
        self.0
    }
}
