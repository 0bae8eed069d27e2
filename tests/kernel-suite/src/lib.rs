//! The kernels that ship, in one place.
//!
//! Each kernel is a Rust function in `crates/gpumem/examples/kernels`, where users read it. Two are also in
//! [`from_source`], with a source in C++ and a body for the host. The examples and this crate compile the same files.
//! This crate adds the tests of each kernel, [`ShippedKernel`]: problems, a plain reference, and the launch.
//!
//! * The conformance suite makes a case of every kernel of [`visit`]: host body, device and reference must agree.
//! * The tests of the compilers compile every kernel of [`all`] with the real NVRTC and hipRTC.
//! * Simulators of a GPU find the host bodies there by name ([`Shipped::entry`]).
//!
//! Problems are chosen so that every device computes the same bits whatever the order of operations: integers, or
//! floating-point numbers whose products and sums are exact.

// The kernels' files name `gpumem`, as a user's do. Here that name means this crate.
extern crate self as gpumem;

pub use gpumem_core::BarrierScope;
pub use gpumem_kernel as kernel;
pub use gpumem_macros::{DeviceRecord, device, kernel};

pub mod by_hand;
mod cases;
pub mod from_source;
mod inputs;
mod list;
mod shipped;

pub use cases::*;
pub use list::{Visitor, all, visit};
pub use shipped::{Shipped, ShippedKernel};

#[path = "../../../crates/gpumem/examples/kernels/convolution.rs"]
pub mod convolution;
#[path = "../../../crates/gpumem/examples/kernels/histogram.rs"]
pub mod histogram;
#[path = "../../../crates/gpumem/examples/kernels/matmul.rs"]
pub mod matmul;
#[path = "../../../crates/gpumem/examples/kernels/reduce.rs"]
pub mod reduce;
#[path = "../../../crates/gpumem/examples/kernels/saxpy.rs"]
pub mod saxpy;
#[path = "../../../crates/gpumem/examples/kernels/scan.rs"]
pub mod scan;
#[path = "../../../crates/gpumem/examples/kernels/stencil.rs"]
pub mod stencil;
#[path = "../../../crates/gpumem/examples/kernels/transpose.rs"]
pub mod transpose;
#[path = "../../../crates/gpumem/examples/kernels/update.rs"]
pub mod update;
