//! Which parts of a chunk are taken, and which have been moved.

use super::{AtomicUsize, Ordering};

/// The parts of a chunk. Any thread takes and moves them; the submitter alone opens them.
///
/// A chunk that is sent as a whole has all parts open, and counts those that are left. A ring has slots for parts in
/// its block, fewer than parts. Part `p` uses slot `p % slots`, and is open once the copy of the slot's earlier part is
/// over.
#[derive(Debug)]
pub struct PartMarks {
    parts: usize,
    taken: AtomicUsize,
    /// Parts below may be moved.
    opened: AtomicUsize,
    /// Parts that have not been moved, where the chunk is sent as a whole.
    left: AtomicUsize,
    /// For each slot of a ring `p + 1` once part `p` has been moved. Empty where the chunk is sent as a whole.
    slots: Box<[AtomicUsize]>,
}

impl PartMarks {
    /// Makes the marks of a chunk that is sent as a whole.
    pub fn whole(parts: usize) -> Self {
        Self {
            parts,
            taken: AtomicUsize::new(0),
            opened: AtomicUsize::new(parts),
            left: AtomicUsize::new(parts),
            slots: Box::default(),
        }
    }

    /// Makes the marks of a ring of at least one slot.
    pub fn ring(parts: usize, slots: usize) -> Self {
        let opened = AtomicUsize::new(slots.min(parts));
        let slots = (0..slots).map(|_| AtomicUsize::new(0)).collect();
        Self { opened, slots, ..Self::whole(parts) }
    }

    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Returns the number of slots, 0 for a chunk that is sent as a whole.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Takes the next part, which may not be open yet.
    pub fn take(&self) -> Option<usize> {
        let part = self.taken.fetch_add(1, Ordering::Relaxed);
        (part < self.parts).then_some(part)
    }

    /// Takes the next part if it is open.
    pub fn take_open(&self) -> Option<usize> {
        let opened = self.opened.load(Ordering::Acquire);
        let next = |next| (next < opened).then_some(next + 1);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()
    }

    /// Returns the number of parts that are not taken yet.
    pub fn untaken(&self) -> usize {
        self.parts.saturating_sub(self.taken.load(Ordering::Relaxed))
    }

    /// Returns whether a part may be moved.
    pub fn is_open(&self, part: usize) -> bool {
        part < self.opened.load(Ordering::Acquire)
    }

    /// Returns where the open parts end, for the thread that opens them.
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }

    /// Opens the parts that use the slots of the parts below `copied`, whose copies are over.
    pub fn reopen(&self, copied: usize) {
        self.opened.store((copied + self.slots.len()).min(self.parts), Ordering::Release);
    }

    /// Notes that a part has been moved. `true` if the submitter may have something to send.
    pub fn mark(&self, part: usize) -> bool {
        match self.slots.is_empty() {
            // Release for the thread that sends the chunk, acquire for the last one.
            true => self.left.fetch_sub(1, Ordering::AcqRel) == 1,
            false => {
                self.slots[part % self.slots.len()].store(part + 1, Ordering::Release);
                true
            }
        }
    }

    /// Returns how many parts have been moved without a gap, given that so many have: of a whole chunk all or none.
    pub fn moved_from(&self, mut moved: usize) -> usize {
        if self.slots.is_empty() {
            return if self.left.load(Ordering::Acquire) == 0 { self.parts } else { 0 };
        }
        while moved < self.parts && self.slots[moved % self.slots.len()].load(Ordering::Acquire) == moved + 1
        {
            moved += 1;
        }
        moved
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_whole_chunk_is_moved_with_its_last_part() {
        let marks = PartMarks::whole(3);
        assert_eq!((marks.take(), marks.take_open(), marks.untaken()), (Some(0), Some(1), 1));
        assert!(!marks.mark(1) && !marks.mark(0));
        assert_eq!(marks.moved_from(0), 0);
        assert_eq!(
            (marks.take(), marks.take(), marks.take_open(), marks.untaken()),
            (Some(2), None, None, 0)
        );
        assert!(marks.mark(2));
        assert_eq!(marks.moved_from(0), 3);
    }

    #[test]
    fn a_part_of_a_ring_is_open_once_its_slot_is_free() {
        let marks = PartMarks::ring(5, 2);
        assert_eq!((marks.take_open(), marks.take_open(), marks.take_open()), (Some(0), Some(1), None));
        marks.mark(1);
        assert_eq!(marks.moved_from(0), 0, "part 0 is a gap");
        marks.mark(0);
        assert_eq!((marks.moved_from(0), marks.moved_from(2)), (2, 2));
        assert_eq!((marks.take(), marks.is_open(2)), (Some(2), false));
        marks.reopen(1);
        assert!(marks.is_open(2) && !marks.is_open(3));
        marks.mark(2);
        assert_eq!(marks.moved_from(2), 3, "and not by the mark of part 0 in the same slot");
        marks.reopen(4);
        assert_eq!((marks.opened(), marks.untaken()), (5, 2));
    }
}
