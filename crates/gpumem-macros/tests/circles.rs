//! Functions of kernels that lead to calls of themselves: no device loads their kernels, and nothing runs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(unconditional_recursion, reason = "it is what is refused")]

use gpumem::{
    Device, ErrorKind,
    kernel::{KernelDef, UnaryFunction, config_for_items, prelude::*},
};
use gpumem_cuda::Cuda;
use gpumem_roc::Roc;

#[gpumem::device]
fn even(n: u32) -> u32 {
    if n == 0 { 1 } else { odd(n - 1) }
}

use even as not_odd;

#[gpumem::device]
fn odd(n: u32) -> u32 {
    if n == 0 { 0 } else { not_odd(n - 1) }
}

#[gpumem::device]
fn alone(n: u32) -> u32 {
    self::alone(n + 1)
}

#[gpumem::device]
fn through<F: UnaryFunction<u32, Output = u32> + 'static>(n: u32) -> u32 {
    F(n)
}

#[gpumem::device]
fn given(n: u32) -> u32 {
    through::<given>(n)
}

/// Called twice, and by one that is called: no circle.
#[gpumem::device]
fn next(n: u32) -> u32 {
    n + 1
}

#[gpumem::device]
fn after_next(n: u32) -> u32 {
    through::<next>(next(n))
}

macro_rules! kernels {
    ($($name:ident $function:ident,)*) => {$(
        #[gpumem::kernel]
        fn $name(y: Own<u32>) {
            y[own()] = next($function(y[own()]));
        }
    )*};
}
kernels!(of_even even, of_odd odd, of_alone alone, of_given given, of_next after_next,);

#[track_caller]
fn refused(declaration: &KernelDef<(Own<u32>,)>, function: &str) {
    let device = Device::open("host").unwrap();
    let errors = [
        declaration.load(&device).unwrap_err(),
        declaration.clone().load(&device).unwrap_err(),
        declaration.compile_with::<Cuda>("sm_90").unwrap_err(),
        declaration.compile_with::<Roc>("gfx90a").unwrap_err(),
    ];
    for error in errors {
        let ErrorKind::Build { log } = error.kind() else { panic!("{error}") };
        assert!(log.contains(function), "{log}");
    }
}

#[test]
fn a_kernel_whose_functions_call_in_a_circle_is_refused() {
    refused(&of_even(), "::even");
    refused(&of_odd(), "::odd");
    refused(&of_alone(), "::alone");
    refused(&of_given(), "::given");
}

#[test]
fn functions_are_called_from_several_places() {
    let device = Device::open("host").unwrap();
    let stream = device.stream().unwrap();
    let mut y = stream.to_device(&[1u32, 2]).unwrap();
    of_next().load(&device).unwrap().launch(&stream, &config_for_items(2, 2), (&mut y,)).unwrap();
    assert_eq!(y.copy_to_host().unwrap().to_vec(), [4, 5]);
}
