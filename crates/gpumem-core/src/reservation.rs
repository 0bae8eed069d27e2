//! Addresses apart from the memory behind them.

/// A range of a device's addresses into which memory is put from its beginning on, so that what lies there grows without
/// moving: see [`Backend::reserve`](crate::Backend::reserve).
///
/// As a buffer, it is only a description: dropping it gives nothing back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// The device's address of the first byte, a multiple of [`page`](Self::page).
    pub address: u64,
    /// Length in bytes, a multiple of [`page`](Self::page).
    pub bytes: usize,
    /// Memory is put in by multiples of so many bytes, a power of two.
    pub page: usize,
}
