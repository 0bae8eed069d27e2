//! Kernels: one portable source for CUDA and ROCm, one body for the host.

mod source;

pub use gpumem_simt::{
    Atomic, Constant, Ids, Indices, Local, Number, Parameters, Shared, Slice, SliceMut, Value, View, ViewMut,
    WorkItem,
};
pub use source::{PRELUDE, cover, portable_text};
