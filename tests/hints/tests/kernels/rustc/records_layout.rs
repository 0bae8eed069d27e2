//! A record is judged by the structure, whatever the names around it and the words of its attributes say.
#![deny(unsafe_code)]

/// Takes every type for plain data, beside the library's own macro.
mod by_macro {
    pub mod kernel {
        pub mod codegen {
            pub use gpumem::kernel::codegen::*;
            pub trait Element {}
            impl<T> Element for T {}
        }
    }
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[gpumem(crate = by_macro)]
#[repr(C)]
struct ByMacro {
    to: &'static u64,
}

/// A module with the name that expansions use.
mod __gpumem {
    pub mod bytemuck {
        pub mod __core {
            pub mod primitive {
                #[allow(non_camel_case_types)]
                pub type u64 = &'static ::core::primitive::u64;
            }
        }
    }
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
struct Hidden {
    to: __gpumem::bytemuck::__core::primitive::u64,
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C, r#packed)]
struct Packed {
    a: u8,
    b: u32,
}

/// The library's macros by hand: a field or a variant that is left out, and other numbers.
struct Three {
    a: u32,
    b: &'static u32,
}

impl Copy for Three {}

impl Clone for Three {
    fn clone(&self) -> Self {
        *self
    }
}

gpumem::kernel::codegen::device_record! { Three { a } }

#[derive(Clone, Copy, PartialEq)]
#[repr(u32)]
enum Wide {
    A,
    B = 256,
}

gpumem::kernel::codegen::device_enum! { Wide u8 A { A B } }

#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
enum Unsigned {
    A = 200,
}

gpumem::kernel::codegen::device_enum! { Unsigned i8 A { A } }

#[derive(Clone, Copy, PartialEq)]
#[repr(u32)]
enum Two {
    A,
    B = 256,
}

gpumem::kernel::codegen::device_enum! { Two u8 A { A } }

/// A field without bytes.
#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
struct Nothing {
    a: u32,
    none: [u32; 0],
}

fn main() {}
