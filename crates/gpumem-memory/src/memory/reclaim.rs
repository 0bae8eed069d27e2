//! Hooks that free memory when a request cannot be served.

use super::names::{current_name, unnamed};
use crate::{
    memory::DeviceCore,
    sync::{PlainMutex, Rank},
    user_code::{self, mark},
};
use gpumem_core::{Backend, Error, ErrorKind, MemoryKind, SpillPressure};
use std::{
    cell::Cell,
    fmt,
    sync::{Arc, Weak},
};

/// How often each hook is asked for one request.
pub(super) const ROUNDS: usize = 16;

crate::thread_mark! {
    /// Whether this thread is inside a hook.
    IS_INSIDE
}

/// A request that the memory of a device does not serve, as a hook of
/// [`on_exhaustion`](https://docs.rs/gpumem/latest/gpumem/generic/struct.Device.html#method.on_exhaustion) sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exhausted {
    /// Bytes of the request.
    pub bytes: usize,
    /// Kind of memory.
    pub kind: MemoryKind,
    /// The operation that needs the memory, in the user's words.
    pub operation: &'static str,
    /// The [name](super::named) that the memory is to have.
    pub name: Option<Arc<str>>,
    /// Free bytes at the last attempt, as the driver or the [limit](super::LimitingResource) says that refused it; 0 where it does
    /// not.
    pub free: usize,
    /// Bytes in all, as for `free`.
    pub total: usize,
}

type Hook = dyn Fn(&Exhausted) -> bool + Send + Sync;

/// A hook that frees memory when a request cannot be served. Dropping this removes it; a call that is under way on another thread
/// goes on. Forgetting this keeps the hook, and what it has captured, for ever, and does no other harm.
#[must_use = "the hook is removed when this is dropped"]
pub struct ReclaimHook {
    _hook: Arc<Hook>,
}

/// Arrays that may leave a device.
pub trait Spilling: Send + Sync {
    /// Where they are. It waits for nothing, and calls no code of the user.
    fn pressure(&self) -> SpillPressure;
}

/// The hooks of a device, the oldest first. Their [guards](ReclaimHook) keep them alive, so a hook may own what keeps the device open.
pub struct ReclaimHooks {
    hooks: PlainMutex<Vec<Weak<Hook>>>,
    /// What leaves the device by some of them.
    spilling: PlainMutex<Vec<Weak<dyn Spilling>>>,
}

impl ReclaimHooks {
    pub(super) fn new() -> Self {
        let [hooks, spilling] = [Rank::ReclaimHooks; 2];
        Self { hooks: PlainMutex::new(hooks, Vec::new()), spilling: PlainMutex::new(spilling, Vec::new()) }
    }

    /// Adds a hook, which returns whether the request is to be repeated.
    pub fn add(&self, hook: impl Fn(&Exhausted) -> bool + Send + Sync + 'static) -> ReclaimHook {
        let hook: Arc<Hook> = Arc::new(hook);
        let mut hooks = self.hooks.lock();
        hooks.retain(|hook| hook.strong_count() > 0);
        hooks.push(Arc::downgrade(&hook));
        ReclaimHook { _hook: hook }
    }

    /// Adds arrays that may leave the device.
    pub fn add_spilling(&self, arrays: Weak<dyn Spilling>) {
        let mut spilling = self.spilling.lock();
        spilling.retain(|arrays| arrays.strong_count() > 0);
        spilling.push(arrays);
    }

    /// Where the arrays are that may leave the device.
    pub(super) fn spilling(&self) -> SpillPressure {
        let all = self.spilling.lock().clone();
        let each = all.iter().filter_map(Weak::upgrade).map(|arrays| arrays.pressure());
        each.fold(SpillPressure::default(), SpillPressure::plus)
    }

    /// The hooks to ask; none inside a hook, which would be asked again without end.
    pub(super) fn to_ask(&self) -> Vec<Weak<Hook>> {
        match IS_INSIDE.try_with(Cell::get) {
            Ok(false) => self.hooks.lock().clone(),
            _ => Vec::new(),
        }
    }
}

/// Asks a hook, unless it has been removed. A panic is queued, and is no reason to repeat the request.
pub(super) fn ask<B: Backend>(core: &DeviceCore<B>, hook: &Weak<Hook>, need: &Exhausted) -> bool {
    let Some(hook) = hook.upgrade() else { return false };
    let _inside = mark(&IS_INSIDE);
    // What it allocates is not for the name of the request.
    let asked = user_code::run(|| unnamed(|| hook(need)));
    // It may have been removed meanwhile; then this drops what it has captured.
    let asked = asked.and_then(|again| user_code::run(move || drop(hook)).map(|()| again));
    asked.unwrap_or_else(|message| {
        let kind = ErrorKind::UserCodePanicked { what: "a hook for exhausted memory", message };
        core.errors.push(core.error(need.operation, kind));
        false
    })
}

impl Exhausted {
    /// `error` is that of the last attempt.
    pub(super) fn new(bytes: usize, kind: MemoryKind, operation: &'static str, error: &Error) -> Self {
        let (free, total) = match error.kind() {
            ErrorKind::OutOfMemory { free, total, .. } => (*free, *total),
            _ => (0, 0),
        };
        Self { bytes, kind, operation, name: current_name(), free, total }
    }
}

impl fmt::Debug for ReclaimHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReclaimHook").finish_non_exhaustive()
    }
}

impl fmt::Debug for ReclaimHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReclaimHooks").finish_non_exhaustive()
    }
}
