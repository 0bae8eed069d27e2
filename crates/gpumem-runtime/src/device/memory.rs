//! Where a device takes its memory from, and when it gives it back.

use super::Device;
use gpumem_core::{Backend, MemoryKind, Result};
use gpumem_memory::{
    may_block,
    memory::{
        DeferCleanup, DeferredLimits, DriverMemory, Exhausted, MemoryReport, MemoryRequest, MemoryResource,
        PoolOptions, ReclaimHook, Trim, check_outside_resource, default_options,
    },
};
use std::sync::Arc;

impl<B: Backend> Device<B> {
    /// Returns the resource that serves a kind of memory. Where none has been set: a [`Pool`](crate::memory::Pool)
    /// over the driver, or the driver itself if the environment variable [`GPUMEM_POOL`](crate::memory::ENV_POOL) is
    /// `off`.
    /// ```
    /// # use gpumem_core::MemoryKind; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.device_array::<f32, _>(1000)?;
    /// let pool = device.memory_resource(MemoryKind::Device)?;
    /// assert!(pool.statistics().allocated >= array.byte_len());
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) for registered memory, which is the caller's.
    pub fn memory_resource(&self, kind: MemoryKind) -> Result<Arc<dyn MemoryResource<B>>> {
        self.core().check("memory_resource")?;
        self.core().memory.shared(self.core(), "memory_resource", kind)
    }

    /// Makes `resource` serve a kind of memory from now on. Earlier blocks return to the resource that made them.
    /// Returns that resource, if there was one. A resource without such blocks is dropped when another one needs its place. This is what Numba's memory manager plug-in does.
    /// ```
    /// # use {gpumem_core::MemoryKind, gpumem_runtime::memory::LimitingResource, std::sync::Arc};
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let pool = device.memory_resource(MemoryKind::Device)?;
    /// let limited = Arc::new(LimitingResource::new(pool, 1 << 20));
    /// let before = device.set_memory_resource(MemoryKind::Device, limited)?;
    /// assert!(device.device_array::<u8, _>(2 << 20).is_err()); // more than the limit
    /// if let Some(before) = before {
    ///     device.set_memory_resource(MemoryKind::Device, before)?;
    /// }
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) for registered memory, and for more than 64
    /// different resources that serve a kind or have served an array that is left. Where the place of another one is needed in
    /// a callback, returns [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback).
    pub fn set_memory_resource(
        &self,
        kind: MemoryKind,
        resource: Arc<dyn MemoryResource<B>>,
    ) -> Result<Option<Arc<dyn MemoryResource<B>>>> {
        self.core().check("set_memory_resource")?;
        let set = self.core().memory.set(self.core(), "set_memory_resource", kind, resource);
        set.map_err(|error| self.core().place(error))
    }

    /// Makes a request to a resource as an array of this device would, to try a resource out by itself. Blocks go
    /// back to the resource, and not to the device.
    ///
    /// ```
    /// # use {gpumem_runtime::{memory::MemoryResource, Device}, gpumem_core::MemoryKind};
    /// # let device = Device::<gpumem_host::Host>::open("host")?;
    /// let pool = device.memory_resource(MemoryKind::Device)?;
    /// let block = pool.allocate(&device.memory_request(1000, MemoryKind::Device))?;
    /// assert!(block.bytes() >= 1000);
    /// assert!(pool.recycle(block).is_ok()); // a pool takes blocks back without the driver
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    pub fn memory_request(&self, bytes: usize, kind: MemoryKind) -> MemoryRequest<'_, B> {
        // As for an array: pools that were tried out have left their pieces in the queue.
        let core = self.core();
        if core.is_usable() && check_outside_resource("memory_request").is_ok() {
            core.deferred_frees.sweep(core);
        }
        let memory = (bytes, self.capabilities().allocation_alignment, kind);
        MemoryRequest::new(core, self.stream_hint(), memory, "memory_request", false)
    }

    /// Returns the driver as a resource, to put others around it. It serves every kind of memory.
    pub fn driver_memory(&self) -> Arc<dyn MemoryResource<B>> {
        Arc::new(DriverMemory::new(self.core()))
    }

    /// Returns the default options of the pool of a kind of memory.
    pub fn pool_options(&self, kind: MemoryKind) -> PoolOptions {
        default_options(self.core(), kind)
    }

    /// Returns idle memory of pools to the driver, as far as `how` says, and the number of bytes. Inside
    /// [`defer_cleanup`](Self::defer_cleanup) none.
    /// ```
    /// # use gpumem_runtime::memory::Trim; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// drop(device.device_array::<f32, _>(1 << 20)?);
    /// let bytes = device.trim(Trim::ALL)?;
    /// assert!(bytes >= 4 << 20);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback, for a trim that
    /// waits. Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) inside a memory resource, which the trim
    /// would call again. A piece that cannot be freed goes to [`take_errors`](Self::take_errors).
    pub fn trim(&self, how: Trim) -> Result<usize> {
        if how.wait {
            may_block("trim")?;
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
    /// that finds no memory fails at once, saying why. Memory that a pool has taken back is allocated again all the same.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let critical = device.defer_cleanup();
    /// drop(device.device_array::<f32, _>(1000)?); // frees nothing
    /// drop(critical);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    pub fn defer_cleanup(&self) -> DeferCleanup<B> {
        DeferCleanup::new(self.core())
    }

    /// Adds a hook that is asked to free memory when an allocation finds none, before it waits for memory in flight and before it
    /// fails. A cache that drops an array there makes room for the request at once, also where work still uses the array.
    ///
    /// The hook runs on the thread that allocates, under no lock of the library. `true` says that it has freed something: the
    /// allocation is repeated, and if it fails, the hook is asked again, at most 16 times for one allocation. Several hooks are asked
    /// in the order in which they were added. What it allocates itself asks no hook. A panic counts as `false` and goes to
    /// [`take_errors`](Self::take_errors). No hook is asked inside [`defer_cleanup`](Self::defer_cleanup), in a callback, or inside a
    /// memory resource.
    ///
    /// An allocation is made wherever the program makes one: a hook that takes a lock takes it by `try_lock` if its program allocates
    /// under that lock.
    /// ```
    /// # use {gpumem_runtime::memory::LimitingResource, gpumem_core::MemoryKind, std::sync::{Arc, Mutex}};
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// # let pool = device.memory_resource(MemoryKind::Device)?;
    /// # device.set_memory_resource(MemoryKind::Device, Arc::new(LimitingResource::new(pool, 4 << 20)))?;
    /// let cache = Arc::new(Mutex::new(vec![device.device_array::<u8, _>(3 << 20)?]));
    /// let cached = cache.clone();
    /// let hook = device.on_exhaustion(move |need| {
    ///     println!("{} bytes for {} are missing", need.bytes, need.operation);
    ///     cached.try_lock().is_ok_and(|mut cache| cache.pop().is_some())
    /// })?;
    /// let array = device.device_array::<u8, _>(2 << 20)?; // of 4 MiB in all
    /// assert!(cache.lock().is_ok_and(|cache| cache.is_empty()));
    /// drop(hook); // removes it
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ForkedChild`](gpumem_core::ErrorKind::ForkedChild) in a forked child, and
    /// [`Exiting`](gpumem_core::ErrorKind::Exiting) at the end of the process.
    pub fn on_exhaustion(
        &self,
        hook: impl Fn(&Exhausted) -> bool + Send + Sync + 'static,
    ) -> Result<ReclaimHook> {
        self.core().check_process("on_exhaustion")?;
        Ok(self.core().reclaim.add(hook))
    }

    /// Returns how much may be pending before an allocation frees it.
    pub fn deferred_limits(&self) -> DeferredLimits {
        self.core().deferred_frees.limits()
    }

    /// Sets how much may be pending before an allocation frees it.
    pub fn set_deferred_limits(&self, limits: DeferredLimits) {
        self.core().deferred_frees.set_limits(limits, self.info().total_memory);
    }

    /// Returns the number and the bytes of items that have been dropped and wait to be freed.
    pub fn pending_frees(&self) -> (usize, usize) {
        self.core().deferred_frees.pending_frees()
    }

    /// Returns what holds the memory of the device, as text (`Display`) and as JSON. It queries the driver for the free
    /// memory.
    /// ```
    /// # use gpumem_runtime::memory; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let weights = memory::named("weights", || device.device_array::<f32, _>(1000))?;
    /// println!("{}", device.memory_report()?); // weights: 4000 bytes, ..
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ForkedChild`](gpumem_core::ErrorKind::ForkedChild) in a forked child,
    /// [`Exiting`](gpumem_core::ErrorKind::Exiting) at the end of the process, and
    /// [`Unsupported`](gpumem_core::ErrorKind::Unsupported) inside a memory resource.
    pub fn memory_report(&self) -> Result<MemoryReport> {
        const OPERATION: &str = "memory_report";
        self.core().check_process(OPERATION)?;
        check_outside_resource(OPERATION).map_err(|error| self.core().place(error))?;
        Ok(MemoryReport::of(self.core()))
    }
}
