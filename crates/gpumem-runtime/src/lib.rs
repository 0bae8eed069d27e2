//! The runtime of gpumem: arrays, streams, memory and transfers, generic over the backend traits of `gpumem-core`.
//!
//! * [`Device`], [`Stream`], [`Event`]: where work happens and in which order.
//! * [`ArrayBase`] with [`DeviceArray`], [`DeviceView`], [`DeviceViewMut`]: n-d arrays in device memory and their views, which are borrows.
//! * [`HostArray`] with [`PinnedArray`], [`MappedArray`], [`ManagedArray`]: memory that the host sees too, read and written through
//!   accessors that wait first.
//! * [`Scope`]: borrowed host memory in asynchronous transfers, until the scope ends.
//! * [`ImportedArray`], [`Loan`]: memory of other libraries, and memory lent to them, without a copy.
//! * [`layout`]: shapes and strides, without memory.
//!
//! Ordering is automatic: an array may be used on any stream at any time, and conflicting work waits. The
//! page [architecture](https://github.com/gpumem/gpumem/blob/main/docs/src/architecture.md) says how.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod array;
mod chunks;
mod completion;
mod device;
mod doors;
mod foreign;
mod frozen;
mod graph;
mod interchange;
mod ipc;
mod key;
#[cfg(loom)]
mod models;
mod new_file;
mod recording;
mod spill;
mod stream;
pub mod trace;
mod transfer;
mod transfer_options;
mod tuning;
mod worker_pool;

#[cfg(loom)]
#[doc(hidden)]
pub mod loom_models {
    pub use crate::{models::*, transfer::models::*};
}

pub mod memory {
    //! Memory: allocation, tracking of uses, and freeing.
    //!
    //! * [`MemoryResource`]: the trait. [`DriverMemory`] at the bottom, [`Pool`] over it, and adaptors around either.
    //! * [`tlsf`]: the allocator of a pool, for any range of addresses.
    //! * [`DeferredLimits`], [`DeferCleanup`]: when memory is returned to the driver.
    //! * [`Exhausted`], [`ReclaimHook`]: hooks that free memory before an allocation fails.
    //! * [`named`], [`MemoryReport`]: names for allocations, and a report of the holders.
    pub use gpumem_memory::memory::{
        DeferCleanup, DeferCleanupEverywhere, DeferredLimits, DriverMemory, ENV_MAX_PENDING_COUNT,
        ENV_MAX_PENDING_RATIO, ENV_POOL, Exhausted, FailureInjectingResource, FailurePlan, Holder,
        KindReport, LimitingResource, LiveAllocation, MemoryBlock, MemoryReport, MemoryRequest,
        MemoryResource, MemoryStatistics, PendingAccesses, Pool, PoolOptions, ReclaimHook, ResourceId,
        ResourceReport, StatisticsResource, TrackingResource, Trim, defer_cleanup_everywhere, named,
    };
    #[doc(no_inline)]
    pub use gpumem_memory::tlsf;
}

#[doc(hidden)]
pub mod internal {
    //! Items for the other crates of gpumem only. No promise of stability.
    pub use crate::array::destination::{WriteBack, check_writable};
    pub use crate::array::host::PinScope;
    pub use crate::array::source::InPlace;
    pub use crate::device::{Allocation, AllocationRef, FrozenMemory};
    pub use crate::graph::{BoundUse, RankWork, UntypedNumber, UntypedValue};
    pub use crate::interchange::{FoundStream, Noted, ServedMemory, ServedStreams};
    pub use crate::key::Key;
    pub use crate::transfer::{ArrayRef, StagedBytes, Upload, abort, fill, fill_zeros, upload};
    pub use gpumem_memory::may_block;
    pub use gpumem_memory::memory::DeviceCore;
    pub use gpumem_memory::trace::CollectiveInfo;
    pub use gpumem_memory::track::{
        Access, AccessLog, DeviceContext, LentStream, Program, Sink, Timeline, Tracked, Work, refuse_overlap,
    };
}

/// The standard library, whatever the user's crate calls by its name.
#[doc(hidden)]
pub use core as __core;

pub use array::{
    ArrayBase, Destination, DeviceArray, DeviceRecord, DeviceView, DeviceViewMut, DeviceVisible, Exclusive,
    Field, FileView, FromDevice, Frozen, FrozenArray, HostArray, HostKind, Imported, LockArrays, Managed,
    ManagedArray, Mapped, MappedArray, MappedHost, MappedRegisteredArray, OnBackend, Owned, OwnedKind,
    Pinned, PinnedArray, PinnedHost, RawAccess, RawParts, RegisterError, Registered, RegisteredArray, Scalar,
    Scope, Shared, Source, Storage, StorageMut, ToDevice, UninitArray, UninitHostArray, view_at, view_mut_at,
};
pub use chunks::{ChunkIter, Chunks};
pub use completion::Completion;
pub use device::Device;
pub use foreign::{CudaArrayInterface, DescrField, InterchangeStream};
pub use gpumem_core::{Bool, DataFile, ElementKind, ElementType};
pub use gpumem_layout::layout;
pub use gpumem_memory::track::DeviceCounters;
pub use graph::{
    Graph, GraphArgument, GraphArguments, GraphMemory, GraphParameter, GraphParameters, GraphReport,
    GraphResults, PinnedReadForm, PinnedView, PinnedWriteForm, ReadForm, Reads, Value, Varying, WriteForm,
    Writes, reads, writes,
};
pub use interchange::{
    CudaArrayDestination, CudaArraySource, DlpackTensor, HasCudaArrayInterface, ImportedArray, Loan,
    cuda_array, cuda_array_mut, dlpack, is_cuda_array,
};
pub use ipc::{IpcArray, IpcArrayHandle};
pub use layout::{ArraySpec, IntoArraySpec, Layout, Order};
pub use new_file::NewFile;
pub use spill::{Slept, SpillManager, SpillOptions, SpillOrder, SpillReport, Spillable};
pub use stream::{Event, Stream};
pub use transfer::{CopyPlan, Progress, Route};
pub use transfer_options::{NonTemporalStores, TransferOptions};
