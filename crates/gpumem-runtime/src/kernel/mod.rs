//! Kernels: one portable source for CUDA and ROCm, one body for the host.

mod arguments;
mod cache;
#[doc(hidden)]
pub mod codegen;
mod constants;
mod definition;
mod form;
mod host_arrays;
mod images;
mod launch;
mod loaded_module;
pub mod prelude;
mod source;
mod untyped;

pub use arguments::{Argument, ArgumentCollector, Arguments, ScopedArgument};
pub use codegen::{DeviceConst, DeviceType, Numeric};
pub use definition::KernelDef;
pub use form::HostForm;
pub use gpumem_core::{HostFunction, HostLaunch, KernelArguments};
pub use gpumem_simt::{
    Atomic, Constant, ConstantArray, Entry, Indices, Local, LocalArray, Number, Own, OwnId, OwnView,
    ParameterInfo, Parameters, Shared, Slice, SliceMut, Value, View, ViewMut, WorkItem, WorkItemIds,
};
pub use host_arrays::{In, InOut, Out};
pub use launch::Kernel;
pub use source::{PRELUDE, config_for_items, portable_text};
pub use untyped::{UntypedArguments, UntypedKernel, UntypedKernelDef};
