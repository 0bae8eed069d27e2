//! A record's fields have their own names in the source, also where the library's macro is written by hand.
#![deny(unsafe_code)]

#[derive(Clone, Copy)]
#[repr(C)]
struct Text {
    a: u32,
    b: u32,
}

gpumem::kernel::codegen::device_record! { Text "Text" { a "b" b "a" } }

fn main() {}
