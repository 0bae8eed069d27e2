//! What gpumem is made of above its backends, written once over the traits of `gpumem-core`.
//!
//! * [`Device`], [`Stream`], [`Event`]: where work happens and in which order.
//! * [`ArrayBase`] with [`DeviceArray`], [`DeviceView`], [`DeviceViewMut`]: n-d arrays in device memory and their views, which are borrows.
//! * [`HostArray`] with [`PinnedArray`], [`MappedArray`], [`ManagedArray`]: memory that the host sees too, read and written through
//!   accessors that wait first.
//! * [`Scope`]: borrowed host memory in asynchronous transfers, until the scope ends.
//! * [`ImportedArray`], [`Loan`]: memory of other libraries, and ours in their hands, without a copy.
//! * [`layout`]: shapes and strides, without memory.
//!
//! Ordering is automatic: an array may be used on any stream at any time, and what conflicts waits. See [`order`](https://github.com/gpumem/gpumem/blob/main/docs/src/architecture.md).
#![cfg_attr(docsrs, feature(doc_cfg))]

mod array;
mod completion;
mod destination;
mod device;
mod event;
mod host;
mod interchange;
mod ipc;
pub mod memory;
mod raw;
mod scope;
mod source;
mod stream;
mod sync;
pub mod trace;
mod track;
mod transfer;
mod user_code;

#[cfg(loom)]
#[doc(hidden)]
pub mod loom_models {
    pub use crate::{track::models::*, transfer::models::*};
}

#[doc(hidden)]
pub mod internal {
    //! What the other crates of gpumem use of this one. No promise of stability.
    pub use crate::completion::may_block;
    pub use crate::destination::{WriteBack, check_writable};
    pub use crate::device::DeviceCore;
    pub use crate::host::PinScope;
    pub use crate::memory::{Allocation, AllocationRef};
    pub use crate::source::InPlace;
    pub use crate::track::{Access, AccessLog, Timeline};
    pub use crate::transfer::{ArrayRef, Upload, abort, fill, upload};
}

pub use array::{
    ArrayBase, DeviceArray, DeviceRecord, DeviceView, DeviceViewMut, Exclusive, Field, Imported, OnBackend,
    Owned, Shared, Storage, StorageMut, UninitArray,
};
pub use completion::Completion;
pub use destination::{Destination, FromDevice};
pub use device::{Device, DeviceCounters};
pub use event::Event;
pub use gpumem_layout::layout;
pub use host::{
    DeviceVisible, HostArray, HostKind, LockArrays, Managed, ManagedArray, Mapped, MappedArray, MappedHost,
    MappedRegisteredArray, OwnedKind, Pinned, PinnedArray, PinnedHost, RegisterError, Registered,
    RegisteredArray, UninitHostArray, view_at, view_mut_at,
};
pub use interchange::{
    Bool, CudaArrayDestination, CudaArrayInterface, CudaArraySource, DescrField, DlpackTensor, ElementKind,
    ElementType, HasCudaArrayInterface, ImportedArray, InterchangeStream, Loan, cuda_array, cuda_array_mut,
    dlpack, is_cuda_array,
};
pub use ipc::{IpcArray, IpcArrayHandle};
pub use layout::{ArraySpec, IntoArraySpec, Layout, Order};
pub use raw::{RawAccess, RawParts};
pub use scope::Scope;
pub use source::{Scalar, Source, ToDevice};
pub use stream::Stream;
pub use transfer::{CopyPlan, CopyStrategy, NonTemporalStores, Progress, TransferOptions};

/// Numbers for streams and allocations, unique in this process.
fn unique_id() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
