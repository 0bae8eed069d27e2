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

/// The library's macro by hand: a field that is left out, and text for the source.
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

gpumem::kernel::codegen::device_record! { Three "Three" { a "a" } }

#[derive(Clone, Copy)]
#[repr(C)]
struct Text {
    a: u32,
}

gpumem::kernel::codegen::device_record! { Text "Text { u32 a; }; int x" { a "a" } }

fn main() {}
