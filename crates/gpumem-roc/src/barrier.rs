//! How the work-items of an AMD kernel wait for each other.

use gpumem_core::{Barrier, BarrierPoint, Lowering};

/// The barriers of an AMD GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RocBarrier {
    wave_size: u32,
}

impl RocBarrier {
    pub(crate) fn new(wave_size: u32) -> Self {
        Self { wave_size }
    }
}

/// Writes before the barrier are visible to the group after it. The compiler's fence covers all address spaces. Naming
/// single ones needs more than ROCm 5, and saves no instruction for global memory, whose accesses must be waited for
/// anyway.
const GROUP: &str = "__builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\"); __builtin_amdgcn_s_barrier(); \
                     __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"workgroup\");";

/// The lanes of a wave run in lockstep, and its barrier is none of the hardware: it keeps the compiler from moving
/// accesses across, and the fences wait for those that are under way.
const WAVE: &str = "__builtin_amdgcn_fence(__ATOMIC_RELEASE, \"wavefront\"); __builtin_amdgcn_wave_barrier(); \
                    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"wavefront\");";

// SAFETY: the fences of the source order memory.
unsafe impl Barrier for RocBarrier {
    fn wave_size(&self) -> u32 {
        self.wave_size
    }

    fn lowering(&self, point: BarrierPoint) -> Lowering {
        match point {
            BarrierPoint::Group(_) => Lowering::Source(GROUP),
            BarrierPoint::Wave => Lowering::Source(WAVE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_core::BarrierScope;

    #[test]
    fn every_point_has_a_statement_between_two_fences() {
        let barrier = RocBarrier::new(64);
        assert_eq!(barrier.wave_size(), 64);
        let points = [BarrierScope::Local, BarrierScope::Global, BarrierScope::Both].map(BarrierPoint::Group);
        for (point, scope, instruction) in points
            .map(|point| (point, "workgroup", "s_barrier"))
            .into_iter()
            .chain([(BarrierPoint::Wave, "wavefront", "wave_barrier")])
        {
            let Lowering::Source(text) = barrier.lowering(point) else { panic!("{point:?}") };
            let statements: Vec<_> = text.split(';').map(str::trim).collect();
            let fence = |order| format!("__builtin_amdgcn_fence(__ATOMIC_{order}, \"{scope}\")");
            let expected = [
                fence("RELEASE"),
                format!("__builtin_amdgcn_{instruction}()"),
                fence("ACQUIRE"),
                String::new(),
            ];
            assert_eq!(statements, expected);
        }
    }
}
