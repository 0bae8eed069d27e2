//! Failures that travel with the data: the bytes that failed work was to write, and why they are not there.
//!
//! A backend whose device goes on after a failure
//! ([`Capabilities::survives_faults`](crate::Capabilities::survives_faults)) must not run work that reads such bytes.
//! The runtime says which memory work uses ([`with_uses`]); the backend queries and fills the one table of the process
//! ([`POISONED`]). While the table is empty, a query is one relaxed load.

use crate::{Failure, SubmissionId, process::PerProcess};
use std::{
    cell::Cell,
    collections::BTreeMap,
    fmt,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// A use of memory by work that is about to be enqueued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// A number of the allocation that no other of the process ever has. Addresses are allocated again, numbers are not.
    pub owner: u64,
    /// Address of the first byte.
    pub start: u64,
    /// Number of bytes.
    pub bytes: usize,
    /// Whether the bytes are written.
    pub write: bool,
    /// Whether other allocations may have the same bytes: memory of another library or of another process.
    pub is_foreign: bool,
}

impl MemoryUse {
    /// The addresses.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.bytes as u64)
    }
}

/// The bytes of this process that failed work was to write, on all devices of all backends.
pub static POISONED: PoisonTable = PoisonTable::new();

/// Bytes that failed work was to write.
///
/// An entry replaces older ones of the same owner, and stands beside those of others: work of a former owner of the addresses may fail
/// after that of the present one. What is written anew is written for all of them.
pub struct PoisonTable {
    /// Whether there is any entry. The only thing that is read while nothing has failed.
    is_any: AtomicBool,
    /// A forked child begins without any: a thread of its parent may hold the lock for ever, and what cannot be noted would be read.
    entries: PerProcess<Mutex<Entries>>,
}

/// By the address of the first byte. No two entries overlap.
type Ranges = BTreeMap<u64, Entry>;

/// By the owner. Foreign memory may have several owners at once: the end of one takes no entry of another's.
type Owners = BTreeMap<u64, Ranges>;

struct Entries {
    owned: Owners,
    /// Those of foreign memory, which concern every owner.
    foreign: Owners,
}

#[derive(Clone)]
struct Entry {
    end: u64,
    failure: Arc<Failure>,
}

impl Entries {
    const fn new() -> Self {
        Self { owned: BTreeMap::new(), foreign: BTreeMap::new() }
    }

    fn is_empty(&self) -> bool {
        self.owned.is_empty() && self.foreign.is_empty()
    }
}

impl PoisonTable {
    /// Makes an empty table.
    pub const fn new() -> Self {
        Self { is_any: AtomicBool::new(false), entries: PerProcess::new(|| Mutex::new(Entries::new())) }
    }

    /// Whether any bytes are poisoned. One relaxed load suffices: a thread that has waited for the work sees its
    /// failure, and so does later work of the stream.
    #[inline(always)]
    pub fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Relaxed)
    }

    /// Notes that the bytes of a use were to be written by work that failed.
    ///
    /// # Safety
    /// The bytes of the use belong to its owner. Their entry replaces those that the owner has for them.
    #[cold]
    pub unsafe fn poison(&self, used: &MemoryUse, failure: &Arc<Failure>) {
        let range = used.range();
        if range.is_empty() {
            return;
        }
        let mut entries = self.lock();
        let owners = if used.is_foreign { &mut entries.foreign } else { &mut entries.owned };
        let ranges = owners.entry(used.owner).or_default();
        cut(ranges, &range);
        ranges.insert(range.start, Entry { end: range.end, failure: failure.clone() });
        self.is_any.store(true, Ordering::Relaxed);
    }

    /// Notes that the bytes were written anew. They may never have been written before, so that safe code cannot say so:
    ///
    /// ```compile_fail,E0133
    /// gpumem_core::POISONED.clear(&(0..u64::MAX));
    /// ```
    ///
    /// # Safety
    /// The bytes have been written, or nothing reads them as they are: they are the caller's own, or are allocated again.
    #[cold]
    pub unsafe fn clear(&self, range: &Range<u64>) {
        self.remove(range, |_| true);
    }

    /// Removes the entries of an allocation that ends.
    ///
    /// # Safety
    /// The host writes all of these bytes next, or nothing reads the allocation again.
    #[cold]
    pub unsafe fn forget(&self, owner: u64, range: &Range<u64>) {
        self.remove(range, |of| of == owner);
    }

    /// Finds the first bytes of a use that failed work was to write, and that work.
    #[cold]
    pub fn find(&self, used: &MemoryUse) -> Option<(Range<u64>, Arc<Failure>)> {
        let (range, entries) = (used.range(), self.lock());
        if entries.is_empty() {
            // A forked child has the mark of its parent, and none of its entries.
            self.is_any.store(false, Ordering::Relaxed);
            return None;
        }
        let owned = match used.is_foreign {
            true => entries.owned.range(..),
            false => entries.owned.range(used.owner..=used.owner),
        };
        let found = entries.foreign.iter().chain(owned).flat_map(|(_, ranges)| {
            let before = ranges.range(..range.start).next_back();
            before.into_iter().chain(ranges.range(range.start..range.end.max(range.start)))
        });
        found
            .map(|(start, entry)| ((*start).max(range.start)..entry.end.min(range.end), &entry.failure))
            .filter(|(bytes, _)| !bytes.is_empty())
            .min_by_key(|(bytes, _)| bytes.start)
            .map(|(bytes, failure)| (bytes, failure.clone()))
    }

    /// Number of entries, for tests.
    pub fn len(&self) -> usize {
        let entries = self.lock();
        entries.foreign.values().chain(entries.owned.values()).map(Ranges::len).sum()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn remove(&self, range: &Range<u64>, concerns: impl Fn(u64) -> bool) {
        let mut entries = self.lock();
        let Entries { owned, foreign } = &mut *entries;
        for owners in [owned, foreign] {
            owners.retain(|owner, ranges| {
                if concerns(*owner) {
                    cut(ranges, range);
                }
                !ranges.is_empty()
            });
        }
        if entries.is_empty() {
            self.is_any.store(false, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.get().lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for PoisonTable {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PoisonTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoisonTable").field("is_any", &self.is_any()).finish_non_exhaustive()
    }
}

/// Removes the range from the entries that overlap it; their bytes outside the range stay.
fn cut(entries: &mut Ranges, range: &Range<u64>) {
    if range.is_empty() {
        return;
    }
    let first = entries.range(..range.start).next_back().map_or(range.start, |(start, _)| *start);
    let overlapping = entries.range(first..range.end);
    let found: Vec<(u64, Entry)> = overlapping
        .filter(|(_, entry)| entry.end > range.start)
        .map(|(start, entry)| (*start, entry.clone()))
        .collect();
    for (start, entry) in found {
        entries.remove(&start);
        if entry.end > range.end {
            entries.insert(range.end, entry.clone());
        }
        if start < range.start {
            entries.insert(start, Entry { end: range.start, ..entry });
        }
    }
}

/// The memory that a piece of work uses.
pub trait MemoryUses {
    /// Calls `found` with every use.
    fn each(&self, found: &mut dyn FnMut(&MemoryUse));

    /// Returns which submission of the runtime the work belongs to, which may take several commands of a backend. Once one of
    /// them has failed, the others do not run: they may build on it.
    fn submission(&self) -> Option<SubmissionId> {
        None
    }

    /// Returns the number of the node of a graph that the work belongs to, while it is
    /// [captured](crate::Stream::begin_capture). Errors of its launches have it. Uses of captured work have no owner: these a launch
    /// has.
    fn node(&self) -> Option<usize> {
        None
    }
}

impl<const N: usize> MemoryUses for [MemoryUse; N] {
    fn each(&self, found: &mut dyn FnMut(&MemoryUse)) {
        self.iter().for_each(found);
    }
}

thread_local! {
    /// The memory that the work uses which this thread enqueues.
    static USES: Cell<Option<&'static dyn MemoryUses>> = const { Cell::new(None) };
}

/// Restores the previous value.
struct Reset(Option<&'static dyn MemoryUses>);

impl Drop for Reset {
    #[inline]
    fn drop(&mut self) {
        let _ = USES.try_with(|cell| cell.set(self.0));
    }
}

/// Calls `enqueue`, which enqueues work on this thread that uses this memory: a backend finds it there ([`current_uses`]).
/// Without uses, `enqueue` alone.
///
/// # Safety
/// The work uses exactly this memory, as described. With a wrong list, a backend lets others read bytes that failed
/// work has not written.
#[inline]
pub unsafe fn with_uses<R>(uses: Option<&dyn MemoryUses>, enqueue: impl FnOnce() -> R) -> R {
    // SAFETY: the reference is in the cell only until `Reset` is dropped, before this function returns or unwinds, and
    // `current_uses` passes it only to calls on this thread, which have returned by then.
    let uses =
        uses.map(|uses| unsafe { std::mem::transmute::<&dyn MemoryUses, &'static dyn MemoryUses>(uses) });
    let _reset = uses.map(|uses| Reset(USES.try_with(|cell| cell.replace(Some(uses))).unwrap_or_default()));
    enqueue()
}

/// Calls `look` with the memory that this thread's current work uses; with none if [`with_uses`] was not called.
#[inline(always)]
pub fn current_uses<R>(look: impl FnOnce(&dyn MemoryUses) -> R) -> R {
    match USES.try_with(Cell::get) {
        Ok(Some(uses)) => look(uses),
        _ => look(&[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(work: &str) -> Arc<Failure> {
        Arc::new(Failure::new(work, "test:0", "it did"))
    }

    fn used(owner: u64, range: Range<u64>) -> MemoryUse {
        let bytes = (range.end - range.start) as usize;
        MemoryUse { owner, start: range.start, bytes, write: false, is_foreign: false }
    }

    fn found(table: &PoisonTable, used: &MemoryUse) -> Option<(Range<u64>, String)> {
        table.find(used).map(|(range, failure)| (range, failure.work.clone()))
    }

    // The tables of these tests speak of no memory.

    fn poison(table: &PoisonTable, used: &MemoryUse, failure: &Arc<Failure>) {
        // SAFETY: as above.
        unsafe { table.poison(used, failure) };
    }

    fn clear(table: &PoisonTable, range: &Range<u64>) {
        // SAFETY: as above.
        unsafe { table.clear(range) };
    }

    fn forget(table: &PoisonTable, owner: u64, range: &Range<u64>) {
        // SAFETY: as above.
        unsafe { table.forget(owner, range) };
    }

    #[test]
    fn bytes_are_poisoned_until_they_are_written() {
        let table = PoisonTable::new();
        assert!(!table.is_any() && table.find(&used(1, 0..u64::MAX)).is_none());
        poison(&table, &used(1, 100..200), &failure("a"));
        assert!(table.is_any());
        assert_eq!(found(&table, &used(1, 0..100)), None);
        assert_eq!(found(&table, &used(1, 200..300)), None);
        assert_eq!(found(&table, &used(1, 150..151)), Some((150..151, "a".into())));
        assert_eq!(found(&table, &used(2, 150..151)), None, "the memory was allocated again");
        clear(&table, &(120..130));
        clear(&table, &(0..110));
        assert_eq!(found(&table, &used(1, 100..110)), None);
        assert_eq!(found(&table, &used(1, 100..125)), Some((110..120, "a".into())));
        assert_eq!(found(&table, &used(1, 120..300)), Some((130..200, "a".into())));
        clear(&table, &(110..200));
        assert!(!table.is_any() && table.is_empty());
    }

    #[test]
    fn entries_replace_those_of_their_owner_alone() {
        let table = PoisonTable::new();
        poison(&table, &used(2, 150..250), &failure("b"));
        // Work of a former owner, which fails after it.
        poison(&table, &used(1, 100..200), &failure("a"));
        assert_eq!(found(&table, &used(1, 0..300)), Some((100..200, "a".into())));
        assert_eq!(found(&table, &used(2, 0..300)), Some((150..250, "b".into())));
        poison(&table, &used(1, 150..160), &failure("c"));
        assert_eq!(found(&table, &used(1, 150..300)), Some((150..160, "c".into())));
        forget(&table, 1, &(0..300));
        assert_eq!(table.len(), 1);
        let foreign = MemoryUse { is_foreign: true, ..used(9, 240..260) };
        assert_eq!(found(&table, &foreign), Some((240..250, "b".into())), "it may be the same memory");
        clear(&table, &(240..250));
        poison(&table, &foreign, &failure("d"));
        assert_eq!(found(&table, &used(2, 245..246)), Some((245..246, "d".into())));
        assert_eq!(found(&table, &used(7, 0..300)), Some((240..260, "d".into())));
        let other = MemoryUse { owner: 8, ..foreign };
        poison(&table, &other, &failure("e"));
        forget(&table, 8, &(0..300));
        assert_eq!(found(&table, &foreign), Some((240..260, "d".into())), "one of two owners has ended");
        forget(&table, 2, &(0..300));
        forget(&table, 9, &(0..300));
        assert!(!table.is_any());
    }

    #[test]
    fn entries_agree_with_a_map_of_bytes() {
        let (table, mut model) = (PoisonTable::new(), BTreeMap::new());
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let is_foreign = |owner: u64| owner > 2;
        let use_of = |owner, range| MemoryUse { is_foreign: is_foreign(owner), ..used(owner, range) };
        for step in 0..if cfg!(miri) { 10 } else { 5000 } {
            let start = random(60);
            let (range, owner) = (start..start + random(12), 1 + random(4));
            match random(3) {
                0 => {
                    poison(&table, &use_of(owner, range.clone()), &failure(&step.to_string()));
                    model.extend(range.map(|byte| ((owner, byte), step.to_string())));
                }
                1 => {
                    clear(&table, &range);
                    model.retain(|(_, byte), _| !range.contains(byte));
                }
                _ => {
                    forget(&table, owner, &range);
                    model.retain(|(of, byte), _| !range.contains(byte) || *of != owner);
                }
            }
            assert_eq!(table.is_any(), !model.is_empty());
            // Interpreted, looking at each byte takes minutes.
            for byte in (0..80).step_by(if cfg!(miri) { 13 } else { 1 }) {
                for owner in 1..5 {
                    let found = found(&table, &use_of(owner, byte..byte + 1));
                    let concerns = |of: &u64| is_foreign(*of) || is_foreign(owner) || *of == owner;
                    let mut owners = [3, 4, 1, 2].into_iter().filter(concerns);
                    let expected = owners.find_map(|of| model.get(&(of, byte)));
                    assert_eq!(found.map(|(_, work)| work).as_ref(), expected);
                }
            }
        }
    }

    #[test]
    #[cfg(all(unix, not(miri)))]
    fn a_forked_child_notes_failures_while_a_thread_of_its_parent_holds_the_lock() {
        use crate::process::holds_in_a_child;

        let table = PoisonTable::new();
        let used = used(1, 0..8);
        poison(&table, &used, &failure("of the parent"));
        let held = table.lock();
        assert!(holds_in_a_child(|| {
            let begins_without = table.find(&used).is_none() && !table.is_any() && table.is_empty();
            poison(&table, &used, &failure("of the child"));
            let noted = table.is_any() && found(&table, &used) == Some((0..8, "of the child".into()));
            clear(&table, &used.range());
            begins_without && noted && !table.is_any()
        }));
        drop(held);
        assert_eq!(found(&table, &used), Some((0..8, "of the parent".into())));
    }

    fn all() -> Vec<MemoryUse> {
        let mut all = Vec::new();
        current_uses(|uses| uses.each(&mut |used| all.push(*used)));
        all
    }

    #[test]
    fn uses_are_seen_while_work_is_enqueued() {
        let uses = [used(1, 0..8)];
        assert_eq!(all(), []);
        let with = |uses: Option<&dyn MemoryUses>, enqueue: &dyn Fn()| {
            // SAFETY: nothing is enqueued.
            unsafe { with_uses(uses, enqueue) }
        };
        with(Some(&uses), &|| {
            assert_eq!(all(), uses);
            with(Some(&[]), &|| assert_eq!(all(), []));
            with(None, &|| assert_eq!(all(), uses));
            assert_eq!(all(), uses);
            std::thread::spawn(|| assert_eq!(all(), [])).join().unwrap();
        });
        let unwound = std::panic::catch_unwind(|| with(Some(&[used(1, 0..8)]), &|| panic!("the test's")));
        assert!(unwound.is_err() && all().is_empty());
    }
}
