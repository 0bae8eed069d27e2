//! The names for kernels that are written in Rust: `use gpumem::kernel::prelude::*;`.
//!
//! The words of kernels, as `global_id(0)` and `barrier(Local)`, need no import: the attribute knows them.

pub use super::{
    Constant, ConstantArray, Numeric, Own, OwnId, OwnView, Slice, SliceMut, Value, View, ViewMut,
};
pub use gpumem_core::BarrierScope::{Both, Global, Local};
