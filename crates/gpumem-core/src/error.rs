//! The error type and the kinds of errors.

mod file;
mod layout;
mod load;
mod not_recorded;
#[cfg(test)]
mod tests;

pub use file::{FileError, FileFailure};
pub use layout::LayoutError;
pub use load::{LoadError, LoadFailure};
pub use not_recorded::NotRecorded;

use crate::{MemoryInfo, MemoryPressure};
use std::{borrow::Cow, fmt};

/// Most failures that one error describes.
const MOST_DESCRIBED: usize = 4;

/// The result of nearly everything.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: its kind, the operation and the device. One pointer wide; its `Display` never calls a driver.
///
/// `{}` and `{:?}` print the same message, so that `fn main() -> gpumem::Result<()>` ends with it. `{:#?}` prints all
/// fields. The message has everything in it: [`source`](std::error::Error::source) is empty, and a report prints it once.
#[derive(Clone, PartialEq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq)]
struct Inner {
    backend: &'static str,
    /// Of the device among those of the backend.
    ordinal: Option<usize>,
    operation: &'static str,
    kernel: Option<Box<str>>,
    argument: Option<usize>,
    hint: Option<Cow<'static, str>>,
    kind: ErrorKind,
}

impl Error {
    /// Makes an error of `operation` on `backend`, with the hint of its kind, if that has one. An empty backend means that none was
    /// involved.
    #[cold]
    #[inline(never)]
    pub fn new(backend: &'static str, operation: &'static str, kind: impl Into<ErrorKind>) -> Self {
        let kind = kind.into();
        let hint = kind.hint().map(Cow::Borrowed);
        Self(Box::new(Inner { backend, ordinal: None, operation, kernel: None, argument: None, hint, kind }))
    }

    /// Returns what went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Returns the operation that failed, in the user's words (`copy_to_host`) or the driver's (`cuMemAlloc`).
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// Returns the name of the backend (`cuda`), or an empty string where none was involved.
    pub fn backend(&self) -> &'static str {
        self.0.backend
    }

    /// Returns the name of the device (`cuda:0`), or `None` where none was involved.
    pub fn device(&self) -> Option<String> {
        self.0.ordinal.map(|ordinal| format!("{}:{ordinal}", self.0.backend))
    }

    /// Returns the name of the kernel that was being loaded or launched.
    pub fn kernel(&self) -> Option<&str> {
        self.0.kernel.as_deref()
    }

    /// Returns which argument of the launch is wrong, counted from 1.
    pub fn argument(&self) -> Option<usize> {
        self.0.argument
    }

    /// Returns what can be done about it.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Replaces the operation by the one that the user called.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn in_operation(mut self, operation: &'static str) -> Self {
        self.0.operation = operation;
        self
    }

    /// Makes one error of several, which is the first one. If that is a failure of work, it describes those of other work too.
    #[cold]
    pub fn all_of(errors: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut errors = errors.into_iter();
        let mut first = errors.next()?;
        if let ErrorKind::AsynchronousFault { what } = &mut first.0.kind {
            let (mut described, mut more) = (1, 0);
            for error in errors {
                match error.kind() {
                    ErrorKind::AsynchronousFault { what: other } if described < MOST_DESCRIBED => {
                        *what = format!("{what}; {other}");
                        described += 1;
                    }
                    _ => more += 1,
                }
            }
            if more > 0 {
                *what = format!("{what}; and {more} more failures");
            }
        }
        Some(first)
    }

    /// Adds the device, unless the error names one, or another backend.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn on_device(mut self, backend: &'static str, ordinal: usize) -> Self {
        let is_open = self.0.backend.is_empty() || self.0.backend == backend;
        if is_open && self.0.ordinal.is_none() {
            (self.0.backend, self.0.ordinal) = (backend, Some(ordinal));
        }
        self
    }

    /// Adds the kernel, unless the error names one.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn in_kernel(mut self, name: &str) -> Self {
        self.0.kernel.get_or_insert_with(|| name.into());
        self
    }

    /// Adds which argument of a launch is wrong, counted from 1.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn at_argument(mut self, position: usize) -> Self {
        self.0.argument.get_or_insert(position);
        self
    }

    /// Adds what can be done about it.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Whether the memory did not suffice; freeing some and trying again may help.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.kind(), ErrorKind::OutOfMemory { .. })
    }

    /// Whether the data were to be written by work that failed: every later use of them says so, until they are written
    /// anew.
    pub fn is_poisoned(&self) -> bool {
        matches!(self.kind(), ErrorKind::Poisoned { .. })
    }

    /// Whether the device is gone for this process: every later call on it fails with the first cause.
    pub fn is_device_lost(&self) -> bool {
        matches!(self.kind(), ErrorKind::DeviceLost { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { backend, ordinal, operation, kernel, argument, hint, kind } = &*self.0;
        f.write_str(operation)?;
        if let Some(kernel) = kernel {
            write!(f, " of {kernel}")?;
        }
        match ordinal {
            Some(ordinal) => write!(f, " on {backend}:{ordinal}")?,
            None if !backend.is_empty() => write!(f, " on {backend}")?,
            None => {}
        }
        if let Some(argument) = argument {
            write!(f, ": argument #{argument}")?;
        }
        write!(f, ": {kind}")?;
        match hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() { fmt::Debug::fmt(&*self.0, f) } else { fmt::Display::fmt(self, f) }
    }
}

impl std::error::Error for Error {}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A driver or compiler library could not be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is no such device.
    #[error("there is no device {wanted}: the backend has {found}")]
    NoSuchDevice {
        /// The wish, as text.
        wanted: String,
        /// Number of devices that there are.
        found: usize,
    },
    /// The text does not name a device.
    #[error("{text:?} does not name a device: {why}")]
    InvalidSelector {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is no backend of that name.
    #[error("there is no backend {wanted:?}: the names are {known}")]
    UnknownBackend {
        /// The wanted backend.
        wanted: String,
        /// The names that there are.
        known: String,
    },
    /// The program was built without that backend.
    #[error("this program was built without the backend {wanted:?} (it has: {enabled})")]
    BackendNotEnabled {
        /// The wanted backend.
        wanted: String,
        /// The enabled ones.
        enabled: String,
    },
    /// Things of two backends met in one call.
    #[error("things of two backends in one call: {left} and {right}")]
    BackendMismatch {
        /// One of them.
        left: &'static str,
        /// The other.
        right: &'static str,
    },
    /// Things of two devices met in a call that needs one.
    #[error("the {what} belongs to {has}, and {wants} was expected")]
    WrongDevice {
        /// What is on the wrong device.
        what: &'static str,
        /// Where it is.
        has: String,
        /// Where it should be.
        wants: String,
    },
    /// The memory does not suffice.
    #[error(
        "out of memory: {requested} bytes of {kind} memory requested{}{}",
        available(*free, *total),
        pressure.as_deref().map(ToString::to_string).unwrap_or_default()
    )]
    OutOfMemory {
        /// Bytes asked for.
        requested: usize,
        /// Kind of memory.
        kind: &'static str,
        /// Bytes free, as the driver says; 0 where it does not.
        free: usize,
        /// Bytes in all; 0 where the driver does not say.
        total: usize,
        /// Which allocations hold the memory. A backend leaves it empty, and the runtime fills it in.
        pressure: Option<Box<MemoryPressure>>,
    },
    /// A shape, a stride or an index does not fit.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Foreign memory is described in a way that cannot be taken.
    #[error(transparent)]
    Descriptor(#[from] crate::DescriptorError),
    /// A file could not be read or written, or is not what it was said to be.
    #[error(transparent)]
    File(#[from] Box<FileError>),
    /// An operation writes an array that shares memory with another one that it uses: both are handles of one allocation, or of
    /// one piece of foreign memory.
    #[error(
        "an array overlaps another one that is written (bytes {source_bytes:?} and {destination_bytes:?})"
    )]
    Overlap {
        /// Bytes of the allocation that the array spans: the source of a copy.
        source_bytes: std::ops::Range<usize>,
        /// Bytes of the allocation that the written array spans: the destination of a copy.
        destination_bytes: std::ops::Range<usize>,
    },
    /// Memory could be page-locked only in part, or is in use by another registration.
    #[error("the memory cannot be registered: {why}")]
    Registration {
        /// What stands in the way.
        why: &'static str,
    },
    /// An argument makes no sense.
    #[error("invalid argument: {why}")]
    InvalidArgument {
        /// What is wrong with it.
        why: &'static str,
    },
    /// A launch is larger than the device, or the kernel, allows.
    #[error("{what}: {requested} asked for, {most} at most")]
    LaunchTooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The requested amount.
        requested: u64,
        /// How much there can be.
        most: u64,
    },
    /// This device or backend cannot do that.
    #[error("not supported here: {what}")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
    },
    /// A kernel could not be compiled or loaded.
    #[error("the kernel could not be built: {log}")]
    Build {
        /// What the compiler says.
        log: String,
    },
    /// A kernel comes with programs, and none of them is for this device.
    #[error("the kernel {name:?} has no program for {architecture}, only for {has}")]
    NoProgram {
        /// The kernel.
        name: String,
        /// Architecture of the device.
        architecture: String,
        /// What there are programs for.
        has: String,
    },
    /// A module has no kernel of that name.
    #[error("the module has no kernel {name:?}")]
    NoSuchKernel {
        /// The name.
        name: String,
    },
    /// Work that was enqueued earlier failed.
    #[error("work enqueued earlier failed: {what}")]
    AsynchronousFault {
        /// What the driver or the kernel says.
        what: String,
    },
    /// The bytes were to be written by work that failed, and have not been written since.
    #[error(
        "bytes {}..{} were to be written by {}, which failed on {}: {}",
        bytes.start, bytes.end, failure.work, failure.place, failure.cause
    )]
    Poisoned {
        /// Bytes of the allocation: the first requested ones that are poisoned.
        bytes: std::ops::Range<usize>,
        /// The work that failed.
        failure: std::sync::Arc<crate::Failure>,
    },
    /// A collective operation failed.
    #[error(transparent)]
    Collective(#[from] Box<crate::CollectiveError>),
    /// The device is lost. Every later call reports the first cause again.
    #[error("the device is lost since an earlier failure: {cause}")]
    DeviceLost {
        /// The first cause.
        cause: String,
    },
    /// The device was reset after this was made.
    #[error("the device was reset after this {what} was made")]
    Stale {
        /// What is stale.
        what: &'static str,
    },
    /// A graph cannot record that.
    #[error("a graph cannot record this: {what}")]
    NotRecordable {
        /// What was asked for.
        what: NotRecorded,
    },
    /// This was made while a graph was recorded, as a placeholder for what each launch has: it has no memory and no stream of the
    /// driver.
    #[error("the {what} belongs to the recording of a graph, and cannot be used outside of it")]
    OfRecording {
        /// What it is.
        what: &'static str,
    },
    /// A stream of the wrong thread: the per-thread default stream is another one on each thread.
    #[error("the per-thread default stream of another thread cannot be used here")]
    WrongThread,
    /// Waiting inside a callback or a kernel's host body would block the thread that completes the work.
    #[error("a callback or a kernel's body may not wait for a device")]
    BlockingInCallback,
    /// A callback panicked.
    #[error("a callback panicked: {message}")]
    CallbackPanicked {
        /// What it said.
        message: String,
    },
    /// Code of the caller that the library runs has panicked: a memory resource, or the drop of something that was handed over.
    #[error("{what} panicked: {message}")]
    UserCodePanicked {
        /// Which code.
        what: &'static str,
        /// What it said.
        message: String,
    },
    /// The driver belongs to the parent process.
    #[error("this process was forked after the device was opened; open it in the child instead")]
    ForkedChild,
    /// The process is ending and the driver may be gone.
    #[error("the process is ending")]
    Exiting,
    /// A device cannot be reset while the host can still see memory of it.
    #[error("{count} pinned, mapped or managed arrays are alive; a reset would take their memory away")]
    HostMemoryInUse {
        /// Number of such arrays.
        count: usize,
    },
    /// What was asked for is not finished yet.
    #[error("not ready")]
    NotReady,
    /// The caller has cancelled the operation; the data may have been copied in part.
    #[error("cancelled by the caller")]
    Cancelled,
    /// The driver reports an error that has no kind here.
    #[error("the driver reports {name} ({code})")]
    Driver {
        /// The driver's number.
        code: i32,
        /// The driver's name for it.
        name: &'static str,
    },
}

impl ErrorKind {
    /// What can be done about it, where that is always the same.
    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotRecordable { what } => Some(what.hint()),
            _ => None,
        }
    }

    /// Makes the error of a request for so many bytes of a kind of memory, of which there is so much.
    pub fn out_of_memory(requested: usize, kind: &'static str, memory: MemoryInfo) -> Self {
        Self::OutOfMemory { requested, kind, free: memory.free, total: memory.total, pressure: None }
    }
}

/// Free bytes, where they are known.
fn available(free: usize, total: usize) -> String {
    if total == 0 { String::new() } else { format!(", {free} of {total} free") }
}
