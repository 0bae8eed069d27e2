//! Which resource serves which kind of memory, on one device.

use super::{
    DriverMemory, MemoryResource, Pool, PoolOptions, Trim, check_outside_resource,
    serving::{ForeignResource, Serving, is_inside_resource},
};
use crate::{
    blocking::may_block,
    memory::DeviceCore,
    sync::{Mutex, Rank},
    user_code,
};
use gpumem_core::{Backend, DriverDevice, Error, ErrorKind, MemoryKind, Result, process::page_size};
use std::{
    fmt, mem,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering, fence},
    },
};

/// Environment variable: `off` takes memory straight from the driver, unless the program has set a resource.
pub const ENV_POOL: &str = "GPUMEM_POOL";

/// Kinds of memory that have a resource of their own.
const KINDS: usize = MemoryKind::ALLOCATED.len();
/// Resources that the library makes itself: one for each kind, and one for memory that is not allocated.
const OWN: usize = KINDS + 1;
/// The number of the last of them.
const EXTERNAL: usize = KINDS;
/// Resources of the user that a device has at a time. A block names its resource by a number.
const MOST: usize = 64;

/// The resources of a device. Those that the library has made serve their own kind alone, and are never taken out before
/// the device is gone: blocks refer to them by number, and no count has to be kept. One of the user is taken out when its
/// place is needed, and it serves no kind any more and no block is left that it has served.
pub struct ResourceTable<B: Backend> {
    own: [OnceLock<Arc<dyn MemoryResource<B>>>; OWN],
    /// What the user has set, behind the numbers of `own`. Held for a few instructions; no code of the user runs meanwhile.
    foreign: Mutex<Vec<Option<Arc<ForeignResource<B>>>>>,
    /// For each kind the number of its resource, plus 1; 0 before its first use. Stored while `foreign` is locked.
    current: [AtomicUsize; KINDS],
    /// The resource that frees memory that was not allocated.
    external_owner: OnceLock<Arc<DriverMemory<B>>>,
}

impl<B: Backend> ResourceTable<B> {
    pub(crate) fn new() -> Self {
        Self {
            own: [const { OnceLock::new() }; OWN],
            foreign: Mutex::new(Rank::Resources, Vec::new()),
            current: [const { AtomicUsize::new(0) }; KINDS],
            external_owner: OnceLock::new(),
        }
    }

    /// The resource of that number.
    #[inline]
    pub fn get(&self, number: u8) -> Option<Serving<'_, B>> {
        match self.own.get(usize::from(number)).and_then(OnceLock::get) {
            Some(own) => Some(Serving::Own(&**own)),
            None => self.get_foreign(usize::from(number)),
        }
    }

    #[cold]
    fn get_foreign(&self, number: usize) -> Option<Serving<'_, B>> {
        // The handle is cloned: the resource is called without the lock, since it is code of the user.
        self.foreign.lock().get(number.checked_sub(OWN)?)?.clone().map(Serving::Foreign)
    }

    /// The resource that serves a kind now, with its number.
    #[inline(always)]
    pub fn serving(
        &self,
        core: &Arc<DeviceCore<B>>,
        operation: &'static str,
        kind: MemoryKind,
    ) -> Result<(u8, Serving<'_, B>)> {
        let unfit = |what| core.error(operation, ErrorKind::Unsupported { what });
        let Some(kind_index) = kind.index() else { return Err(unfit("allocating memory of that kind")) };
        // Acquire: with the store. A number without its resource is never seen.
        let mut current = self.current[kind_index].load(Ordering::Acquire);
        if current == 0 {
            current = self.start(core, kind_index, kind);
        }
        let number = current - 1;
        match self.own.get(number).and_then(OnceLock::get) {
            // At once: in one variable with the other case it would be stored and loaded again for each array.
            Some(own) => Ok((number as u8, Serving::Own(&**own))),
            None => self.serving_foreign(kind_index).ok_or_else(|| unfit("that kind of memory")),
        }
    }

    /// The resource of the user that serves a kind now. It stays while the result lives.
    #[cold]
    fn serving_foreign(&self, kind_index: usize) -> Option<(u8, Serving<'_, B>)> {
        // The number and the resource of it are read together: a change comes before or after both.
        let foreign = self.foreign.lock();
        let number = self.current[kind_index].load(Ordering::Acquire).checked_sub(1)?;
        let serving = match self.own.get(number) {
            Some(own) => Serving::Own(&**own.get()?),
            None => Serving::Foreign(foreign.get(number - OWN)?.clone()?),
        };
        Some((number as u8, serving))
    }

    /// Makes the default resource of a kind. The number of the kind's resource, plus 1.
    #[cold]
    fn start(&self, core: &Arc<DeviceCore<B>>, kind_index: usize, kind: MemoryKind) -> usize {
        // With `try_set`: the default does not take the place of a resource that was set meanwhile.
        let _changing = self.foreign.lock();
        match self.current[kind_index].load(Ordering::Acquire) {
            0 => {
                self.own[kind_index].get_or_init(|| default_resource(core, kind));
                // Release: the resource is in its place by now.
                self.current[kind_index].store(kind_index + 1, Ordering::Release);
                kind_index + 1
            }
            current => current,
        }
    }

    /// Returns the resource for memory that the driver provides otherwise than by an allocation, with its number.
    pub fn external_owner(&self, core: &Arc<DeviceCore<B>>) -> (u8, &DriverMemory<B>) {
        let driver = self.external_owner.get_or_init(|| Arc::new(DriverMemory::new(core)));
        self.own[EXTERNAL].get_or_init(|| driver.clone());
        (EXTERNAL as u8, driver)
    }

    /// Lets `resource` serve a kind from now on. The one that has served it so far, if any.
    pub fn set(
        &self,
        core: &DeviceCore<B>,
        operation: &'static str,
        kind: MemoryKind,
        resource: Arc<dyn MemoryResource<B>>,
    ) -> Result<Option<Arc<dyn MemoryResource<B>>>> {
        let Some(kind_index) = kind.index() else {
            let what = "a memory resource for memory of the caller";
            return Err(Error::new("", operation, ErrorKind::Unsupported { what }));
        };
        let new = Arc::new(ForeignResource::new(resource));
        if let Some(before) = self.try_set(kind_index, &new) {
            return Ok(before);
        }
        self.take_out_unused(core, operation)?;
        self.try_set(kind_index, &new).ok_or_else(|| {
            let what = "more than 64 memory resources in use on one device";
            Error::new("", operation, ErrorKind::Unsupported { what })
        })
    }

    /// As [`set`](Self::set); `None` if there is no place.
    #[allow(clippy::option_option, reason = "no place, or the one before, if any")]
    fn try_set(
        &self,
        kind_index: usize,
        new: &Arc<ForeignResource<B>>,
    ) -> Option<Option<Arc<dyn MemoryResource<B>>>> {
        // From the look for a place to the store of the number: no other thread takes the same place.
        let mut foreign = self.foreign.lock();
        let before = self.current[kind_index].load(Ordering::Acquire).checked_sub(1).and_then(|number| {
            match self.own.get(number) {
                Some(own) => own.get().cloned(),
                None => Some(foreign.get(number - OWN)?.as_ref()?.resource.clone()),
            }
        });
        // One that is there already serves again: switching to and fro takes no place. The library's own resource of a
        // kind is trusted with that kind alone: for another one it is the user's, and its blocks are checked.
        let is_same = |have: &Arc<dyn MemoryResource<B>>| Arc::ptr_eq(have, &new.resource);
        let own = self.own[kind_index].get().is_some_and(is_same).then_some(kind_index);
        let known = foreign.iter().position(|have| have.as_ref().is_some_and(|have| is_same(&have.resource)));
        let number = match (own, known) {
            (Some(own), _) => own,
            (None, Some(known)) => OWN + known,
            (None, None) => {
                let place = match foreign.iter().position(Option::is_none) {
                    Some(place) => place,
                    None if foreign.len() < MOST => {
                        foreign.push(None);
                        foreign.len() - 1
                    }
                    None => return None,
                };
                foreign[place] = Some(new.clone());
                OWN + place
            }
        };
        // Release: who reads the number finds the resource in its place.
        self.current[kind_index].store(number + 1, Ordering::Release);
        Some(before)
    }

    /// Takes resources out that serve no kind and have no block left. What they hold goes back to the driver before.
    fn take_out_unused(&self, core: &DeviceCore<B>, operation: &'static str) -> Result<()> {
        may_block(operation)?;
        check_outside_resource(operation)?;
        if core.deferred_frees.is_deferred() {
            return Ok(());
        }
        let unused: Vec<_> = {
            // Handles are cloned: giving back what the resources hold runs their code.
            let foreign = self.foreign.lock();
            foreign.iter().enumerate().filter_map(|(place, have)| self.unused(place, have, 1)).collect()
        };
        for (_, resource) in &unused {
            // Another one of these may be above it, or a resource that goes on.
            core.trim_one(&Serving::Foreign(resource.clone()), Trim::ALL);
        }
        {
            // Looked at once more under the lock that a call needs to get the resource.
            let mut foreign = self.foreign.lock();
            for (place, _) in &unused {
                // It may serve again by now.
                if self.unused(*place, &foreign[*place], 2).is_some() {
                    foreign[*place] = None;
                }
            }
        }
        for (_, resource) in unused {
            if let Err(message) = user_code::run(|| drop(resource)) {
                let kind = ErrorKind::UserCodePanicked { what: "the drop of a memory resource", message };
                core.errors.push(core.error(operation, kind));
            }
        }
        Ok(())
    }

    /// A resource that serves no kind, of which no block is left, and that no call uses: all handles of it are the table's and
    /// the caller's, `handles` together.
    fn unused(
        &self,
        place: usize,
        have: &Option<Arc<ForeignResource<B>>>,
        handles: usize,
    ) -> Option<(usize, Arc<ForeignResource<B>>)> {
        let have = have.as_ref()?;
        // Acquire: a resource that serves again is seen under the lock in which it was set.
        let serves = self.current.iter().any(|current| current.load(Ordering::Acquire) == OWN + place + 1);
        let is_called = Arc::strong_count(have) > handles;
        // A call that has ended has counted its block before.
        fence(Ordering::Acquire);
        (!serves && !is_called && have.blocks() == 0).then(|| (place, have.clone()))
    }

    /// The resource that serves a kind, as something that can be put around another.
    pub fn shared(
        &self,
        core: &Arc<DeviceCore<B>>,
        operation: &'static str,
        kind: MemoryKind,
    ) -> Result<Arc<dyn MemoryResource<B>>> {
        let (number, serving) = self.serving(core, operation, kind)?;
        let shared = match serving {
            Serving::Own(_) => self.own.get(usize::from(number)).and_then(OnceLock::get).cloned(),
            Serving::Foreign(foreign) => Some(foreign.resource.clone()),
        };
        shared.ok_or_else(|| core.error(operation, ErrorKind::Unsupported { what: "that kind of memory" }))
    }

    /// Whether the user has set any.
    pub(super) fn has_foreign(&self) -> bool {
        // A look.
        !self.foreign.lock().is_empty()
    }

    /// Drops what the user has set, once nothing asks for memory any more and no block is left.
    pub(super) fn drop_foreign(&self) {
        // Dropped without the lock, since they are code of the user.
        let foreign = mem::take(&mut *self.foreign.lock());
        drop_all(foreign);
    }

    /// Every resource that serves a kind, or has served one.
    pub fn all(&self) -> impl Iterator<Item = Serving<'_, B>> {
        // Cloned: the caller calls them, and they may be the user's.
        let foreign: Vec<_> = self.foreign.lock().iter().flatten().cloned().collect();
        let own = self.own.iter().filter_map(|own| own.get().map(|own| Serving::Own(&**own)));
        own.chain(foreign.into_iter().map(Serving::Foreign))
    }

    /// Kinds that have been used, with the resource that serves each now.
    ///
    /// None inside a resource, which would be called again without end.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = (MemoryKind, Serving<'_, B>)> {
        let kinds = MemoryKind::ALLOCATED.into_iter().enumerate().filter(|_| !is_inside_resource());
        kinds.filter_map(|(kind_index, kind)| {
            let (_, serving) = self.serving_foreign(kind_index)?;
            Some((kind, serving))
        })
    }
}

/// The default resource of a kind of memory: a pool over the driver.
fn default_resource<B: Backend>(core: &Arc<DeviceCore<B>>, kind: MemoryKind) -> Arc<dyn MemoryResource<B>> {
    let driver: Arc<dyn MemoryResource<B>> = Arc::new(DriverMemory::new(core));
    let is_off = std::env::var(ENV_POOL).is_ok_and(|text| matches!(text.trim(), "off" | "0" | "no"));
    match is_off {
        true => driver,
        false => Arc::new(Pool::new(driver, default_options(core, kind)).of_kind(kind)),
    }
}

/// How pools of a device are set up by default.
pub fn default_options<B: Backend>(core: &DeviceCore<B>, kind: MemoryKind) -> PoolOptions {
    let capabilities = core.raw.capabilities();
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
    let share = (core.raw.info().total_memory / 16).max(1);
    let (smallest, largest) = (options.smallest_chunk.min(share), options.largest_chunk.min(share));
    options.chunks(smallest.max(granule), largest)
}

impl<B: Backend> Drop for ResourceTable<B> {
    fn drop(&mut self) {
        drop_all(mem::take(self.foreign.get_mut()));
    }
}

/// No caller is left to whom a panic of the user's could be told.
fn drop_all<B: Backend>(foreign: Vec<Option<Arc<ForeignResource<B>>>>) {
    for foreign in foreign.into_iter().flatten() {
        if let Err(message) = user_code::run(|| drop(foreign)) {
            gpumem_core::tell!(error: %message, "a memory resource has panicked when it was dropped");
        }
    }
}

impl<B: Backend> fmt::Debug for ResourceTable<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().map(|resource| resource.report().resource)).finish()
    }
}
