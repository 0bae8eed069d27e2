//! The faults of a body.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    fmt,
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, Location, catch_unwind},
};

/// A place in the source of a body.
type Place = &'static Location<'static>;

/// Why a launch was stopped, and which work-item did it.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub group: [u32; 3],
    /// The work-item in its group.
    pub item: [u32; 3],
    pub kind: FaultKind,
}

/// A kind of memory that work-items share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Of one work-group.
    Shared,
    /// Of the device.
    Global,
}

/// How an element is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    Read,
    Write,
    /// Changed atomically, which does not conflict with other atomic changes.
    Atomic,
}

/// An access to an element, for a report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Access {
    pub kind: AccessKind,
    pub group: [u32; 3],
    /// The work-item in its group.
    pub item: [u32; 3],
    pub at: &'static Location<'static>,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.kind {
            AccessKind::Read => "read",
            AccessKind::Write => "written",
            AccessKind::Atomic => "changed atomically",
        };
        let ([gx, gy, gz], [x, y, z]) = (self.group, self.item);
        write!(f, "{verb} by work-item ({x}, {y}, {z}) of group ({gx}, {gy}, {gz}) at {}", self.at)
    }
}

/// The fault of a work-item.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FaultKind {
    /// Others of its group wait at a barrier that it did not reach.
    GroupDivergence {
        arrived: u32,
        /// Work-items of the group.
        of: u32,
        at: Place,
        /// Where this work-item waits instead; `None` if it has ended.
        instead: Option<Place>,
    },
    /// Others of its wave wait at a wave barrier or a wave operation that it did not reach.
    WaveDivergence {
        arrived: u32,
        /// Work-items of the wave.
        of: u32,
        at: Place,
        /// Where this work-item waits instead; `None` if it has ended.
        instead: Option<Place>,
    },
    /// It waits for something that is neither a barrier nor an operation of its wave.
    ForeignAwait,
    /// An index past the end.
    OutOfBounds {
        index: Vec<usize>,
        /// Lengths of the axes.
        extents: Vec<usize>,
        at: Place,
    },
    Panicked {
        message: String,
    },
    /// The group needs more shared memory than there is.
    SharedMemory {
        /// Bytes that it needs.
        needs: usize,
        /// Bytes that there are.
        has: usize,
        /// The array that does not fit.
        at: Place,
    },
    /// The host has no memory for a group: for its shared arrays, or for what is kept of its work-items over a barrier.
    HostMemory {
        /// Bytes that it needs.
        needs: usize,
    },
    /// Two work-items touch the same element, at least one of them writing, and nothing orders them. Found in check mode.
    Race {
        memory: Memory,
        /// Which argument of the launch the element belongs to, counted from 1. `None` for shared memory.
        argument: Option<usize>,
        /// The index of the element, as the later access has it.
        index: Vec<usize>,
        /// The earlier access.
        first: Box<Access>,
        /// The later one, of the work-item that the fault names.
        second: Box<Access>,
    },
    /// A read of shared memory that no work-item of the group has written. Found in check mode.
    NeverWritten {
        at: Place,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group: [gx, gy, gz], item: [x, y, z], kind } = self;
        write!(f, "work-item ({x}, {y}, {z}) of group ({gx}, {gy}, {gz}) {kind}")
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elsewhere = |f: &mut fmt::Formatter<'_>, instead: &Option<Place>| match instead {
            Some(place) => write!(f, "waits at {place}"),
            None => f.write_str("has ended"),
        };
        match self {
            Self::GroupDivergence { arrived, of, at, instead } => {
                elsewhere(f, instead)?;
                write!(f, ", while {arrived} of {of} work-items of its group wait at the barrier at {at}")
            }
            Self::WaveDivergence { arrived, of, at, instead } => {
                elsewhere(f, instead)?;
                write!(f, ", while {arrived} of {of} work-items of its wave wait at {at}")
            }
            Self::ForeignAwait => {
                f.write_str("awaits something that is neither a barrier nor an operation of its wave")
            }
            Self::OutOfBounds { index, extents, at } => {
                write!(f, "uses index {index:?} of an array of shape {extents:?} at {at}")
            }
            Self::Panicked { message } => write!(f, "panicked: {message}"),
            Self::SharedMemory { needs, has, at } => {
                write!(f, "needs {needs} bytes of shared memory at {at}, and a group has {has}")
            }
            Self::HostMemory { needs } => {
                write!(
                    f,
                    "needs {needs} bytes for the arrays and variables of its group, and the host has no memory for them"
                )
            }
            Self::Race { memory, argument, index, first, second } => {
                let memory = if *memory == Memory::Shared { "shared" } else { "global" };
                write!(f, "races in {memory} memory: element {index:?}")?;
                if let Some(argument) = argument {
                    write!(f, " of argument #{argument}")?;
                }
                write!(f, " is {second}, and {first}, with nothing between them")
            }
            Self::NeverWritten { at } => write!(f, "reads shared memory that was never written, at {at}"),
        }
    }
}

/// Makes room for that many elements more, if the host has memory for them.
pub(crate) fn reserve<T>(list: &mut Vec<T>, len: usize) -> Result<(), FaultKind> {
    let needs = len.saturating_mul(size_of::<T>());
    list.try_reserve_exact(len).map_err(|_| FaultKind::HostMemory { needs })
}

/// An empty list with room for that many elements, for the state of a group. That is made before any work-item runs: a fault
/// names the first one.
pub(crate) fn with_room<T>(len: usize) -> Result<Vec<T>, Fault> {
    let mut list = Vec::new();
    reserve(&mut list, len).map_err(|kind| Fault { group: [0; 3], item: [0; 3], kind })?;
    Ok(list)
}

/// A list of that many elements, as [`with_room`].
pub(crate) fn list<T>(len: usize, make: impl FnMut() -> T) -> Result<Vec<T>, Fault> {
    let mut list = with_room(len)?;
    list.resize_with(len, make);
    Ok(list)
}

/// A fault until it is taken, in programs that cannot unwind: in others what unwinds carries it. Nothing drops it with the
/// thread: a variable with a destructor is gone while destructors of others run, and these may launch.
type Slot = RefCell<ManuallyDrop<Option<FaultKind>>>;

const _: () = assert!(!std::mem::needs_drop::<Slot>());

thread_local! {
    /// The first fault of the group that runs on this thread.
    static RAISED: Slot = const { RefCell::new(ManuallyDrop::new(None)) };
    /// Whether this thread runs a part of a launch, which tells the faults of its body.
    static IS_LAUNCHING: Cell<bool> = const { Cell::new(false) };
}

/// The payload that unwinds a body. So a fault is told wherever its unwinding ends, and is over where the body catches it.
struct Raised(FaultKind);

/// Stops the running work-item. Returns only in programs that cannot unwind, where the item goes on with zeros until it
/// ends or waits.
#[inline(always)]
pub(crate) fn raise(kind: FaultKind) {
    if cfg!(panic = "unwind") {
        unwind(kind);
    }
    note(kind);
}

/// Stops the running work-item. The type tells the compiler that nothing comes after it, so that no register is kept for that.
/// Outside of a launch, as where the host calls a function that kernels call too, this is a panic like any other.
#[cold]
#[inline(never)]
#[allow(clippy::panic)] // as of an index of an array of the host
pub(crate) fn unwind(kind: FaultKind) -> ! {
    if !IS_LAUNCHING.get() {
        panic!("{kind}");
    }
    // Without a word from the panic hook: this is no panic, and is reported by the launch.
    std::panic::resume_unwind(Box::new(Raised(kind)))
}

/// Keeps the first fault of the group.
#[cold]
#[inline(never)]
pub(crate) fn note(kind: FaultKind) {
    RAISED.with_borrow_mut(|raised| {
        raised.get_or_insert(kind);
    });
}

/// Takes the fault of the group that has run on this thread.
pub(crate) fn take() -> Option<FaultKind> {
    RAISED.with_borrow_mut(|raised| raised.take())
}

/// Whether there is a fault to take.
pub(crate) fn is_raised() -> bool {
    RAISED.with_borrow(|raised| raised.is_some())
}

/// Runs a part of a launch. What unwinds it, be it a fault or a panic, ends here.
#[inline(always)]
pub(crate) fn catch<R>(part: impl FnOnce() -> R) -> Result<R, FaultKind> {
    if !cfg!(panic = "unwind") {
        take();
    }
    let was_launching = IS_LAUNCHING.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(part));
    IS_LAUNCHING.set(was_launching);
    outcome.map_err(caught)
}

fn caught(payload: Box<dyn Any + Send>) -> FaultKind {
    let payload = match payload.downcast::<Raised>() {
        Ok(raised) => return raised.0,
        Err(payload) => payload,
    };
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    // The payload may panic when it is dropped.
    std::mem::forget(payload);
    FaultKind::Panicked { message }
}
