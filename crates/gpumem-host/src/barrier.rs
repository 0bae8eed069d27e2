//! How work-items wait for each other on the host.

use gpumem_core::{Barrier, BarrierPoint, Lowering};

/// Barriers of the host: the executor suspends a work-item until its group or wave has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostBarrier {
    wave_size: u32,
}

impl HostBarrier {
    pub(crate) fn new(wave_size: u32) -> Self {
        Self { wave_size }
    }
}

// SAFETY: the executor runs a group's work-items on one thread.
unsafe impl Barrier for HostBarrier {
    fn wave_size(&self) -> u32 {
        self.wave_size
    }

    fn lowering(&self, _: BarrierPoint) -> Lowering {
        Lowering::Suspend
    }
}
