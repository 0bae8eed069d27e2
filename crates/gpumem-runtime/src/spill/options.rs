//! What a manager of arrays that leave the device may do.

/// Which array leaves the device first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpillOrder {
    /// The one whose last use is the longest ago.
    #[default]
    LeastRecent,
    /// The one that was used last: for loops over more arrays than fit, such as the layers of a model. There the least recent one is
    /// the next one that is used, so that every array would be moved in every round.
    MostRecent,
}

/// What a [`SpillManager`](super::SpillManager) may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpillOptions {
    pub(super) host_bytes: usize,
    pub(super) order: SpillOrder,
}

impl Default for SpillOptions {
    fn default() -> Self {
        Self { host_bytes: usize::MAX, order: SpillOrder::default() }
    }
}

impl SpillOptions {
    /// Any amount of page-locked memory, and [`SpillOrder::LeastRecent`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Most bytes of page-locked memory for arrays that have left the device. An array that finds no room stays there.
    #[must_use]
    pub fn host_bytes(mut self, bytes: usize) -> Self {
        self.host_bytes = bytes;
        self
    }

    /// Which array leaves first.
    #[must_use]
    pub fn order(mut self, order: SpillOrder) -> Self {
        self.order = order;
        self
    }
}
