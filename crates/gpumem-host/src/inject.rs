//! Injected failures, for tests of the layers above.

use crate::sync::lock;
use gpumem_core::ErrorKind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A call of the backend that can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// `allocate`.
    Allocate,
    /// `release`.
    Release,
    /// `register`.
    Register,
    /// `create_stream`.
    CreateStream,
    /// `destroy_stream`; the stream is destroyed all the same.
    DestroyStream,
    /// `create_event`.
    CreateEvent,
    /// `copy`.
    Copy,
    /// `copy_strided`.
    CopyStrided,
    /// `fill`.
    Fill,
    /// `prefetch`.
    Prefetch,
    /// `record`.
    Record,
    /// `wait` of a stream for an event.
    Wait,
    /// `compile`.
    Compile,
    /// `launch`.
    Launch,
    /// `enqueue_future`.
    Future,
    /// `synchronize` of a stream, an event or the device. It fails after it has waited.
    Synchronize,
    /// `query` of a stream or an event.
    Query,
    /// `memory_info`.
    MemoryInfo,
    /// `reset`.
    Reset,
}

/// A failure to come: see [`Device::inject`](crate::Device::inject).
///
/// * An [`ErrorKind::AsynchronousFault`] in a copy, strided copy, fill or launch lets the call succeed; the command
///   then faults when its turn comes, without touching memory.
/// * An [`ErrorKind::DeviceLost`] loses the device, as [`Device::lose`](crate::Device::lose).
/// * Every other kind fails the call itself, which then does nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Injection {
    /// The call that fails.
    pub operation: Operation,
    /// How many calls of that operation succeed before.
    pub after: u64,
    /// How many calls fail in a row.
    pub times: u64,
    /// How they fail.
    pub kind: ErrorKind,
}

impl Injection {
    /// The next call of `operation` fails.
    pub fn next(operation: Operation, kind: ErrorKind) -> Self {
        Self { operation, after: 0, times: 1, kind }
    }

    /// So many calls succeed before the one that fails.
    #[must_use]
    pub fn after(mut self, calls: u64) -> Self {
        self.after = calls;
        self
    }

    /// So many calls fail in a row.
    #[must_use]
    pub fn times(mut self, calls: u64) -> Self {
        self.times = calls;
        self
    }
}

/// The failures to come of one device.
#[derive(Debug, Default)]
pub(crate) struct Injections {
    any: AtomicBool,
    list: Mutex<Vec<Injection>>,
}

impl Injections {
    pub(crate) fn add(&self, injection: Injection) {
        let mut list = lock(&self.list);
        list.push(injection);
        self.any.store(true, Ordering::Release);
    }

    pub(crate) fn clear(&self) {
        let mut list = lock(&self.list);
        list.clear();
        self.any.store(false, Ordering::Release);
    }

    /// Whether a failure is to come.
    pub(crate) fn has_any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Counts a call, and says how it fails. Costs one load where nothing was injected.
    pub(crate) fn strike(&self, operation: Operation) -> Option<ErrorKind> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let mut list = lock(&self.list);
        let mut struck = None;
        for injection in list.iter_mut().filter(|injection| injection.operation == operation) {
            if injection.after > 0 {
                injection.after -= 1;
            } else if struck.is_none() && injection.times > 0 {
                injection.times -= 1;
                struck = Some(injection.kind.clone());
            }
        }
        list.retain(|injection| injection.times > 0);
        self.any.store(!list.is_empty(), Ordering::Release);
        struck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_call_fails_and_no_other() {
        let injections = Injections::default();
        injections.add(Injection::next(Operation::Copy, ErrorKind::NotReady).after(1).times(2));
        let struck: Vec<bool> = (0..5).map(|_| injections.strike(Operation::Copy).is_some()).collect();
        assert_eq!(struck, [false, true, true, false, false]);
        injections.add(Injection::next(Operation::Fill, ErrorKind::NotReady));
        assert_eq!(injections.strike(Operation::Copy), None);
        injections.clear();
        assert_eq!(injections.strike(Operation::Fill), None);
    }
}
