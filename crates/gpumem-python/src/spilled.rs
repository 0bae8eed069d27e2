//! Arrays that may leave the device, whatever their elements are.

use crate::{
    dtype::{Elements, hold},
    recording::KEY,
};
use gpumem::{DeviceViewMut, Element, ndarray::IxDyn};

/// What the library does with one of them. Each call may move arrays, and so reads files and runs deleters of Python: the caller is
/// without Python's lock, and holds no other.
pub(crate) trait Spilled: Send + Sync {
    /// The elements on the device, brought back in the order of a stream. They stay as long as there is a handle of them. With `writes`
    /// what the array has left on the host, or has in its file, counts as old from now on.
    fn get(&self, stream: &gpumem::Stream, writes: bool) -> gpumem::Result<Elements>;

    /// Brings the array back in the order of a stream.
    fn prefetch(&self, stream: &gpumem::Stream) -> gpumem::Result<()>;

    /// Makes it leave, if it can. Returns whether it has left.
    fn evict(&self) -> gpumem::Result<bool>;

    fn is_resident(&self) -> gpumem::Result<bool>;
}

impl<T: Element> Spilled for gpumem::Spillable<T, IxDyn>
where
    Elements: From<DeviceViewMut<'static, T, IxDyn>>,
{
    fn get(&self, stream: &gpumem::Stream, writes: bool) -> gpumem::Result<Elements> {
        Ok(hold(&self.get_by(KEY, stream, writes)?))
    }

    fn prefetch(&self, stream: &gpumem::Stream) -> gpumem::Result<()> {
        self.prefetch(stream)
    }

    fn evict(&self) -> gpumem::Result<bool> {
        self.evict()
    }

    fn is_resident(&self) -> gpumem::Result<bool> {
        self.is_resident()
    }
}
