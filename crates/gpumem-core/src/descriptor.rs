//! Faults of a description of foreign memory.

/// A descriptor of another library (CUDA Array Interface, DLPack) that cannot be taken as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptorError {
    /// A field that must be there is not.
    #[error("the descriptor has no {field}")]
    Missing {
        /// Name of the field.
        field: &'static str,
    },
    /// A version that is too old or too new.
    #[error("version {found} of {protocol} is given where {understood} is understood")]
    Version {
        /// The protocol.
        protocol: &'static str,
        /// What the descriptor says.
        found: String,
        /// What the consumer accepts.
        understood: &'static str,
    },
    /// A text or a code that names no element type that an array can have here.
    #[error("{text:?} names no element type: {why}")]
    TypeName {
        /// The text or the code.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Elements of another type than the array's.
    #[error("the elements are {found}, and {expected} is needed")]
    ElementType {
        /// What the descriptor says.
        found: String,
        /// What the array needs.
        expected: String,
    },
    /// The fields of a record do not add up to its size.
    #[error("the fields take {found} bytes of a record of {expected}")]
    Fields {
        /// Bytes of all fields.
        found: usize,
        /// Bytes of the record.
        expected: usize,
    },
    /// A length that is none.
    #[error("axis {axis} has the length {length}")]
    Length {
        /// The axis.
        axis: usize,
        /// Its length.
        length: i64,
    },
    /// A mask says which elements count. gpumem's arrays have none.
    #[error("the array has a mask, which is not supported")]
    Mask,
    /// There are elements, and no address.
    #[error("the address is null, and the array has {bytes} bytes")]
    NullAddress {
        /// Bytes of the elements.
        bytes: usize,
    },
    /// The bytes run over the end of the address space.
    #[error("{bytes} bytes at {address:#x} run out of the address space")]
    AddressSpace {
        /// Lowest address, as far as it can be told.
        address: u64,
        /// Bytes from the lowest to the end of the highest element.
        bytes: usize,
    },
    /// A number that names no stream.
    #[error("{found} names no stream: {why}")]
    Stream {
        /// The number.
        found: i64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The memory is not where the device can use it.
    #[error("address {address:#x} lies in {found}, and {expected} is needed")]
    Place {
        /// The address.
        address: u64,
        /// Where it lies.
        found: String,
        /// Where it should lie.
        expected: String,
    },
    /// The memory may be read, and not written.
    #[error("the memory may only be read")]
    ReadOnly,
    /// The protocol cannot describe the array.
    #[error("{protocol} cannot describe {what}")]
    Inexpressible {
        /// The protocol.
        protocol: &'static str,
        /// The property that it cannot describe.
        what: &'static str,
    },
}
