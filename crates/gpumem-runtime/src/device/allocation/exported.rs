//! Memory that this process has exported to others.

use gpumem_core::process::PerProcess;
use parking_lot::Mutex;
use std::collections::BTreeSet;

type Handle = [u8; 64];

/// The numbers of the allocations that other processes may have open, with the driver's handles of them.
static EXPORTED: PerProcess<Mutex<BTreeSet<(u64, Handle)>>> = PerProcess::new(Mutex::default);

/// Notes that the driver has made a handle of an allocation.
pub(crate) fn note(allocation: u64, handle: Handle) {
    EXPORTED.get().lock().insert((allocation, handle));
}

/// Forgets an allocation whose memory goes back: the driver may give its handle to other memory.
pub(super) fn forget(allocation: u64) {
    EXPORTED.get().lock().retain(|(of, _)| *of != allocation);
}

/// Whether a handle is that of an allocation of this process.
pub(crate) fn is_own(handle: &Handle) -> bool {
    EXPORTED.get().lock().iter().any(|(_, own)| own == handle)
}
