//! The parts of a staged chunk: a slot is written by one thread, after its copy is over and before the next one is read.

use gpumem_memory::sync::{event_count::EventCount, part_marks::PartMarks};
use loom::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// A chunk whose parts are numbers, in a block with a place for each slot.
struct Chunk {
    marks: PartMarks,
    event_count: EventCount,
    block: Vec<UnsafeCell<usize>>,
}

// SAFETY: a slot is written by the thread that has taken its part, and read by the submitter, which opens it again; loom
// checks that.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new(marks: PartMarks, slots: usize) -> Arc<Self> {
        let block = (0..slots).map(|_| UnsafeCell::new(0)).collect();
        Arc::new(Self { marks, event_count: EventCount::default(), block })
    }

    /// Moves parts until there are none.
    fn help(&self) {
        while let Some(part) = self.marks.take() {
            if !self.marks.is_open(part) {
                self.event_count.wait_until(|| self.marks.is_open(part));
            }
            // SAFETY: as above.
            self.block[part % self.block.len()].with_mut(|slot| unsafe { *slot = part + 1 });
            if self.marks.mark(part) {
                self.event_count.notify_all();
            }
        }
    }

    /// As [`help`](Self::help), but one part cannot be moved: then no thread goes on.
    fn help_until(&self, bad: usize, ended: &AtomicBool) {
        let has_ended = || ended.load(Ordering::Acquire);
        while !has_ended()
            && let Some(part) = self.marks.take()
        {
            if !self.marks.is_open(part) {
                self.event_count.wait_until(|| has_ended() || self.marks.is_open(part));
            }
            if part == bad || has_ended() {
                ended.store(true, Ordering::Release);
                self.event_count.notify_all();
                return;
            }
            // SAFETY: as above.
            self.block[part % self.block.len()].with_mut(|slot| unsafe { *slot = part + 1 });
            if self.marks.mark(part) {
                self.event_count.notify_all();
            }
        }
    }

    /// Waits until more than so many parts have been moved without a gap, and returns how many.
    fn moved_after(&self, sent: usize) -> usize {
        let mut moved = sent;
        self.event_count.wait_until(|| {
            moved = self.marks.moved_from(moved);
            moved > sent
        });
        moved
    }

    /// Reads a part, as the copy engine does.
    fn copy(&self, part: usize) {
        // SAFETY: as above.
        let found = self.block[part % self.block.len()].with(|slot| unsafe { *slot });
        assert_eq!(found, part + 1);
    }
}

fn model(body: impl Fn() + Send + Sync + 'static) {
    model_within(3, body);
}

/// With so many preemptions in an execution; by night with more, as all models.
fn model_within(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(body);
}

#[test]
fn a_slot_of_a_ring_is_filled_again_when_its_copy_is_over() {
    // Two helpers with a third preemption take a minute.
    for (preemptions, helpers, parts, slots) in [(3, 1, 3, 1), (2, 2, 3, 2), (3, 1, 4, 2)] {
        model_within(preemptions, move || {
            let chunk = Chunk::new(PartMarks::ring(parts, slots), slots);
            let helpers: Vec<_> = (0..helpers)
                .map(|_| {
                    let theirs = chunk.clone();
                    thread::spawn(move || theirs.help())
                })
                .collect();
            let mut sent = 0;
            while sent < parts {
                let moved = chunk.moved_after(sent);
                (sent..moved).for_each(|part| chunk.copy(part));
                sent = moved;
                chunk.marks.reopen(sent);
                chunk.event_count.notify_all();
            }
            helpers.into_iter().for_each(|helper| helper.join().unwrap());
        });
    }
}

#[test]
fn the_submitter_moves_parts_too() {
    model(|| {
        let chunk = Chunk::new(PartMarks::ring(3, 2), 2);
        let theirs = chunk.clone();
        let helper = thread::spawn(move || theirs.help());
        let mut sent = 0;
        while sent < 3 {
            if let Some(part) = chunk.marks.take_open() {
                // SAFETY: as in `help`.
                chunk.block[part % 2].with_mut(|slot| unsafe { *slot = part + 1 });
                chunk.marks.mark(part);
            }
            let moved = chunk.moved_after(sent);
            (sent..moved).for_each(|part| chunk.copy(part));
            sent = moved;
            chunk.marks.reopen(sent);
            chunk.event_count.notify_all();
        }
        helper.join().unwrap();
    });
}

#[test]
fn the_last_part_of_a_whole_chunk_wakes_the_submitter() {
    model(|| {
        let chunk = Chunk::new(PartMarks::whole(3), 3);
        let helpers: Vec<_> = (0..2)
            .map(|_| {
                let theirs = chunk.clone();
                thread::spawn(move || theirs.help())
            })
            .collect();
        assert_eq!(chunk.moved_after(0), 3);
        (0..3).for_each(|part| chunk.copy(part));
        helpers.into_iter().for_each(|helper| helper.join().unwrap());
    });
}

/// A file that ends, or a thread that unwinds: waits for a part and for a slot end, and what was sent had been moved.
#[test]
fn a_part_that_fails_ends_every_wait() {
    // As above.
    for (bad, slots) in [(1, 1), (1, 2)] {
        model_within(2, move || {
            let chunk = Chunk::new(PartMarks::ring(3, slots), slots);
            let ended = Arc::new(AtomicBool::new(false));
            let helpers: Vec<_> = (0..2)
                .map(|_| {
                    let (chunk, ended) = (chunk.clone(), ended.clone());
                    thread::spawn(move || chunk.help_until(bad, &ended))
                })
                .collect();
            let mut sent = 0;
            while !ended.load(Ordering::Acquire) {
                let mut moved = sent;
                chunk.event_count.wait_until(|| {
                    moved = chunk.marks.moved_from(moved);
                    moved > sent || ended.load(Ordering::Acquire)
                });
                (sent..moved).for_each(|part| chunk.copy(part));
                sent = moved;
                chunk.marks.reopen(sent);
                chunk.event_count.notify_all();
            }
            helpers.into_iter().for_each(|helper| helper.join().unwrap());
            assert!(sent <= bad);
        });
    }
}
