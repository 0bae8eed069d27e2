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

pub use gpumem_core::{
    Backend, BarrierScope, CLK_GLOBAL_MEM_FENCE, CLK_LOCAL_MEM_FENCE, Capabilities, DeviceInfo,
    DeviceSelector, Element, Error, ErrorKind, LayoutError, LoadError, LoadFailure, MemoryInfo, MemoryKind,
    Result, Which,
};
