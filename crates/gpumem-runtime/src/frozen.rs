//! Which memory is frozen: work names memory, and a graph that may keep it needs its owner.

use gpumem_core::process::PerProcess;
use parking_lot::Mutex;
use std::{
    any::Any,
    collections::HashMap,
    sync::{Arc, Weak},
};

/// The owner of frozen memory. The memory is never written while it lives.
pub(crate) type Owner = Arc<dyn Any + Send + Sync>;

type Owners = Mutex<HashMap<u64, Weak<dyn Any + Send + Sync>>>;

/// The owners of all frozen memory, by the numbers of its allocations. Nothing is called under the lock. A forked child has a table
/// of its own: a thread of the parent may hold that lock for ever.
static FROZEN: PerProcess<Owners> = PerProcess::new(Mutex::default);

pub(crate) fn insert(allocation: u64, owner: &Owner) {
    FROZEN.get().lock().insert(allocation, Arc::downgrade(owner));
}

pub(crate) fn remove(allocation: u64) {
    FROZEN.get().lock().remove(&allocation);
}

/// The owner of memory, if it is frozen.
pub(crate) fn find(allocation: u64) -> Option<Owner> {
    FROZEN.get().lock().get(&allocation)?.upgrade()
}
