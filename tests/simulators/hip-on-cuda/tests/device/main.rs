//! What a program may expect of HIP, on a device.
//!
//! The same program runs twice: on the library of this package over an NVIDIA GPU, and on AMD's own library over a
//! simulated GPU, which shows that what it expects is HIP's doing and not an invention. Where the two differ, the
//! README says so, and the tests ask neither.
//!
//! It is a program of its own: with `libhip_on_cuda.so` beside it, it runs on a machine without Rust.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic)] // A test that cannot go on has failed.

mod copies;
mod devices;
mod fallback_runner;
mod hip;
mod kernels;
mod memory;
mod order;
mod sharing;
