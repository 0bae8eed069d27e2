//! A block of memory that a device can use.

use crate::MemoryKind;
use std::{fmt::Debug, ptr::NonNull};

/// A block of memory that a backend has allocated or registered.
///
/// A buffer is only a description: dropping it *must not* free anything and *must not* reach the driver. Memory is
/// freed by [`DriverDevice::release`](crate::DriverDevice::release), because only the runtime knows when its last use
/// is done. A buffer that is dropped instead is leaked.
///
/// # Safety
/// The device, and where there is a host address the host, may read and write [`len`](Self::len) bytes from these addresses until
/// the buffer is released. All calls give the same answers.
pub unsafe trait DeviceBuffer: Debug + Send + Sync + 'static {
    /// The address under which the device reaches the first byte.
    ///
    /// For registered and mapped memory this *may* differ from [`host_address`](Self::host_address).
    fn address(&self) -> u64;

    /// The address under which the host reaches the first byte, or `None` for memory that only the device can use.
    fn host_address(&self) -> Option<NonNull<u8>>;

    /// Length in bytes; never zero, because requests of zero bytes do not reach a backend.
    fn len(&self) -> usize;

    /// Tells whether the buffer has no bytes. Always `false` for a buffer that a backend has made.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which kind of memory this is.
    fn kind(&self) -> MemoryKind;
}
