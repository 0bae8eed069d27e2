//! Which resource serves which kind of memory, on one device.

use super::{DriverMemory, MemoryResource, Pool, PoolOptions, serving::Serving};
use crate::{memory::DeviceCore, sync::Mutex};
use gpumem_core::{Backend, Error, ErrorKind, MemoryKind, Result, process::page_size};
use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Environment variable: `off` takes memory straight from the driver, unless the program has set a resource.
pub const ENV_POOL: &str = "GPUMEM_POOL";

/// Kinds of memory that have a resource of their own.
const KINDS: usize = MemoryKind::ALLOCATED.len();
/// Resources of a device in its lifetime. A block names its resource by a number, so that no count has to be kept.
const MOST: usize = 64;

/// The resources of a device. They are never taken out before the device is gone: blocks refer to them by number.
pub struct ResourceTable<B: Backend> {
    resources: [OnceLock<TableEntry<B>>; MOST],
    count: Mutex<usize>,
    /// For each kind the number of its resource, plus 1; 0 before its first use.
    current: [AtomicUsize; KINDS],
    /// The resource that frees memory that was not allocated, with its number.
    external_owner: OnceLock<(u8, Arc<DriverMemory<B>>)>,
}

/// A resource, and whether the user has set it: then code of the user may run in it.
struct TableEntry<B: Backend> {
    resource: Arc<dyn MemoryResource<B>>,
    is_foreign: bool,
}

impl<B: Backend> TableEntry<B> {
    #[inline]
    fn serving(&self) -> Serving<'_, B> {
        Serving { resource: &*self.resource, is_foreign: self.is_foreign }
    }
}

impl<B: Backend> ResourceTable<B> {
    pub(crate) fn new() -> Self {
        Self {
            resources: [const { OnceLock::new() }; MOST],
            count: Mutex::new(0),
            current: [const { AtomicUsize::new(0) }; KINDS],
            external_owner: OnceLock::new(),
        }
    }

    /// The resource of that number.
    #[inline]
    pub fn get(&self, number: u8) -> Option<Serving<'_, B>> {
        self.resources.get(usize::from(number))?.get().map(TableEntry::serving)
    }

    /// The resource that serves a kind now, with its number.
    #[inline]
    pub fn serving(
        &self,
        core: &Arc<DeviceCore<B>>,
        operation: &'static str,
        kind: MemoryKind,
    ) -> Result<(u8, Serving<'_, B>)> {
        let unfit = |what| core.error(operation, ErrorKind::Unsupported { what });
        let Some(kind_index) = kind.index() else { return Err(unfit("allocating memory of that kind")) };
        let mut current = self.current[kind_index].load(Ordering::Acquire);
        if current == 0 {
            current = self.start(core, operation, kind_index, kind)?;
        }
        let number = (current - 1) as u8;
        self.get(number).map(|resource| (number, resource)).ok_or_else(|| unfit("more memory resources"))
    }

    #[cold]
    fn start(
        &self,
        core: &Arc<DeviceCore<B>>,
        operation: &'static str,
        kind_index: usize,
        kind: MemoryKind,
    ) -> Result<usize> {
        let mut count = self.count.lock();
        match self.current[kind_index].load(Ordering::Acquire) {
            0 => {
                let entry = TableEntry { resource: default_resource(core, kind), is_foreign: false };
                self.put(&mut count, operation, kind_index, entry)
            }
            current => Ok(current),
        }
    }

    fn put(
        &self,
        count: &mut usize,
        operation: &'static str,
        kind_index: usize,
        entry: TableEntry<B>,
    ) -> Result<usize> {
        let number = self.enter(count, operation, entry)?;
        self.current[kind_index].store(number + 1, Ordering::Release);
        Ok(number + 1)
    }

    /// Gives a resource its number.
    fn enter(&self, count: &mut usize, operation: &'static str, entry: TableEntry<B>) -> Result<usize> {
        // One that is there already serves again: switching to and fro costs no number.
        let known = (0..*count).find(|number| {
            self.resources[*number].get().is_some_and(|have| Arc::ptr_eq(&have.resource, &entry.resource))
        });
        match known {
            Some(number) => Ok(number),
            None if *count < MOST => {
                let _ = self.resources[*count].set(entry);
                *count += 1;
                Ok(*count - 1)
            }
            None => {
                let what = "more than 64 memory resources on one device";
                Err(Error::new("", operation, ErrorKind::Unsupported { what }))
            }
        }
    }

    /// Returns the resource for memory that the driver provides otherwise than by an allocation, with its number.
    pub fn external_owner(
        &self,
        core: &Arc<DeviceCore<B>>,
        operation: &'static str,
    ) -> Result<(u8, &DriverMemory<B>)> {
        if self.external_owner.get().is_none() {
            let mut count = self.count.lock();
            if self.external_owner.get().is_none() {
                let driver = Arc::new(DriverMemory::new(core));
                let entry = TableEntry { resource: driver.clone(), is_foreign: false };
                let number = self.enter(&mut count, operation, entry)?;
                let _ = self.external_owner.set((number as u8, driver));
            }
        }
        let what = "memory that is not allocated";
        let missing = || core.error(operation, ErrorKind::Unsupported { what });
        self.external_owner.get().map(|(number, driver)| (*number, &**driver)).ok_or_else(missing)
    }

    /// Lets `resource` serve a kind from now on. The one that has served it so far, if any.
    pub fn set(
        &self,
        operation: &'static str,
        kind: MemoryKind,
        resource: Arc<dyn MemoryResource<B>>,
    ) -> Result<Option<Arc<dyn MemoryResource<B>>>> {
        let Some(kind_index) = kind.index() else {
            let what = "a memory resource for memory of the caller";
            return Err(Error::new("", operation, ErrorKind::Unsupported { what }));
        };
        let mut count = self.count.lock();
        let before = self.current[kind_index].load(Ordering::Acquire).checked_sub(1);
        let before = before.and_then(|number| Some(self.resources.get(number)?.get()?.resource.clone()));
        self.put(&mut count, operation, kind_index, TableEntry { resource, is_foreign: true })?;
        Ok(before)
    }

    /// The resource that serves a kind, as something that can be put around another.
    pub fn shared(
        &self,
        core: &Arc<DeviceCore<B>>,
        operation: &'static str,
        kind: MemoryKind,
    ) -> Result<Arc<dyn MemoryResource<B>>> {
        let (number, _) = self.serving(core, operation, kind)?;
        match self.resources.get(usize::from(number)).and_then(OnceLock::get) {
            Some(entry) => Ok(entry.resource.clone()),
            None => Err(core.error(operation, ErrorKind::Unsupported { what: "that kind of memory" })),
        }
    }

    /// Every resource that serves a kind, or has served one.
    pub fn all(&self) -> impl Iterator<Item = Serving<'_, B>> {
        self.resources.iter().map_while(|resource| resource.get().map(TableEntry::serving))
    }

    /// Kinds that have been used, with the resource that serves each now.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = (MemoryKind, Serving<'_, B>)> {
        MemoryKind::ALLOCATED.into_iter().zip(&self.current).filter_map(|(kind, current)| {
            let number = current.load(Ordering::Acquire).checked_sub(1)?;
            Some((kind, self.get(number as u8)?))
        })
    }
}

/// The default resource of a kind of memory: a pool over the driver.
fn default_resource<B: Backend>(core: &Arc<DeviceCore<B>>, kind: MemoryKind) -> Arc<dyn MemoryResource<B>> {
    let driver: Arc<dyn MemoryResource<B>> = Arc::new(DriverMemory::new(core));
    let is_off = std::env::var(ENV_POOL).is_ok_and(|text| matches!(text.trim(), "off" | "0" | "no"));
    match is_off {
        true => driver,
        false => Arc::new(Pool::new(driver, default_options(core, kind))),
    }
}

/// How pools of a device are set up by default.
pub fn default_options<B: Backend>(core: &DeviceCore<B>, kind: MemoryKind) -> PoolOptions {
    let capabilities = B::capabilities(&core.raw);
    let granule = match kind {
        // Hints about managed memory apply to whole pages of the host: neighbours must not share one.
        MemoryKind::Managed(_) => capabilities.allocation_alignment.max(page_size()),
        _ => capabilities.allocation_alignment.max(16),
    };
    let options = match kind {
        // Where memory is the process's own, a piece costs little, and a large one the time to zero it.
        MemoryKind::Device | MemoryKind::Managed(_) if !capabilities.pageable_direct => {
            PoolOptions::device(granule)
        }
        _ => PoolOptions::page_locked(granule),
    };
    // A small device is not to be filled by the first piece.
    let share = (B::info(&core.raw).total_memory / 16).max(1);
    let (smallest, largest) = (options.smallest_chunk.min(share), options.largest_chunk.min(share));
    options.chunks(smallest.max(granule), largest)
}

impl<B: Backend> fmt::Debug for ResourceTable<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().map(|resource| resource.report().resource)).finish()
    }
}
