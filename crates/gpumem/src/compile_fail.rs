//! Programs that must not compile: what is behind a handle is not for safe code. Each stands beside one that compiles.
//!
//! # A fill borrows the array mutably, and stays inside
//! ```
//! # use gpumem::Device;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let stream = device.stream()?;
//! let mut array = stream.to_device(&[1u8; 16])?;
//! array.fill(7)?;
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0433
//! # use gpumem::Device;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let stream = device.stream()?;
//! let array = stream.to_device(&[1u8; 16])?;
//! gpumem::generic::internal::fill(stream.timeline(), "", array.place(), 7u8)?;
//! # Ok(())
//! # }
//! ```
//!
//! # A log of uses is emptied by the library alone
//! ```
//! # use gpumem::Device;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let stream = device.stream()?;
//! let array = stream.to_device(&[1u8; 16])?;
//! array.copy_to_host()?;
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0624
//! # use gpumem::Device;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let stream = device.stream()?;
//! let array = stream.to_device(&[1u8; 16])?;
//! array.place().memory.log().drain_all(|_, _| ());
//! # Ok(())
//! # }
//! ```
//!
//! # Poison is forgotten by work that writes
//! ```
//! # use gpumem::Device;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let stream = device.stream()?;
//! let mut array = stream.to_device(&[1u8; 16])?;
//! array.fill(7)?;
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0624
//! # use gpumem::Device;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let stream = device.stream()?;
//! let array = stream.to_device(&[1u8; 16])?;
//! array.place().memory.forget_poison();
//! # Ok(())
//! # }
//! ```
//!
//! # A stream ends when it is dropped
//! ```
//! # use gpumem::Device;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let stream = device.stream()?;
//! drop(stream);
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0624
//! # use gpumem::Device;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let stream = device.stream()?;
//! stream.timeline().end();
//! # Ok(())
//! # }
//! ```
//!
//! # A generation ends with a reset, which is unsafe
//! ```
//! # use gpumem::Device;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let stream = device.stream()?;
//! device.synchronize()?;
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0624
//! # use gpumem::Device;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let stream = device.stream()?;
//! device.core().next_generation();
//! # Ok(())
//! # }
//! ```
//!
//! # Safe code makes no key
//! ```
//! # use gpumem::Device;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let stream = device.stream()?;
//! device.core_by(unsafe { gpumem_runtime::internal::Key::new() });
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0133
//! # use gpumem::Device;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let stream = device.stream()?;
//! device.core_by(gpumem_runtime::internal::Key::new());
//! # Ok(())
//! # }
//! ```
//!
//! # A resource does not reach the device by a request
//! ```
//! # use gpumem::Device;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let stream = device.stream()?;
//! let request = device.memory_request(16, gpumem::MemoryKind::Device);
//! assert_eq!(request.bytes, 16);
//! # Ok(())
//! # }
//! ```
//! ```compile_fail,E0616
//! # use gpumem::Device;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let stream = device.stream()?;
//! let request = device.memory_request(16, gpumem::MemoryKind::Device);
//! request.core.next_generation();
//! # Ok(())
//! # }
//! ```
