//! What stands beside the programs of `rustc/origin.rs` and `own_kept.rs` of `gpumem-hints`: the same with gpumem itself.
#![forbid(unsafe_code)]
#![deny(warnings)]

use gpumem::kernel::prelude::*;

/// A path to gpumem that is not `::gpumem`.
mod facade {
    pub mod kernel {
        pub use gpumem::kernel::*;
    }
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[gpumem(crate = facade)]
#[repr(C)]
pub struct Plain {
    pub v: u32,
    pub near: [u16; 2],
}

#[derive(Clone, Copy, PartialEq, gpumem::DeviceRecord)]
#[gpumem(crate = facade)]
#[repr(u8)]
pub enum Kind {
    Even,
    Odd,
}

/// A record of one, with a field whose name C++ has for itself.
#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
pub struct Outer {
    pub float: Plain,
    pub r#struct: u64,
}

/// A module with the name that expansions use is in no one's way.
mod __gpumem {
    pub type Real = u32;
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
pub struct Hidden {
    pub v: __gpumem::Real,
}

#[gpumem::device(crate = facade)]
fn one(x: u32) -> u32 {
    x + 1u32
}

#[gpumem::kernel(crate = facade, name = "read_parts")]
pub fn reads(x: Slice<Plain>, y: Own<u32>) {
    let kind = if x[0].v > 3 { Kind::Odd } else { Kind::Even };
    if kind == Kind::Odd {
        y[own()] = one(x[0].v) + x[0].near[1] as u32;
    }
}

/// A function of kernels takes an index.
#[gpumem::device]
fn first(at: OwnId<'_, 1>, y: Own<u32>) -> u32 {
    y[at] + at[0] as u32
}

#[gpumem::kernel]
pub fn by_function(y: Own<u32>) {
    let at = own();
    y[at] = first(at, y);
}
