//! One loop of a strided copy.

/// An axis: its length and the two strides in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) length: usize,
    pub(crate) source: isize,
    pub(crate) destination: isize,
}
