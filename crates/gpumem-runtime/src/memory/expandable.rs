//! Memory that grows in place: one range of addresses, and more and more memory behind it.

use super::driver::DriverStats;
use crate::device::DeviceCore;
use gpumem_core::{Backend, Error, ErrorKind, MemoryKind, Reservation, Result};
use std::{
    fmt,
    sync::{Arc, Weak},
};

/// Memory of a device that a [`Pool`](super::Pool) has to itself, and makes longer where it ends. What
/// [`MemoryResource::expandable`](super::MemoryResource::expandable) gives.
///
/// Dropping it leaks it: [`give_back`](Self::give_back) does not.
///
/// # Safety
/// The device may read and write [`bytes`](Self::bytes) bytes from [`address`](Self::address) on, until they are
/// [cut](Self::cut) or given back, and by nothing else. The address stays the same.
pub unsafe trait ExpandableMemory: fmt::Debug + Send + 'static {
    /// The device's address of the first byte, a multiple of [`page`](Self::page).
    fn address(&self) -> u64;

    /// Bytes that are there now.
    fn bytes(&self) -> usize;

    /// Most bytes that there may be.
    fn capacity(&self) -> usize;

    /// The device whose memory it is, and until which reset, as a number that a resource hands on unchanged. `None` for memory
    /// of a user's own, which is believed to be the device's that asks.
    fn generation(&self) -> Option<u64> {
        None
    }

    /// It grows by multiples of so many bytes, a power of two.
    fn page(&self) -> usize;

    /// Makes it longer by so many bytes. They are not in use.
    ///
    /// # Errors
    /// Returns [`OutOfMemory`](ErrorKind::OutOfMemory) if there is no room, and [`Driver`](ErrorKind::Driver) if the
    /// driver reports a failure. Nothing has changed then.
    fn grow(&mut self, bytes: usize) -> Result<()>;

    /// The least length not below `bytes` that it can be [cut](Self::cut) to: memory goes back as it came.
    fn cut_at(&self, bytes: usize) -> usize;

    /// Makes it so long. What is cut off is not in use. May wait for the device.
    ///
    /// # Errors
    /// Returns the driver's error. [`bytes`](Self::bytes) tells how much is there then.
    fn cut(&mut self, bytes: usize) -> Result<()>;

    /// Gives all of it back. Nothing of it is in use. May wait for the device.
    ///
    /// # Errors
    /// Returns the driver's error. What is left is leaked.
    fn give_back(self: Box<Self>) -> Result<()>;
}

/// Addresses of the driver, and what has been put behind them.
pub(super) struct DriverExpandable<B: Backend> {
    core: Weak<DeviceCore<B>>,
    stats: Arc<DriverStats>,
    reservation: Reservation,
    generation: u64,
    /// Where each part ends.
    ends: Vec<usize>,
}

impl<B: Backend> DriverExpandable<B> {
    /// Reserves as many addresses as the device has memory.
    pub(super) fn new(core: &Arc<DeviceCore<B>>, stats: Arc<DriverStats>) -> Result<Self> {
        let reservation = core.note_loss(B::reserve(&core.raw, B::info(&core.raw).total_memory))?;
        let (core, generation) = (Arc::downgrade(core), core.generation());
        Ok(Self { core, stats, reservation, generation, ends: Vec::new() })
    }

    /// The device, unless it is closed, or a reset has taken everything.
    fn core(&self) -> Option<Arc<DeviceCore<B>>> {
        self.core.upgrade().filter(|core| core.generation() == self.generation)
    }
}

// SAFETY: the backend gives memory behind the addresses of a reservation that nothing else uses, and takes none but what
// is cut. After a reset, the pool has forgotten all of it.
unsafe impl<B: Backend> ExpandableMemory for DriverExpandable<B> {
    fn address(&self) -> u64 {
        self.reservation.address
    }

    fn bytes(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn capacity(&self) -> usize {
        self.reservation.bytes
    }

    fn generation(&self) -> Option<u64> {
        Some(self.generation)
    }

    fn page(&self) -> usize {
        self.reservation.page
    }

    fn grow(&mut self, bytes: usize) -> Result<()> {
        let from = self.bytes();
        let refused = |why| Error::new("", "commit", ErrorKind::InvalidArgument { why });
        let Some(core) = self.core() else { return Err(refused("the device is closed, or was reset")) };
        let end = from.checked_add(bytes).filter(|end| *end <= self.capacity());
        let Some(end) = end.filter(|_| bytes > 0 && bytes.is_multiple_of(self.page())) else {
            return Err(refused("memory grows by whole pages, as far as it has addresses"));
        };
        // SAFETY: a reservation of this generation, with memory behind its first `from` bytes; whole pages.
        let outcome = unsafe { B::commit(&core.raw, &self.reservation, from, bytes) };
        core.note_loss(outcome).inspect_err(|_| self.stats.fail())?;
        self.ends.push(end);
        self.stats.note_allocated(&core, MemoryKind::Device, bytes);
        Ok(())
    }

    fn cut_at(&self, bytes: usize) -> usize {
        if bytes == 0 {
            return 0;
        }
        let at = self.ends.partition_point(|end| *end < bytes);
        self.ends.get(at).copied().unwrap_or(self.bytes())
    }

    fn cut(&mut self, bytes: usize) -> Result<()> {
        while self.bytes() > bytes {
            let Some(end) = self.ends.pop() else { break };
            let from = self.bytes();
            let Some(core) = self.core() else { continue };
            // SAFETY: the last part that was put in, in this generation, and unused.
            let outcome = unsafe { B::decommit(&core.raw, &self.reservation, from, end - from) };
            if let Err(error) = core.note_loss(outcome) {
                self.ends.push(end);
                return Err(error);
            }
            self.stats.note_freed(&core, MemoryKind::Device, end - from);
            core.counters.count_release();
            core.late.note_released(end - from);
        }
        Ok(())
    }

    fn give_back(mut self: Box<Self>) -> Result<()> {
        self.cut(0)?;
        let Some(core) = self.core() else { return Ok(()) };
        // SAFETY: of this generation, with nothing behind it, and gone with this call.
        core.note_loss(unsafe { B::unreserve(&core.raw, &self.reservation) })
    }
}

impl<B: Backend> fmt::Debug for DriverExpandable<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverExpandable")
            .field("reservation", &self.reservation)
            .field("ends", &self.ends)
            .finish()
    }
}
