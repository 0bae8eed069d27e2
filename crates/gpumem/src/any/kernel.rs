//! What is asked of a module. Of a kernel nothing is: the stream that it is launched on decides.

use super::typed::{Named, OnKernel, OnModule, Typed};
use enum_dispatch::enum_dispatch;
use gpumem_core::{Backend, Result};

/// The functions of [`Backend`] that a module decides.
#[enum_dispatch]
pub(crate) trait ModuleOps {
    fn kernel(&self, name: &str) -> Result<AnyKernel>;
    fn variable(&self, name: &str) -> Result<(u64, usize)>;
}

backends! { any!
    /// A module of one of the enabled backends.
    #[derive(Clone)]
    AnyModule(OnModule, Module): Named, ModuleOps
}

impl<B: Backend> ModuleOps for OnModule<B>
where
    AnyKernel: Typed<B, Of = B::Kernel>,
{
    #[inline]
    fn kernel(&self, name: &str) -> Result<AnyKernel> {
        B::kernel(&self.0, name).map(Typed::<B>::from_typed)
    }

    #[inline]
    fn variable(&self, name: &str) -> Result<(u64, usize)> {
        B::variable(&self.0, name)
    }
}

backends! { any!
    /// A kernel of one of the enabled backends.
    #[derive(Clone)]
    AnyKernel(OnKernel, Kernel): Named
}
