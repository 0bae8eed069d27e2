//! Properties of HIP that programs rely on, tested on a device.
//!
//! The same program runs twice: on the library of this package over an NVIDIA GPU, and on AMD's own library over a
//! simulated GPU, which shows that the tests expect HIP's own behaviour. The README lists where the two differ; the
//! tests do not test that.
//!
//! It is a separate program: with `libhip_on_cuda.so` beside it, it runs on a machine without Rust.
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
