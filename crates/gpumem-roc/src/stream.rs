//! Queues of work.

use crate::device::{Held, Owner, RocDevice};
use gpumem_core::{Result, StreamKind, StreamOptions};
use gpumem_sys::hip::{hipStream_t, hipStreamDefault, hipStreamNonBlocking};
use std::{
    ptr::{null_mut, with_exposed_provenance_mut},
    sync::atomic::AtomicBool,
};

/// HIP's name for the default stream that orders itself with all blocking streams: of the device that is current.
const LEGACY: usize = 0;
/// HIP's name for the default stream of the calling thread.
const PER_THREAD: usize = 2;

/// A HIP stream: one that this library made, one of HIP's default streams, or one of another library.
///
/// The per-thread default stream is a name and not a stream: used on another thread, it means that thread's.
#[derive(Debug)]
pub struct RocStream {
    pub(crate) owner: Owner,
    pub(crate) raw: hipStream_t,
    pub(crate) owned: bool,
    /// Whether others have the handle, and so may capture the stream.
    pub(crate) is_shared: AtomicBool,
}

// SAFETY: a stream handle is a name that HIP takes from any thread, and its functions are thread-safe.
unsafe impl Send for RocStream {}
// SAFETY: as above; the other fields are an atomic or never change.
unsafe impl Sync for RocStream {}

impl RocStream {
    pub(crate) fn create(device: &RocDevice, options: &StreamOptions) -> Result<Self> {
        const OPERATION: &str = "hipStreamCreateWithPriority";
        let owner = Owner::new(device);
        let named = |name| Self::of(owner.clone(), with_exposed_provenance_mut(name), false);
        match options.kind {
            StreamKind::New => {}
            StreamKind::Legacy => return device.check_alive(OPERATION).map(|()| named(LEGACY)),
            StreamKind::PerThread => return device.check_alive(OPERATION).map(|()| named(PER_THREAD)),
        }
        let [least, greatest] = device.inner().capabilities.stream_priorities;
        let priority = options.priority.min(least).max(greatest);
        let flags = if options.non_blocking { hipStreamNonBlocking } else { hipStreamDefault };
        let _current = device.enter(OPERATION)?;
        let mut raw = null_mut();
        // SAFETY: a place for a handle; the device is current.
        let status = unsafe { device.hip().hipStreamCreateWithPriority(&mut raw, flags, priority) };
        device.check(status, OPERATION)?;
        device.hold(Held::Stream(raw.expose_provenance()));
        Ok(Self::of(owner, raw, true))
    }

    pub(crate) fn of(owner: Owner, raw: hipStream_t, owned: bool) -> Self {
        Self { owner, raw, owned, is_shared: AtomicBool::new(!owned) }
    }

    pub(crate) fn held(&self) -> Held {
        Held::Stream(self.raw.expose_provenance())
    }
}

impl Drop for RocStream {
    fn drop(&mut self) {
        if self.owned {
            self.owner.destroy_quietly("hipStreamDestroy", self.held());
        }
    }
}
