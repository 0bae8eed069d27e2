//! Errors of shapes, strides and indices.

/// A shape, a stride or an index does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The number of bytes does not fit into the address space.
    #[error("an array of shape {shape:?} with elements of {item} bytes is too large to be addressed")]
    TooLarge {
        /// The shape.
        shape: Vec<usize>,
        /// Bytes of an element.
        item: usize,
    },
    /// Two shapes that must be equal are not.
    #[error("the shapes differ: {found:?} where {expected:?} is needed")]
    ShapeMismatch {
        /// The shape that was given.
        found: Vec<usize>,
        /// The shape that is needed.
        expected: Vec<usize>,
    },
    /// An array has another layout than the one that was recorded.
    #[error(
        "shape {found:?} with strides {found_strides:?} given where {expected:?} with {expected_strides:?} was recorded"
    )]
    LayoutMismatch {
        /// The shape that was given.
        found: Vec<usize>,
        /// Its strides, in bytes.
        found_strides: Vec<isize>,
        /// The shape that was recorded.
        expected: Vec<usize>,
        /// Its strides, in bytes.
        expected_strides: Vec<isize>,
    },
    /// The number of axes differs.
    #[error("{found} axes given where {expected} are needed")]
    RankMismatch {
        /// Number that was given.
        found: usize,
        /// Number that is needed.
        expected: usize,
    },
    /// An element size differs.
    #[error("elements of {found} bytes given where {expected} are needed")]
    ItemMismatch {
        /// Size that was given.
        found: usize,
        /// Size that is needed.
        expected: usize,
    },
    /// The bytes of the last axis are no whole number of larger elements.
    #[error("the last axis is {axis_bytes} bytes long, which is no multiple of elements of {item} bytes")]
    CannotReinterpret {
        /// Bytes of the last axis.
        axis_bytes: usize,
        /// Bytes of a new element.
        item: usize,
    },
    /// Elements cannot be cut into smaller ones.
    #[error("elements of {item} bytes are no whole number of elements of {wanted} bytes")]
    CannotCut {
        /// Bytes of an element.
        item: usize,
        /// Bytes of a new element.
        wanted: usize,
    },
    /// The axis does not exist.
    #[error("there is no axis {axis} in an array of {rank} axes")]
    NoSuchAxis {
        /// The axis.
        axis: isize,
        /// Number of axes.
        rank: usize,
    },
    /// The axes are not a permutation of the array's.
    #[error("{axes:?} is not a permutation of {rank} axes")]
    NotAPermutation {
        /// The axes.
        axes: Vec<usize>,
        /// Number of axes.
        rank: usize,
    },
    /// The index is outside.
    #[error("index {index} is outside axis {axis} of length {length}")]
    IndexOutOfBounds {
        /// The index.
        index: isize,
        /// The axis.
        axis: usize,
        /// Length of the axis.
        length: usize,
    },
    /// A step of zero.
    #[error("a slice step is zero (axis {axis})")]
    ZeroStep {
        /// The axis.
        axis: usize,
    },
    /// A part length of zero.
    #[error("split needs a part length of at least 1")]
    ZeroSection,
    /// The axis to remove is longer than one.
    #[error("axis {axis} has length {length} and cannot be squeezed")]
    CannotSqueeze {
        /// The axis.
        axis: usize,
        /// Its length.
        length: usize,
    },
    /// The shape cannot be broadcast.
    #[error("shape {from:?} cannot be broadcast to {to:?}")]
    CannotBroadcast {
        /// The shape.
        from: Vec<usize>,
        /// The shape wanted.
        to: Vec<usize>,
    },
    /// The number of elements changes.
    #[error("an array of {from} elements cannot be reshaped to {to:?}")]
    CannotReshape {
        /// Number of elements.
        from: usize,
        /// The shape wanted; -1 is the length to be inferred.
        to: Vec<isize>,
    },
    /// No view has that shape; a copy has.
    #[error("shape {shape:?} with strides {strides:?} cannot be viewed that way; it needs a copy")]
    NeedsCopy {
        /// The shape of the array.
        shape: Vec<usize>,
        /// Its strides in bytes.
        strides: Vec<isize>,
    },
    /// Elements of an array that can be written share memory.
    #[error("elements of shape {shape:?} with strides {strides:?} overlap each other")]
    SelfOverlap {
        /// The shape.
        shape: Vec<usize>,
        /// The strides in bytes.
        strides: Vec<isize>,
    },
    /// The layout reaches outside the memory.
    #[error("the layout needs bytes {needs:?} of a buffer of {length}")]
    OutOfBuffer {
        /// Bytes that the layout spans.
        needs: std::ops::Range<usize>,
        /// Length of the buffer.
        length: usize,
    },
    /// The elements would not be aligned.
    #[error("an address, offset or stride of {bytes} bytes is not a multiple of the alignment {align}")]
    Misaligned {
        /// The address, offset or stride.
        bytes: isize,
        /// The alignment of the element.
        align: usize,
    },
}
