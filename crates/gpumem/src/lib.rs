//! Numba's GPU memory model for Rust: one device-array API over CUDA, ROCm/HSA and the host CPU.
//!
//! If you have written `cuda.to_device(a)`, `d.copy_to_host()`, `cuda.pinned_array(...)` or `stream.auto_synchronize()`
//! in Python, you find the same words here, checked by a compiler: device arrays of any layout and views that are
//! borrows, page-locked, mapped and managed host memory, streams and events that the library orders. The same program
//! runs on every backend: on NVIDIA GPUs, on AMD GPUs, and, for tests and for machines without either, on the
//! processor.
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
//! | arrays on a device | [`DeviceArray`], [`DeviceView`], [`DeviceViewMut`], [`DeviceRecord`](type@DeviceRecord), [`UninitArray`]; [`ArraySpec`] for strides and order |
//! | memory of the host | [`PinnedArray`], [`MappedArray`], [`ManagedArray`]; [`RegisteredArray`] for memory of your own |
//! | asynchronous work | [`Stream`], [`Event`], [`Scope`], [`Completion`] |
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
//! Rust 1.88 or newer builds it. A feature enables a backend. Features only add, and all of them build on a machine without a GPU, a toolkit or a driver: libraries of
//! drivers are looked for when the program runs.
//!
//! | feature | backend | what it needs at run time |
//! |---|---|---|
//! | `host` (default) | the processor | nothing |
//! | `cuda` | NVIDIA GPUs | the CUDA driver, 12.0 or newer; NVRTC for kernels from source |
//! | `roc` | AMD GPUs | ROCm 5.2 to 7: HIP, hipRTC for kernels from source, the HSA runtime for agents and pools |
//!
//! Without any of them the build stops and says so. The feature `collectives` adds operations of several ranks (`all_reduce`, `send`):
//! over NCCL on `cuda`, over RCCL on `roc`, on `host` between ranks of one process, and over MPI between processes. The feature
//! `cudarc` adds exchange of memory with that crate's safe slices, without a copy.
//!
//! # What works on which backend
//!
//! | | `host` | `cuda` | `roc` |
//! |---|---|---|---|
//! | finding the driver, typed errors without one | yes | yes | yes |
//! | arrays, views, records, copies of any two layouts | yes | yes | on a simulated GPU |
//! | pinned, mapped and managed arrays, page-locking | yes, as ordinary memory | yes | on a simulated GPU |
//! | streams, events, callbacks, futures, ordering | yes | yes | on a simulated GPU |
//! | pools, `defer_cleanup`, memory managers | yes | yes | on a simulated GPU |
//! | kernels | yes | yes | on a simulated GPU, and over HIP on CUDA |
//! | exchange with other libraries (`__cuda_array_interface__`, DLPack) | yes | yes | on a simulated GPU |
//! | collectives | ranks of one process, and over MPI | over NCCL, verified between processes that share an H100 | over RCCL, not tested |
//!
//! The conformance suite verifies the column `cuda` on H100 and H200, also under compute-sanitizer.
//!
//! The column `roc` is verified on a simulated AMD GPU under AMD's own libraries of ROCm 5.2, 6.4 and 7.2, which executes the machine
//! code of their compilers, from gfx906 to gfx1201. Nothing has been tested on AMD hardware: caches, coherence and speed are not proven.
//!
//! # Which device
//!
//! A device has a name: `host`, `cuda:1`, `cuda:0000:3b:00.0` (its place on the PCI bus) or `cuda:uuid-...`. Asked for by name, a device
//! that cannot be had is an error with the reason; nothing ever falls back to another one silently.
//!
//! * **The default** is the device in the environment variable `GPUMEM_DEVICE`, else the first device of the first
//!   *enabled* backend in the order `cuda`, `roc`, `host`. Enabled, and not available: a program that is meant for a
//!   GPU does not quietly run on the processor because a driver is broken. It fails, and the message says what was
//!   tried and what to do.
//! * **`open_first_available`** opens the first backend in that order that works. Backends that were skipped are logged through
//!   `tracing` with the reason, and `AnyBackend::open_first_available` returns them. `GPUMEM_DEVICE` overrides it too.
//! * **A list** of the devices of all enabled backends leaves out a backend without a driver; `AnyBackend::unavailable` says which, and why.
//!
//! The choice among backends costs one comparison a call. With a single backend enabled, or with the backend named as a type
//! (`cuda::Cuda` where `AnyBackend` is the default), it costs nothing.
//!
//! # Design
//!
//! * **One set of traits below, one set of types above.** A backend moves bytes between addresses; elements, shapes, borrows, ordering and
//!   allocation are written once over it. `AnyBackend`, the choice among backends while the program runs, is itself a backend.
//! * **Ordering is automatic.** Each allocation knows which work uses it. Using an array on another stream waits for
//!   conflicting work; on one stream no event is made.
//! * **Dropping is free.** Dropping an array never waits and never calls the driver. Its memory goes to a pool, which reuses it
//!   in constant time. `flush` and `trim` return it to the driver.
//! * **Errors are typed** and name the operation, the backend and the sizes. The library does not panic: a missing driver, a lost device,
//!   a forked child and a failure in `Drop` are errors. A panic of your own closure reaches you; one in a callback becomes an error of
//!   `take_errors`.
//! * **Kernels are compiled once** for a kind of device. The programs are kept in memory and on disk, for later runs too.
//! * **Interop.** `typed` gives a device, stream, event or buffer as the type of its backend, and `raw_scope` lends a stream to another
//!   library.
//!
//! # Safety
//!
//! * The safe interface cannot read uninitialised memory, cannot use memory after it was freed and cannot race, whatever is dropped, forgotten
//!   or unwound. No guarantee depends on a destructor that a user could skip.
//! * Host memory that is borrowed moves only in calls that block until it is free again, or inside a scope that waits on every way out. Host memory
//!   that a device uses asynchronously belongs to the library, and looking at it waits for the device.
//! * If work fails, no call on any stream can read the memory that it was to write, or launch on it, until it is
//!   written anew. The error names the kernel or the copy that failed.
//! * The traits of the backends trust their caller and are `unsafe` where that matters. Ordinary programs never call them.
//!
//! # Links
//!
//! * [The book](https://github.com/gpumem/gpumem/blob/main/docs/src/introduction.md): coming from Numba, the safety model, backends,
//!   architecture, testing.
//! * [Examples](https://github.com/gpumem/gpumem/tree/main/crates/gpumem/examples), numbered, of about thirty lines each, and the contact sheet.
//! * [`gpumem-core`](https://docs.rs/gpumem-core): the traits, for writing a backend.
//! * [Numba's documentation of CUDA memory management](https://numba.readthedocs.io/en/stable/cuda/memory.html): where the words come from.
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
pub mod generic {
    //! The generic types below those of this crate, for code that is generic over backends and over arrays and views.
    pub use gpumem_runtime::{
        ArrayBase, ArraySpec, Bool, Completion, CopyPlan, CopyStrategy, CudaArrayDestination,
        CudaArrayInterface, CudaArraySource, DescrField, Destination, Device, DeviceArray, DeviceCounters,
        DeviceRecord, DeviceView, DeviceViewMut, DeviceVisible, DlpackTensor, ElementKind, ElementType,
        Event, Exclusive, Field, FromDevice, HasCudaArrayInterface, HostArray, HostKind, Imported,
        ImportedArray, InterchangeStream, IntoArraySpec, IpcArray, IpcArrayHandle, Layout, Loan, LockArrays,
        Managed, ManagedArray, Mapped, MappedArray, MappedHost, MappedRegisteredArray, NonTemporalStores,
        OnBackend, Order, Owned, OwnedKind, Pinned, PinnedArray, PinnedHost, Progress, RawAccess, RawParts,
        RegisterError, Registered, RegisteredArray, Scalar, Scope, Shared, Source, Storage, StorageMut,
        Stream, ToDevice, TransferOptions, UninitArray, UninitHostArray, cuda_array, cuda_array_mut, dlpack,
        field, is_cuda_array, layout, memory, trace, view_at, view_mut_at,
    };
}
pub mod kernel;
pub mod ops;
pub use gpumem_runtime::{
    ArraySpec, Bool, Completion, CopyPlan, CopyStrategy, CudaArrayInterface, DescrField, DeviceCounters,
    DlpackTensor, ElementKind, ElementType, Field, HasCudaArrayInterface, InterchangeStream, IntoArraySpec,
    IpcArrayHandle, Layout, NonTemporalStores, Order, Progress, RawParts, RegisterError, Scalar, Storage,
    StorageMut, ToDevice, TransferOptions, cuda_array, dlpack, field, is_cuda_array, layout, memory, trace,
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
    ErrorKind, Extents, Failure, LaunchConfig, LayoutError, LoadError, LoadFailure, Location, MappedOptions,
    MemoryInfo, MemoryKind, RawStream, Result, StreamKind, StreamOptions,
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
