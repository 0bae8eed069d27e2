//! Which engine carries out the operations of a device.

use crate::{CommunicatorId, Options, engine::Engine, local, nccl};
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_runtime::Device;
use std::sync::Arc;

/// An engine. The number is the one in identities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EngineKind {
    /// Ranks of one process.
    Local = 1,
    /// NVIDIA's NCCL.
    Nccl = 2,
    /// AMD's RCCL.
    Rccl = 3,
}

impl EngineKind {
    const ALL: [Self; 3] = [Self::Local, Self::Nccl, Self::Rccl];

    /// The engine of a number in an identity.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// The engine of a device, where no identity names one.
    fn of<B: Backend>(device: &Device<B>) -> Option<Self> {
        let of_library = [Self::Nccl, Self::Rccl].into_iter().find(|kind| kind.takes(device));
        of_library.or(device.capabilities().futures.then_some(Self::Local))
    }

    /// Whether this engine takes ranks on the device.
    fn takes<B: Backend>(self, device: &Device<B>) -> bool {
        match self {
            Self::Local => device.capabilities().futures,
            Self::Nccl | Self::Rccl => device
                .capabilities()
                .collective_library
                .is_some_and(|library| nccl::is_engine_of(self, library)),
        }
    }
}

fn kind_of<B: Backend>(operation: &'static str, device: &Device<B>) -> Result<EngineKind> {
    let what = "collective operations on this backend";
    let unsupported = || device.core().error(operation, ErrorKind::Unsupported { what });
    EngineKind::of(device).ok_or_else(unsupported)
}

/// Makes an identity for ranks on devices like this one.
pub(crate) fn identity<B: Backend>(device: &Device<B>) -> Result<CommunicatorId> {
    const OPERATION: &str = "CommunicatorId::for_device";
    match kind_of(OPERATION, device)? {
        EngineKind::Local => Ok(CommunicatorId::new()),
        kind @ (EngineKind::Nccl | EngineKind::Rccl) => nccl::identity(OPERATION, device, kind),
    }
}

/// Joins a communicator with the engine that its identity names.
pub(crate) fn join<B: Backend>(
    device: &Device<B>,
    id: &CommunicatorId,
    rank: usize,
    size: usize,
    options: &Options,
) -> Result<Arc<dyn Engine<B>>> {
    const OPERATION: &str = "join";
    let refused = |why| device.core().error(OPERATION, ErrorKind::InvalidArgument { why });
    kind_of(OPERATION, device)?;
    let kind = id.kind().filter(|kind| kind.takes(device));
    let kind = kind.ok_or_else(|| refused("the identity was made for another engine"))?;
    if rank >= size {
        return Err(refused("the rank is not below the number of ranks"));
    }
    let place = |error| device.core().place(error);
    match kind {
        EngineKind::Local => {
            let number = id.local().map_err(place)?;
            Ok(Arc::new(local::join(number, rank, size, options).map_err(place)?))
        }
        EngineKind::Nccl | EngineKind::Rccl => {
            Ok(Arc::new(nccl::join(device, id, (rank, size), options, kind)?))
        }
    }
}
