#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(not(any(feature = "host", feature = "cuda", feature = "roc")))]
compile_error!(
    "gpumem is built without a backend: enable at least one of the features `host`, `cuda` and `roc`"
);

// Without a backend there is nothing to say but the line above.
#[cfg(any(feature = "host", feature = "cuda", feature = "roc"))]
pub mod any;
#[cfg(any(feature = "host", feature = "cuda", feature = "roc"))]
mod select;

#[cfg(any(feature = "host", feature = "cuda", feature = "roc"))]
pub use {any::Any, select::DEVICE_VARIABLE};

#[cfg(feature = "cuda")]
pub use gpumem_cuda as cuda;
#[cfg(feature = "host")]
pub use gpumem_host as host;
#[cfg(feature = "roc")]
pub use gpumem_roc as roc;

pub use gpumem_runtime as generic;
pub use gpumem_runtime::{
    ArraySpec, Completion, DeviceCounters, Field, IntoArraySpec, Layout, Order, RawParts, Scalar, Storage,
    StorageMut, ToDevice, field, layout,
};
#[cfg(any(feature = "host", feature = "cuda", feature = "roc"))]
mod types;
#[cfg(any(feature = "host", feature = "cuda", feature = "roc"))]
pub use types::*;

pub use ndarray::{self, NewAxis, s};

pub use gpumem_core::{
    Advice, Attach, Backend, BarrierScope, CLK_GLOBAL_MEM_FENCE, CLK_LOCAL_MEM_FENCE, Capabilities,
    DeviceInfo, DeviceSelector, Element, Error, ErrorKind, LayoutError, LoadError, LoadFailure, Location,
    MappedOptions, MemoryInfo, MemoryKind, RawStream, Result, StreamKind, StreamOptions, Which,
};
