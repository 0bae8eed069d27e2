//! How the work-items of a kernel wait for each other.

use std::fmt::Debug;

/// Which memory a work-group barrier makes visible, as OpenCL's fence flags.
///
/// A type and never a number: Numba's ROC target numbers the scopes 0 and 1, OpenCL 1 and 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BarrierScope {
    /// Work-group (shared, LDS) memory.
    Local,
    /// Global memory. The default scope of a barrier.
    #[default]
    Global,
    /// Both.
    Both,
}

/// OpenCL's name for [`BarrierScope::Local`].
pub const CLK_LOCAL_MEM_FENCE: BarrierScope = BarrierScope::Local;
/// OpenCL's name for [`BarrierScope::Global`].
pub const CLK_GLOBAL_MEM_FENCE: BarrierScope = BarrierScope::Global;

/// A place in a kernel where work-items wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BarrierPoint {
    /// All work-items of the group wait for each other: `barrier(scope)`.
    Group(BarrierScope),
    /// All work-items of one wavefront (warp) wait for each other, with a fence for shared and global memory:
    /// `wavebarrier()`.
    Wave,
}

/// What a barrier becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lowering {
    /// A statement of device source.
    Source(&'static str),
    /// The host's executor suspends the work-item until all of its group or wave have arrived.
    Suspend,
}

/// How a backend realises `barrier(scope)` and `wavebarrier()` inside a kernel. Every backend has both.
///
/// # Safety
/// Each work-item's accesses after a barrier come after the accesses that others of the group, or wave, made before it.
pub unsafe trait Barrier: Debug + Clone + Send + Sync + 'static {
    /// Work-items in a wavefront (warp) of this device: 32 or 64. A fact of the device, never a constant.
    fn wave_size(&self) -> u32;

    /// Returns what the barrier becomes at this point.
    fn lowering(&self, point: BarrierPoint) -> Lowering;
}
