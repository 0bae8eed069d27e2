//! A resource as the device calls it: faults of a user's resource are caught here.

use super::{
    ResourceReport,
    chain::DEEPEST,
    resource::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, Trim},
};
use crate::{track::ErrorQueue, user_code};
use gpumem_core::{Backend, Error, ErrorKind, Result};
use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

crate::thread_mark! {
    /// Whether this thread is inside a resource that may be the user's.
    IS_INSIDE
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
    let what = "a call of all memory resources of a device inside one";
    match is_inside_resource() {
        false => Ok(()),
        true => Err(Error::new("", operation, ErrorKind::Unsupported { what })),
    }
}

/// A resource that serves a device. Those that the library has made itself are called as they are.
pub enum Serving<'a, B: Backend> {
    /// Made by the library.
    Own(&'a dyn MemoryResource<B>),
    /// Set by the user, whose code may run in it.
    Foreign(Arc<ForeignResource<B>>),
}

/// A resource that the user has set, and the number of its blocks that are not back yet.
pub struct ForeignResource<B: Backend> {
    pub(super) resource: Arc<dyn MemoryResource<B>>,
    blocks: AtomicUsize,
}

impl<B: Backend> ForeignResource<B> {
    pub(super) fn new(resource: Arc<dyn MemoryResource<B>>) -> Self {
        Self { resource, blocks: AtomicUsize::new(0) }
    }

    /// Blocks that name the resource by its number.
    pub(super) fn blocks(&self) -> usize {
        // Acquire: at 0 everything that was done with the blocks has been done.
        self.blocks.load(Ordering::Acquire)
    }

    /// A block is back, or lost in the resource: nothing names the resource for it any more.
    fn take_back(&self) {
        // AcqRel: the resource has the block by now; each count passes on those before it.
        self.blocks.fetch_sub(1, Ordering::AcqRel);
    }

    /// Calls the resource. Fails only if it panics.
    #[cold]
    fn call<'s, R>(
        &'s self,
        operation: &'static str,
        call: impl FnOnce(&'s dyn MemoryResource<B>) -> R,
    ) -> Result<R> {
        // Restored in a panic too, which is caught below.
        let _inside = user_code::mark(&IS_INSIDE);
        user_code::run(|| call(&*self.resource)).map_err(|message| panicked(operation, message))
    }

    #[cold]
    fn allocate(&self, request: &MemoryRequest<'_, B>) -> Result<MemoryBlock<B>> {
        let block = self.call(request.operation, |resource| resource.allocate(request))??;
        // AcqRel: before the handle of the resource goes, which `unused` looks at first.
        self.blocks.fetch_add(1, Ordering::AcqRel);
        Ok(block)
    }

    #[cold]
    fn recycle(&self, errors: &ErrorQueue, block: MemoryBlock<B>) -> Result<(), MemoryBlock<B>> {
        let recycled = self.call("recycle", |resource| resource.recycle(block)).unwrap_or_else(|error| {
            errors.push(error);
            Ok(())
        });
        if recycled.is_ok() {
            self.take_back();
        }
        recycled
    }
}

/// A panic of a resource as an error.
pub(super) fn panicked(operation: &'static str, message: String) -> Error {
    Error::new("", operation, ErrorKind::UserCodePanicked { what: "a memory resource", message })
}

impl<B: Backend> Serving<'_, B> {
    /// Calls the resource. Fails only if it panics.
    #[inline]
    fn call<'s, R>(
        &'s self,
        operation: &'static str,
        call: impl FnOnce(&'s dyn MemoryResource<B>) -> R,
    ) -> Result<R> {
        match self {
            Self::Own(resource) => Ok(call(*resource)),
            Self::Foreign(foreign) => foreign.call(operation, call),
        }
    }

    /// Whether the user has set it, so that its blocks are to be checked.
    #[inline]
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Foreign(_))
    }

    /// As [`MemoryResource::allocate`]. The library's own resources are called without `call`, which would move
    /// the block once more for each array.
    #[inline]
    pub fn allocate(&self, request: &MemoryRequest<'_, B>) -> Result<MemoryBlock<B>> {
        match self {
            Self::Own(resource) => resource.allocate(request),
            Self::Foreign(foreign) => foreign.allocate(request),
        }
    }

    /// As [`MemoryResource::recycle`]. A block whose resource panics is leaked. The library's own resources are called without
    /// `call`, as in [`allocate`](Self::allocate).
    #[inline]
    pub fn recycle(&self, errors: &ErrorQueue, block: MemoryBlock<B>) -> Result<(), MemoryBlock<B>> {
        match self {
            Self::Own(resource) => resource.recycle(block),
            Self::Foreign(foreign) => foreign.recycle(errors, block),
        }
    }

    /// As [`MemoryResource::deallocate`].
    pub(crate) fn deallocate(&self, block: MemoryBlock<B>) -> Result<()> {
        let outcome = self.call("deallocate", |resource| resource.deallocate(block));
        // Also if the resource has panicked: the block is lost in it.
        if let Self::Foreign(foreign) = self {
            foreign.take_back();
        }
        outcome?
    }

    /// Notes that a block does not come back: a reset has taken its memory, or it is leaked.
    pub fn note_lost_block(&self) {
        if let Self::Foreign(foreign) = self {
            foreign.take_back();
        }
    }

    /// As [`MemoryResource::trim`].
    pub(crate) fn trim(&self, how: Trim, failed: &mut dyn FnMut(Error)) -> usize {
        let outcome = self.call("trim", |resource| resource.trim(how, failed));
        outcome.unwrap_or_else(|error| {
            failed(error);
            0
        })
    }

    /// As [`MemoryResource::forget`].
    pub fn forget(&self, errors: &ErrorQueue) {
        if let Err(error) = self.call("forget", |resource| resource.forget()) {
            errors.push(error);
        }
    }

    /// Its name, and the bytes that it holds.
    pub fn report(&self) -> ResourceReport {
        self.report_of(self.resource())
    }

    fn resource(&self) -> &dyn MemoryResource<B> {
        match self {
            Self::Own(resource) => *resource,
            Self::Foreign(foreign) => &*foreign.resource,
        }
    }

    /// The report of the resource or one below it; of one that panics, an empty one.
    fn report_of(&self, resource: &dyn MemoryResource<B>) -> ResourceReport {
        let report = |_: &dyn MemoryResource<B>| (resource.name(), resource.statistics());
        let (resource, statistics) = self.call("statistics", report).unwrap_or_else(|error| {
            gpumem_core::tell!(error: %error, "a memory resource cannot be asked");
            ("unknown", MemoryStatistics::default())
        });
        ResourceReport { resource, statistics }
    }

    /// The reports of the resource itself, of its upstream resource, and so on to the driver.
    pub(crate) fn reports(&self) -> Vec<ResourceReport> {
        let (mut reports, mut next) = (Vec::new(), Some(self.resource()));
        while let Some(resource) = next.filter(|_| reports.len() < DEEPEST) {
            reports.push(self.report_of(resource));
            next = self.call("upstream", |_| resource.upstream()).ok().flatten();
        }
        reports
    }

    /// As [`MemoryResource::driver_block`].
    pub fn driver_block(&self, block: &MemoryBlock<B>) -> (u64, usize) {
        let found = self.call("driver_block", |resource| resource.driver_block(block));
        found.unwrap_or_else(|_| (block.address(), block.bytes()))
    }
}

impl<B: Backend> std::fmt::Debug for ForeignResource<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForeignResource").field("blocks", &self.blocks).finish_non_exhaustive()
    }
}

impl<B: Backend> std::fmt::Debug for Serving<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving").finish_non_exhaustive()
    }
}
