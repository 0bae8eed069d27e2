//! A simulated AMD GPU under AMD's unmodified user-space ROCm libraries.
//!
//! The shared library of this package replaces `libhsakmt.so.1`, the library through which AMD's HSA runtime talks to
//! the kernel driver. The HSA runtime and HIP above it are AMD's own; this package simulates the hardware below them:
//! memory with checked mappings, DMA engines, command processors, events. See the package's README for how it is used
//! and what it proves.
//!
//! The Rust interface is for tests only: the binary interface ([`abi`]), the types of kernel bodies
//! ([`kernels::registry`]), and what of AMD's packages is there ([`installed`]).
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

pub mod abi;
mod config;
mod engine;
mod events;
mod exports;
pub mod installed;
mod isa;
pub mod kernels;
pub mod kfd;
mod memory;
mod stats;
#[cfg(test)]
mod tests;
mod topology;
