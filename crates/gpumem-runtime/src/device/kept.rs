//! Values that a device keeps for later calls: loaded kernels of the library's own.

use super::Device;
use crate::key::Key;
use gpumem_core::{Backend, Result};
use parking_lot::Mutex;
use std::{
    any::{Any, TypeId},
    collections::HashMap,
};

/// One value for each type that names it.
#[derive(Default)]
pub(crate) struct KeptValues(Mutex<HashMap<TypeId, Box<dyn Any + Send + Sync>>>);

impl KeptValues {
    /// Drops all of them. What a drop leaves to the deferred queue is there afterwards.
    pub(crate) fn clear(&self) {
        // They are dropped outside the lock.
        let values = std::mem::take(&mut *self.0.lock());
        drop(values);
    }
}

impl<B: Backend> Device<B> {
    /// Returns the value that is kept under `key`, or makes it and keeps it until the device is closed or reset. It must not
    /// keep the device open.
    ///
    /// # Errors
    /// Returns the error of `make`; nothing is kept then. Returns [`ForkedChild`](gpumem_core::ErrorKind::ForkedChild) in a child
    /// of the process that opened the device.
    #[doc(hidden)]
    pub fn kept_by<V: Clone + Send + Sync + 'static>(
        &self,
        _: Key,
        key: TypeId,
        make: impl FnOnce() -> Result<V>,
    ) -> Result<V> {
        self.core().check_process("load")?;
        let values = &self.0.kept.0;
        if let Some(value) = values.lock().get(&key).and_then(|value| value.downcast_ref::<V>()) {
            // Values of the library's: a clone takes no lock.
            return Ok(value.clone());
        }
        // Not under the lock: compiling takes long. Two threads may both make one; the last stays.
        let value = make()?;
        let before = values.lock().insert(key, Box::new(value.clone()));
        drop(before);
        Ok(value)
    }
}
