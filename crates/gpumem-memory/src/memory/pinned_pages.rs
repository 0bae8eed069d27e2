//! Page-locked memory of the caller, counted by page (law 10).
//!
//! Arrays that are neighbours share pages, and a page can be locked only once. So every page is locked by the first
//! array that needs it and unlocked after the last. Where a driver would go on using pages of freed memory in the place of those that
//! the system maps there next, a page that an array may share with others is locked by a call of its own: no neighbour keeps the rest
//! locked.
//!
//! Pages that the driver has refused to unlock are remembered: their memory belongs to the caller again, and a later
//! array there may be locked. The driver then reports them as locked, and is called to unlock them once more.

use crate::{
    memory::DeviceCore,
    sync::{PlainMutex, Rank},
};
use gpumem_core::{
    Backend, DeviceBuffer, DriverDevice, Error, ErrorKind, RegisterOptions, Result, process::page_size,
};
use std::{collections::BTreeMap, fmt, mem, ops::Range, ptr::NonNull};

/// A run of pages that was locked by one driver call.
struct Segment<B: Backend> {
    end: usize,
    users: usize,
    options: RegisterOptions,
    buffer: B::Buffer,
}

/// A run of pages that could not be unlocked.
struct Stuck<B: Backend> {
    end: usize,
    generation: u64,
    buffer: B::Buffer,
}

/// Runs of pages by the address of their first byte.
struct Pages<B: Backend> {
    locked: BTreeMap<usize, Segment<B>>,
    stuck: BTreeMap<usize, Stuck<B>>,
}

/// The locked pages of a device.
pub struct PinnedPages<B: Backend>(PlainMutex<Pages<B>>);

/// One array's share in locked pages. Must be handed to [`PinnedPages::unlock`]; dropping it leaves the pages locked.
#[derive(Debug)]
pub struct PagePin {
    segments: Vec<usize>,
    /// Addresses at which another driver call's pages begin.
    pub boundaries: Vec<u64>,
    /// The device's address of the first byte, where all of it is reachable from there.
    pub address: Option<u64>,
}

impl<B: Backend> Default for PinnedPages<B> {
    fn default() -> Self {
        let pages = Pages { locked: BTreeMap::new(), stuck: BTreeMap::new() };
        Self(PlainMutex::new(Rank::PinnedPages, pages))
    }
}

impl<B: Backend> PinnedPages<B> {
    /// Locks the pages of `bytes` bytes at `host`. If that fails half-way, the locked pages are unlocked again.
    ///
    /// # Safety
    /// The memory is valid until the lock is handed to [`unlock`](Self::unlock).
    pub unsafe fn lock(
        &self,
        core: &DeviceCore<B>,
        operation: &'static str,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<PagePin> {
        core.check(operation)?;
        let mut failed = Vec::new();
        // SAFETY: the caller's promise.
        let locked = unsafe { self.lock_all(core, operation, host, bytes, options, &mut failed) };
        tell(core, failed);
        locked
    }

    /// As [`lock`](Self::lock). What no call returns goes to `failed`, which may call the device.
    ///
    /// # Safety
    /// As for [`lock`](Self::lock).
    unsafe fn lock_all(
        &self,
        core: &DeviceCore<B>,
        operation: &'static str,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
        failed: &mut Vec<Error>,
    ) -> Result<PagePin> {
        let page = page_size();
        let first = host.addr().get() & !(page - 1);
        let last = host.addr().get().saturating_add(bytes).saturating_add(page - 1) & !(page - 1);
        // Over the driver's calls, before all locks that follow: a neighbour must find the shared page either free or locked.
        let mut pages = self.0.lock();
        let mut shares: Vec<usize> = Vec::new();
        let mut at = first;
        // Where pages begin and end that are the array's alone.
        let own = match core.raw.capabilities().keeps_registered_pages {
            true => [host.addr().get().saturating_add(page - 1), host.addr().get().saturating_add(bytes)],
            false => [0; 2],
        };
        let own = own.map(|end| end & !(page - 1));
        while at < last {
            let covering = pages.locked.range_mut(..=at).next_back().filter(|(_, segment)| segment.end > at);
            if let Some((start, segment)) = covering {
                if !serves(segment.options, options) {
                    let why = "a page of it is locked already, with other options";
                    pages.undo(core, &shares, failed);
                    return Err(core.error(operation, ErrorKind::Registration { why }));
                }
                // Counted by page: the neighbour may be unlocked first.
                segment.users += 1;
                shares.push(*start);
                at = segment.end;
                continue;
            }
            // Up to the next pages that are locked: a driver refuses pages that it has.
            let next = pages.locked.range(at..last).next().map_or(last, |(start, _)| *start);
            let end = own.into_iter().filter(|end| *end > at).fold(next, usize::min);
            // SAFETY: the caller's promise.
            if let Err(error) = unsafe { pages.register(core, host, at..end, options, failed) } {
                pages.undo(core, &shares, failed);
                return Err(error.in_operation(operation));
            }
            shares.push(at);
            at = end;
        }
        let address = pages.address_of(host, &shares);
        let boundaries = shares.iter().skip(1).map(|start| *start as u64).collect();
        Ok(PagePin { segments: shares, boundaries, address })
    }

    /// Gives one array's share up.
    ///
    /// # Safety
    /// No work that uses the array is pending.
    pub unsafe fn unlock(&self, core: &DeviceCore<B>, lock: PagePin) {
        let mut failed = Vec::new();
        // Over the driver's calls, as in `lock_all`; errors are told afterwards.
        self.0.lock().undo(core, &lock.segments, &mut failed);
        tell(core, failed);
    }

    /// Whether a byte lies in locked pages, or in pages that could not be unlocked.
    pub fn holds(&self, address: usize) -> bool {
        // Waits for a driver's call of another thread: its pages count then.
        let pages = self.0.lock();
        let locked = pages.locked.range(..=address).next_back().map(|(_, segment)| segment.end);
        let stuck = pages.stuck.range(..=address).next_back().map(|(_, stuck)| stuck.end);
        locked.into_iter().chain(stuck).any(|end| address < end)
    }

    /// The runs of pages that are locked, as address ranges.
    pub(crate) fn locked(&self) -> Vec<Range<usize>> {
        self.0.lock().locked.iter().map(|(start, segment)| *start..segment.end).collect()
    }
}

/// Tells errors that no call returns, without a lock.
fn tell<B: Backend>(core: &DeviceCore<B>, failed: Vec<Error>) {
    failed.into_iter().for_each(|error| core.errors.push(error));
}

/// Whether pages that were locked with `have` are good for `want`.
fn serves(have: RegisterOptions, want: RegisterOptions) -> bool {
    (have.mapped || !want.mapped) && (have.portable || !want.portable) && (!have.read_only || want.read_only)
}

/// Whether the driver may refuse because it has these pages already.
fn is_registered(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Registration { .. })
}

impl<B: Backend> Pages<B> {
    /// Locks pages that nothing has locked, around memory at `host`.
    ///
    /// # Safety
    /// As for [`PinnedPages::lock`].
    unsafe fn register(
        &mut self,
        core: &DeviceCore<B>,
        host: NonNull<u8>,
        pages: Range<usize>,
        options: RegisterOptions,
        failed: &mut Vec<Error>,
    ) -> Result<()> {
        // The pointer of the array, moved to the page: neighbours on the page are as valid as it is.
        let start = host.as_ptr().wrapping_offset(pages.start as isize - host.addr().get() as isize);
        let register = || match NonNull::new(start) {
            // SAFETY: whole pages of memory that is valid until `unlock`, by this function's contract.
            Some(start) => unsafe { core.raw.register(start, pages.len(), options) },
            None => Err(core.error("lock", ErrorKind::InvalidArgument { why: "the address is zero" })),
        };
        let buffer = match register() {
            Err(error) if is_registered(&error) && self.unstick(core, &pages, failed) => register(),
            outcome => outcome,
        };
        let buffer = core.note_loss(buffer)?;
        core.arrivals.note();
        self.locked.insert(pages.start, Segment { end: pages.end, users: 1, options, buffer });
        Ok(())
    }

    /// The device's address of memory at `host` in these runs of pages, where all lie equally far from the host's addresses.
    fn address_of(&self, host: NonNull<u8>, shares: &[usize]) -> Option<u64> {
        let distance = |start: &usize| {
            self.locked.get(start).map(|segment| segment.buffer.address().wrapping_sub(*start as u64))
        };
        let first = shares.first().and_then(distance);
        // Otherwise the device's addresses of neighbouring runs do not follow each other.
        let is_one = shares.iter().all(|start| distance(start) == first);
        first.filter(|_| is_one).map(|distance| distance.wrapping_add(host.addr().get() as u64))
    }

    fn undo(&mut self, core: &DeviceCore<B>, shares: &[usize], failed: &mut Vec<Error>) {
        for start in shares {
            let Some(segment) = self.locked.get_mut(start) else { continue };
            segment.users -= 1;
            if segment.users > 0 {
                continue;
            }
            let Some(Segment { end, buffer, .. }) = self.locked.remove(start) else { continue };
            // SAFETY: registered by this device; the last array on these pages is done with them.
            if let Err((buffer, error)) = unsafe { core.raw.release(buffer) } {
                let stuck = Stuck { end, generation: core.generation(), buffer };
                if let Some(older) = self.stuck.insert(*start, stuck) {
                    // The driver has let these pages be locked again, so it had unlocked them.
                    mem::forget(older.buffer);
                }
                failed.push(error);
            }
        }
    }

    /// Asks the driver once more to unlock those of these pages that could not be unlocked. Returns whether any was.
    #[cold]
    fn unstick(&mut self, core: &DeviceCore<B>, pages: &Range<usize>, failed: &mut Vec<Error>) -> bool {
        let meet = |(start, stuck): (&usize, &Stuck<B>)| {
            (*start < pages.end && pages.start < stuck.end).then_some(*start)
        };
        // Collected first: the map changes below.
        let starts: Vec<usize> = self.stuck.iter().filter_map(meet).collect();
        let mut any = false;
        for start in starts {
            let Some(Stuck { end, generation, buffer }) = self.stuck.remove(&start) else { continue };
            if generation != core.generation() {
                // The reset has unlocked them.
                mem::forget(buffer);
                continue;
            }
            // SAFETY: registered by this device, which has just said that it still is; nothing has used it since.
            match unsafe { core.raw.release(buffer) } {
                Ok(()) => any = true,
                Err((buffer, error)) => {
                    self.stuck.insert(start, Stuck { end, generation, buffer });
                    failed.push(error);
                }
            }
        }
        any
    }
}

impl<B: Backend> fmt::Debug for PinnedPages<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PinnedPages").field(&self.locked()).finish()
    }
}
