//! Memory that is lent to other libraries.
//!
//! While memory is lent, its borrower enqueues work that the library does not see. So a reader of the access log finds
//! a fresh entry for each loan, which covers everything on the borrower's stream up to now. Work that is enqueued on
//! lent memory makes the borrower's stream wait for it. The end of a loan leaves a last entry, as the end of a stream
//! leaves a last event. A loan that is forgotten therefore costs waits, and no safety.
//!
//! A use is *announced* while others enqueue its work on a stream of the library: NCCL, say. Until that is done, its
//! place in the order is not known, so conflicting uses of other streams are refused. Borrows exclude them where there is one
//! handle: nothing is announced then.

use super::Tracked;
use crate::{
    sync::{Rank, ShortMutex},
    track::{
        Access, AccessLog, Timeline,
        access::{Part, meet},
        unique_id,
    },
};
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_layout::layout::Layout;
use smallvec::SmallVec;
use std::{
    ops::Range,
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
};

#[derive(Debug)]
struct Borrow<B: Backend> {
    /// Rises from entry to entry.
    id: u64,
    /// How many loans it represents.
    loans: usize,
    /// When the last of them was made: a [number](unique_id) that rises.
    lent_at: u64,
    by: Arc<Timeline<B>>,
    extent: Range<usize>,
    write: bool,
    /// Whether it is an announced use, and no loan.
    announced: bool,
    /// The elements of an announced use, if they are known.
    elements: Option<Layout>,
}

/// Set where an import has made another handle of the memory.
const SHARED: usize = 1 << (usize::BITS - 1);

/// Set where others may have wrapped the memory too.
const FOREIGN: usize = 1 << (usize::BITS - 2);

/// Set where a view without a borrow has been made.
const DETACHED: usize = 1 << (usize::BITS - 3);

/// Set where it has been lent, by a stream or not: an import of a loan makes another handle, at any time.
const HAS_LOANS: usize = 1 << (usize::BITS - 4);

/// Set where another process was given a handle.
const EXPORTED: usize = 1 << (usize::BITS - 5);

const FLAGS: usize = SHARED | FOREIGN | DETACHED | HAS_LOANS | EXPORTED;
/// Those of memory that has another handle.
const HANDLES: usize = SHARED | FOREIGN | DETACHED | EXPORTED;

/// The loans of one allocation. The count comes first, as the only thing that every use reads.
#[derive(Debug)]
#[repr(C)]
pub(super) struct ExternalBorrows<B: Backend> {
    /// How many there are, so that memory that is not lent or announced pays for one load, and the [flags](FLAGS).
    count: AtomicUsize,
    entries: ShortMutex<Vec<Borrow<B>>>,
}

impl<B: Backend> ExternalBorrows<B> {
    #[inline(always)]
    pub(super) fn new(is_owned: bool) -> Self {
        let flags = if is_owned { 0 } else { FOREIGN };
        Self { count: AtomicUsize::new(flags), entries: ShortMutex::new(Rank::Borrows, Vec::new()) }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) & !FLAGS == 0
    }

    /// Notes how many there are. The entries are locked meanwhile.
    fn count_entries(&self, entries: &[Borrow<B>]) {
        let flags = self.count.load(Ordering::Relaxed) & FLAGS;
        self.count.store(entries.len() | flags, Ordering::Release);
    }

    /// Removes a loan from the entries, which are locked.
    fn remove_loan(&self, entries: &mut Vec<Borrow<B>>, id: u64) {
        entries.retain_mut(|entry| {
            entry.loans -= usize::from(entry.id == id);
            entry.loans > 0
        });
        self.count_entries(entries);
    }

    /// Notes the work that borrowers may have enqueued, for loans with a number ([`lent_at`](Borrow::lent_at)) from `since` on.
    #[inline]
    pub(super) fn note(&self, log: &mut AccessLog<Arc<Timeline<B>>>, since: u64) {
        if !self.is_empty() {
            self.note_all(log, since);
        }
    }

    #[cold]
    fn note_all(&self, log: &mut AccessLog<Arc<Timeline<B>>>, since: u64) {
        // The caller has the log, and each borrower's queue is locked within this lock: log, loans, queue.
        note_each(&self.entries.lock(), log, since);
    }
}

fn note_each<B: Backend>(entries: &[Borrow<B>], log: &mut AccessLog<Arc<Timeline<B>>>, since: u64) {
    for entry in entries.iter().filter(|entry| !entry.announced && entry.lent_at >= since) {
        log.note_others(&entry.extent, entry.write, &entry.by, entry.by.note_unknown_work());
    }
}

impl<B: Backend> Tracked<B> {
    /// Whether the memory is lent to another library.
    #[inline]
    pub(crate) fn is_lent(&self) -> bool {
        !self.borrows.is_empty()
    }

    /// Notes that there is another handle of the memory, which an import has made.
    pub fn share(&self) {
        self.note_flags(SHARED);
    }

    /// Notes that another process was given a handle of the memory.
    pub fn note_exported(&self) {
        self.note_flags(SHARED | EXPORTED);
    }

    /// Notes that there is a view of the memory without a borrow.
    pub fn note_detached(&self) {
        self.note_flags(DETACHED);
    }

    /// Notes that the memory is about to be lent, also to the host, which works on no stream.
    pub fn note_loans(&self) {
        self.note_flags(HAS_LOANS);
    }

    fn note_flags(&self, flags: usize) {
        if self.borrows.count.load(Ordering::Relaxed) & flags != flags {
            // `count_entries` stores the count with the flags, and would lose a flag that comes between its two steps.
            let _entries = self.borrows.entries.lock();
            self.borrows.count.fetch_or(flags, Ordering::AcqRel);
        }
    }

    /// Whether an import may have made another handle of the memory: then two handles may name the same elements, although
    /// one of them can be written.
    #[inline]
    pub fn is_shared(&self) -> bool {
        // Relaxed: the flag is set before the second handle exists, and who got that got the flag with it.
        self.borrows.count.load(Ordering::Relaxed) & SHARED != 0
    }

    /// Whether another handle may name the same bytes: the memory [is shared](Self::is_shared) or has a view without a borrow,
    /// or it is not the library's own, so that it may have been wrapped twice.
    #[inline]
    pub fn has_other_handles(&self) -> bool {
        self.borrows.count.load(Ordering::Relaxed) & HANDLES != 0
    }

    /// Whether another handle may name the same bytes, or come to be by a loan on a stream that lasts. The host may have another loan.
    #[inline]
    pub fn may_get_other_handles(&self) -> bool {
        self.borrows.count.load(Ordering::Relaxed) & !HAS_LOANS != 0
    }

    /// Whether another handle may name the same bytes, or come to be while others enqueue work on them: any loan may come back. Also after
    /// the loans have ended, as one may end and come back at any moment.
    #[inline]
    pub fn may_be_used_by_others(&self) -> bool {
        self.borrows.count.load(Ordering::Relaxed) != 0
    }

    /// As [`may_get_other_handles`](Self::may_get_other_handles), for the holder of the only reference: what this process makes of its own
    /// memory has one, a view without a borrow, an import and a loan.
    #[inline]
    pub fn may_get_unreferenced_handles(&self) -> bool {
        self.borrows.count.load(Ordering::Relaxed) & !(DETACHED | HAS_LOANS | SHARED) != 0
    }

    /// Lends bytes to work on `by`. Returns a number that ends the loan; loans of the same kind have the same.
    pub fn lend(&self, by: Arc<Timeline<B>>, extent: Range<usize>, write: bool) -> u64 {
        // Declared after `by`, which is dropped without the lock where a loan of its kind exists.
        let mut entries = self.borrows.entries.lock();
        let same = |entry: &&mut Borrow<B>| {
            !entry.announced && Arc::ptr_eq(&entry.by, &by) && entry.write == write && entry.extent == extent
        };
        if let Some(entry) = entries.iter_mut().find(same) {
            entry.loans += 1;
            entry.lent_at = unique_id();
            return entry.id;
        }
        let id = entries.last().map_or(0, |last| last.id + 1);
        entries.push(Borrow {
            id,
            loans: 1,
            lent_at: 0,
            by,
            extent,
            write,
            announced: false,
            elements: None,
        });
        self.borrows.count_entries(&entries);
        // Numbered after it is counted: who got a later number finds it, and does not take the memory for not lent.
        if let Some(entry) = entries.last_mut() {
            entry.lent_at = unique_id();
        }
        id
    }

    /// Announces a use by work that others are about to enqueue on `by`. The log is locked meanwhile, so that every
    /// later use finds it.
    pub(in crate::track) fn announce(&self, by: &Arc<Timeline<B>>, access: &Access<'_, B>) {
        let mut entries = self.borrows.entries.lock();
        let id = entries.last().map_or(0, |last| last.id + 1);
        let (by, extent, elements) = (by.clone(), access.extent.clone(), access.elements.cloned());
        let write = access.write;
        entries.push(Borrow { id, loans: 1, lent_at: 0, by, extent, write, announced: true, elements });
        self.borrows.count_entries(&entries);
    }

    /// Ends an announcement: the use is in the log, or its work was not enqueued.
    pub(in crate::track) fn withdraw(&self, by: &Arc<Timeline<B>>, access: &Access<'_, B>) {
        let mut entries = self.borrows.entries.lock();
        let is_it = |entry: &Borrow<B>| {
            let is_alike = entry.write == access.write && entry.extent == access.extent;
            entry.announced
                && Arc::ptr_eq(&entry.by, by)
                && is_alike
                && entry.elements.as_ref() == access.elements
        };
        if let Some(place) = entries.iter().position(is_it) {
            entries.remove(place);
        }
        self.borrows.count_entries(&entries);
    }

    /// Refuses a use that conflicts with an announced one of another stream than `by`, and work on `by` that a borrower's stream could
    /// not wait for, because another library captures it. The log is locked, and nothing of the use has been enqueued or noted.
    /// Returns [`Overlap`](ErrorKind::Overlap) or [`Unsupported`](ErrorKind::Unsupported).
    #[inline(always)]
    pub(in crate::track) fn refuse_borrowed(
        &self,
        operation: &'static str,
        part: Part<'_>,
        write: bool,
        by: Option<u64>,
    ) -> Result<()> {
        if self.borrows.is_empty() { Ok(()) } else { self.look_at_borrows(operation, part, write, by) }
    }

    #[cold]
    fn look_at_borrows(
        &self,
        operation: &'static str,
        part: Part<'_>,
        write: bool,
        by: Option<u64>,
    ) -> Result<()> {
        let entries = self.borrows.entries.lock();
        let clashes = |entry: &&Borrow<B>| {
            entry.announced
                && by != Some(entry.by.id())
                && (write || entry.write)
                && meet((&entry.extent, entry.elements.as_ref()), part)
        };
        let Some(entry) = entries.iter().find(clashes) else {
            // The host alone, which no stream waits for, has none.
            let Some(by) = by else { return Ok(()) };
            let mut borrowers = entries.iter().filter(|entry| !entry.announced && entry.by.id() != by);
            return borrowers.try_for_each(|entry| entry.by.refuse_captured_borrower(operation));
        };
        let (source_bytes, destination_bytes) = match write {
            true => (entry.extent.clone(), part.0.clone()),
            false => (part.0.clone(), entry.extent.clone()),
        };
        drop(entries);
        Err(self.context.error(operation, ErrorKind::Overlap { source_bytes, destination_bytes }))
    }

    /// Ends a loan: the work enqueued until now stays in the log.
    pub fn end_loan(&self, id: u64) {
        // Log before loans, as in every reader of the log: none finds the loan gone and its last work not yet noted.
        let mut log = self.lock_log();
        let mut entries = self.borrows.entries.lock();
        // Every loan, this one for the last time.
        note_each(&entries, &mut log, 0);
        self.borrows.remove_loan(&mut entries, id);
    }

    /// Takes back a loan whose borrower was refused the stream: there is no work of it to note.
    pub fn take_back_loan(&self, id: u64) {
        self.borrows.remove_loan(&mut self.borrows.entries.lock(), id);
    }

    /// Lets the streams of borrowers wait for work that has just been enqueued.
    #[inline]
    pub(crate) fn make_borrowers_wait(&self, of: &Timeline<B>, submission: u64) -> Result<()> {
        if self.borrows.is_empty() { Ok(()) } else { self.hold_all(of, submission) }
    }

    #[cold]
    fn hold_all(&self, of: &Timeline<B>, submission: u64) -> Result<()> {
        let borrowers: SmallVec<[Arc<Timeline<B>>; 2]> = {
            // Only to copy them: the host may have to wait, for work that uses the memory.
            let entries = self.borrows.entries.lock();
            entries.iter().filter(|entry| !entry.announced).map(|entry| entry.by.clone()).collect()
        };
        borrowers.iter().try_for_each(|borrower| borrower.wait_for_timeline(of, submission))
    }
}
