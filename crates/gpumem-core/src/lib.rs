//! The traits that a gpumem backend implements, and the plain data around them.
//!
//! This crate is the narrow waist of gpumem: below it is one crate per driver (`gpumem-host`, `gpumem-cuda`,
//! `gpumem-roc`, or yours), above it `gpumem-runtime`, which is written once over [`Backend`].
//!
//! * **Untyped.** A backend moves bytes between addresses. Elements, shapes, borrows and policies live above.
//! * **Trusting.** A backend trusts its caller: the runtime upholds the conditions listed under `# Safety`. Failures
//!   that the caller cannot anticipate (out of memory, a lost device) are an [`Error`].
//! * **Small.** Almost fifty functions, most of them one driver call long, on the types that they belong to.
//! * **Never a panic.** Not without a driver, not with an old one, not in `Drop`, not in a forked child.
//!
//! A third party can write a backend against this crate alone and run the conformance suite
//! (`tests/conformance`) on it. The words *must* and *may* in the documentation of [`Backend`] are meant literally.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod arguments;
mod backend;
mod barrier;
mod bool8;
mod buffer;
pub mod c_text;
mod collective;
mod copy;
mod data_file;
mod descriptor;
mod device;
mod element;
mod element_type;
mod error;
mod event;
mod failed;
mod failure;
mod fill;
mod host_future;
pub mod image;
mod ipc;
mod kernel;
mod lost_state;
mod memory;
mod non_blocking;
mod poison;
mod pressure;
pub mod process;
mod stream;
pub mod user_code;

pub use arguments::{ArgumentTooLong, KernelArguments, MAX_ARGUMENT_BYTES};
pub use backend::{
    Backend, CaptureStart, DriverDevice, DriverModule, Event, ExecutableGraph, GraphNode, Stream,
};
pub use barrier::{Barrier, BarrierPoint, BarrierScope, CLK_GLOBAL_MEM_FENCE, CLK_LOCAL_MEM_FENCE, Lowering};
pub use bool8::Bool;
pub use buffer::DeviceBuffer;
pub use collective::{
    CollectiveCall, CollectiveCause, CollectiveError, CollectiveLibrary, CollectiveRecord, CollectiveState,
};
pub use copy::{Axis, CopyRegion, Endpoint, Space, StridedCopy, fewest_axes};
pub use data_file::{DataFile, WritableFile};
pub use descriptor::DescriptorError;
pub use device::{
    AddressRange, Capabilities, DeviceId, DeviceInfo, DeviceSelector, DlpackDevice, PciAddress,
};
pub use element::Element;
pub use element_type::{ElementKind, ElementType};
pub use error::{
    Error, ErrorKind, FileError, FileFailure, LayoutError, LoadError, LoadFailure, NotRecorded, Result,
};
pub use event::EventOptions;
pub use failed::{FailedSubmissions, SubmissionId};
pub use failure::Failure;
pub use fill::{Fill, Pattern};
pub use host_future::HostFuture;
pub use ipc::IpcMemory;
pub use kernel::{CompileOptions, Compiler, Extents, HostFunction, HostLaunch, KernelSource, LaunchConfig};
pub use lost_state::LostState;
pub use memory::{
    Advice, AllocationRequest, Attach, HostAccess, Location, MappedOptions, MemoryInfo, MemoryKind,
    RegisterOptions,
};
pub use non_blocking::NonBlockingContext;
pub use poison::{MemoryUse, MemoryUses, POISONED, PoisonTable, current_uses, with_uses};
pub use pressure::{MemoryPressure, PoolPressure, SpillPressure};
pub use stream::{RawStream, StreamKind, StreamOptions};
