//! Memory that the library knows: it may then move the bytes without copying them to buffers of its own.
//!
//! A registration holds the memory, so the library never knows addresses that the driver has given to others.

use super::{Link, calls::pointer, join::driver, link::Handle};
use crate::{call::Place, report};
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_runtime::internal::may_block;
use gpumem_sys::nccl::{Failure, ncclComm_t};
use std::{collections::HashMap, ffi::c_void, ops::Range, ptr::null_mut, sync::PoisonError};

/// What the library gives for memory that it knows.
#[derive(Debug, Clone, Copy)]
struct Registered(*mut c_void);

// SAFETY: the library's functions take it on any thread.
unsafe impl Send for Registered {}

/// The registered memory of a communicator: by allocation and bytes, with how often they were registered.
pub(super) struct Registrations<B: Backend>(HashMap<(u64, Range<usize>), Entry<B>>);

struct Entry<B: Backend> {
    count: usize,
    handle: Registered,
    /// Holds the memory.
    _place: Place<'static, B>,
}

impl<B: Backend> Registrations<B> {
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }
}

fn key<B: Backend>(place: &Place<'_, B>) -> (u64, Range<usize>) {
    (place.memory.id(), place.extent.clone())
}

impl<B: Backend> Link<B> {
    /// Tells the library of memory.
    pub(super) fn register(&self, place: Place<'_, B>) -> Result<()> {
        const OPERATION: &str = "register";
        self.wait_ready(OPERATION)?;
        if place.extent.is_empty() {
            return Ok(());
        }
        // The order first, as for an operation: no other call of the communicator meanwhile.
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        // Within the order and before the state, as everywhere.
        let mut registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = registered.0.get_mut(&key(&place)) {
            entry.count += 1;
            return Ok(());
        }
        let at = key(&place);
        let (library, bytes, mut handle) = (self.library, place.extent.len(), null_mut());
        self.call_library(OPERATION, |communicator| {
            let address = pointer(place.address());
            // SAFETY: the communicator is alive. The bytes are the array's, and are held below while the library knows them.
            library.check(unsafe { library.ncclCommRegister(communicator, address, bytes, &mut handle) })
        })?;
        let entry = Entry { count: 1, handle: Registered(handle), _place: place.into_owned() };
        registered.0.insert(at, entry);
        Ok(())
    }

    /// Takes back one registration of memory. The last one waits for operations under way.
    pub(super) fn deregister(&self, place: &Place<'_, B>) -> Result<()> {
        const OPERATION: &str = "deregister";
        may_block(OPERATION)?;
        self.wait_ready(OPERATION)?;
        if place.extent.is_empty() {
            return Ok(());
        }
        // Dropped without the locks, after the return: the memory may go back to a resource, which is code of the user.
        self.deregister_in_order(place).map(drop)
    }

    /// As [`deregister`](Self::deregister), in the order of the calls. Returns what has held the memory.
    fn deregister_in_order(&self, place: &Place<'_, B>) -> Result<Option<Entry<B>>> {
        const OPERATION: &str = "deregister";
        // Before the look at what is under way: no operation is begun that could still use the memory.
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let pending: Vec<_> = {
            // Only to copy what is under way, which is waited for without the lock.
            let state = self.lock();
            state.pending.iter().map(|pending| (pending.timeline.clone(), pending.submission)).collect()
        };
        let handle = {
            // Only to look: it is waited for, and the library called, without this lock.
            let mut registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(entry) = registered.0.get_mut(&key(place)) else {
                let why = "the array is not registered with this communicator";
                return Err(self
                    .device
                    .core_by(crate::KEY)
                    .error(OPERATION, ErrorKind::InvalidArgument { why }));
            };
            if entry.count > 1 {
                entry.count -= 1;
                return Ok(None);
            }
            entry.handle.0
        };
        for (timeline, submission) in pending {
            let outcome = timeline.wait_host(submission);
            // A failure of what is over is told to those who wait for the stream.
            if !outcome.done {
                return outcome.result.map(|()| None).map_err(|error| error.in_operation(OPERATION));
            }
        }
        let library = self.library;
        self.call_library(OPERATION, |communicator| {
            // SAFETY: the communicator is alive, and the handle is its own, which it still knows.
            library.check(unsafe { library.ncclCommDeregister(communicator, handle) })
        })?;
        // Held until the library has let it go.
        Ok(self.registered.lock().unwrap_or_else(PoisonError::into_inner).0.remove(&key(place)))
    }

    /// Takes back all registrations, before the communicator is freed. Nothing of it is under way.
    pub(super) fn deregister_all(&self, communicator: ncclComm_t) {
        let library = self.library;
        // Over the calls: the communicator ends, so no other thread registers with it.
        let registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        for Entry { handle: Registered(handle), .. } in registered.0.values() {
            // SAFETY: as in `deregister`.
            let status =
                self.device.with_current(|| unsafe { library.ncclCommDeregister(communicator, *handle) });
            if let Err(failure) = library.check(status) {
                // By a subscriber, without the lock.
                report::note(format!("memory was not deregistered: {failure}"));
            }
        }
    }

    /// Lets the memory go, of which the library knows nothing any more.
    pub(super) fn forget_registrations(&self) {
        let mut registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        let held = std::mem::replace(&mut *registered, Registrations::new());
        drop(registered);
        drop(held);
    }

    /// Calls the library, which keeps the communicator meanwhile. The caller holds the order of its calls.
    fn call_library(
        &self,
        operation: &'static str,
        body: impl FnOnce(ncclComm_t) -> Result<(), Failure>,
    ) -> Result<()> {
        let (mut state, Handle(communicator)) = self.lock_ready(operation)?;
        state.begin_call();
        // The library is called without the lock; `is_calling` keeps the communicator.
        drop(state);
        let done = self.device.with_current(|| {
            self.enter();
            body(communicator)
        });
        // Only for this: who ends the communicator waits for it.
        self.lock().end_call(self);
        self.changed.notify_all();
        done.map_err(|failure| self.device.core_by(crate::KEY).error(operation, driver(&failure)))
    }
}
