//! Page-locked memory of the caller, counted by page (law 10).
//!
//! Arrays that are neighbours share pages, and a page can be locked only once. So every page is locked by the first
//! array that needs it and unlocked after the last.

use crate::device::DeviceCore;
use gpumem_core::{Backend, DeviceBuffer, Error, ErrorKind, RegisterOptions, Result, process::page_size};
use parking_lot::Mutex;
use std::{collections::BTreeMap, fmt, ops::Range, ptr::NonNull};

/// A run of pages that was locked by one driver call.
struct Segment<B: Backend> {
    end: usize,
    users: usize,
    options: RegisterOptions,
    buffer: B::Buffer,
}

/// The locked pages of a device, by the address of their first byte.
pub(crate) struct PageLocks<B: Backend>(Mutex<BTreeMap<usize, Segment<B>>>);

/// One array's share in locked pages. Must be handed to [`PageLocks::unlock`]; dropping it leaves the pages locked.
#[derive(Debug)]
pub(crate) struct Lock {
    segments: Vec<usize>,
    /// Addresses at which another driver call's pages begin.
    pub(crate) cuts: Vec<u64>,
    /// The device's address of the first byte, where all of it is reachable from there.
    pub(crate) address: Option<u64>,
}

impl<B: Backend> Default for PageLocks<B> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<B: Backend> PageLocks<B> {
    /// Locks the pages of `bytes` bytes at `host`. If that fails half-way, what was locked is unlocked again.
    ///
    /// # Safety
    /// The memory is valid until the lock is handed to [`unlock`](Self::unlock).
    pub(crate) unsafe fn lock(
        &self,
        core: &DeviceCore<B>,
        operation: &'static str,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<Lock> {
        core.check(operation)?;
        let page = page_size();
        let first = host.addr().get() & !(page - 1);
        let last = host.addr().get().saturating_add(bytes).next_multiple_of(page);
        let mut segments = self.0.lock();
        let mut shares: Vec<usize> = Vec::new();
        let mut at = first;
        while at < last {
            let covering = segments.range_mut(..=at).next_back().filter(|(_, segment)| segment.end > at);
            if let Some((start, segment)) = covering {
                if !serves(segment.options, options) {
                    let why = "a page of it is locked already, with other options";
                    undo(core, &mut segments, &shares);
                    return Err(Error::new(B::NAME, operation, ErrorKind::Registration { why }));
                }
                segment.users += 1;
                shares.push(*start);
                at = segment.end;
                continue;
            }
            let end = segments.range(at..last).next().map_or(last, |(start, _)| *start);
            // The pointer of the array, moved to the page: neighbours on the page are as valid as it is.
            let start = host.as_ptr().wrapping_offset(at as isize - host.addr().get() as isize);
            let buffer = match NonNull::new(start) {
                // SAFETY: whole pages of memory that is valid until `unlock`, by this function's contract.
                Some(start) => unsafe { B::register(&core.raw, start, end - at, options) },
                None => Err(Error::new(
                    B::NAME,
                    operation,
                    ErrorKind::InvalidArgument { why: "the address is zero" },
                )),
            };
            match core.note_loss(buffer) {
                Ok(buffer) => {
                    segments.insert(at, Segment { end, users: 1, options, buffer });
                    shares.push(at);
                }
                Err(error) => {
                    undo(core, &mut segments, &shares);
                    return Err(error.in_operation(operation));
                }
            }
            at = end;
        }
        // The device's addresses of several runs are one range where all lie equally far from the host's.
        let distance = |start: &usize| {
            segments.get(start).map(|segment| segment.buffer.address().wrapping_sub(*start as u64))
        };
        let first = shares.first().and_then(distance);
        let address = match shares.iter().all(|start| distance(start) == first) {
            true => first.map(|distance| distance.wrapping_add(host.addr().get() as u64)),
            false => None,
        };
        let cuts = shares.iter().skip(1).map(|start| *start as u64).collect();
        Ok(Lock { segments: shares, cuts, address })
    }

    /// Gives one array's share up.
    ///
    /// # Safety
    /// No work that uses the array is pending.
    pub(crate) unsafe fn unlock(&self, core: &DeviceCore<B>, lock: Lock) {
        undo(core, &mut self.0.lock(), &lock.segments);
    }

    /// Whether a byte lies in locked pages.
    pub(crate) fn holds(&self, address: usize) -> bool {
        self.0.lock().range(..=address).next_back().is_some_and(|(_, segment)| address < segment.end)
    }

    /// The runs of pages that are locked, as address ranges.
    pub(crate) fn locked(&self) -> Vec<Range<usize>> {
        self.0.lock().iter().map(|(start, segment)| *start..segment.end).collect()
    }
}

/// Whether pages that were locked with `have` are good for `want`.
fn serves(have: RegisterOptions, want: RegisterOptions) -> bool {
    (have.mapped || !want.mapped) && (have.portable || !want.portable) && (!have.read_only || want.read_only)
}

fn undo<B: Backend>(core: &DeviceCore<B>, segments: &mut BTreeMap<usize, Segment<B>>, shares: &[usize]) {
    for start in shares {
        let Some(segment) = segments.get_mut(start) else { continue };
        segment.users -= 1;
        if segment.users > 0 {
            continue;
        }
        if let Some(segment) = segments.remove(start) {
            // SAFETY: registered by this device; the last array on these pages is done with them.
            if let Err((buffer, error)) = unsafe { B::release(&core.raw, segment.buffer) } {
                std::mem::forget(buffer);
                core.errors.push(error);
            }
        }
    }
}

impl<B: Backend> fmt::Debug for PageLocks<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PageLocks").field(&self.locked()).finish()
    }
}
