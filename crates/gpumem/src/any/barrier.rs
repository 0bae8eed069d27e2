//! What is asked of a barrier.

use super::typed::{Named, OnBarrier, Typed};
use enum_dispatch::enum_dispatch;
use gpumem_core::{Backend, Barrier, BarrierPoint, Lowering};

/// The functions of [`Barrier`].
#[enum_dispatch]
pub(crate) trait BarrierOps {
    fn wave_size(&self) -> u32;
    fn lowering(&self, point: BarrierPoint) -> Lowering;
}

backends! { any!
    /// A barrier of one of the enabled backends.
    #[derive(Clone)]
    AnyBarrier(OnBarrier, Barrier): Named, BarrierOps
}

impl<B: Backend> BarrierOps for OnBarrier<B> {
    #[inline]
    fn wave_size(&self) -> u32 {
        self.0.wave_size()
    }

    #[inline]
    fn lowering(&self, point: BarrierPoint) -> Lowering {
        self.0.lowering(point)
    }
}

// SAFETY: what the backend behind it promises.
unsafe impl Barrier for AnyBarrier {
    #[inline]
    fn wave_size(&self) -> u32 {
        BarrierOps::wave_size(self)
    }

    #[inline]
    fn lowering(&self, point: BarrierPoint) -> Lowering {
        BarrierOps::lowering(self, point)
    }
}
