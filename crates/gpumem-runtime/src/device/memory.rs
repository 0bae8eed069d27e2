//! Where a device takes its memory from, and when it gives it back.

use super::Device;
use crate::{
    completion,
    memory::{
        DeferCleanup, DeferredLimits, DriverMemory, MemoryReport, MemoryRequest, MemoryResource, PoolOptions,
        Trim, check_outside_resource, default_options,
    },
};
use gpumem_core::{Backend, MemoryKind, Result};
use std::sync::Arc;

impl<B: Backend> Device<B> {
    /// The resource that serves a kind of memory. Where none has been set: a [`Pool`](crate::memory::Pool) over the
    /// driver, or the driver itself if the environment variable [`GPUMEM_POOL`](crate::memory::ENV_POOL) is `off`.
    ///
    /// # Errors
    /// [`Unsupported`](gpumem_core::ErrorKind::Unsupported) for registered memory, which is the caller's.
    pub fn memory_resource(&self, kind: MemoryKind) -> Result<Arc<dyn MemoryResource<B>>> {
        self.core().check("memory_resource")?;
        self.core().memory.shared(self.core(), "memory_resource", kind)
    }

    /// Lets `resource` serve a kind of memory from now on. What was made before goes back to the resource that made it.
    /// Returns that one, if there has been one. This is what Numba's memory manager plug-in does.
    ///
    /// # Errors
    /// [`Unsupported`](gpumem_core::ErrorKind::Unsupported) for registered memory, and for more than 64 different
    /// resources in the lifetime of a device.
    pub fn set_memory_resource(
        &self,
        kind: MemoryKind,
        resource: Arc<dyn MemoryResource<B>>,
    ) -> Result<Option<Arc<dyn MemoryResource<B>>>> {
        self.core().check("set_memory_resource")?;
        let set = self.core().memory.set("set_memory_resource", kind, resource);
        set.map_err(|error| self.core().place(error))
    }

    /// A request to a resource, as an array of this device would make it: for trying a resource out by itself. Blocks go
    /// back to the resource, and not to the device.
    ///
    /// ```
    /// # use gpumem_runtime::{memory::MemoryResource, Device};
    /// # use gpumem_core::MemoryKind;
    /// # let device = Device::<gpumem_host::Host>::open("host")?;
    /// let pool = device.memory_resource(MemoryKind::Device)?;
    /// let block = pool.allocate(&device.memory_request(1000, MemoryKind::Device))?;
    /// assert!(block.bytes() >= 1000);
    /// assert!(pool.recycle(block).is_ok()); // a pool takes blocks back without the driver
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    pub fn memory_request(&self, bytes: usize, kind: MemoryKind) -> MemoryRequest<'_, B> {
        MemoryRequest {
            bytes,
            align: self.capabilities().allocation_alignment,
            kind,
            operation: "memory_request",
            host_first: false,
            stream: self.stream_hint(),
            core: self.core(),
        }
    }

    /// The driver as a resource, to put others around it. It serves every kind of memory.
    pub fn driver_memory(&self) -> Arc<dyn MemoryResource<B>> {
        Arc::new(DriverMemory::new(self.core()))
    }

    /// How the pool of a kind of memory is set up by default.
    pub fn pool_options(&self, kind: MemoryKind) -> PoolOptions {
        default_options(self.core(), kind)
    }

    /// Gives memory that pools hold and that is not allocated, as far as `how` says. Bytes that went back.
    /// Inside [`defer_cleanup`](Self::defer_cleanup) none.
    ///
    /// # Errors
    /// [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) for a trim that waits.
    /// [`Unsupported`](gpumem_core::ErrorKind::Unsupported) inside a memory resource, which the trim would call again. A piece that cannot be given back goes to
    /// [`take_errors`](Self::take_errors).
    pub fn trim(&self, how: Trim) -> Result<usize> {
        if how.wait {
            completion::may_block("trim")?;
        }
        self.core().check("trim")?;
        check_outside_resource("trim").map_err(|error| self.core().place(error))?;
        Ok(match self.core().deferred_frees.is_deferred() {
            true => 0,
            false => self.core().trim_all(how),
        })
    }

    /// Defers cleanup on this device until the result is dropped. May be nested.
    ///
    /// Inside, nothing is freed, trimmed or waited for: [`flush`](Self::flush) and [`trim`](Self::trim) do nothing, and an allocation
    /// that finds no memory fails at once, saying why. Memory that a pool has taken back is lent again all the same.
    pub fn defer_cleanup(&self) -> DeferCleanup<B> {
        DeferCleanup::new(self.core())
    }

    /// How much may be pending before an allocation gives it back.
    pub fn deferred_limits(&self) -> DeferredLimits {
        self.core().deferred_frees.limits()
    }

    /// Changes how much may be pending before an allocation gives it back.
    pub fn set_deferred_limits(&self, limits: DeferredLimits) {
        self.core().deferred_frees.set_limits(limits, self.info().total_memory);
    }

    /// Items and bytes that have been dropped and wait to be given back.
    pub fn pending_frees(&self) -> (usize, usize) {
        self.core().deferred_frees.pending_frees()
    }

    /// Who holds the memory of the device, as text (`Display`) and as JSON. Asks the driver how much is free.
    ///
    /// # Errors
    /// [`ForkedChild`](gpumem_core::ErrorKind::ForkedChild) in a forked child, [`Exiting`](gpumem_core::ErrorKind::Exiting) at
    /// the end of the process.
    pub fn memory_report(&self) -> Result<MemoryReport> {
        self.core().check_process("memory_report")?;
        Ok(MemoryReport::of(self.core()))
    }
}
