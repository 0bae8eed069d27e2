//! Recorded events, and the pool that they come from and go back to.

use super::DeviceContext;
use crate::sync::Mutex;
use gpumem_core::{Backend, DriverDevice, EventOptions, Result};
use std::{
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

/// An event that has been recorded on some stream. Dropping it gives the event to the pool, not to the driver.
pub struct RecordedEvent<B: Backend> {
    /// Taken only in `drop`.
    event: Option<B::Event>,
    generation: u64,
    context: Arc<DeviceContext<B>>,
}

// As a device.
impl<B: Backend> UnwindSafe for RecordedEvent<B> {}
impl<B: Backend> RefUnwindSafe for RecordedEvent<B> {}

impl<B: Backend> RecordedEvent<B> {
    /// Takes an event from the pool of the device, or makes one.
    #[inline(never)]
    pub(crate) fn new(context: &Arc<DeviceContext<B>>) -> Result<Self> {
        let event = match context.events.free.lock().pop() {
            Some(event) => event,
            None => context.note_loss(context.raw.create_event(EventOptions::default()))?,
        };
        Ok(Self { event: Some(event), generation: context.generation(), context: context.clone() })
    }

    /// Whether the event is one of the device as it is now.
    #[inline]
    pub(crate) fn is_of(&self, context: &DeviceContext<B>) -> bool {
        self.generation == context.generation()
    }

    /// The event. `None` never happens outside `drop`.
    #[inline]
    pub(crate) fn event(&self) -> Option<&B::Event> {
        self.event.as_ref()
    }
}

impl<B: Backend> Drop for RecordedEvent<B> {
    fn drop(&mut self) {
        if let Some(event) = self.event.take() {
            if self.context.origin.is_valid() && self.generation == self.context.generation() {
                self.context.events.free.lock().push(event);
            } else {
                // The driver belongs to another process, has ended, or was reset: no event can be destroyed.
                std::mem::forget(event);
            }
        }
    }
}

impl<B: Backend> fmt::Debug for RecordedEvent<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.event.fmt(f)
    }
}

/// Events that are not in use. Recording an event again does not disturb work that waits for the old recording, so an
/// event may be reused as soon as no new wait will use it.
#[derive(Debug)]
pub struct EventPool<B: Backend> {
    free: Mutex<Vec<B::Event>>,
}

impl<B: Backend> EventPool<B> {
    pub(crate) fn new() -> Self {
        Self { free: Mutex::new(Vec::new()) }
    }

    /// Takes all idle events, to be destroyed.
    pub fn take(&self) -> Vec<B::Event> {
        std::mem::take(&mut *self.free.lock())
    }
}
