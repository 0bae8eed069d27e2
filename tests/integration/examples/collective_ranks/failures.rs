//! Many calls, a rank that never calls, one that is killed, and one that calls something else.

use crate::ranks::{Comm, Rank};
use gpumem::{
    Error, ErrorKind,
    collectives::{CollectiveCause, CollectiveError, InPlace, Max, Min, Options, Sum},
};
use std::{
    env, fs,
    time::{Duration, Instant},
};

/// Bytes of this process in memory.
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    4096 * statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
}

/// How long the phase goes on, if so many calls take longer.
const LONGEST: Duration = Duration::from_secs(150);

pub(crate) fn many(rank: &Rank) {
    let (comm, stream) = (rank.join(&Options::new()), rank.stream());
    let mut array = stream.to_device(&[0_i64, 1]).unwrap();
    let mut goes_on = stream.to_device(&[1_i32]).unwrap();
    let mut figures = Vec::new();
    // Ranks that share a GPU take turns of some milliseconds: then a call takes as long.
    let part = (rank.rounds / 20).clamp(1, 1000);
    let (begin, mut calls) = (Instant::now(), 0);
    while calls < rank.rounds {
        for _ in 0..part {
            comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        }
        calls += part;
        stream.synchronize().unwrap();
        let each = begin.elapsed().as_secs_f64() * 1e6 / calls as f64;
        rank.say(&format!("{calls} calls, {each:.2} us each"));
        // All ranks stop together.
        stream.copy_to_device(&mut goes_on, &[i32::from(begin.elapsed() < LONGEST)]).unwrap();
        comm.on(&stream).all_reduce(InPlace, &mut goes_on, Min).unwrap();
        figures.push((resident(), rank.device.memory_info().unwrap().free));
        if stream.copy_to_host(&goes_on).unwrap().view().unwrap()[0] == 0 {
            break;
        }
    }
    let (first, last) = (figures[figures.len().min(3) - 1], figures[figures.len() - 1]);
    let (grown, taken) = (last.0.saturating_sub(first.0), first.1.saturating_sub(last.1));
    rank.say(&format!("memory of the host grew by {grown} bytes, of the device by {taken}"));
    assert!(grown < 4 << 20, "the host's memory grows");
    assert!(taken < 4 << 20, "the device's memory grows");
    assert_eq!(stream.copy_to_host(&array).unwrap().view().unwrap()[0], 0);
}

fn failure_of<T: std::fmt::Debug>(result: gpumem::Result<T>) -> CollectiveError {
    match result.as_ref().map_err(Error::kind) {
        Err(ErrorKind::Collective(failure)) => (**failure).clone(),
        Err(ErrorKind::Poisoned { failure, .. }) => {
            failure.collective.as_deref().expect("an operation of several ranks").clone()
        }
        other => panic!("{other:?} is not the failure of an operation"),
    }
}

/// Checks that the device goes on: memory, streams, and a communicator of one rank.
fn works_on(rank: &Rank) {
    let stream = rank.stream();
    let id = gpumem::collectives::CommunicatorId::for_device(&rank.device).unwrap();
    let alone = Comm::join(&rank.device, &id, 0, 1, &Options::new()).unwrap();
    let mut array = stream.to_device(&[3_i32, 4]).unwrap();
    alone.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    assert_eq!(array.copy_to_host().unwrap().to_vec(), [3, 4]);
    rank.device.flush().unwrap();
    rank.say("the device works on");
}

/// The last rank never calls the operation.
pub(crate) fn late(rank: &Rank) {
    let deadline = Duration::from_secs(3);
    let (comm, stream) = (rank.join(&Options::new().timeout(deadline)), rank.stream());
    let mut array = stream.to_device(&vec![1_f32; 1 << 20]).unwrap();
    comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    stream.synchronize().unwrap();
    rank.meet("connected");
    let is_late = rank.rank == rank.size - 1;
    if !is_late {
        let begin = Instant::now();
        let called = comm.on(&stream).all_reduce(InPlace, &mut array, Sum);
        let waited = stream.synchronize();
        let took = begin.elapsed();
        rank.say(&format!("call: {called:?}; wait: {waited:?}; after {took:?}"));
        let failure = failure_of(called.and(waited));
        assert_eq!((failure.operation, failure.sequence, failure.rank), ("all_reduce", 1, rank.rank));
        assert!(took < deadline + Duration::from_secs(2), "{took:?}");
        let read = array.copy_to_host();
        assert_eq!(failure_of(read), failure, "the array cannot be read");
        assert_eq!(comm.failure(), Some(failure));
        stream.fill(&mut array, 5.0).unwrap();
        assert!(array.copy_to_host().unwrap().iter().all(|value| *value == 5.0), "it was written anew");
        failure_of(comm.on(&stream).barrier());
        let begin = Instant::now();
        drop(comm);
        assert!(begin.elapsed() < Duration::from_millis(100), "a drop does not wait");
        works_on(rank);
    }
    rank.meet("done");
}

/// The last rank never calls, and the others enqueue other work, or operations, until the driver has no room.
pub(crate) fn flood(rank: &Rank) {
    // More than a driver's queue has room for.
    const CALLS: usize = 5000;
    let deadline = Duration::from_secs(3);
    for of_ranks in [false, true] {
        let (comm, stream) = (rank.join(&Options::new().timeout(deadline)), rank.stream());
        let mut array = stream.to_device(&vec![1_f32; 1 << 20]).unwrap();
        let mut other = stream.to_device(&vec![1_f32; 1 << 10]).unwrap();
        comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        stream.synchronize().unwrap();
        rank.meet(&format!("connected {of_ranks}"));
        if rank.rank < rank.size - 1 {
            let begin = Instant::now();
            comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
            let enqueue = |_| match of_ranks {
                true => comm.on(&stream).all_reduce(InPlace, &mut other, Sum),
                false => stream.fill(&mut other, 2.0),
            };
            let (enqueued, waited) = ((0..CALLS).try_for_each(enqueue), stream.synchronize());
            let took = begin.elapsed();
            rank.say(&format!("of ranks: {of_ranks}, calls: {enqueued:?}; wait: {waited:?}; after {took:?}"));
            assert!(enqueued.is_err() || waited.is_err());
            // The library ends a thousand operations one after the other.
            assert!(took < Duration::from_secs(if of_ranks { 60 } else { 10 }), "{took:?}");
            assert!(matches!(comm.failure().unwrap().cause, CollectiveCause::Timeout { .. }));
            failure_of(array.copy_to_host());
            drop(comm);
            works_on(rank);
        }
        rank.meet(&format!("done {of_ranks}"));
    }
}

/// The last rank calls with a longer array, which ranks of one process find out, and those of several with a check.
pub(crate) fn mismatch(rank: &Rank) {
    let are_processes = env::var_os("COLLECTIVE_RANK").is_some();
    let deadline = Duration::from_secs(60);
    for length in [4, 1 << 10, 1 << 22] {
        let comm = rank.join(&Options::new().timeout(deadline).check(are_processes));
        let stream = rank.stream();
        let mut array = stream.to_device(&vec![1_i32; length]).unwrap();
        comm.on(&stream).all_reduce(InPlace, &mut array, Max).unwrap();
        stream.synchronize().unwrap();
        rank.meet(&format!("connected {length}"));
        let begin = Instant::now();
        let called = match rank.rank == rank.size - 1 {
            true => comm.on(&stream).all_reduce(
                InPlace,
                &mut stream.to_device(&vec![1; 2 * length]).unwrap(),
                Max,
            ),
            false => comm.on(&stream).all_reduce(InPlace, &mut array, Max),
        };
        let (outcome, took) = (called.and_then(|()| stream.synchronize()), begin.elapsed());
        rank.say(&format!("{outcome:?} after {took:?}"));
        let cause = failure_of(outcome).cause;
        let is_told = matches!(cause, CollectiveCause::Mismatch { .. } | CollectiveCause::PeerLost { .. });
        assert!(is_told && took < deadline / 4, "{cause}");
        rank.meet(&format!("told {length}"));
        drop(comm);
        works_on(rank);
    }
}

/// The last rank is killed while operations are under way.
pub(crate) fn killed(rank: &Rank) {
    let deadline = Duration::from_secs(10);
    let (comm, stream) = (rank.join(&Options::new().timeout(deadline)), rank.stream());
    let mut array = stream.to_device(&vec![1_f32; 16 << 20]).unwrap();
    comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    stream.synchronize().unwrap();
    rank.meet("connected");
    let is_victim = rank.rank == rank.size - 1;
    let begin = Instant::now();
    let mut outcome = Ok(());
    for call in 0..1000 {
        if is_victim && call == 20 {
            // SAFETY: ends this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        outcome = comm.on(&stream).all_reduce(InPlace, &mut array, Sum);
        if call % 10 == 9 {
            outcome = outcome.and_then(|()| stream.synchronize());
        }
        if outcome.is_err() {
            break;
        }
    }
    let took = begin.elapsed();
    rank.say(&format!("{outcome:?} after {took:?}"));
    let failure = failure_of(outcome);
    assert_eq!((failure.operation, failure.rank, failure.size), ("all_reduce", rank.rank, rank.size));
    assert!(took < deadline + Duration::from_secs(5), "{took:?}");
    failure_of(array.copy_to_host());
    let begin = Instant::now();
    comm.abort();
    drop(comm);
    assert!(begin.elapsed() < Duration::from_millis(100), "an abort does not wait");
    drop(array);
    works_on(rank);
}
