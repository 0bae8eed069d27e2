//! Memory usage that is attached to out-of-memory errors.

use std::fmt;

/// The state of memory when a request has failed, after the runtime has tried everything that it may do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryPressure {
    /// Whether `defer_cleanup` was active, so that nothing was freed or waited for.
    pub deferred: bool,
    /// Items that were dropped and not yet freed.
    pub pending_items: usize,
    /// Bytes of these.
    pub pending_bytes: usize,
    /// Each kind of memory in use.
    pub resources: Vec<PoolPressure>,
    /// The largest named holders: name and bytes.
    pub holders: Vec<(String, usize)>,
    /// The arrays that may leave the device.
    pub spilling: SpillPressure,
}

/// Bytes of the arrays that may leave a device, by where they are. Those that move at the moment are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SpillPressure {
    /// On the device, and could leave.
    pub evictable_bytes: usize,
    /// On the device, and stay: a view of them exists, or they are lent.
    pub pinned_bytes: usize,
    /// In page-locked memory.
    pub host_bytes: usize,
    /// In files alone.
    pub file_bytes: usize,
}

impl SpillPressure {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            evictable_bytes: self.evictable_bytes.saturating_add(other.evictable_bytes),
            pinned_bytes: self.pinned_bytes.saturating_add(other.pinned_bytes),
            host_bytes: self.host_bytes.saturating_add(other.host_bytes),
            file_bytes: self.file_bytes.saturating_add(other.file_bytes),
        }
    }
}

impl fmt::Display for SpillPressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { evictable_bytes, pinned_bytes, host_bytes, file_bytes } = self;
        write!(f, "{evictable_bytes} bytes could leave the device, {pinned_bytes} stay for their views, ")?;
        write!(f, "{host_bytes} are on the host, {file_bytes} in files")
    }
}

/// Bytes that the resource of one kind of memory holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolPressure {
    /// The kind of memory.
    pub kind: &'static str,
    /// The word for the resource.
    pub resource: &'static str,
    /// Bytes that it holds.
    pub reserved: usize,
    /// Bytes of these that are allocated.
    pub allocated: usize,
    /// Bytes that are free, and that work may still be using.
    pub in_flight: usize,
    /// The largest free block in bytes.
    pub largest_free: usize,
}

impl fmt::Display for MemoryPressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for each in &self.resources {
            let PoolPressure { kind, resource, reserved, allocated, in_flight, largest_free } = each;
            write!(
                f,
                "; the {resource} of {kind} memory has reserved {reserved}, {allocated} of them allocated"
            )?;
            write!(f, ", {in_flight} in flight, largest hole {largest_free}")?;
        }
        if self.pending_items > 0 {
            write!(f, "; {} items of {} bytes wait to be freed", self.pending_items, self.pending_bytes)?;
        }
        for (name, bytes) in &self.holders {
            write!(f, "; {name:?} holds {bytes}")?;
        }
        if self.spilling != SpillPressure::default() {
            write!(f, "; of arrays that may leave, {}", self.spilling)?;
        }
        if self.deferred {
            f.write_str("; inside defer_cleanup nothing was freed or waited for")?;
        }
        Ok(())
    }
}
