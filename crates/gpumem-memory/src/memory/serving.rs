//! A resource as the device calls it: faults of a user's resource are caught here.

use super::{
    ResourceReport,
    resource::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, Trim},
};
use crate::{track::ErrorQueue, user_code};
use gpumem_core::{Backend, Error, ErrorKind, Result};
use std::cell::Cell;

/// Most resources of one chain that a report looks at: one that says that it takes its memory from itself has no end.
const DEEPEST: usize = 64;

thread_local! {
    /// Whether this thread is inside a resource that may be the user's.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Restores the earlier state of the thread.
struct Restore(bool);

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = IS_INSIDE.try_with(|inside| inside.set(self.0));
    }
}

/// Tells whether this thread is inside a memory resource that may be the user's. A call of all resources of a device
/// from there would call this one again, without end.
pub(crate) fn is_inside_resource() -> bool {
    IS_INSIDE.try_with(Cell::get).unwrap_or_default()
}

/// Refuses calls of all resources of a device, inside one.
///
/// # Errors
/// Returns [`ErrorKind::Unsupported`] if this thread is inside a memory resource.
pub fn check_outside_resource(operation: &'static str) -> Result<()> {
    let what = "flushing or trimming a device inside a memory resource";
    match is_inside_resource() {
        false => Ok(()),
        true => Err(Error::new("", operation, ErrorKind::Unsupported { what })),
    }
}

/// A resource that serves a device. Those that the library has made itself are called as they are.
pub struct Serving<'a, B: Backend> {
    /// The resource.
    pub resource: &'a dyn MemoryResource<B>,
    /// Whether code of the user may run in it.
    pub is_foreign: bool,
}

impl<B: Backend> Clone for Serving<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for Serving<'_, B> {}

/// A panic of a resource as an error.
fn panicked(operation: &'static str, message: String) -> Error {
    Error::new("", operation, ErrorKind::UserCodePanicked { what: "a memory resource", message })
}

impl<'a, B: Backend> Serving<'a, B> {
    /// Calls the resource. Fails only if it panics.
    #[inline]
    fn call<R>(
        self,
        operation: &'static str,
        call: impl FnOnce(&'a dyn MemoryResource<B>) -> R,
    ) -> Result<R> {
        match self.is_foreign {
            false => Ok(call(self.resource)),
            true => self.call_foreign(operation, call),
        }
    }

    #[cold]
    fn call_foreign<R>(
        self,
        operation: &'static str,
        call: impl FnOnce(&'a dyn MemoryResource<B>) -> R,
    ) -> Result<R> {
        let _restore = Restore(IS_INSIDE.try_with(|inside| inside.replace(true)).unwrap_or(true));
        user_code::run(|| call(self.resource)).map_err(|message| panicked(operation, message))
    }

    /// As [`MemoryResource::allocate`]. The library's own resources are called without `call`, which would move
    /// the block once more for each array.
    #[inline]
    pub fn allocate(self, request: &MemoryRequest<'_, B>) -> Result<MemoryBlock<B>> {
        match self.is_foreign {
            false => self.resource.allocate(request),
            true => self.call_foreign(request.operation, |resource| resource.allocate(request))?,
        }
    }

    /// As [`MemoryResource::recycle`]. A block whose resource panics is leaked. The library's own resources are called without
    /// `call`, as in [`allocate`](Self::allocate).
    #[inline]
    pub fn recycle(self, errors: &ErrorQueue, block: MemoryBlock<B>) -> Result<(), MemoryBlock<B>> {
        match self.is_foreign {
            false => self.resource.recycle(block),
            true => self.recycle_foreign(errors, block),
        }
    }

    #[cold]
    fn recycle_foreign(self, errors: &ErrorQueue, block: MemoryBlock<B>) -> Result<(), MemoryBlock<B>> {
        self.call_foreign("recycle", |resource| resource.recycle(block)).unwrap_or_else(|error| {
            errors.push(error);
            Ok(())
        })
    }

    /// As [`MemoryResource::deallocate`].
    pub(crate) fn deallocate(self, block: MemoryBlock<B>) -> Result<()> {
        self.call("deallocate", |resource| resource.deallocate(block))?
    }

    /// As [`MemoryResource::trim`].
    pub(crate) fn trim(self, how: Trim, failed: &mut dyn FnMut(Error)) -> usize {
        let outcome = self.call("trim", |resource| resource.trim(how, failed));
        outcome.unwrap_or_else(|error| {
            failed(error);
            0
        })
    }

    /// As [`MemoryResource::forget`].
    pub fn forget(self, errors: &ErrorQueue) {
        if let Err(error) = self.call("forget", |resource| resource.forget()) {
            errors.push(error);
        }
    }

    /// Its name, and the bytes that it holds; `None` if it panics.
    pub(crate) fn report(self) -> ResourceReport {
        let report = |resource: &dyn MemoryResource<B>| (resource.name(), resource.statistics());
        let (resource, statistics) = self.call("statistics", report).unwrap_or_else(|error| {
            tracing::error!(%error, "a memory resource cannot be asked");
            ("unknown", MemoryStatistics::default())
        });
        ResourceReport { resource, statistics }
    }

    /// The resource itself, its upstream resource, and so on to the driver.
    pub(crate) fn chain(self) -> impl Iterator<Item = Self> {
        let next = |serving: &Self| {
            let upstream = serving.call("upstream", |resource| resource.upstream()).ok().flatten();
            upstream.map(|resource| Self { resource, ..*serving })
        };
        std::iter::successors(Some(self), next).take(DEEPEST)
    }

    /// As [`MemoryResource::driver_block`].
    pub fn driver_block(self, block: &MemoryBlock<B>) -> (u64, usize) {
        let found = self.call("driver_block", |resource| resource.driver_block(block));
        found.unwrap_or_else(|_| (block.address(), block.bytes()))
    }
}

impl<B: Backend> std::fmt::Debug for Serving<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving").finish_non_exhaustive()
    }
}
