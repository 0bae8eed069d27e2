//! Programs that must not compile: what is behind a handle is not for safe code. Each stands beside one that compiles.
//!
//! # A fill borrows the array mutably, and stays inside
//! ```
//! # let device = gpumem::Device::open("host")?; let stream = device.stream()?;
//! let mut array = stream.to_device(&[1u8; 16])?;
//! array.fill(7)?;
//! # Ok::<(), gpumem::Error>(())
//! ```
//! ```compile_fail,E0433
//! # let device = gpumem::Device::open("host")?; let stream = device.stream()?;
//! let array = stream.to_device(&[1u8; 16])?;
//! gpumem::generic::internal::fill(stream.timeline(), "", array.place(), 7u8)?;
//! # Ok::<(), gpumem::Error>(())
//! ```
//!
//! # A log of uses is emptied by the library alone
//! ```
//! # let device = gpumem::Device::open("host")?; let stream = device.stream()?;
//! let array = stream.to_device(&[1u8; 16])?;
//! array.copy_to_host()?;
//! # Ok::<(), gpumem::Error>(())
//! ```
//! ```compile_fail,E0624
//! # let device = gpumem::Device::open("host")?; let stream = device.stream()?;
//! let array = stream.to_device(&[1u8; 16])?;
//! array.place().memory.log().drain_all(|_, _| ());
//! # Ok::<(), gpumem::Error>(())
//! ```
//!
//! # Poison is forgotten by work that writes
//! ```
//! # let device = gpumem::Device::open("host")?; let stream = device.stream()?;
//! let mut array = stream.to_device(&[1u8; 16])?;
//! array.fill(7)?;
//! # Ok::<(), gpumem::Error>(())
//! ```
//! ```compile_fail,E0624
//! # let device = gpumem::Device::open("host")?; let stream = device.stream()?;
//! let array = stream.to_device(&[1u8; 16])?;
//! array.place().memory.forget_poison();
//! # Ok::<(), gpumem::Error>(())
//! ```
//!
//! # A graph writes no page-locked array that it was given to read
//! ```
//! # let device = gpumem::Device::open("host")?; let x = device.to_device(&[1u8; 4])?;
//! let mut pinned = device.pinned_array::<u8, _>(4)?;
//! device.record((&x, &mut pinned), |stream, (x, mut pinned)| stream.copy_to_host_into(&x, &mut pinned))?;
//! # Ok::<(), gpumem::Error>(())
//! ```
//! ```compile_fail,E0596
//! # let device = gpumem::Device::open("host")?; let x = device.to_device(&[1u8; 4])?;
//! let pinned = device.pinned_array::<u8, _>(4)?;
//! device.record((&x, &pinned), |stream, (x, mut pinned)| stream.copy_to_host_into(&x, &mut pinned))?;
//! # Ok::<(), gpumem::Error>(())
//! ```
//!
//! # Safe code does not keep the work of a driver's stream from running
//! ```
//! # use gpumem_core::{CaptureStart, DriverDevice, Stream as _};
//! # let device = gpumem::Device::open("host")?;
//! let stream = device.raw().create_stream(&gpumem::StreamOptions::default())?;
//! // SAFETY: no other code has the stream.
//! assert_eq!(unsafe { stream.begin_capture() }?, CaptureStart::Begun);
//! stream.end_capture(false)?;
//! # Ok::<(), gpumem::Error>(())
//! ```
//! ```compile_fail,E0133
//! # use gpumem_core::{CaptureStart, DriverDevice, Stream as _};
//! # let device = gpumem::Device::open("host")?;
//! let stream = device.raw().create_stream(&gpumem::StreamOptions::default())?;
//! assert_eq!(stream.begin_capture()?, CaptureStart::Begun);
//! stream.end_capture(false)?;
//! # Ok::<(), gpumem::Error>(())
//! ```
//!
//! # A stream ends when it is dropped
//! ```
//! # let device = gpumem::Device::open("host")?; let stream = device.stream()?;
//! drop(stream);
//! # Ok::<(), gpumem::Error>(())
//! ```
//! ```compile_fail,E0624
//! # let device = gpumem::Device::open("host")?; let stream = device.stream()?;
//! stream.timeline().end();
//! # Ok::<(), gpumem::Error>(())
//! ```
//!
//! # A generation ends with a reset, which is unsafe
//! ```
//! # let device = gpumem::Device::open("host")?; let stream = device.stream()?;
//! device.synchronize()?;
//! # Ok::<(), gpumem::Error>(())
//! ```
//! ```compile_fail,E0624
//! # let device = gpumem::Device::open("host")?; let stream = device.stream()?;
//! device.core().next_generation();
//! # Ok::<(), gpumem::Error>(())
//! ```
//!
//! # Safe code makes no key
//! ```
//! # let device = gpumem::Device::open("host")?; let stream = device.stream()?;
//! device.core_by(unsafe { gpumem_runtime::internal::Key::new() });
//! # Ok::<(), gpumem::Error>(())
//! ```
//! ```compile_fail,E0133
//! # let device = gpumem::Device::open("host")?; let stream = device.stream()?;
//! device.core_by(gpumem_runtime::internal::Key::new());
//! # Ok::<(), gpumem::Error>(())
//! ```
//!
//! # A resource does not reach the device by a request
//! ```
//! # let device = gpumem::Device::open("host")?; let stream = device.stream()?;
//! let request = device.memory_request(16, gpumem::MemoryKind::Device);
//! assert_eq!(request.bytes, 16);
//! # Ok::<(), gpumem::Error>(())
//! ```
//! ```compile_fail,E0616
//! # let device = gpumem::Device::open("host")?; let stream = device.stream()?;
//! let request = device.memory_request(16, gpumem::MemoryKind::Device);
//! request.core.next_generation();
//! # Ok::<(), gpumem::Error>(())
//! ```
//!
//! # A work-item has no variable that is larger than its memory
//! ```
//! #[gpumem::kernel]
//! fn first(x: gpumem::kernel::Own<f32>) {
//!     let window = [0.0f32; 131_072];
//!     x[own()] = window[0];
//! }
//! drop(first());
//! ```
//! ```compile_fail,E0080
//! #[gpumem::kernel]
//! fn first(x: gpumem::kernel::Own<f32>) {
//!     let window = [0.0f32; 131_073];
//!     x[own()] = window[0];
//! }
//! drop(first());
//! ```
