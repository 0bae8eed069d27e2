//! A forked child cannot take part: every call is a typed error, nothing hangs, and the parent works on.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_collectives::{Communicator, CommunicatorId, InPlace, Options, Sum};
use gpumem_core::{ErrorKind, Result};
use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Held by each test: a child whose parent's other threads are at work may wait for a lock that one of them holds.
static ALONE: Mutex<()> = Mutex::new(());

fn is_forked<T>(result: Result<T>) -> bool {
    matches!(result, Err(error) if *error.kind() == ErrorKind::ForkedChild)
}

#[test]
#[cfg_attr(miri, ignore = "it forks")]
fn a_forked_child_gets_an_error_and_enqueues_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let all = ranks(2, None);
    let mut arrays: Vec<_> = all.iter().map(|(_, stream)| stream.to_device(&[1, 2]).unwrap()).collect();
    all.iter().for_each(|(_, stream)| stream.synchronize().unwrap());
    let (comm, stream) = &all[0];
    // SAFETY: the child makes calls that are refused, and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        // SAFETY: a hang ends by a signal.
        unsafe { libc::alarm(20) };
        let array = &mut arrays[0];
        let refused = [
            is_forked(comm.on(stream).all_reduce(InPlace, array, Sum)),
            is_forked(comm.on(stream).barrier()),
            is_forked(comm.on(stream).send(array, 1)),
            is_forked(comm.group(stream, |group| group.broadcast(array, 0))),
            is_forked(comm.all_reduce_scalar(stream, 1, Sum)),
            is_forked(comm.split(Some(0), 0)),
            is_forked(Communicator::split_all(std::slice::from_ref(comm), |_| (None, 0))),
            is_forked(comm.register(&*array)),
            is_forked(Communicator::join(comm.device(), &CommunicatorId::new(), 0, 1, &Options::new())),
            // No lock is asked for it in a child.
            stream.submission_index() == 0,
            comm.failure().is_none() && comm.recent().is_empty(),
        ];
        let first = refused.iter().position(|refused| !refused);
        all[1].0.abort();
        let mut all = all.into_iter();
        let is_ended = all.next().is_some_and(|(comm, _)| is_forked(comm.destroy()));
        let first = first.or((!is_ended).then_some(refused.len()));
        drop(all);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(first.map_or(0, |first| first as i32 + 1)) };
    }
    let mut status = 0;
    // SAFETY: the test's own child, and a place for its status.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(
        (waited, status >> 8, status & 0x7f),
        (pid, 0, 0),
        "the number of the first call that went wrong"
    );
    for ((comm, stream), array) in all.iter().zip(&mut arrays) {
        comm.on(stream).all_reduce(InPlace, array, Sum).unwrap();
    }
    assert_eq!(arrays[0].copy_to_host().unwrap().to_vec(), [2, 4]);
}

/// A rank alone in a communicator of two: how long its stream waits.
fn waits_alone() -> Option<Duration> {
    let device = Device::open("host").ok()?;
    let all = Communicator::all_with(&vec![device.clone(); 2], &soon()).ok()?;
    let (stream, began) = (device.stream().ok()?, Instant::now());
    all[0].on(&stream).barrier().ok()?;
    stream.synchronize().is_err().then(|| began.elapsed())
}

#[test]
#[cfg_attr(miri, ignore = "it forks")]
fn a_forked_child_keeps_the_deadlines_of_its_own_ranks() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // The thread that looks after deadlines still runs when the process is forked.
    waits_alone().unwrap();
    // SAFETY: the child uses nothing of the parent, and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        // SAFETY: a hang ends by a signal.
        unsafe { libc::alarm(20) };
        let code = i32::from(waits_alone().is_none());
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: the test's own child, and a place for its status.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!((waited, status), (pid, 0), "the status of the child: 0xe where it waited for ever");
}
