//! Programs that must not compile. Each stands beside a variant that compiles.
//!
//! # Work is enqueued through the gate
//! ```
//! # use {gpumem_core::{Backend, CopyRegion, Result, Stream as _}, gpumem_memory::track::*, std::sync::Arc};
//! fn copy<B: Backend>(
//!     timeline: &Arc<Timeline<B>>,
//!     accesses: &[Access<'_, B>],
//!     region: &CopyRegion,
//! ) -> Result<u64> {
//!     let admitted = timeline.admit(Work::Transfer, "copy", accesses)?;
//!     // SAFETY: the region lies in the memory of the accesses.
//!     let submitted = admitted.submit(|raw, _| unsafe { raw.copy(region) })?;
//!     Ok(submitted.submission)
//! }
//! ```
//! Without it there is no stream of the driver's.
//! ```compile_fail,E0624
//! # use {gpumem_core::{Backend, CopyRegion, Result, Stream as _}, gpumem_memory::track::*, std::sync::Arc};
//! fn copy<B: Backend>(
//!     timeline: &Arc<Timeline<B>>,
//!     accesses: &[Access<'_, B>],
//!     region: &CopyRegion,
//! ) -> Result<()> {
//!     // SAFETY: the region lies in the memory of the accesses.
//!     timeline.with_raw("copy", |raw| unsafe { raw.copy(region) })
//! }
//! ```
//! The handle for other libraries is none.
//! ```compile_fail,E0599
//! # use {gpumem_core::{Backend, CopyRegion, Result, Stream as _}, gpumem_memory::track::*, std::sync::Arc};
//! fn copy<B: Backend>(
//!     timeline: &Arc<Timeline<B>>,
//!     accesses: &[Access<'_, B>],
//!     region: &CopyRegion,
//! ) -> Result<()> {
//!     let raw = timeline.handle("copy")?;
//!     // SAFETY: the region lies in the memory of the accesses.
//!     unsafe { raw.copy(region) }
//! }
//! ```
//! Nor can an operation say itself that it has been admitted,
//! ```compile_fail,E0451
//! # use {gpumem_core::{Backend, CopyRegion, Result, Stream as _}, gpumem_memory::track::*, std::sync::Arc};
//! fn copy<B: Backend>(
//!     timeline: &Arc<Timeline<B>>,
//!     accesses: &[Access<'_, B>],
//!     region: &CopyRegion,
//! ) -> Result<u64> {
//!     let admitted = Admitted { timeline, work: Work::Transfer, operation: "copy", accesses };
//!     // SAFETY: the region lies in the memory of the accesses.
//!     let submitted = admitted.submit(|raw, _| unsafe { raw.copy(region) })?;
//!     Ok(submitted.submission)
//! }
//! ```
//! nor use it twice.
//! ```compile_fail,E0382
//! # use {gpumem_core::{Backend, CopyRegion, Result, Stream as _}, gpumem_memory::track::*, std::sync::Arc};
//! fn copy<B: Backend>(
//!     timeline: &Arc<Timeline<B>>,
//!     accesses: &[Access<'_, B>],
//!     region: &CopyRegion,
//! ) -> Result<u64> {
//!     let admitted = timeline.admit(Work::Transfer, "copy", accesses)?;
//!     // SAFETY: the region lies in the memory of the accesses.
//!     admitted.submit(|raw, _| unsafe { raw.copy(region) })?;
//!     // SAFETY: as above.
//!     let submitted = admitted.submit(|raw, _| unsafe { raw.copy(region) })?;
//!     Ok(submitted.submission)
//! }
//! ```
//!
//! # Work in place is declared with both of its uses
//! ```
//! # use {gpumem_core::Backend, gpumem_memory::track::{Access, Tracked}};
//! fn uses<B: Backend>(memory: &Tracked<B>) -> [Access<'_, B>; 2] {
//!     Access::in_place(memory, 0..8, 0..8)
//! }
//! ```
//! One of them alone cannot be.
//! ```compile_fail,E0451
//! # use {gpumem_core::Backend, gpumem_memory::track::{Access, Tracked}};
//! fn uses<B: Backend>(memory: &Tracked<B>) -> [Access<'_, B>; 2] {
//!     let read = Access::read(memory, 0..8);
//!     [Access { in_place: true, ..read }, Access::write(memory, 0..8)]
//! }
//! ```
