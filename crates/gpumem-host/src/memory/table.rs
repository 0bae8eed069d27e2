//! All live allocations of the process, by address, and the check of the memory that commands reach.

use super::Block;
use crate::sync::{read, write};
use gpumem_core::{AddressRange, MemoryKind};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, RwLockWriteGuard};

/// A range of bytes that a command is about to read or write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    pub(crate) start: u64,
    pub(crate) bytes: usize,
    pub(crate) place: Place,
}

/// Where the caller says that the range lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the host's memory, page-locked or not.
    Host,
    /// In memory of the device with this ordinal.
    Device(usize),
    /// In memory that the device with this ordinal reaches, whatever block it belongs to.
    ReachedBy(usize),
}

/// Keeps an allocation from being freed while a command runs. Nothing for memory that is not ours.
pub(crate) type Pin = Option<Arc<Block>>;

/// Live allocations and registrations.
#[derive(Debug, Default)]
pub(crate) struct Table {
    blocks: RwLock<BTreeMap<usize, Arc<Block>>>,
    /// Changes of `blocks`, counted under its lock.
    version: AtomicU64,
    registrations: RwLock<BTreeMap<(usize, usize), Registration>>,
}

#[derive(Debug, Clone, Copy)]
struct Registration {
    bytes: usize,
    portable: bool,
}

/// An answer of the table that holds as long as its version does.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    version: u64,
    place: Place,
    within: Range<usize>,
    /// Whether `within` is a block, so that all its parts are live; otherwise only ranges that begin at its begin are.
    is_block: bool,
}

impl Known {
    /// Whether that is the version of the table that it was found in.
    pub(crate) fn is_of(&self, version: u64) -> bool {
        self.version == version
    }

    /// Whether the answer holds for that range, too, at that version of the table.
    pub(crate) fn covers(&self, reach: &Reach, version: u64) -> bool {
        let Ok((start, end)) = reach.range() else { return false };
        let begins = start == self.within.start || (self.is_block && start > self.within.start);
        begins && end <= self.within.end && self.place == reach.place && self.version == version
    }
}

/// Why a block cannot be taken out of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotLive;

impl Table {
    fn change(&self) -> RwLockWriteGuard<'_, BTreeMap<usize, Arc<Block>>> {
        let blocks = write(&self.blocks);
        self.version.fetch_add(1, Ordering::Release);
        blocks
    }

    pub(crate) fn insert(&self, block: Arc<Block>) {
        self.change().insert(block.address(), block);
    }

    /// Marks a block as released. With `keep` it stays in the table, so that its address is not given out again and
    /// a use of it is caught; [`forget`](Self::forget) takes it out later.
    pub(crate) fn release(&self, address: usize, serial: u64, keep: bool) -> Result<Arc<Block>, NotLive> {
        let mut blocks = self.change();
        let live = |block: &&Arc<Block>| block.serial() == serial && !block.is_released();
        let Some(block) = blocks.get(&address).filter(live).cloned() else {
            return Err(NotLive);
        };
        if !keep {
            blocks.remove(&address);
        }
        // Commands pin under the read lock: the counted commands are running, and no other one can start.
        let ours = if keep { 2 } else { 1 };
        block.set_released(keep && Arc::strong_count(&block) == ours);
        Ok(block)
    }

    /// Takes a released block out.
    pub(crate) fn forget(&self, block: &Block) {
        let mut blocks = self.change();
        if blocks.get(&block.address()).is_some_and(|found| found.serial() == block.serial()) {
            blocks.remove(&block.address());
        }
    }

    /// Takes out everything of one device.
    pub(crate) fn clear(&self, ordinal: usize) {
        let mut gone = Vec::new();
        self.change().retain(|_, block| {
            let stays = block.owner() != ordinal;
            if !stays {
                gone.push(Arc::clone(block));
            }
            stays
        });
        write(&self.registrations).retain(|(owner, _), _| *owner != ordinal);
        // Freed here, outside the lock.
        drop(gone);
    }

    /// Notes that the caller's memory is registered with a device.
    pub(crate) fn register(
        &self,
        ordinal: usize,
        start: usize,
        bytes: usize,
        portable: bool,
    ) -> Result<(), &'static str> {
        let Some(end) = start.checked_add(bytes) else {
            return Err("it runs over the end of the address space");
        };
        // Memory of a device itself cannot be registered. Being its neighbour on a page is another matter: the caller's
        // arrays and ours come from the same heap.
        if self.block_at(start).is_some_and(|block| end <= block.end()) {
            return Err("it is memory of a host device already");
        }
        let mut registrations = write(&self.registrations);
        let before = registrations.range((ordinal, 0)..(ordinal, end)).next_back();
        if before.is_some_and(|((_, at), registration)| at + registration.bytes > start) {
            return Err("part of it is registered already");
        }
        registrations.insert((ordinal, start), Registration { bytes, portable });
        Ok(())
    }

    pub(crate) fn deregister(&self, ordinal: usize, start: usize, bytes: usize) -> Result<(), NotLive> {
        let mut registrations = write(&self.registrations);
        match registrations.get(&(ordinal, start)) {
            Some(registration) if registration.bytes == bytes => {
                registrations.remove(&(ordinal, start));
                Ok(())
            }
            _ => Err(NotLive),
        }
    }

    fn block_at(&self, address: usize) -> Option<Arc<Block>> {
        read(&self.blocks).range(..=address).next_back().map(|(_, block)| Arc::clone(block))
    }

    fn is_registered(&self, ordinal: usize, start: usize, end: usize) -> bool {
        let registrations = read(&self.registrations);
        let covers = |at: usize, registration: &Registration| at <= start && end <= at + registration.bytes;
        registrations
            .range((ordinal, 0)..=(ordinal, start))
            .next_back()
            .is_some_and(|((_, at), registration)| covers(*at, registration))
            || registrations.iter().any(|((_, at), found)| found.portable && covers(*at, found))
    }

    /// Checks that a range is live, and keeps it so. The error says what is wrong.
    pub(crate) fn pin(&self, reach: &Reach) -> Result<Pin, String> {
        let (start, end) = reach.range()?;
        let blocks = read(&self.blocks);
        if let Some(block) = block_around(&blocks, reach, start, end)? {
            return Ok(Some(Arc::clone(block)));
        }
        drop(blocks);
        match reach.place {
            Place::Host => Ok(None),
            Place::Device(ordinal) | Place::ReachedBy(ordinal) if self.is_registered(ordinal, start, end) => {
                Ok(None)
            }
            _ => Err(format!("{} is no live memory", reach.told())),
        }
    }

    /// Tells whether a range lies in a live block, or in host memory outside all blocks, and how far that reaches.
    /// Ignores registered memory, and keeps nothing alive: callers promise that themselves.
    pub(crate) fn look_up(&self, reach: &Reach) -> Option<Known> {
        let (start, end) = reach.range().ok()?;
        let blocks = read(&self.blocks);
        let version = self.version.load(Ordering::Relaxed);
        let (within, is_block) = match (block_around(&blocks, reach, start, end).ok()?, reach.place) {
            (Some(block), _) => (block.address()..block.end(), true),
            (None, Place::Host) => (start..end, false),
            (None, _) => return None,
        };
        Some(Known { version, place: reach.place, within, is_block })
    }

    /// A number that changes with every block that comes or goes.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The device that an address belongs to, as `ordinal` sees it: the one that made the block, or `ordinal` itself
    /// for memory of the caller that is registered with it.
    pub(crate) fn residence(&self, ordinal: usize, address: usize) -> Option<AddressRange> {
        let inside = |block: &Arc<Block>| address < block.end() && !block.is_released();
        match self.block_at(address).filter(inside) {
            Some(block) => Some(AddressRange { ordinal: block.owner(), end: block.end() as u64 }),
            None => {
                let end = address.checked_add(1)?;
                let found = AddressRange { ordinal, end: end as u64 };
                self.is_registered(ordinal, address, end).then_some(found)
            }
        }
    }

    /// Whether the address lies in a block, which may have been released.
    pub(crate) fn holds(&self, address: usize) -> bool {
        self.block_at(address).is_some_and(|block| address < block.end())
    }

    /// The live block of managed memory around a range.
    pub(crate) fn is_managed(&self, start: usize, bytes: usize) -> bool {
        self.block_at(start).is_some_and(|block| {
            !block.is_released()
                && matches!(block.kind(), MemoryKind::Managed(_))
                && start.checked_add(bytes).is_some_and(|end| end <= block.end())
        })
    }
}

/// The block that a range lies in; none if it begins in no block. The error says what is wrong.
fn block_around<'a>(
    blocks: &'a BTreeMap<usize, Arc<Block>>,
    reach: &Reach,
    start: usize,
    end: usize,
) -> Result<Option<&'a Arc<Block>>, String> {
    let found = blocks.range(..=start).next_back().map(|(_, block)| block);
    let Some(block) = found.filter(|block| start < block.end()) else { return Ok(None) };
    if block.is_released() {
        return Err(format!("{} is {} memory that was released", reach.told(), block.kind().name()));
    }
    if end > block.end() {
        let (at, bytes) = (block.address(), block.len());
        return Err(format!("{} runs over an allocation of {bytes} bytes at {at:#x}", reach.told()));
    }
    match (reach.place, block.kind()) {
        (Place::Host, MemoryKind::Device) => {
            Err(format!("{} is device memory and was taken for the host's", reach.told()))
        }
        (Place::Device(ordinal), MemoryKind::Device) if ordinal != block.owner() => {
            Err(format!("{} is memory of host:{}", reach.told(), block.owner()))
        }
        _ => Ok(Some(block)),
    }
}

impl Reach {
    /// Where it begins and ends.
    fn range(&self) -> Result<(usize, usize), String> {
        let start = usize::try_from(self.start).ok();
        let range = start.and_then(|start| Some((start, start.checked_add(self.bytes)?)));
        range.ok_or_else(|| format!("{} runs over the end of the address space", self.told()))
    }

    fn told(&self) -> String {
        let place = match self.place {
            Place::Host => "of the host".to_owned(),
            Place::Device(ordinal) => format!("of host:{ordinal}"),
            Place::ReachedBy(ordinal) => format!("seen from host:{ordinal}"),
        };
        format!("the range of {} bytes at {:#x} {place}", self.bytes, self.start)
    }
}
