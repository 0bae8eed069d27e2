//! Kernels of gpumem: one portable source for CUDA and ROCm, one body for the host, declared once and launched safely.
//!
//! [`KernelDef`] declares a kernel, [`KernelDef::load`] compiles it for a device, [`Kernel::launch`] enqueues it after
//! all work that conflicts with its arrays. Depend on `gpumem`, which re-exports this crate as `gpumem::kernel`.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod arguments;
mod cache;
#[allow(missing_docs, reason = "for the code that macros generate, not for users")]
#[doc(hidden)]
pub mod codegen;
mod definition;
mod form;
mod identifier;
mod images;
mod launch;
pub mod prelude;
#[doc(hidden)]
pub mod simt;
mod source;
mod untyped;

pub use arguments::{Argument, ArgumentCollector, Arguments, In, InOut, NumberArgument, Out, ScopedArgument};
pub use codegen::{BinaryFunction, DeviceConst, DeviceType, Numeric, UnaryFunction};
pub use definition::{ENV_RACE_CHECKS, KernelDef};
pub use form::HostForm;
pub use gpumem_core::{HostFunction, HostLaunch, KernelArguments};
pub use launch::Kernel;
pub use simt::{
    Atomic, Change, Constant, ConstantArray, Entry, Indices, Local, LocalArray, Number, Own, OwnId, OwnView,
    ParameterInfo, Parameters, Shared, Slice, SliceMut, Value, View, ViewMut, WorkItem, WorkItemIds,
};
pub use source::{PRELUDE, config_for_items, portable_text};
pub use untyped::{UntypedArguments, UntypedKernel, UntypedKernelDef};

/// The key to what is behind the handles of `gpumem-runtime`.
// SAFETY: the crate submits each access to memory that it makes, checked against the memory's bounds.
pub(crate) const KEY: gpumem_runtime::internal::Key = unsafe { gpumem_runtime::internal::Key::new() };
