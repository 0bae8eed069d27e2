//! Safe code relies on a backend's promises about memory and work, so its traits are `unsafe`.
//!
//! # A block of memory
//! ```
//! # use gpumem_core::{DeviceBuffer, MemoryKind};
//! # use std::ptr::NonNull;
//! #[derive(Debug)]
//! struct Block(Box<[u8]>);
//! // SAFETY: the addresses are those of memory of the block's own.
//! unsafe impl DeviceBuffer for Block {
//!     fn address(&self) -> u64 {
//!         self.0.as_ptr() as u64
//!     }
//!     fn host_address(&self) -> Option<NonNull<u8>> {
//!         None
//!     }
//!     fn len(&self) -> usize {
//!         self.0.len()
//!     }
//!     fn kind(&self) -> MemoryKind {
//!         MemoryKind::Pinned
//!     }
//! }
//! ```
//! Without the word an address that is none would be read.
//! ```compile_fail,E0200
//! # use gpumem_core::{DeviceBuffer, MemoryKind};
//! # use std::ptr::NonNull;
//! #[derive(Debug)]
//! struct Liar;
//! impl DeviceBuffer for Liar {
//!     fn address(&self) -> u64 {
//!         0x1000
//!     }
//!     fn host_address(&self) -> Option<NonNull<u8>> {
//!         NonNull::new(0x1000 as *mut u8)
//!     }
//!     fn len(&self) -> usize {
//!         400
//!     }
//!     fn kind(&self) -> MemoryKind {
//!         MemoryKind::Pinned
//!     }
//! }
//! ```
//!
//! # A device, a stream, an event, a barrier, a module and the backend itself
//! The lists of functions are left out: only the word `unsafe` is missing here.
//! ```compile_fail,E0200
//! #[derive(Debug, Clone)]
//! struct Liar;
//! impl gpumem_core::Stream<gpumem_host::Host> for Liar {}
//! ```
//! ```compile_fail,E0046
//! #[derive(Debug, Clone)]
//! struct Liar;
//! unsafe impl gpumem_core::Stream<gpumem_host::Host> for Liar {}
//! ```
//! ```compile_fail,E0200
//! #[derive(Debug, Clone)]
//! struct Liar;
//! impl gpumem_core::Event for Liar {}
//! ```
//! ```compile_fail,E0046
//! #[derive(Debug, Clone)]
//! struct Liar;
//! unsafe impl gpumem_core::Event for Liar {}
//! ```
//! ```compile_fail,E0200
//! #[derive(Debug, Clone)]
//! struct Liar;
//! impl gpumem_core::Barrier for Liar {}
//! ```
//! ```compile_fail,E0046
//! #[derive(Debug, Clone)]
//! struct Liar;
//! unsafe impl gpumem_core::Barrier for Liar {}
//! ```
//! ```compile_fail,E0200
//! #[derive(Debug, Clone)]
//! struct Liar;
//! impl gpumem_core::Backend for Liar {}
//! ```
//! ```compile_fail,E0046
//! #[derive(Debug, Clone)]
//! struct Liar;
//! unsafe impl gpumem_core::Backend for Liar {}
//! ```
//! ```compile_fail,E0200
//! #[derive(Debug, Clone)]
//! struct Liar;
//! impl gpumem_core::DriverDevice<gpumem_host::Host> for Liar {}
//! ```
//! ```compile_fail,E0046
//! #[derive(Debug, Clone)]
//! struct Liar;
//! unsafe impl gpumem_core::DriverDevice<gpumem_host::Host> for Liar {}
//! ```
//! ```compile_fail,E0200
//! #[derive(Debug, Clone)]
//! struct Liar;
//! impl gpumem_core::DriverModule<gpumem_host::Host> for Liar {}
//! ```
//! ```compile_fail,E0046
//! #[derive(Debug, Clone)]
//! struct Liar;
//! unsafe impl gpumem_core::DriverModule<gpumem_host::Host> for Liar {}
//! ```
