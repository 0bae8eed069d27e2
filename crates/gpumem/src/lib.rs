//! Numba's GPU memory model for Rust: one device-array API over CUDA, ROCm/HSA and the host CPU.
//!
//! Users of `cuda.to_device(a)`, `d.copy_to_host()` and `cuda.pinned_array(...)` find the same words here, checked by a compiler:
//! device arrays of any layout and views that are borrows, page-locked, mapped and managed host memory, streams and events that
//! the library orders. The same program runs on NVIDIA GPUs, on AMD GPUs, and on the processor.
//!
//! ```
//! use gpumem::{kernel::prelude::*, ndarray::Array2, prelude::*};
//!
//! #[gpumem::kernel]
//! fn scale(x: Own<f32>, factor: f32) {
//!     if global_id(0) < x.len() {
//!         x[own()] *= factor;
//!     }
//! }
//!
//! let device = Device::open("host")?; // or "cuda:0", or Device::open_default()
//! let host = Array2::from_shape_fn((480, 640), |(y, x)| (x + y) as f32);
//!
//! // Blocking: on return the host's array is yours again. Views are borrows, in ndarray's notation, and copy nothing.
//! let image = device.to_device(&host)?;
//! let mirrored = image.slice(s![.., ..;-1])?;
//!
//! // Calls on a stream return at once. An array may be used on any stream: what conflicts waits.
//! let (first, second) = (device.stream()?, device.stream()?);
//! let mut pair = first.device_array::<f32, _>((480, 1280))?;
//! let (mut left, mut right) = pair.split_at_mut(1, 640)?;
//! first.copy_to_device(&mut left, &image)?;
//! second.copy_to_device(&mut right, &mirrored)?;
//! scale().load(&device)?.launch(&first, &config_for_items(pair.len(), 256), (&mut pair, 2.0))?;
//! let back = first.copy_to_host(&pair)?; // page-locked; looking at it waits
//! assert_eq!(back.view()?[[0, 640]], 2.0 * host[[0, 639]]);
//!
//! // Your own memory takes part in asynchronous copies inside a scope, which waits at its end, however it ends.
//! let mut corner = Array2::zeros((2, 2));
//! first.scope(|scope| scope.copy_to_host(&image.slice(s![..2, ..2])?, corner.view_mut()))??;
//! assert_eq!(corner, host.slice(s![..2, ..2]));
//! # Ok::<(), gpumem::Error>(())
//! ```
//!
//! # Start here
//!
//! [`Device::open`] opens a device, [`Device::to_device`](generic::Device::to_device) copies an array to it, and
//! [`copy_to_host`](generic::ArrayBase::copy_to_host) copies it back. [`prelude`] imports what most programs use.
//!
//! | for | see |
//! |---|---|
//! | arrays on a device | [`DeviceArray`], [`DeviceView`], [`DeviceViewMut`], [`DeviceRecord`](type@DeviceRecord), [`UninitArray`], [`FrozenArray`]; [`ArraySpec`] for strides and order |
//! | arrays in files | [`files`]: npy and safetensors, read whole or sliced, and written |
//! | more than a device holds | [`Device::chunks`](generic::Device::chunks), [`Device::map_chunks`](generic::Device::map_chunks); [`SpillManager`] for arrays that leave the device meanwhile |
//! | memory of the host | [`PinnedArray`], [`MappedArray`], [`ManagedArray`]; [`RegisteredArray`] for memory of your own |
//! | asynchronous work | [`Stream`], [`Event`], [`Scope`], [`Completion`], [`Graph`], [`Varying`] |
//! | kernels | the attributes [`kernel`](macro@kernel) and [`device`](macro@device) make them of Rust functions; the module [`kernel`](mod@kernel) loads and launches them |
//! | sums, scans, casts | [`ops`]: operations on arrays of any layout, on every device |
//! | memory | [`memory`]: pools, limits, statistics; [`trace`] records what a program does |
//! | several devices | the feature `collectives`: communicators, `all_reduce`, `send` and `receive` |
//! | other libraries | [`cuda_array`], [`dlpack`], [`IpcArrayHandle`], [`RawAccess`] |
//! | devices and errors | [`Device`], [`DeviceInfo`], [`Error`], [`ErrorKind`] |
//! | generic code | [`generic`], the types above without a default backend; [`Backend`], [`AnyBackend`], [`Element`] |
//!
//! # Features
//!
//! Rust 1.88 or newer builds it, on a machine without a GPU, a toolkit or a driver: libraries of drivers are looked for when the
//! program runs. Features only add.
//!
//! | feature | adds | needs at run time |
//! |---|---|---|
//! | `host` (default) | the processor as a device | nothing |
//! | `cuda` | NVIDIA GPUs | the driver, CUDA 12.0 or newer; NVRTC for kernels from source |
//! | `roc` | AMD GPUs | ROCm 5.2 to 7 |
//! | `collectives` | operations of several ranks | NCCL, RCCL or MPI; nothing within one process on `host` |
//! | `npz` | NumPy's npz files (`files::npz`) | |
//! | `cudarc` | exchange with that crate's slices, without a copy | |
//!
//! The conformance suite verifies `host` and `cuda` on every feature, `cuda` on H100 and H200, also under compute-sanitizer. It
//! verifies `roc` on a simulated AMD GPU, which executes AMD's machine code under AMD's own libraries. Nothing has run on AMD
//! hardware. [Backends](https://github.com/gpumem/gpumem/blob/main/docs/src/backends.md) says what works where.
//!
//! # Which device
//!
//! A device has a name: `host`, `cuda:1`, `cuda:0000:3b:00.0` (its place on the PCI bus) or `cuda:uuid-...`. The default is the device
//! in the environment variable `GPUMEM_DEVICE`, else the first of the first *enabled* backend in the order `cuda`, `roc`, `host`.
//!
//! Opening a device by name, or the default, either succeeds or returns an error that says why. There is no fallback: a program that
//! is meant for a GPU does not quietly run on the processor because a driver is broken. `open_first_available` tries the backends in
//! that order, and logs why it skipped one.
//!
//! # Safety
//!
//! * The safe interface cannot read uninitialised memory, cannot use memory after it was freed and cannot race, whatever is dropped,
//!   forgotten or unwound.
//! * Borrowed host memory moves only in calls that block until it is free again, or inside a scope that waits on every way out.
//! * If work fails, no call can read the memory that it was to write until it is written anew. The error names the kernel or the
//!   copy that failed.
//! * The library does not panic: a missing driver, a lost device, a forked child and a failure in `Drop` are typed errors.
//!
//! # Links
//!
//! * [The book](https://github.com/gpumem/gpumem/blob/main/docs/src/introduction.md): coming from Numba, kernels, the safety model,
//!   performance, architecture, testing.
//! * [Examples](https://github.com/gpumem/gpumem/tree/main/crates/gpumem/examples), numbered, and the contact sheet.
//! * [`gpumem-core`](https://docs.rs/gpumem-core): the traits, for writing a backend.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(not(any(feature = "host", feature = "cuda", feature = "roc")))]
compile_error!(
    "gpumem is built without a backend: enable at least one of the features `host`, `cuda` and `roc`"
);

// Without a backend there is nothing to say but the line above.
#[cfg(feature = "host")]
mod agreement;
#[cfg(any(feature = "host", feature = "cuda", feature = "roc"))]
pub mod any;
#[cfg(any(feature = "host", feature = "cuda", feature = "roc"))]
mod compile;
#[cfg(any(feature = "host", feature = "cuda", feature = "roc"))]
mod select;

#[cfg(feature = "host")]
pub use agreement::agreement;
#[cfg(any(feature = "host", feature = "cuda", feature = "roc"))]
pub use {any::AnyBackend, compile::CompileFor, select::ENV_DEVICE};

#[cfg(feature = "collectives")]
pub mod collectives {
    //! Operations of several ranks, each with a device and streams of its own.
    pub use gpumem_collectives::*;
}

#[cfg(feature = "cudarc")]
pub mod cudarc;

// Modules, and no re-exports of crates: the compiler names a type by a path that users can write.
#[cfg(feature = "cuda")]
pub mod cuda {
    //! NVIDIA GPUs.
    pub use gpumem_cuda::*;
}
#[cfg(feature = "host")]
pub mod host {
    //! The processor as a device.
    pub use gpumem_host::*;
}
#[cfg(feature = "roc")]
pub mod roc {
    //! AMD GPUs.
    pub use gpumem_roc::*;
}

#[cfg(any(feature = "host", feature = "cuda", feature = "roc"))]
pub mod prelude;

pub use gpumem_macros::{DeviceRecord, device, kernel};
pub mod files;
pub mod generic {
    //! The generic types below those of this crate, for code that is generic over backends and over arrays and views.
    pub use gpumem_runtime::{
        ArrayBase, ArraySpec, Bool, ChunkIter, Chunks, Completion, CopyPlan, CudaArrayDestination,
        CudaArrayInterface, CudaArraySource, DescrField, Destination, Device, DeviceArray, DeviceCounters,
        DeviceRecord, DeviceView, DeviceViewMut, DeviceVisible, DlpackTensor, ElementKind, ElementType,
        Event, Exclusive, Field, FromDevice, Frozen, FrozenArray, Graph, GraphArgument, GraphArguments,
        GraphMemory, GraphParameter, GraphParameters, GraphReport, GraphResults, HasCudaArrayInterface,
        HostArray, HostKind, Imported, ImportedArray, InterchangeStream, IntoArraySpec, IpcArray,
        IpcArrayHandle, Layout, Loan, LockArrays, Managed, ManagedArray, Mapped, MappedArray, MappedHost,
        MappedRegisteredArray, NonTemporalStores, OnBackend, Order, Owned, OwnedKind, Pinned, PinnedArray,
        PinnedHost, PinnedReadForm, PinnedView, PinnedWriteForm, Progress, RawAccess, RawParts, ReadForm,
        Reads, RegisterError, Registered, RegisteredArray, Route, Scalar, Scope, Shared, Slept, Source,
        SpillManager, SpillOptions, SpillOrder, SpillReport, Spillable, Storage, StorageMut, Stream,
        ToDevice, TransferOptions, UninitArray, UninitHostArray, Varying, WriteForm, Writes, cuda_array,
        cuda_array_mut, dlpack, field, is_cuda_array, layout, memory, reads, trace, view_at, view_mut_at,
        writes,
    };
}
pub mod kernel;
pub mod ops;
pub use gpumem_runtime::{
    ArraySpec, Bool, Chunks, Completion, CopyPlan, CudaArrayInterface, DescrField, DeviceCounters,
    DlpackTensor, ElementKind, ElementType, Field, GraphArguments, GraphParameters, GraphReport,
    GraphResults, HasCudaArrayInterface, InterchangeStream, IntoArraySpec, IpcArrayHandle, Layout,
    NonTemporalStores, Order, PinnedReadForm, PinnedWriteForm, Progress, RawParts, ReadForm, Reads,
    RegisterError, Route, Scalar, Slept, SpillOptions, SpillOrder, SpillReport, Storage, StorageMut,
    ToDevice, TransferOptions, WriteForm, Writes, cuda_array, dlpack, field, is_cuda_array, layout, memory,
    reads, trace, writes,
};
pub use gpumem_runtime::{CudaArrayDestination, Destination, FromDevice, cuda_array_mut};
#[cfg(any(feature = "host", feature = "cuda", feature = "roc"))]
mod types;
#[cfg(any(feature = "host", feature = "cuda", feature = "roc"))]
pub use types::*;

pub use ndarray::{self, NewAxis, s};
/// For elements: `bytemuck::{Pod, Zeroable}` to derive for records, and the numbers that are not in the standard library.
pub use {bytemuck, half, num_complex};

pub use gpumem_core::{
    Advice, Attach, Backend, BarrierScope, CLK_GLOBAL_MEM_FENCE, CLK_LOCAL_MEM_FENCE, Capabilities,
    DescriptorError, DeviceId, DeviceInfo, DeviceSelector, DlpackDevice, DriverDevice, Element, Error,
    ErrorKind, Extents, Failure, FileError, FileFailure, LaunchConfig, LayoutError, LoadError, LoadFailure,
    Location, MappedOptions, MemoryInfo, MemoryKind, NotRecorded, RawStream, Result, StreamKind,
    StreamOptions,
};

#[cfg(all(doctest, feature = "host"))]
mod compile_fail;

// The Rust blocks of the book are compiled and run as documentation tests. Packages do not have the pages, and build none.
// Some blocks open the default device, which is the host's only where no other backend is enabled.
#[cfg(all(doctest, feature = "host", not(any(feature = "cuda", feature = "roc"))))]
mod book {
    #[doc = include_str!("../../../docs/src/introduction.md")]
    struct Introduction;
    #[doc = include_str!("../../../docs/src/coming-from-numba.md")]
    struct ComingFromNumba;
    #[doc = include_str!("../../../docs/src/kernels.md")]
    struct Kernels;
    #[doc = include_str!("../../../docs/src/numba-kernels.md")]
    struct NumbaKernels;
    #[doc = include_str!("../../../docs/src/graphs.md")]
    struct Graphs;
    #[doc = include_str!("../../../docs/src/graph-programs.md")]
    struct GraphPrograms;
    #[doc = include_str!("../../../docs/src/files.md")]
    struct Files;
    #[doc = include_str!("../../../docs/src/chunks.md")]
    struct Chunks;
    #[doc = include_str!("../../../docs/src/memory.md")]
    struct Memory;
    #[doc = include_str!("../../../docs/src/safety.md")]
    struct Safety;
    #[doc = include_str!("../../../docs/src/backends.md")]
    struct Backends;
    #[doc = include_str!("../../../docs/src/architecture.md")]
    struct Architecture;
    #[doc = include_str!("../../../docs/src/errors.md")]
    struct Errors;
    #[doc = include_str!("../../../docs/src/testing.md")]
    struct Testing;
    #[doc = include_str!("../../../docs/src/performance.md")]
    struct Performance;
    #[cfg(feature = "collectives")]
    #[doc = include_str!("../../../docs/src/collectives.md")]
    struct Collectives;
}
