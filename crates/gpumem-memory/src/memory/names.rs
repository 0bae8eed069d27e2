//! Names of allocations, for reports.

use crate::sync::{Mutex, Rank};
use serde::Serialize;
use std::{cell::Cell, cell::RefCell, collections::HashMap, mem::ManuallyDrop, sync::Arc};

/// The name in force. [`under`] puts the outer one back, so that none is left at the end of a thread. It needs no
/// destructor: a variable with one is gone while destructors of others run, and these may allocate under a name.
type Slot = RefCell<ManuallyDrop<Option<Arc<str>>>>;

const _: () = assert!(!std::mem::needs_drop::<Slot>());

thread_local! {
    static NAME: Slot = const { RefCell::new(ManuallyDrop::new(None)) };
    /// Whether there is a name, so that looking at it costs a load.
    static IS_NAMED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body`; reports and out-of-memory errors show this thread's allocations meanwhile under `name`. The innermost
/// name counts.
///
/// ```
/// # use gpumem_runtime::{memory, Device}; let device = Device::<gpumem_host::Host>::open("host")?;
/// let weights = memory::named("weights", || device.device_array::<f32, _>((1024, 1024)))?;
/// assert_eq!(device.memory_report()?.holders[0].name, "weights");
/// # drop(weights);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
pub fn named<R>(name: &str, body: impl FnOnce() -> R) -> R {
    named_as(Some(Arc::from(name)), body)
}

/// As [`named`], or as [`unnamed`] without a name.
pub fn named_as<R>(name: Option<Arc<str>>, body: impl FnOnce() -> R) -> R {
    /// Puts the outer name back, however the body ends.
    struct Outer(Option<Arc<str>>);
    impl Drop for Outer {
        fn drop(&mut self) {
            let outer = self.0.take();
            IS_NAMED.set(outer.is_some());
            drop(replace(outer));
        }
    }
    IS_NAMED.set(name.is_some());
    let _outer = Outer(replace(name));
    body()
}

/// Puts a name in force. The one before.
fn replace(name: Option<Arc<str>>) -> Option<Arc<str>> {
    NAME.with(|slot| ManuallyDrop::into_inner(slot.replace(ManuallyDrop::new(name))))
}

/// Runs `body`, whose allocations are the library's own and get no name of the caller.
pub fn unnamed<R>(body: impl FnOnce() -> R) -> R {
    named_as(None, body)
}

/// Whether a name is in force.
#[inline]
pub fn is_named() -> bool {
    IS_NAMED.get()
}

/// The name in force.
pub fn current_name() -> Option<Arc<str>> {
    NAME.with(|slot| slot.try_borrow().ok().and_then(|name| Option::clone(&name)))
}

/// The allocations under one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// The name.
    pub name: String,
    /// Bytes of all allocations of that name.
    pub bytes: usize,
    /// Number of these allocations.
    pub count: usize,
}

/// Named allocations that are alive.
#[derive(Debug, Default)]
pub struct Names(std::sync::OnceLock<Mutex<Sums>>);

type Sums = HashMap<Arc<str>, Sum>;

/// The allocations under one name.
#[derive(Debug, Default)]
struct Sum {
    /// Requested bytes.
    bytes: usize,
    /// Bytes that resources have allocated for them, in whole units.
    allocated: usize,
    count: usize,
}

impl Names {
    /// Counts an allocation of `bytes` bytes, for which a resource has allocated `allocated`.
    pub fn add(&self, name: &Arc<str>, bytes: usize, allocated: usize) {
        // A leaf: drops come here under whatever lock the last reference goes.
        let mut names = self.0.get_or_init(|| Mutex::new(Rank::Names, HashMap::new())).lock();
        let sum = names.entry(name.clone()).or_default();
        sum.bytes += bytes;
        sum.allocated += allocated;
        sum.count += 1;
    }

    /// Counts memory that is freed.
    pub fn remove(&self, name: &Arc<str>, bytes: usize, allocated: usize) {
        let Some(names) = self.0.get() else { return };
        // As in `add`.
        let mut names = names.lock();
        if let Some(sum) = names.get_mut(name) {
            sum.bytes = sum.bytes.saturating_sub(bytes);
            sum.allocated = sum.allocated.saturating_sub(allocated);
            sum.count = sum.count.saturating_sub(1);
            // Names may be as many as a program makes up.
            if sum.count == 0 {
                names.remove(name);
            }
        }
    }

    /// Bytes that resources have allocated for all names.
    pub(crate) fn allocated(&self) -> usize {
        self.0.get().map_or(0, |names| names.lock().values().map(|sum| sum.allocated).sum())
    }

    /// The largest first.
    pub(crate) fn holders(&self) -> Vec<Holder> {
        let Some(names) = self.0.get() else { return Vec::new() };
        let mut holders: Vec<Holder> = names
            // Copied under the lock, and sorted without it.
            .lock()
            .iter()
            .map(|(name, sum)| Holder { name: name.to_string(), bytes: sum.bytes, count: sum.count })
            .collect();
        holders.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        holders
    }
}
