//! NCCL's own calls on a stream of the driver.

use super::{
    Operation,
    folder::Folder,
    raw::{Places, Raw, Taken},
};
use crate::benches::cuda::raw::{Context, Stream};
use anyhow::{Context as _, Result};
use gpumem_cuda::Cuda;
use gpumem_runtime::Device;
use gpumem_sys::nccl::{
    Engine, Library, Places as Search, load, ncclComm_t, ncclDataType_t as Type, ncclRedOp_t, ncclUniqueId,
};
use std::{ffi::c_void, ptr::null_mut, rc::Rc, time::Instant};

/// A communicator of the library.
pub(super) struct RawNccl {
    library: Library,
    communicator: ncclComm_t,
    stream: Rc<Stream>,
    context: Context,
    rank: usize,
    ranks: usize,
}

impl RawNccl {
    /// Waits for the other ranks.
    pub(super) fn join(device: &str, (rank, ranks): (usize, usize), folder: &Folder) -> Result<Self> {
        let device = Device::<Cuda>::open(device)?;
        let context = Context::of(&device);
        // The same copy that ours uses: the process has it.
        let library = load(&Search::from_environment(Engine::Nccl))?;
        let bytes = folder.share(rank, "raw", || {
            let id = library.unique_id()?;
            Ok(id.internal.map(|byte| byte as u8).to_vec())
        })?;
        let internal: [u8; 128] = bytes.try_into().ok().context("an identity has 128 bytes")?;
        let id = ncclUniqueId { internal: internal.map(|byte| byte as _) };
        let mut communicator = null_mut();
        let numbers = (i32::try_from(ranks)?, i32::try_from(rank)?);
        context.within(|| {
            // SAFETY: a place for the communicator; the context is current.
            let status = unsafe { library.ncclCommInitRank(&mut communicator, numbers.0, id, numbers.1) };
            Ok(library.check(status)?)
        })?;
        let stream = context.stream()?;
        Ok(Self { library, communicator, stream, context, rank, ranks })
    }

    fn call(&self, operation: Operation, places: Places) -> Result<()> {
        let Self { library, communicator, stream, rank, ranks, .. } = self;
        let Places { source, destination, count } = places;
        let (from, to) = (source as usize as *const c_void, destination as usize as *mut c_void);
        let (number, sum) = (Type::ncclFloat32, ncclRedOp_t::ncclSum);
        let (communicator, stream) = (*communicator, stream.raw.cast::<c_void>());
        // SAFETY: the communicator and the stream are alive, and the arrays are as long as the operation takes.
        unsafe {
            let status = match operation {
                Operation::AllReduce => {
                    library.ncclAllReduce(from, to, count, number, sum, communicator, stream)
                }
                Operation::AllGather => library.ncclAllGather(from, to, count, number, communicator, stream),
                Operation::ReduceScatter => {
                    library.ncclReduceScatter(from, to, count, number, sum, communicator, stream)
                }
                Operation::Broadcast => library.ncclBroadcast(to, to, count, number, 0, communicator, stream),
                Operation::SendReceive => {
                    let (next, previous) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
                    library.check(library.ncclGroupStart())?;
                    library.check(library.ncclSend(
                        from,
                        count,
                        number,
                        next as i32,
                        communicator,
                        stream,
                    ))?;
                    library.check(library.ncclRecv(
                        to,
                        count,
                        number,
                        previous as i32,
                        communicator,
                        stream,
                    ))?;
                    library.ncclGroupEnd()
                }
            };
            Ok(library.check(status)?)
        }
    }
}

impl Raw for RawNccl {
    fn name(&self) -> &'static str {
        "NCCL's own calls"
    }

    fn run(&mut self, operation: Operation, places: Places, calls: usize) -> Result<Taken> {
        let mut taken = Taken::default();
        taken.all = self.context.time(|| {
            let start = Instant::now();
            for _ in 0..calls {
                self.call(operation, places)?;
            }
            taken.enqueue = start.elapsed();
            self.stream.synchronize()
        })?;
        Ok(taken)
    }
}

impl Drop for RawNccl {
    fn drop(&mut self) {
        let Self { library, communicator, context, .. } = self;
        // SAFETY: nothing of it is under way.
        let _ = context.within(|| Ok(library.check(unsafe { library.ncclCommDestroy(*communicator) })?));
    }
}
