//! Which engine carries out the operations of a device.

use crate::{CommunicatorId, Options, engine::Engine, identity::EngineKind, local, mpi, nccl};
use gpumem_core::{Backend, ErrorKind, NotRecorded, Result};
use gpumem_runtime::{Device, internal::may_block};
use std::sync::Arc;

impl EngineKind {
    /// The engine of a device, where no identity names one.
    fn of<B: Backend>(device: &Device<B>) -> Option<Self> {
        // The library first: ranks in other processes can be reached only by it.
        let of_library = [Self::Nccl, Self::Rccl].into_iter().find(|kind| kind.takes(device));
        of_library.or(device.capabilities().futures.then_some(Self::Local))
    }

    /// Whether this engine takes ranks on the device.
    fn takes<B: Backend>(self, device: &Device<B>) -> bool {
        match self {
            Self::Local | Self::Mpi => device.capabilities().futures,
            Self::Nccl | Self::Rccl => device
                .capabilities()
                .collective_library
                .is_some_and(|library| nccl::is_engine_of(self, library)),
        }
    }
}

/// Refuses the device of a recording, before other ranks are told of anything and before anything is recorded.
pub(crate) fn refuse_recording<B: Backend>(
    operation: &'static str,
    device: &Device<B>,
    what: NotRecorded,
) -> Result<()> {
    match device.is_recording_by(crate::KEY) {
        true => Err(device.core_by(crate::KEY).not_recordable(operation, what)),
        false => Ok(()),
    }
}

fn kind_of<B: Backend>(operation: &'static str, device: &Device<B>) -> Result<EngineKind> {
    let what = "collective operations on this backend";
    let unsupported = || device.core_by(crate::KEY).error(operation, ErrorKind::Unsupported { what });
    refuse_recording(operation, device, NotRecorded::Communicator)?;
    EngineKind::of(device).ok_or_else(unsupported)
}

impl CommunicatorId {
    /// Makes an identity for ranks on devices of this backend. On the host, these are ranks of this process.
    ///
    /// # Errors
    /// Returns [`Unsupported`](ErrorKind::Unsupported) for a device that no engine connects,
    /// [`NotRecordable`](ErrorKind::NotRecordable) for the device of a recording, and [`Load`](ErrorKind::Load) if the library of a GPU
    /// cannot be used.
    pub fn for_device<B: Backend>(device: &Device<B>) -> Result<Self> {
        const OPERATION: &str = "CommunicatorId::for_device";
        match kind_of(OPERATION, device)? {
            EngineKind::Local => Ok(Self::new()),
            EngineKind::Mpi => Ok(Self::mpi()),
            kind @ (EngineKind::Nccl | EngineKind::Rccl) => nccl::identity(OPERATION, device, kind),
        }
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
    let refused = |why| device.core_by(crate::KEY).error(OPERATION, ErrorKind::InvalidArgument { why });
    kind_of(OPERATION, device)?;
    // The identity decides: all ranks have the same one.
    let kind = id.kind().filter(|kind| kind.takes(device));
    let kind = kind.ok_or_else(|| refused("the identity was made for another engine"))?;
    if rank >= size {
        return Err(refused("the rank is not below the number of ranks"));
    }
    let place = |error| device.core_by(crate::KEY).place(error);
    match kind {
        EngineKind::Local => {
            let number = id.local().map_err(place)?;
            Ok(Arc::new(local::join(number, rank, size, options).map_err(place)?))
        }
        EngineKind::Nccl | EngineKind::Rccl => {
            Ok(Arc::new(nccl::join(device, id, (rank, size), options, kind)?))
        }
        EngineKind::Mpi => {
            // MPI makes a communicator only when all have come, so this call waits.
            may_block(OPERATION)?;
            Ok(Arc::new(mpi::join(rank, size, options).map_err(place)?))
        }
    }
}
