//! The interface between the runtime and a GPU driver: [`Backend`] names the types, whose traits have the operations.

mod device;
mod event;
mod graph;
mod module;
mod stream;

pub use device::DriverDevice;
pub use event::Event;
pub use graph::{CaptureStart, ExecutableGraph, GraphNode};
pub use module::DriverModule;
pub use stream::Stream;

use crate::{
    Barrier, CompileOptions, DeviceBuffer, DeviceInfo, DeviceSelector, Error, ErrorKind, LoadError, Result,
};
use std::fmt::Debug;

/// The compiler's message about an architecture that it does not compile for.
const ARCHITECTURES: &str = "an architecture of this name";
const HINTS: &str = "hints about managed memory";

/// The answer of a function that a backend lacks.
#[cold]
fn lacks<B: Backend, T>(operation: &'static str, what: &'static str) -> Result<T> {
    Err(Error::new(B::NAME, operation, ErrorKind::Unsupported { what }))
}

/// A driver, as a type. It names the types of its devices, streams, events and buffers, whose traits have the operations:
/// single driver calls.
///
/// # For implementers
/// This holds for the functions of all these traits.
/// * Every function *must* work from any thread, *must* set the driver's current device itself and *must* leave the
///   caller's own as it found it.
/// * No function *may* panic. A function that the driver lacks returns [`ErrorKind::Unsupported`].
/// * Enqueuing functions (`copy`, `copy_strided`, `fill`, `launch`, `record`, `wait`, `prefetch`) *must not* wait for
///   the device where the driver can avoid it, and *must* run in the order in which they were called on one stream.
/// * Nothing is tracked: the runtime above keeps memory alive and orders the streams.
/// * A backend whose device goes on after a failure says so
///   ([`Capabilities::survives_faults`](crate::Capabilities::survives_faults)), and *must* then keep failed work from
///   being built upon: enqueuing functions find in [`current_uses`](crate::current_uses) what the work uses. All other
///   work runs. A failure is noted at its [`SubmissionId`](crate::SubmissionId), if the work has one, and is no error
///   of any wait then.
/// * A device that is lost *must* be reported as [`ErrorKind::DeviceLost`], so that it is not used again.
///
/// # Safety
/// Safe code relies on what a backend says. The traits of its types list what an implementation promises. Beyond that:
/// * The safe functions of all of them touch no memory of the caller's but their arguments, and the unsafe ones ask no more
///   of their caller than they say.
pub unsafe trait Backend: Clone + Debug + Send + Sync + 'static {
    /// The name by which users select this backend (`host`, `cuda`, `roc`).
    const NAME: &'static str;

    /// An open device. Cloning it is cheap and gives the same device.
    type Device: DriverDevice<Self>;
    /// A block of memory.
    type Buffer: DeviceBuffer;
    /// A queue of work.
    type Stream: Stream<Self>;
    /// An event: a recorded position in a stream.
    type Event: Event;
    /// How work-items wait for each other.
    type Barrier: Barrier;
    /// A loaded program.
    type Module: DriverModule<Self>;
    /// One kernel of a module. Keeps its module loaded.
    type Kernel: Clone + Debug + Send + Sync + 'static;

    /// Whether the driver can be used at all. Finds and loads its libraries; called any number of times.
    ///
    /// # Errors
    /// Returns the libraries that were tried, and why none serves.
    fn probe() -> Result<(), LoadError>;

    /// The devices of this backend, without opening one.
    ///
    /// # Errors
    /// Returns [`Load`](crate::ErrorKind::Load) without a driver. A driver without a device gives an empty list.
    fn devices() -> Result<Vec<DeviceInfo>>;

    /// Opens a device. Opening it again gives the same device.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Load`] without a driver, [`ErrorKind::NoSuchDevice`] if none fits
    /// ([`DeviceSelector::choose`]).
    fn open(selector: &DeviceSelector) -> Result<Self::Device>;

    /// Opens the device of a program that names none: the first of this backend, unless the backend has a better rule.
    /// *Must not* fall back to another device when that one cannot be had.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    fn open_default() -> Result<Self::Device> {
        Self::open(&DeviceSelector::ordinal(Self::NAME, 0))
    }

    /// Opens the first device that works, for programs that run on any.
    ///
    /// # Errors
    /// As for [`open`](Self::open), if no device opens.
    fn open_first_available() -> Result<Self::Device> {
        Self::open_default()
    }

    /// Whether [`set_poisoned`](Self::set_poisoned) is to be called.
    const WANTS_POISONING: bool;

    /// Told by the runtime, before a part of a live buffer is allocated to a caller, and after its last use, for memory
    /// checkers: memory that a pool keeps is otherwise no different from memory in use. `address` is the host's where it
    /// can see the memory. Does nothing by default, and *must* do nothing for memory of another backend: a choice among several
    /// tells each of them.
    ///
    /// # Safety
    /// The range lies in a live buffer, and no code reads or writes it before it is allocated again.
    unsafe fn set_poisoned(address: u64, bytes: usize, is_lent: bool) {
        let _ = (address, bytes, is_lent);
    }

    /// Compiles source text for an architecture by its name (`sm_90`, `gfx90a`); this machine needs no such device.
    /// `text` returns the source for a wave size. A name that the compiler does not know is refused before the call,
    /// because some compilers end the process then.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Unsupported`] by default, and for names that are not of this backend. Otherwise as
    /// [`compile`](DriverDevice::compile).
    fn compile_for(
        architecture: &str,
        text: &dyn Fn(u32) -> String,
        options: &CompileOptions,
    ) -> Result<Vec<u8>> {
        let _ = (architecture, text, options);
        lacks::<Self, _>("compile_for", ARCHITECTURES)
    }
}
