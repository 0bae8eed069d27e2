//! Traits that put text into kernels are `unsafe` to implement.
#![deny(unsafe_code)]

use gpumem::kernel::{
    DeviceConst, UnaryFunction,
    codegen::{Answer, Calls, DeviceFunction, DeviceType, E, PrintedProgram, S, Witness},
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

enum Evil {}

impl DeviceFunction for Evil {
    fn program(_: &Calls<'_>) -> PrintedProgram {
        static BODY: &[S] = &[S::Do(&E::Var("*(volatile int*)0 = 42"))];
        PrintedProgram {
            name: "evil",
            file: "",
            parameters: vec![],
            result: <u32 as DeviceType>::device_type(),
            types: vec![],
            constants: vec![],
            functions: vec![],
            body: BODY,
        }
    }
}

impl UnaryFunction<u32> for Evil {
    type Output = u32;
    fn __call(_: &Witness<Self>, _: u32) -> Answer<Self, u32> {
        loop {}
    }
}

fn main() {}
