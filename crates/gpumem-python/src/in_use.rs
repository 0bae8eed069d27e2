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
        atomic::{AtomicUsize, Ordering},
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
    /// Waits for work that uses the memory, and returns it to its owner.
    fn end(self: Box<Self>) -> Result<(), Error>;
}

/// The memory of a page-locked array.
pub(crate) struct PageLocked {
    /// The process that made it: in a forked child the lock may be held for ever.
    origin: ProcessGuard,
    /// `None` after it was freed.
    memory: Mutex<Option<Box<dyn HostMemory>>>,
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
        Arc::new(Self { origin, memory, bytes: OnceLock::new() })
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

    /// Says where the memory lies, before code of Python has the address.
    pub(crate) fn announce(self: &Arc<Self>, _py: Python<'_>, bytes: Range<u64>) {
        if self.bytes.set(bytes.clone()).is_ok() {
            let mut known = known();
            known.push((bytes, Arc::downgrade(self)));
            COUNT.store(known.len(), Ordering::Relaxed);
        }
    }

    /// Waits for the work that uses this memory by other page-locked arrays.
    pub(crate) fn wait_for_others(&self, py: Python<'_>, then: Use) -> PyResult<()> {
        self.bytes.get().map_or(Ok(()), |bytes| wait_but(py, bytes, then, Some(self)))
    }
}

/// The memory that NumPy's arrays may have. It is locked under Python's lock only, and not for longer: a forked child finds it free.
static KNOWN: Mutex<Vec<(Range<u64>, Weak<PageLocked>)>> = Mutex::new(Vec::new());
/// How many there are: without any, nothing is locked to look. Changed under Python's lock, as it is read.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn known() -> MutexGuard<'static, Vec<(Range<u64>, Weak<PageLocked>)>> {
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
    if !are_any(py) {
        return Ok(());
    }
    let found = overlapping(bytes, but);
    if found.is_empty() {
        return Ok(());
    }
    ask(OPERATION).map_err(raise)?;
    py.detach(move || {
        found.iter().try_for_each(|one| {
            let mut locked = one.lock(OPERATION)?;
            locked.memory.as_mut().map_or(Ok(()), |memory| memory.wait(then))
        })
    })
    .map_err(raise)
}

/// The memory that shares bytes with these, and is of this process: no work of another one is here.
fn overlapping(bytes: &Range<u64>, but: Option<&PageLocked>) -> Vec<Arc<PageLocked>> {
    let mut known = known();
    known.retain(|(_, one)| one.strong_count() != 0);
    COUNT.store(known.len(), Ordering::Relaxed);
    let shares = |own: &Range<u64>| own.start.max(bytes.start) < own.end.min(bytes.end);
    let is_but = |one: &Weak<PageLocked>| but.is_some_and(|but| std::ptr::eq(one.as_ptr(), but));
    let found = known.iter().filter(|(own, one)| shares(own) && !is_but(one));
    let mut found: Vec<_> = found.filter_map(|(_, one)| one.upgrade()).collect();
    drop(known);
    found.retain(|one| !one.origin.is_forked());
    found
}

/// Takes memory out that is not page-locked any more.
pub(crate) fn withdraw(_py: Python<'_>, memory: &PageLocked) {
    let mut known = known();
    known.retain(|(_, one)| !std::ptr::eq(one.as_ptr(), memory));
    COUNT.store(known.len(), Ordering::Relaxed);
}
