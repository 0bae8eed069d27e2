//! The order of operations of several communicators of one device.
//!
//! Two operations of a GPU may not fit on it together. If the ranks ran them in different orders, each would wait for the
//! other. So one communicator's operation waits for that of another one, in the order in which the host called them.

use gpumem_core::{Backend, Result, process::PerProcess};
use gpumem_runtime::{Device, Stream, internal::Timeline};
use std::{
    any::TypeId,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The last operation of a device: its communicator, its stream and its submission.
pub(super) type Last<B> = Option<(u64, Arc<Timeline<B>>, u64)>;

/// Held while an operation is enqueued.
pub(super) struct DeviceOrder<B: Backend>(Mutex<Last<B>>);

impl<B: Backend> DeviceOrder<B> {
    /// The one of a device.
    pub(super) fn of(device: &Device<B>) -> Result<Arc<Self>> {
        static MAKING: PerProcess<Mutex<()>> = PerProcess::new(Mutex::default);
        // Two communicators that are made at once must find one. The device's table has a lock of its own, within this
        // one.
        let _one = MAKING.get().lock().unwrap_or_else(PoisonError::into_inner);
        device.kept_by(crate::KEY, TypeId::of::<Self>(), || Ok(Arc::new(Self(Mutex::new(None)))))
    }

    pub(super) fn begin(&self) -> MutexGuard<'_, Last<B>> {
        // After the orders of the communicators, and before their states.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the last operation was another communicator's.
pub(super) fn is_of_another<B: Backend>(last: &Last<B>, communicator: u64) -> bool {
    last.as_ref().is_some_and(|(of, ..)| *of != communicator)
}

/// Makes the stream wait for the last operation, if that was another communicator's.
pub(super) fn wait<B: Backend>(last: &Last<B>, communicator: u64, stream: &Stream<B>) -> Result<()> {
    match last {
        Some((_, timeline, submission)) if is_of_another(last, communicator) => {
            stream.timeline_by(crate::KEY).wait_for_timeline(timeline, *submission)
        }
        _ => Ok(()),
    }
}

/// Notes an operation as the last one.
pub(super) fn note<B: Backend>(last: &mut Last<B>, communicator: u64, stream: &Stream<B>, submission: u64) {
    let timeline = stream.timeline_by(crate::KEY);
    match last {
        Some((of, on, noted)) if *of == communicator && Arc::ptr_eq(on, timeline) => *noted = submission,
        _ => *last = Some((communicator, timeline.clone(), submission)),
    }
}
