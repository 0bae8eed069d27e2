//! What is asked of a stream.

use super::typed::{Named, OnStream, Typed, same};
use super::{AnyEvent, AnyKernel};
use enum_dispatch::enum_dispatch;
use gpumem_core::{
    Backend, CopyRegion, Fill, KernelArguments, LaunchConfig, Location, RawStream, Result, Stream,
    StridedCopy,
};

/// The functions of [`Backend`] that a stream decides. Addresses carry no backend: that those of a copy or a fill
/// belong to the stream's is part of the caller's promise.
#[enum_dispatch]
pub(crate) trait StreamOps {
    fn synchronize(&self) -> Result<()>;
    fn query(&self) -> Result<bool>;
    fn raw(&self) -> RawStream;
    /// # Safety
    /// As for [`Backend::copy`].
    unsafe fn copy(&self, region: &CopyRegion) -> Result<()>;
    /// # Safety
    /// As for [`Backend::try_copy_sync`].
    unsafe fn try_copy_sync(&self, region: &CopyRegion) -> bool;
    /// # Safety
    /// As for [`Backend::copy_strided`].
    unsafe fn copy_strided(&self, copy: &StridedCopy) -> Result<()>;
    /// # Safety
    /// As for [`Backend::fill`].
    unsafe fn fill(&self, fill: &Fill) -> Result<()>;
    /// # Safety
    /// As for [`Backend::prefetch`].
    unsafe fn prefetch(&self, address: u64, bytes: usize, to: Location) -> Result<()>;
    fn record(&self, event: &AnyEvent) -> Result<()>;
    fn wait(&self, event: &AnyEvent) -> Result<()>;
    /// # Safety
    /// As for [`Backend::launch`].
    unsafe fn launch(
        &self,
        kernel: &AnyKernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()>;
}

backends! { any!
    /// A stream of one of the enabled backends.
    AnyStream(OnStream, Stream): Named, StreamOps
}

impl<B: Backend> StreamOps for OnStream<B>
where
    AnyEvent: Typed<B, Of = B::Event>,
    AnyKernel: Typed<B, Of = B::Kernel>,
{
    #[inline]
    fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }

    #[inline]
    fn query(&self) -> Result<bool> {
        self.0.query()
    }

    #[inline]
    fn raw(&self) -> RawStream {
        self.0.raw()
    }

    #[inline]
    unsafe fn copy(&self, region: &CopyRegion) -> Result<()> {
        // SAFETY: the caller promises what the backend asks for.
        unsafe { B::copy(&self.0, region) }
    }

    #[inline]
    unsafe fn try_copy_sync(&self, region: &CopyRegion) -> bool {
        // SAFETY: the caller promises what the backend asks for.
        unsafe { B::try_copy_sync(&self.0, region) }
    }

    #[inline]
    unsafe fn copy_strided(&self, copy: &StridedCopy) -> Result<()> {
        // SAFETY: the caller promises what the backend asks for.
        unsafe { B::copy_strided(&self.0, copy) }
    }

    #[inline]
    unsafe fn fill(&self, fill: &Fill) -> Result<()> {
        // SAFETY: the caller promises what the backend asks for.
        unsafe { B::fill(&self.0, fill) }
    }

    #[inline]
    unsafe fn prefetch(&self, address: u64, bytes: usize, to: Location) -> Result<()> {
        // SAFETY: the caller promises what the backend asks for.
        unsafe { B::prefetch(&self.0, address, bytes, to) }
    }

    #[inline]
    fn record(&self, event: &AnyEvent) -> Result<()> {
        B::record(&self.0, same::<B, _>("record", event)?)
    }

    #[inline]
    fn wait(&self, event: &AnyEvent) -> Result<()> {
        B::wait(&self.0, same::<B, _>("wait", event)?)
    }

    #[inline]
    unsafe fn launch(
        &self,
        kernel: &AnyKernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        let kernel = same::<B, _>("launch", kernel)?;
        // SAFETY: the caller promises what the backend asks for.
        unsafe { B::launch(&self.0, kernel, dims, arguments) }
    }
}

// SAFETY: what the backend behind it promises.
unsafe impl Stream for AnyStream {
    #[inline]
    fn synchronize(&self) -> Result<()> {
        StreamOps::synchronize(self)
    }

    #[inline]
    fn query(&self) -> Result<bool> {
        StreamOps::query(self)
    }

    #[inline]
    fn raw(&self) -> RawStream {
        StreamOps::raw(self)
    }
}
