//! One array that may leave the device: its bytes, wherever they are.

use super::shared::{Counted, Manager, Member};
use crate::{
    PinnedArray, Stream, ToDevice, UninitHostArray,
    array::ArrayBase,
    device::{Allocation, AllocationRef},
    layout::{Layout, Order},
    transfer::{ArrayRef, Upload, note_torn},
};
use gpumem_core::{Backend, ErrorKind, NotRecorded, Result, SpillPressure};
use gpumem_memory::{
    may_block,
    memory::{current_name, named_as},
    sync::{AtomicBool, UnrankedGuard as MutexGuard, UnrankedMutex as Mutex, threads::yield_now},
    user_code::{Marked, mark},
};
use ndarray::Ix1;
use std::{
    cell::Cell as ThreadCell,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

gpumem_memory::thread_mark! {
    /// Whether this thread moves an array. Code of the user runs meanwhile, with the lock of a cell: resources, hooks, subscribers.
    IS_MOVING
}

/// Reads the array from where it came from.
pub(super) type Reload<B> = Box<dyn Fn(&Stream<B>) -> Result<AllocationRef<B>> + Send + Sync>;

pub(super) struct Cell<B: Backend> {
    manager: Arc<Manager<B>>,
    /// Held while the array moves, so that code of the user runs under it. A thread that moves an array, or runs in a callback,
    /// never waits for that; so no two threads wait for each other. Otherwise it is held for some instructions, without such code.
    place: Mutex<Place<B>>,
    /// Whether it is held because the array moves.
    is_moving: AtomicBool,
    /// Bytes of the memory on the device.
    bytes: usize,
    /// Those of the array. Only they move: what failed work was to write beside them does not concern the array.
    extent: Range<usize>,
    align: usize,
    reload: Option<Reload<B>>,
    /// The name of its memory, wherever that is.
    name: Option<Arc<str>>,
    /// The manager's clock at the last use.
    last_use: AtomicU64,
    /// Whether [`wake`](super::SpillManager::wake) is to bring it back.
    is_asleep: AtomicBool,
}

/// Where the bytes are. One of the three has them, until the array is taken out.
struct Place<B: Backend> {
    device: Option<(AllocationRef<B>, Counted<B>)>,
    /// The same bytes in page-locked memory, which may still be on their way there.
    host: Option<(PinnedArray<u8, Ix1, B>, Counted<B>)>,
    /// Whether [`Cell::reload`] reads the same bytes.
    in_file: bool,
}

impl<B: Backend> Place<B> {
    /// Whether the array was taken out.
    fn is_empty(&self) -> bool {
        self.device.is_none() && self.host.is_none() && !self.in_file
    }
}

impl<B: Backend> Cell<B> {
    /// An array on the device.
    pub(super) fn resident(
        manager: &Arc<Manager<B>>,
        memory: AllocationRef<B>,
        extent: Range<usize>,
        align: usize,
    ) -> Self {
        let (bytes, name) = (memory.len(), memory.name().cloned());
        let place = Place { device: Some((memory, manager.count_device(bytes))), host: None, in_file: false };
        Self::new(manager, place, (bytes, extent, align), (None, name))
    }

    /// An array that is read when it is used first, under the name that is in force now.
    pub(super) fn in_file(manager: &Arc<Manager<B>>, bytes: usize, align: usize, reload: Reload<B>) -> Self {
        let place = Place { device: None, host: None, in_file: true };
        Self::new(manager, place, (bytes, 0..bytes, align), (Some(reload), current_name()))
    }

    fn new(
        manager: &Arc<Manager<B>>,
        place: Place<B>,
        (bytes, extent, align): (usize, Range<usize>, usize),
        (reload, name): (Option<Reload<B>>, Option<Arc<str>>),
    ) -> Self {
        let (place, last_use) = (Mutex::new(place), AtomicU64::new(manager.tick()));
        let (is_moving, is_asleep) = (AtomicBool::new(false), AtomicBool::new(false));
        let manager = manager.clone();
        Self { manager, place, is_moving, bytes, extent, align, reload, name, last_use, is_asleep }
    }

    pub(super) fn manager(&self) -> &Arc<Manager<B>> {
        &self.manager
    }

    /// The memory on the device; brought back in the order of `stream`. `writes`: the caller may write it from now on.
    pub(super) fn get(
        &self,
        operation: &'static str,
        stream: &Stream<B>,
        writes: bool,
    ) -> Result<AllocationRef<B>> {
        let manager = &self.manager;
        manager.device().core().check_same(operation, "stream", stream.device().core())?;
        let mut place = self.lock(operation)?;
        let memory = match &place.device {
            Some((memory, _)) => memory.clone(),
            None => {
                let memory = named_as(self.name.clone(), || self.restore(operation, stream, &place))?;
                manager.note_uploaded(self.extent.len());
                place.device = Some((memory.clone(), manager.count_device(self.bytes)));
                memory
            }
        };
        let old = if writes { place.host.take() } else { None };
        place.in_file &= !writes;
        // Relaxed: see `last_use` and `wake`.
        self.last_use.store(self.manager.tick(), Ordering::Relaxed);
        self.is_asleep.store(false, Ordering::Relaxed);
        // A resource of the user's may take the old copy back: without the lock, for which it may ask.
        drop(place);
        drop(old);
        Ok(memory)
    }

    /// The bytes on the device again. They stay where they are as well.
    fn restore(
        &self,
        operation: &'static str,
        stream: &Stream<B>,
        place: &Place<B>,
    ) -> Result<AllocationRef<B>> {
        may_block(operation)?;
        let core = self.manager.device().core();
        if stream.device().recording().is_some() {
            return Err(core.not_recordable(operation, NotRecorded::Spilling));
        }
        let _moving = self.moving(operation)?;
        match (&place.host, &self.reload) {
            (Some((copy, _)), _) => {
                let memory = Allocation::new(stream.device(), operation, self.bytes, self.align)?;
                let layout = self.bytes_layout(operation)?;
                let to = ArrayRef::new(&memory, &layout);
                match copy.source().copy_to(stream.timeline(), operation, to, Upload::Staged) {
                    // What was to write the array failed. So it is as it was: reading it is the same error, and it can be written.
                    Err(error) if error.is_poisoned() => note_torn(stream.timeline(), operation, to, &error),
                    copied => drop(copied?),
                }
                Ok(memory)
            }
            (None, Some(reload)) if place.in_file => reload(stream),
            _ => Err(core.error(operation, ErrorKind::InvalidArgument { why: "the array was taken out" })),
        }
    }

    pub(super) fn is_resident(&self, operation: &'static str) -> Result<bool> {
        Ok(self.lock(operation)?.device.is_some())
    }

    /// Takes the memory out, for good.
    pub(super) fn take(&self, operation: &'static str, stream: &Stream<B>) -> Result<AllocationRef<B>> {
        let memory = self.get(operation, stream, true)?;
        self.lock(operation)?.device = None;
        Ok(memory)
    }

    fn lock(&self, operation: &'static str) -> Result<MutexGuard<'_, Place<B>>> {
        self.manager.device().core().check_process(operation)?;
        if let Some(place) = self.lock_at_rest() {
            return Ok(place);
        }
        may_block(operation)?;
        match IS_MOVING.try_with(ThreadCell::get) {
            Ok(false) => Ok(self.place.lock()),
            _ => Err(self.busy(operation)),
        }
    }

    /// As [`lock`](Self::lock), unless the array moves.
    fn lock_at_rest(&self) -> Option<MutexGuard<'_, Place<B>>> {
        loop {
            let place = self.place.try_lock();
            // Relaxed: an old value is one more look, or says that a move is going on which has just ended.
            if place.is_some() || self.is_moving.load(Ordering::Relaxed) {
                return place;
            }
            yield_now();
        }
    }

    /// Says that this thread moves this array, whose lock it holds.
    fn moving(&self, operation: &'static str) -> Result<Moving<'_>> {
        match IS_MOVING.try_with(ThreadCell::get) {
            // Of another array, which comes back: this one leaves to make room for it.
            Ok(_) => {
                // Relaxed: see `lock_at_rest`.
                self.is_moving.store(true, Ordering::Relaxed);
                Ok(Moving { is_moving: &self.is_moving, _thread: mark(&IS_MOVING) })
            }
            Err(_) => Err(self.busy(operation)),
        }
    }

    /// The bytes of the array, in its memory.
    fn bytes_layout(&self, operation: &'static str) -> Result<Layout> {
        let layout = Layout::packed(&[self.extent.len()], 1, Order::C);
        let layout = layout.and_then(|layout| layout.with_offset(self.extent.start));
        layout.map_err(|error| self.manager.device().core().error(operation, error))
    }

    fn busy(&self, operation: &'static str) -> gpumem_core::Error {
        let what = "waiting for a spillable array in code that runs while one moves";
        self.manager.device().core().error(operation, ErrorKind::Unsupported { what })
    }
}

/// A move of an array. It ends before the lock is released.
struct Moving<'a> {
    is_moving: &'a AtomicBool,
    _thread: Marked,
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        // Relaxed: see `lock_at_rest`.
        self.is_moving.store(false, Ordering::Relaxed);
    }
}

impl<B: Backend> Member<B> for Cell<B> {
    fn last_use(&self) -> u64 {
        // Relaxed: an older value makes another order of evictions, and no other harm.
        self.last_use.load(Ordering::Relaxed)
    }

    fn evict(&self, operation: &'static str) -> Result<usize> {
        let Some(mut place) = self.lock_at_rest() else { return Ok(0) };
        let Some((memory, _)) = &place.device else { return Ok(0) };
        if self.bytes == 0 || !Allocation::is_only_handle(memory) {
            return Ok(0);
        }
        let _moving = self.moving(operation)?;
        if place.host.is_none() && !place.in_file {
            let room = self.manager.reserve_host(operation, self.extent.len())?;
            let layout = self.bytes_layout(operation)?;
            let view = ArrayBase::<crate::Shared<'_, u8, B>, Ix1>::over(memory.clone(), layout);
            // No thread waits for page-locked memory that an earlier copy is on its way out of.
            let copy = || UninitHostArray::copy_of_packed(self.manager.stream(), operation, &view);
            let copy = named_as(self.name.clone(), copy)?;
            self.manager.note_downloaded(self.extent.len());
            place.host = Some((copy, room));
        }
        // Its memory goes back with the copy among its uses: work on it runs after that.
        place.device = None;
        Ok(self.bytes)
    }

    fn put_to_sleep(&self, operation: &'static str) -> Result<usize> {
        let evicted = self.evict(operation)?;
        if evicted > 0 {
            self.is_asleep.store(true, Ordering::Relaxed);
        }
        Ok(evicted)
    }

    fn pressure(&self) -> SpillPressure {
        let mut found = SpillPressure::default();
        let Some(place) = self.lock_at_rest() else { return found };
        let bytes = match &*place {
            Place { device: Some((memory, _)), .. } if Allocation::is_only_handle(memory) => {
                &mut found.evictable_bytes
            }
            Place { device: Some(_), .. } => &mut found.pinned_bytes,
            Place { host: Some(_), .. } => &mut found.host_bytes,
            Place { in_file: true, .. } => &mut found.file_bytes,
            _ => return found,
        };
        *bytes = self.bytes;
        found
    }

    fn name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }

    fn drop_copy(&self) -> usize {
        let Some(mut place) = self.lock_at_rest() else { return 0 };
        if place.host.is_none() || place.device.is_none() {
            return 0;
        }
        let Ok(_moving) = self.moving("drop_copy") else { return 0 };
        place.host = None;
        self.extent.len()
    }

    fn wake(&self, operation: &'static str, stream: &Stream<B>) -> Result<usize> {
        // Relaxed, as wherever it is set: a use or a sleep at the same time may come before or after this.
        if !self.is_asleep.load(Ordering::Relaxed) {
            return Ok(0);
        }
        match self.get(operation, stream, false) {
            // Another thread has taken it out since.
            Err(_) if self.lock(operation)?.is_empty() => Ok(0),
            woken => woken.map(|memory| memory.len()),
        }
    }
}
