//! A program in which `core`, the names of the prelude, and macros are its own: expansions mean those of the library.
#![forbid(unsafe_code)]
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, reason = "a program of a user")]

extern crate self as core;

use gpumem::{
    Device,
    kernel::{InOut, codegen::E, config_for_items, prelude::*},
};

#[macro_export]
macro_rules! assert {
    ($($any:tt)*) => {};
}

pub mod mem {
    #[macro_export]
    macro_rules! other_offset {
        ($($any:tt)*) => {
            1 << 20
        };
    }
    pub use crate::other_offset as offset_of;

    pub fn size_of<T>() -> usize {
        0
    }

    pub fn align_of<T>() -> usize {
        1
    }
}

/// Takes the value from a declaration.
#[allow(non_snake_case, dead_code)]
const fn Some(_: &'static E) -> std::option::Option<&'static E> {
    std::option::Option::None
}

#[gpumem::kernel]
fn asserts(y: Own<u32>) {
    let i = global_id(0);
    if i < y.len() {
        let mut told = y[own()];
        told += 1;
        assert!(told < 3, "{told}");
        y[own()] = 7;
    }
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
struct Pair {
    a: u32,
    b: u32,
}

#[test]
fn the_names_of_the_library_are_meant() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    let mut y = [9u32];
    let kernel = asserts();
    std::assert!(kernel.source_text().unwrap().contains("u32 told_ = "));
    let launched = kernel.load(&device).unwrap().launch(&stream, &config_for_items(1, 1), (InOut(&mut y),));
    let error = launched.and_then(|()| stream.synchronize()).unwrap_err().to_string();
    std::assert!(error.contains("10"), "{error}");
    std::assert_eq!(gpumem::field!(Pair, b).offset(), 4);
}
