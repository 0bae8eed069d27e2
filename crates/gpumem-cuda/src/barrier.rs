//! How the threads of a CUDA kernel wait for each other.

use gpumem_core::{Barrier, BarrierPoint, Lowering};

/// The barriers of a CUDA device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaBarrier {
    wave_size: u32,
}

impl CudaBarrier {
    pub(crate) fn new(wave_size: u32) -> Self {
        Self { wave_size }
    }
}

// SAFETY: `__syncthreads` and `__syncwarp` order memory.
unsafe impl Barrier for CudaBarrier {
    fn wave_size(&self) -> u32 {
        self.wave_size
    }

    /// `__syncthreads` makes both shared and global memory visible within the block, so it serves every scope;
    /// `__syncwarp` does the same within the warp, for all of its threads.
    fn lowering(&self, point: BarrierPoint) -> Lowering {
        match point {
            BarrierPoint::Group(_) => Lowering::Source("__syncthreads();"),
            BarrierPoint::Wave => Lowering::Source("__syncwarp();"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_core::BarrierScope;

    #[test]
    fn every_point_has_a_statement() {
        let barrier = CudaBarrier::new(32);
        assert_eq!(barrier.wave_size(), 32);
        for scope in [BarrierScope::Local, BarrierScope::Global, BarrierScope::Both] {
            assert_eq!(barrier.lowering(BarrierPoint::Group(scope)), Lowering::Source("__syncthreads();"));
        }
        assert_eq!(barrier.lowering(BarrierPoint::Wave), Lowering::Source("__syncwarp();"));
    }
}
