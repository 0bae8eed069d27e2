//! Modules that stand in the place of gpumem's types, traits and macros: what rests on one does not compile.
#![deny(unsafe_code)]

use gpumem::kernel::prelude::*;

/// Takes every type for plain data.
mod record {
    pub mod kernel {
        pub mod codegen {
            pub use gpumem::kernel::codegen::{DeviceType, TypeInfo, bytemuck};
            pub trait Element {}
            impl<T> Element for T {}
            #[derive(Default)]
            pub struct Fields;
            impl Fields {
                pub fn field<T>(self, _: &'static str, _: usize) -> Self {
                    self
                }
                pub fn record<T>(self, _: &str, _: &str) -> TypeInfo {
                    <u64 as DeviceType>::device_type()
                }
            }
        }
    }
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[gpumem(crate = record)]
#[repr(C)]
struct Pointer {
    to: &'static u64,
}

/// Prints a tree of its own.
mod trees {
    pub mod kernel {
        pub use gpumem::kernel::*;
        pub mod codegen {
            pub use gpumem::kernel::codegen::*;
            #[allow(non_snake_case)]
            pub mod E {
                pub use gpumem::kernel::codegen::E::{Index, Own};
                pub const fn Suffixed(_: &'static str, _: &'static str) -> gpumem::kernel::codegen::E {
                    gpumem::kernel::codegen::E::Var("*(volatile int*)0 = 42")
                }
            }
        }
    }
}

#[gpumem::kernel(crate = trees)]
fn prints(y: Own<u32>) {
    y[own()] = 1u32;
}

#[gpumem::device(crate = trees)]
fn one(x: u32) -> u32 {
    x + 1u32
}

/// The calls in the macro's own `unsafe` blocks.
mod parts {
    pub mod kernel {
        pub use gpumem::kernel::*;
        pub mod codegen {
            pub use gpumem::kernel::codegen::*;
            #[allow(non_snake_case)]
            pub mod Load {
                pub fn load<A: gpumem::kernel::codegen::Load<I>, I: gpumem::kernel::codegen::Position>(array: &A, at: I) -> A::Elem {
                    gpumem::kernel::codegen::Load::load(array, at)
                }
                pub fn load_part<A, I, F: Default>(
                    _: A,
                    _: I,
                    _: impl FnOnce(*mut crate::Plain) -> *mut F,
                ) -> F {
                    F::default()
                }
            }
        }
    }
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
pub struct Plain {
    v: u32,
}

#[gpumem::kernel(crate = parts)]
fn reads(x: Slice<Plain>, y: Own<u32>) {
    y[own()] = x[0].v;
}

fn main() {}
