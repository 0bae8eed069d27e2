//! Memory of other libraries: how they describe it, and how it becomes an allocation.

mod cuda_array;
mod elements;
mod import;
pub(crate) mod own;
mod stream;

pub(crate) use cuda_array::VERSION;
pub use cuda_array::{CudaArrayInterface, DescrField};
pub(crate) use elements::ForeignElements;
pub(crate) use import::{check_rank, described, described_layout, find_own, import_cuda_array};
pub use stream::InterchangeStream;
