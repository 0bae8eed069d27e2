//! Traits that put text into kernels are `unsafe` to implement.
#![deny(unsafe_code)]

use gpumem::kernel::{
    DeviceConst,
    codegen::{Calls, DeviceFunction, DeviceType, E, PrintedProgram, S},
};

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
struct Record {
    x: u32,
}

impl DeviceConst for Record {
    fn literal(&self) -> String {
        "({ *(volatile int*)0 = 42; records::Record{7}; })".to_owned()
    }
}

/// Compares itself with numbers.
#[derive(Clone, Copy, PartialEq, gpumem::DeviceRecord)]
#[repr(u32)]
enum Mode {
    On,
}

impl PartialEq<u32> for Mode {
    fn eq(&self, _: &u32) -> bool {
        false
    }
}

impl gpumem::kernel::codegen::Alike<u32> for Mode {}

enum Evil {}

impl DeviceFunction for Evil {
    type Pointer = fn(u32) -> u32;
    fn pointer() -> fn(u32) -> u32 {
        |x| x
    }
    fn program(_: &Calls<'_>) -> PrintedProgram {
        static BODY: &[S] = &[S::Do(&E::Var("*(volatile int*)0 = 42"))];
        PrintedProgram {
            name: "evil",
            file: "",
            parameters: vec![],
            result: <u32 as DeviceType>::device_type(),
            types: vec![],
            variables: vec![],
            constants: vec![],
            functions: vec![],
            body: BODY,
        }
    }
}

fn main() {}
