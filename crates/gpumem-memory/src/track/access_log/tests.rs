use super::*;
use proptest::prelude::*;

/// A queue that never passes anything.
#[derive(Debug, Clone, Copy)]
struct Queue(u64);
impl QueueRef for Queue {
    fn queue(&self) -> u64 {
        self.0
    }
    fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }
    fn is_complete(&self, _: u64) -> bool {
        false
    }
}

/// More queues than a log has room for entries.
const QUEUES: usize = LIMIT + 8;

/// Most uses of a step.
const MOST_USES: usize = 3;

/// Work of a queue, with its uses of the memory.
#[derive(Debug, Clone)]
struct Step {
    queue: u64,
    uses: Vec<(Range<usize>, bool)>,
}

/// Some of them several times in a row, as in loops. Of few queues or of many.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one = (0usize..24, 1usize..12, any::<bool>())
        .prop_map(|(start, length, write)| (start..start + length, write));
    let queue = prop_oneof![0u64..5, 0..QUEUES as u64];
    let step = (
        queue,
        prop_oneof![2 => prop::collection::vec(one.clone(), 1), 1 => prop::collection::vec(one, 2..=MOST_USES)],
    )
        .prop_map(|(queue, uses)| Step { queue, uses });
    let steps = (step, 1usize..4).prop_map(|(step, times)| vec![step; times]);
    // Enough to fill a log and merge it, even where every step takes milliseconds.
    prop::collection::vec(steps, 1..if cfg!(miri) { 24 } else { 60 }).prop_map(|steps| steps.concat())
}

/// Notes a use that is the same again, as a look for conflicts and a note would. Whether it is one.
fn noted_again(log: &mut AccessLog<Queue>, step: &Step, submission: u64) -> bool {
    let contents = |log: &AccessLog<Queue>| {
        let uses =
            log.uses.iter().map(|entry| (entry.extent.clone(), entry.write, entry.by.0, entry.submission));
        (uses.collect::<Vec<_>>(), log.last)
    };
    let mut other = log.clone();
    let [(extent, write)] = &step.uses[..] else { return false };
    let Some(place) = log.repeat_of_last(extent, *write, &Queue(step.queue), submission) else {
        return false;
    };
    *place = submission;
    other.note(extent.clone(), *write, &Queue(step.queue), submission);
    assert_eq!(contents(log), contents(&other));
    true
}

#[test]
fn pending_uses_are_returned_once() {
    let mut log = AccessLog::new();
    log.note(0..4, true, &Queue(1), 5);
    // Covers the first, which stays as a spent one.
    log.note(0..4, true, &Queue(2), 7);
    log.note(4..8, false, &Queue(3), 9);
    let mut out = Vec::new();
    log.drain_pending(|by, submission| out.push((by.0, submission)));
    out.sort_unstable();
    assert_eq!(out, [(2, 7), (3, 9)]);
    log.drain_pending(|by, submission| out.push((by.0, submission)));
    assert_eq!((out.len(), log.all().count()), (2, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: if cfg!(miri) { 3 } else { 2000 }, ..ProptestConfig::default() })]

    /// Every conflicting earlier step is ordered before a later one, through waits and queue order, also after merges.
    #[test]
    fn conflicting_uses_are_always_waited_for(steps in steps()) {
        let mut log: AccessLog<Queue> = AccessLog::new();
        let mut submissions = [0u64; QUEUES];
        // before[i]: the steps that are ordered before step i.
        let mut before: Vec<Vec<bool>> = Vec::new();
        let mut last_of = [None; QUEUES];
        let mut index_of = std::collections::HashMap::new();
        for (now, step) in steps.iter().enumerate() {
            let mut ordered = vec![false; steps.len()];
            let wait_for_timeline = |earlier: usize, ordered: &mut Vec<bool>| {
                ordered[earlier] = true;
                let inherited: &Vec<bool> = &before[earlier];
                for (slot, value) in ordered.iter_mut().zip(inherited) { *slot |= *value; }
            };
            if let Some(previous) = last_of[step.queue as usize] { wait_for_timeline(previous, &mut ordered); }
            let submission = submissions[step.queue as usize] + 1;
            // A repeated use is ordered only by its own queue.
            let is_again = noted_again(&mut log, step, submission);
            if !is_again {
                log.compact();
                for entry in step.uses.iter().flat_map(|(extent, write)| log.conflicts(extent, *write)) {
                    wait_for_timeline(index_of[&(entry.by.0, entry.submission)], &mut ordered);
                }
            }
            for (earlier, old) in steps[..now].iter().enumerate() {
                let conflicts = |(extent, write): &(Range<usize>, bool)| {
                    old.uses.iter().any(|(other, writes)| meet(other, extent) && (*writes || *write))
                };
                if step.uses.iter().any(conflicts) {
                    prop_assert!(ordered[earlier], "step {now} does not wait for step {earlier}");
                }
            }
            submissions[step.queue as usize] = submission;
            index_of.insert((step.queue, submission), now);
            if !is_again {
                for (extent, write) in &step.uses {
                    log.note(extent.clone(), *write, &Queue(step.queue), submission);
                }
            }
            // A step makes room before it notes its uses; one that is the same again notes none.
            prop_assert!(log.uses.len() < LIMIT + MOST_USES);
            last_of[step.queue as usize] = Some(now);
            before.push(ordered);
        }
    }
}

#[test]
fn a_use_is_a_repeat_only_if_the_log_has_not_changed() {
    let step = |queue, extent, write| Step { queue, uses: vec![(extent, write)] };
    let mut log = AccessLog::new();
    assert!(!noted_again(&mut log, &step(1, 0..8, true), 1), "nothing has been noted");
    log.note(0..8, true, &Queue(1), 1);
    assert!(noted_again(&mut log, &step(1, 0..8, true), 2));
    assert!(!noted_again(&mut log, &step(1, 0..4, true), 3), "a part of it");
    assert!(!noted_again(&mut log, &step(1, 0..8, false), 3), "a read, which others need not wait for");
    assert!(!noted_again(&mut log, &step(2, 0..8, true), 3), "another queue");
    log.note(8..16, true, &Queue(2), 1);
    assert!(!noted_again(&mut log, &step(1, 0..8, true), 3), "another queue has come between");
    assert!(noted_again(&mut log, &step(2, 8..16, true), 2));
    log.note_others(&(0..16), false, &Queue(3), 1);
    assert!(!noted_again(&mut log, &step(2, 8..16, true), 3), "the others have not been waited for");
    log.note(8..16, true, &Queue(2), 3);
    log.drain_pending(|_, _| ());
    assert!(!noted_again(&mut log, &step(2, 8..16, true), 4), "nothing is left");
    log.inherit(8..16, Queue(2), 4);
    assert!(!noted_again(&mut log, &step(2, 8..16, true), 5), "the access of another stream");
}

#[test]
fn uses_that_have_not_waited_all_stay_until_they_are_over() {
    let (over, not_over) = (std::cell::Cell::new(false), std::cell::Cell::new(false));
    let mut log = AccessLog::new();
    for submission in 1..=3 {
        for queue in 0..2 * LIMIT as u64 {
            let is_long = log.note_others(&(0..1), false, &Told(queue, &over), submission);
            assert_eq!(is_long, submission > 1 || queue + 1 >= LIMIT as u64);
        }
    }
    assert_eq!(log.all().map(|entry| entry.submission).collect::<Vec<_>>(), [3; 2 * LIMIT]);
    over.set(true);
    log.note_others(&(0..1), false, &Told(99, &not_over), 1);
    let mut pending = Vec::new();
    log.drain_pending(|by, submission| pending.push((by.0, submission)));
    assert_eq!(pending, [(99, 1)]);
}

/// A queue that reports a submission as complete once it is told so.
#[derive(Debug, Clone, Copy)]
struct Told<'a>(u64, &'a std::cell::Cell<bool>);
impl QueueRef for Told<'_> {
    fn queue(&self) -> u64 {
        self.0
    }
    fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }
    fn is_complete(&self, _: u64) -> bool {
        self.1.get()
    }
}

#[test]
fn a_loop_drops_finished_uses() {
    let (told, never) = (std::cell::Cell::new(false), std::cell::Cell::new(false));
    let mut log = AccessLog::new();
    log.note(0..8, true, &Told(1, &told), 1);
    let mut looks = 0;
    for submission in 1..=4 * ASKED_EVERY {
        told.set(submission > ASKED_EVERY);
        match log.repeat_of_last(&(0..8), false, &Told(2, &never), submission) {
            Some(place) => *place = submission,
            None => {
                looks += 1;
                log.note(0..8, false, &Told(2, &never), submission);
            }
        }
        let known = if submission < 2 * ASKED_EVERY { 2 } else { 1 };
        assert_eq!(log.all().count(), known, "{submission}");
    }
    assert_eq!(looks, 5, "the first, and one in so many");
}

#[test]
fn disjoint_parts_do_not_wait_for_each_other() {
    let mut log = AccessLog::new();
    log.note(0..64, true, &Queue(1), 1);
    assert_eq!(log.conflicts(&(64..128), true).count(), 0);
    log.note(64..128, true, &Queue(2), 1);
    assert_eq!(log.conflicts(&(0..64), true).count(), 1);
    assert_eq!(log.conflicts(&(63..65), false).count(), 2);
}

#[test]
fn readers_do_not_wait_for_readers() {
    let mut log = AccessLog::new();
    log.note(0..8, true, &Queue(1), 1);
    log.note(0..8, false, &Queue(2), 1);
    assert_eq!(log.conflicts(&(0..8), false).map(|entry| entry.by.0).collect::<Vec<_>>(), [1]);
    assert_eq!(log.conflicts(&(0..8), true).count(), 2);
}

/// Counts the references that are made to a queue.
#[derive(Debug)]
struct IntrusiveArc(u64, std::rc::Rc<std::cell::Cell<u32>>);
impl Clone for IntrusiveArc {
    fn clone(&self) -> Self {
        self.1.set(self.1.get() + 1);
        Self(self.0, self.1.clone())
    }
}
impl QueueRef for IntrusiveArc {
    fn queue(&self) -> u64 {
        self.0
    }
    fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }
    fn is_complete(&self, _: u64) -> bool {
        false
    }
}

#[test]
fn queues_that_take_turns_are_referred_to_once() {
    let clones: std::rc::Rc<std::cell::Cell<u32>> = std::rc::Rc::default();
    let queues = [IntrusiveArc(1, clones.clone()), IntrusiveArc(2, clones.clone())];
    let mut log: AccessLog<IntrusiveArc> = AccessLog::new();
    for submission in 1..100 {
        let by = &queues[submission as usize % 2];
        let waits: Vec<_> =
            log.conflicts(&(0..8), true).map(|entry| (entry.by.0, entry.submission)).collect();
        let before = (submission > 1).then(|| (queues[(submission as usize + 1) % 2].0, submission - 1));
        assert_eq!(waits, before.into_iter().collect::<Vec<_>>());
        assert_eq!(log.is_only_of(by.0), submission == 1);
        log.note(0..8, true, by, submission);
        assert!(log.is_only_of(by.0), "a retired access belongs to no stream");
        assert_eq!(log.all().count(), 1);
    }
    assert_eq!(clones.get(), 2);
    // A writer and a reader that take turns keep both.
    for submission in 100..200 {
        log.note(0..8, submission % 2 == 0, &queues[submission as usize % 2], submission);
    }
    assert_eq!(clones.get(), 2);
}

#[test]
fn the_entry_of_a_queue_is_found_again_after_removals() {
    let mut log = AccessLog::new();
    for queue in 1..=5 {
        log.note(0..8, false, &Queue(queue), queue);
    }
    log.note(16..24, false, &Queue(9), 1);
    log.note(0..8, true, &Queue(4), 7);
    let left: Vec<_> = log.all().map(|entry| (entry.by.0, entry.submission, entry.write)).collect();
    assert_eq!(left, [(4, 7, true), (9, 1, false)]);
}
