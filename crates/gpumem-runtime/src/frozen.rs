//! Which memory is frozen: work names memory, and a graph that may keep it needs its owner.

use parking_lot::Mutex;
use std::{
    any::Any,
    collections::HashMap,
    sync::{Arc, LazyLock, Weak},
};

/// The owner of frozen memory. The memory is never written while it lives.
pub(crate) type Owner = Arc<dyn Any + Send + Sync>;

/// The owners of all frozen memory, by the numbers of its allocations. Nothing is called under the lock.
static FROZEN: LazyLock<Mutex<HashMap<u64, Weak<dyn Any + Send + Sync>>>> = LazyLock::new(Mutex::default);

pub(crate) fn insert(allocation: u64, owner: &Owner) {
    FROZEN.lock().insert(allocation, Arc::downgrade(owner));
}

pub(crate) fn remove(allocation: u64) {
    FROZEN.lock().remove(&allocation);
}

/// The owner of memory, if it is frozen.
pub(crate) fn find(allocation: u64) -> Option<Owner> {
    FROZEN.lock().get(&allocation)?.upgrade()
}
