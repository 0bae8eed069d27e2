//! The host backend of gpumem: the device model on the CPU.
//!
//! Devices of this backend have memory of their own, separate from the caller's arrays; streams that run
//! asynchronously and at the same time; events, registered and managed memory, and kernels that are functions. It is
//! always available. It is also the backend on which programs are tested:
//!
//! * **[`Schedule::Adversarial`]** runs streams in a random legal order, as late and in as many pieces as the ordering
//!   of the program allows. A missing event shows on any machine, and again with the same seed.
//! * **Memory checks.** Every command is checked against the table of live allocations when it runs. One that touches
//!   released memory does not run, and its stream faults.
//! * **[`Injection`]** makes a later call fail; [`Device::lose`] loses the device; [`Device::counters`] counts.
//!
//! # Faults
//! A command that fails when it runs (a kernel that returns an error or panics, memory that was released) is an
//! [`ErrorKind::AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault). The stream goes on. The failure of a command of
//! the runtime is noted at its [submission](gpumem_core::SubmissionId), and the rest of that submission does not run. Any other
//! failure is an error of the next wait for the stream or the device, and each time of events recorded after it until then. A stream
//! that waits for such an event is ordered after it and goes on.
//!
//! The data carry the failure over. If a command fails, the bytes that it was to write are noted in
//! [`POISONED`](gpumem_core::POISONED), with the first failure. A command that uses such bytes does not run and fails
//! for the same reason. The runtime says which memory a command uses: it enqueues inside
//! [`with_uses`](gpumem_core::with_uses). A copy or a fill that succeeds clears the bytes that it has written.
//!
//! A launch of a graph is one command. Of its nodes, those that depend on one that has failed do not run, and fail for its reason; the
//! others run.
//!
//! # Environment
//! `GPUMEM_HOST_DEVICES`, `GPUMEM_HOST_MEMORY` and `GPUMEM_HOST_SEED` set up the devices that
//! [`open`](gpumem_core::Backend::open) gives out; see [`HostOptions`].
#![cfg_attr(docsrs, feature(doc_cfg))]

mod asan;
mod backend;
mod barrier;
mod buffer;
mod copy;
mod counters;
mod device;
mod engine;
mod error;
mod event;
mod graph;
mod inject;
mod memory;
mod module;
mod options;
mod probe;
mod process;
mod stream;
mod sync;
#[cfg(all(test, not(miri)))]
mod tests;

pub use barrier::HostBarrier;
pub use buffer::Buffer;
pub use counters::Counters;
pub use device::Device;
pub use engine::Step;
pub use event::Event;
pub use inject::{Injection, Operation};
pub use module::{Kernel, Module};
pub use options::{DEVICES_VARIABLE, HostOptions, MEMORY_VARIABLE, SEED_VARIABLE, Schedule};
pub use stream::Stream;

/// The name of this backend.
pub(crate) const NAME: &str = "host";

/// The host backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Host;
