//! The kernels with their expected results, one file each.

mod convolution;
mod histogram;
mod matmul;
mod reduce;
mod saxpy;
mod scan;
mod stencil;
mod transpose;
mod update;

pub use convolution::Convolution;
pub use histogram::Histogram;
pub use matmul::Matmul;
pub use reduce::Reduce;
pub use saxpy::Saxpy;
pub use scan::Scan;
pub use stencil::Stencil;
pub use transpose::Transpose;
pub use update::Update;
