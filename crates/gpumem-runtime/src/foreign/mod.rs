//! Memory of other libraries: how they describe it, and how it becomes an allocation.

mod bool8;
mod cuda_array;
mod element;
mod elements;
mod import;
pub(crate) mod own;
mod stream;

pub use bool8::Bool;
pub(crate) use cuda_array::VERSION;
pub use cuda_array::{CudaArrayInterface, DescrField};
pub use element::{ElementKind, ElementType};
pub(crate) use elements::ForeignElements;
pub(crate) use import::{check_rank, described, described_layout, find_own, import_cuda_array};
pub use stream::InterchangeStream;
