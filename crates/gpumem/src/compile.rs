//! Compiling kernels for devices that this machine does not have.

use crate::AnyBackend;
use gpumem_core::Result;
use gpumem_kernel::{KernelDef, Parameters};

/// Compiles a kernel for an architecture by its name, with the compilers of the enabled backends.
///
/// ```no_run
/// use gpumem::{CompileFor, kernel::prelude::*};
///
/// #[gpumem::kernel]
/// fn double(y: Own<f32>) {
///     y[own()] *= 2.0;
/// }
///
/// // Says whether it compiles. No GPU is needed, only NVRTC and hipRTC.
/// for architecture in ["sm_90", "gfx90a"] {
///     double().compile_for(architecture)?;
/// }
/// # Ok::<(), gpumem::Error>(())
/// ```
pub trait CompileFor {
    /// Compiles the source for an architecture: `sm_90` by NVRTC, `gfx90a` by hipRTC. This machine needs no such
    /// device. The result can be shipped with [`KernelDef::image`].
    ///
    /// # Errors
    /// Returns [`ErrorKind::Build`](crate::ErrorKind::Build) with the compiler's words, and if it does not know the architecture;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if no enabled backend has architectures of such a name, or the
    /// kernel has no source; [`ErrorKind::Load`](crate::ErrorKind::Load) if the compiler is missing.
    fn compile_for(&self, architecture: &str) -> Result<Vec<u8>>;
}

impl<P: Parameters> CompileFor for KernelDef<P> {
    fn compile_for(&self, architecture: &str) -> Result<Vec<u8>> {
        self.compile_with::<AnyBackend>(architecture)
    }
}
