//! The order in which a thread may take the locks of this crate.
//!
//! A thread that holds a lock may wait only for one of a higher rank, or of its own rank with a higher number. Then no threads wait
//! for each other in a circle, whichever paths through the code meet. Builds with debug assertions check that, for every lock that
//! is waited for; others keep nothing of it. A lock that is only tried is never waited for, so any may be.

#[cfg(debug_assertions)]
use gpumem_core::user_code::note_lock;

/// Each lock, from the outside in. Code of the user runs under none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Held while a stream's downloads are copied out of staging memory, so that a scope that ends waits for its last one. The
    /// copy may use whatever follows.
    CopyOuts,
    /// Held over the driver's calls that lock and unlock pages: of two arrays that share a page, only the first may call.
    PinnedPages,
    /// Held while the timeline of unknown streams is made, so that there is one.
    UnknownStreams,
    /// The uses of an allocation, by its number: work locks the logs of all memory that it uses before the queue of its stream, so
    /// that no use comes between the search for conflicts and the note.
    AccessLog,
    /// The loans of an allocation: a reader of the log notes an index of each borrower's queue.
    Borrows,
    /// The queue of a stream, held over the driver's call. A second one is only tried.
    Queue,
    /// The log of a kernel's program: a launch notes itself there under the lock of the queue, since nothing conflicts with a launch.
    ProgramLog,
    /// The free lists of a pool. Upstream is called without it, so pools over pools do not meet here.
    Pool,
    /// The numbers that a pool had before it forgot everything: written together with the free lists.
    FormerPools,
    /// A pool asks its caches how many requests they have served while its free lists stand still.
    LocalCache,
    /// The waits of a stream, noted under the lock of its queue.
    Waits,
    // Leaves: held for a few instructions, in which values of the locks above may be dropped, and events recorded.
    /// Which threads grow which pools.
    Turns,
    /// The hooks for exhausted memory; each runs without it.
    ReclaimHooks,
    /// The resources that a user has set.
    Resources,
    /// The live blocks of a tracking resource.
    Tracking,
    /// What was dropped and not yet freed.
    DeferredFrees,
    /// What the driver frees with a delay.
    LateMemory,
    /// Allocations by name.
    Names,
    /// The callbacks of a stream; each runs without it.
    Callbacks,
    /// The streams of a device.
    Timelines,
    /// Devices whose streams have waited for those of another one, noted under the lock of the stream that waits.
    Dependents,
    /// Timelines of foreign streams that are to be used again.
    ForeignTimelines,
    /// Failures of streams that are gone: the last reference to a stream may go under any lock above.
    LeftFailures,
    /// As for failures: a stream leaves its events.
    IdleEvents,
    /// Errors that no call could return.
    Errors,
    /// The recordings of the process.
    ProcessTrace,
    /// The events of a thread, by its number: all are locked while a recording starts or ends. What is recorded happens under any
    /// lock above.
    TraceSlot,
    /// The events of a recording, which the slots are emptied into.
    TraceLog,
}

/// The rank of a lock, and its number among those of that rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place(#[cfg(debug_assertions)] (Rank, u64));

/// A lock that this thread holds, or waits for.
#[derive(Debug)]
pub(super) struct Held(#[cfg(debug_assertions)] (Rank, u64));

#[cfg_attr(not(debug_assertions), allow(unused_variables, reason = "nothing is kept"))]
impl Place {
    #[inline(always)]
    pub(super) fn new(rank: Rank, number: u64) -> Self {
        Self(
            #[cfg(debug_assertions)]
            (rank, number),
        )
    }

    /// Notes the lock before the thread waits for it. Panics if it must not.
    #[inline(always)]
    pub(super) fn wait(self) -> Held {
        #[cfg(debug_assertions)]
        checked::check(self.0);
        self.hold()
    }

    /// Notes a lock that the thread has.
    #[inline(always)]
    pub(super) fn hold(self) -> Held {
        #[cfg(debug_assertions)]
        {
            checked::with_held(|held| held.push(self.0));
            note_lock(true);
        }
        Held(
            #[cfg(debug_assertions)]
            self.0,
        )
    }
}

#[cfg(not(debug_assertions))]
const _: () = assert!(size_of::<Place>() == 0 && size_of::<Held>() == 0 && !std::mem::needs_drop::<Held>());

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        note_lock(false);
        checked::with_held(|held| {
            if let Some(at) = held.iter().rposition(|place| *place == self.0) {
                held.remove(at);
            }
        });
    }
}

#[cfg(debug_assertions)]
pub(super) mod checked {
    use super::Rank;
    use std::cell::RefCell;

    #[cfg(not(loom))]
    thread_local! {
        static HELD: RefCell<Vec<(Rank, u64)>> = const { RefCell::new(Vec::new()) };
    }
    // A thread of loom is none of the system's.
    #[cfg(loom)]
    loom::thread_local! {
        static HELD: RefCell<Vec<(Rank, u64)>> = RefCell::new(Vec::new());
    }

    /// Runs `body` on the locks that this thread holds, in the order in which it took them. The variables of a thread that ends are
    /// gone.
    pub(in crate::sync) fn with_held<R: Default>(body: impl FnOnce(&mut Vec<(Rank, u64)>) -> R) -> R {
        HELD.try_with(|held| body(&mut held.borrow_mut())).unwrap_or_default()
    }

    #[allow(
        clippy::panic,
        reason = "two threads could wait for each other for ever; only builds for tests look"
    )]
    pub(super) fn check((wanted, number): (Rank, u64)) {
        let highest = with_held(|held| held.iter().max().copied());
        // A second panic would end the process before the first is told.
        if let Some((held, of)) = highest.filter(|highest| *highest >= (wanted, number))
            && !std::thread::panicking()
        {
            panic!("the lock {wanted:?} {number} is taken by a thread that holds {held:?} {of}");
        }
    }
}
