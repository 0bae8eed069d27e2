//! Kernels: one portable source for CUDA and ROCm, one body for the host.

mod arguments;
mod cache;
#[doc(hidden)]
pub mod codegen;
mod constants;
mod declare;
mod form;
mod host_arrays;
mod images;
mod launch;
pub mod prelude;
mod program;
mod source;
mod untyped;

pub use arguments::{Argument, Arguments, Collected, Within};
pub use codegen::{DeviceConst, DeviceType, Numeric};
pub use declare::KernelDeclaration;
pub use form::HostForm;
pub use gpumem_core::{HostFunction, HostLaunch, KernelArguments};
pub use gpumem_simt::{
    Atomic, Constant, ConstantArray, Entry, Ids, Indices, Local, LocalArray, Number, ParameterInfo,
    Parameters, Shared, Slice, SliceMut, Value, View, ViewMut, WorkItem,
};
pub use host_arrays::{In, InOut, Out};
pub use launch::Kernel;
pub use source::{PRELUDE, cover, portable_text};
pub use untyped::{UntypedArguments, UntypedDeclaration, UntypedKernel};
