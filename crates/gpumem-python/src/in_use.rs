//! Page-locked memory that NumPy's arrays have as well: what uses it by these waits for the work that uses it by the page-locked ones.

use crate::{dtype::Elements, error::raise, wait::ask};
use gpumem::{Error, ErrorKind, Layout, PinnedArray, ndarray::IxDyn};
use gpumem_core::process::ProcessGuard;
use pyo3::prelude::*;
use std::{
    cell::Cell,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// What the caller is about to do with the elements.
#[derive(Clone, Copy)]
pub(crate) enum Use {
    Read,
    Write,
}

/// The bytes of an array that graphs may return, and where its elements lie.
pub(crate) type Bytes = (PinnedArray<u8, IxDyn>, Layout);

/// The functions of a page-locked array of any elements and kind.
pub(crate) trait HostMemory: Send {
    /// Waits for work that uses the memory, and lends it. Returns the address of the first element.
    fn lend(&mut self) -> Result<usize, Error>;
    /// Waits for the work that uses the memory: to read it, for what writes it.
    fn wait(&mut self, then: Use) -> Result<(), Error>;
    /// Whether it was ever lent.
    fn is_lent(&self) -> bool;
    /// The array as the device sees it.
    fn device_view(&mut self) -> Option<Elements>;
    /// The bytes of an array that graphs may return.
    fn bytes(&self) -> Option<Result<Bytes, Error>>;
    /// Whether the device sees it.
    fn is_visible(&self) -> bool;
    /// A copy on a stream's device.
    fn to_device(&self, stream: &gpumem::Stream) -> Result<Elements, Error>;
    /// Copies to an array of a device; `None` where its elements are of another type.
    fn write_to(&self, to: &Elements, stream: &gpumem::Stream) -> Option<Result<(), Error>>;
    /// Copies from an array of a device, as [`write_to`](Self::write_to).
    fn read_from(&mut self, from: &Elements, stream: &gpumem::Stream) -> Option<Result<(), Error>>;
    /// Whether no work uses the memory, nothing else can enqueue any, and, unless that `is_told`, none has failed.
    fn is_over(&mut self, is_told: bool) -> bool;
    /// Waits for work that uses the memory, and returns it to its owner. What is refused comes back.
    fn end(self: Box<Self>) -> Result<(), (Box<dyn HostMemory>, Error)>;
}

/// The memory of a page-locked array.
pub(crate) struct PageLocked {
    /// The process that made it: in a forked child the lock may be held for ever.
    origin: ProcessGuard,
    /// `None` after it was given back.
    memory: Mutex<Option<Box<dyn HostMemory>>>,
    /// Whether its array [has ended](Self::set_ended).
    has_ended: AtomicBool,
    /// Whether a failure of its work was told when no new work could come by its array.
    is_told: AtomicBool,
    /// Where it lies, once code of Python may have the address.
    bytes: OnceLock<Range<u64>>,
}

thread_local! {
    /// Whether the thread has the memory of a page-locked array locked.
    static HAS_MEMORY: Cell<bool> = const { Cell::new(false) };
}

/// The memory of an array, locked.
pub(crate) struct Locked<'a> {
    pub(crate) memory: MutexGuard<'a, Option<Box<dyn HostMemory>>>,
    /// Whether the thread had that of another one before.
    outer: bool,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        HAS_MEMORY.set(self.outer);
    }
}

impl PageLocked {
    pub(crate) fn new(memory: Box<dyn HostMemory>) -> Arc<Self> {
        let (origin, memory) = (ProcessGuard::current(), Mutex::new(Some(memory)));
        Arc::new(Self { origin, memory, has_ended: AtomicBool::new(false), is_told: AtomicBool::new(false), bytes: OnceLock::new() })
    }

    /// Whether it is of a process that this one was forked from.
    pub(crate) fn is_of_parent(&self) -> bool {
        self.origin.is_forked()
    }

    /// The memory. A thread that has it may wait for a device, and run destructors of Python. So where no device may be waited for, and
    /// where the thread has that of an array already, this waits for no thread: the body of a kernel would wait for one that waits for
    /// the kernel, and a destructor for the call that runs it.
    pub(crate) fn lock(&self, operation: &'static str) -> Result<Locked<'_>, Error> {
        self.origin.check("", operation)?;
        let memory = match self.memory.try_lock() {
            Ok(memory) => memory,
            Err(TryLockError::Poisoned(memory)) => memory.into_inner(),
            Err(TryLockError::WouldBlock) => {
                ask(operation)?;
                if HAS_MEMORY.get() {
                    let what = "a page-locked array that is in use, in a destructor that a call of another one has run";
                    return Err(Error::new("", operation, ErrorKind::Unsupported { what }));
                }
                self.memory.lock().unwrap_or_else(PoisonError::into_inner)
            }
        };
        Ok(Locked { memory, outer: HAS_MEMORY.replace(true) })
    }

    /// Notes, with the memory locked, that its array is page-locked no more. Returns whether that was so before.
    pub(crate) fn set_ended(&self) -> bool {
        self.has_ended.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Notes that the caller is told of failed work.
    pub(crate) fn set_told(&self, error: &Error) {
        if matches!(error.kind(), ErrorKind::AsynchronousFault { .. } | ErrorKind::Poisoned { .. }) {
            self.is_told.store(true, Ordering::Relaxed);
        }
    }

    /// Whether there is nothing to wait for and to tell any more. Waits for nothing itself.
    fn is_over(&self, is_told: bool) -> bool {
        let is_told = is_told || self.is_told.load(Ordering::Relaxed);
        let is_over = |memory: &mut Box<dyn HostMemory>| memory.is_over(is_told);
        self.is_of_parent() || self.memory.try_lock().is_ok_and(|mut own| own.as_mut().is_none_or(is_over))
    }

    /// Says where the memory lies, before code of Python has the address, and whether that outlives this: its work may too.
    pub(crate) fn announce(self: &Arc<Self>, py: Python<'_>, bytes: Range<u64>, outlives: bool) {
        sweep(py, false);
        if self.bytes.set(bytes.clone()).is_ok() {
            let mut known = known();
            known.push(Known { bytes, memory: Arc::downgrade(self), kept: outlives.then(|| self.clone()) });
            COUNT.store(known.len(), Ordering::Relaxed);
        }
    }

    /// Waits for the work that uses this memory by other page-locked arrays.
    pub(crate) fn wait_for_others(&self, py: Python<'_>, then: Use) -> PyResult<()> {
        self.bytes.get().map_or(Ok(()), |bytes| wait_but(py, bytes, then, Some(self)))
    }
}

/// Memory that NumPy's arrays may have.
struct Known {
    bytes: Range<u64>,
    memory: Weak<PageLocked>,
    /// The same, where it outlives its page-locked array, until a [sweep] finds it over.
    kept: Option<Arc<PageLocked>>,
}

impl Known {
    /// The memory, if its page-locked array has ended or is gone.
    fn left(&self) -> Option<&Arc<PageLocked>> {
        self.kept.as_ref().filter(|memory| memory.has_ended() || Arc::strong_count(memory) == 1)
    }
}

/// It is locked under Python's lock only, and not for longer: a forked child finds it free.
static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
/// How many there are: without any, nothing is locked to look. Changed under Python's lock, as it is read.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn known() -> MutexGuard<'static, Vec<Known>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether there may be any.
pub(crate) fn are_any(_py: Python<'_>) -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

/// Waits for the work that uses these bytes: to read them, for what writes them.
pub(crate) fn wait(py: Python<'_>, bytes: &Range<u64>, then: Use) -> PyResult<()> {
    wait_but(py, bytes, then, None)
}

fn wait_but(py: Python<'_>, bytes: &Range<u64>, then: Use, but: Option<&PageLocked>) -> PyResult<()> {
    const OPERATION: &str = "use of page-locked memory";
    sweep(py, false);
    let found = overlapping(bytes, but);
    if found.is_empty() {
        return Ok(());
    }
    ask(OPERATION).map_err(raise)?;
    py.detach(move || {
        found.iter().try_for_each(|one| {
            let mut locked = one.lock(OPERATION)?;
            let waited = locked.memory.as_mut().map_or(Ok(()), |memory| memory.wait(then));
            // Of an array that is gone, the list and this have it.
            let is_left = one.has_ended() || Arc::strong_count(one) == 2;
            waited.inspect_err(|error| if is_left { one.set_told(error) })
        })
    })
    .map_err(raise)
}

/// The memory that shares bytes with these, and is of this process: no work of another one is here.
fn overlapping(bytes: &Range<u64>, but: Option<&PageLocked>) -> Vec<Arc<PageLocked>> {
    let shares = |own: &Range<u64>| own.start.max(bytes.start) < own.end.min(bytes.end);
    let sharing = |one: &Known| if shares(&one.bytes) { one.memory.upgrade() } else { None };
    // The mutex is free again before any of them is dropped.
    let mut found: Vec<_> = known().iter().filter_map(sharing).collect();
    found.retain(|one| !but.is_some_and(|but| std::ptr::eq(&**one, but)) && !one.is_of_parent());
    found
}

/// Takes out what is gone or over, and, if `is_told`, that of which work has failed. Drivers are asked, and memory is freed, without
/// Python's lock.
pub(crate) fn sweep(py: Python<'_>, is_told: bool) {
    if !are_any(py) {
        return;
    }
    let left: Vec<_> = known().iter().filter_map(Known::left).cloned().collect();
    let over = match left.is_empty() {
        true => left,
        false => py.detach(|| left.into_iter().filter(|one| one.is_over(is_told)).collect()),
    };
    let is_over = |one: &Arc<PageLocked>| over.iter().any(|over| Arc::ptr_eq(one, over));
    let mut known = known();
    known.retain(|one| one.memory.strong_count() != 0 && !one.kept.as_ref().is_some_and(is_over));
    COUNT.store(known.len(), Ordering::Relaxed);
    drop(known);
    if !over.is_empty() {
        py.detach(move || drop(over));
    }
}

/// The last field of what has page-locked memory, or a view of some: a [sweep] comes after it.
pub(crate) struct Swept;

impl Drop for Swept {
    fn drop(&mut self) {
        Python::try_attach(|py| sweep(py, false));
    }
}
