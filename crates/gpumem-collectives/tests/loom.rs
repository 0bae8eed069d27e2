//! All interleavings of ranks that meet: `RUSTFLAGS="--cfg loom" cargo test -p gpumem-collectives --profile loom --test loom`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![cfg(loom)]

use gpumem_collectives::loom_models::Pair;
use loom::thread;

#[test]
fn two_ranks_meet_once_and_none_waits_for_ever() {
    loom::model(|| {
        let pair = Pair::new();
        let other = pair.clone();
        let second = thread::spawn(move || other.arrive(1));
        let first = pair.arrive(0);
        let second = second.join().unwrap();
        assert!(pair.outcome(0, first) && pair.outcome(1, second));
        assert_eq!((pair.moved(0), pair.moved(1)), (1, 1));
    });
}

#[test]
fn a_deadline_fails_both_ranks_or_none() {
    loom::model(|| {
        let pair = Pair::new();
        let (other, clock) = (pair.clone(), pair.clone());
        let second = thread::spawn(move || other.arrive(1));
        let failed = thread::spawn(move || clock.fail());
        let first = pair.arrive(0);
        let (second, failed) = (second.join().unwrap(), failed.join().unwrap());
        assert_eq!(pair.outcome(0, first), !failed);
        assert_eq!(pair.outcome(1, second), !failed);
        assert_eq!(pair.moved(0), usize::from(!failed));
    });
}

#[test]
fn memory_that_is_given_up_is_not_used_any_more() {
    loom::model(|| {
        let pair = Pair::new();
        let _ = pair.arrive(0);
        let other = pair.clone();
        let second = thread::spawn(move || other.arrive(1));
        pair.give_up(0);
        let second = second.join().unwrap();
        assert_eq!(usize::from(pair.outcome(1, second)), pair.moved(1));
    });
}
