//! The engine for GPUs over the double of NCCL: what is late, fails or goes away is a typed error, and nothing hangs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod aborted;
#[path = "../common/mod.rs"]
mod common;
mod full_queue;

use common::*;
use gpumem_collectives::{
    CollectiveCause, CollectiveError, Communicator, CommunicatorId, InPlace, Options, Sum,
};
use gpumem_core::{CollectiveState, ErrorKind};
use nccl_double::Fault;
use ndarray::s;
use std::{
    panic::catch_unwind,
    thread,
    time::{Duration, Instant},
};

/// Devices of their own, with threads.
fn apart(ranks: usize, options: &Options) -> Vec<(Comm, Stream)> {
    let devices: Vec<Device> = (0..ranks).map(|_| concurrent()).collect();
    let all = Communicator::all_with(&devices, options).unwrap();
    all.into_iter().map(|rank| (rank.device().stream().unwrap(), rank)).map(|(s, r)| (r, s)).collect()
}

fn is_timeout(failure: &CollectiveError) -> bool {
    matches!(failure.cause, CollectiveCause::Timeout { .. })
}

/// Waits until the library has no more than so many communicators.
fn wait_for_alive(most: u64) {
    let began = Instant::now();
    while alive() > most {
        assert!(began.elapsed() < Duration::from_secs(10), "{} communicators are left", alive());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until an operation of the rank has failed.
fn wait_for_failure(comm: &Comm) {
    while comm.failure().is_none() {
        thread::sleep(Duration::from_millis(5));
    }
}

fn poisoned_or_failed(result: gpumem_core::Result<()>) -> CollectiveError {
    match result.as_ref().map_err(gpumem_core::Error::kind) {
        Err(ErrorKind::Poisoned { .. }) => poisoned(result),
        _ => failed(result),
    }
}

#[test]
fn a_rank_that_never_calls_is_told_in_time_and_the_device_works_on() {
    let _alone = alone();
    let before = alive();
    for seed in [None, Some(2), Some(3)] {
        let all = ranks_with(3, seed, &soon());
        let began = Instant::now();
        let mut arrays = Vec::new();
        for (comm, stream) in &all[..2] {
            let mut array = stream.to_device(&[1, 2]).unwrap();
            let ok = stream.to_device(&[7]).unwrap();
            comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
            arrays.push((array, ok));
        }
        for ((comm, stream), (array, ok)) in all.iter().zip(&mut arrays) {
            let told = failed(stream.synchronize());
            assert!(is_timeout(&told), "{told}");
            assert_eq!(told.to_string().matches("failed: ").count(), 1);
            let failure = poisoned(array.copy_to_host());
            assert_eq!(failure, told);
            assert_eq!((failure.operation, failure.sequence), ("all_reduce", 0));
            assert_eq!((failure.rank, failure.size), (comm.rank(), 3));
            assert_eq!(comm.failure(), Some(failure));
            stream.synchronize().unwrap();
            assert_eq!(ok.copy_to_host().unwrap().to_vec(), [7], "other arrays can be read");
            stream.fill(array, 5).unwrap();
            assert_eq!(array.copy_to_host().unwrap().to_vec(), [5, 5], "it was written anew");
            assert!(is_timeout(&failed(comm.on(stream).barrier())), "later operations fail at once");
        }
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        // A new communicator of the same devices works.
        let devices: Vec<Device> = all.iter().map(|(comm, _)| comm.device().clone()).collect();
        drop(all);
        let again = Communicator::all(&devices).unwrap();
        let mut sums = Vec::new();
        for rank in &again {
            let stream = rank.device().stream().unwrap();
            let mut sum = stream.to_device(&[1]).unwrap();
            rank.on(&stream).all_reduce(InPlace, &mut sum, Sum).unwrap();
            sums.push(sum);
        }
        assert!(sums.iter().all(|sum| sum.copy_to_host().unwrap().to_vec() == [3]));
        drop((arrays, sums));
        again.into_iter().for_each(|rank| rank.destroy().unwrap());
    }
    wait_for_alive(before);
}

#[test]
fn an_error_of_the_library_is_told_by_every_rank() {
    let _alone = alone();
    let all = apart(2, &Options::new());
    let mut array = all[0].1.to_device(&[1]).unwrap();
    all[0].0.on(&all[0].1).all_reduce(InPlace, &mut array, Sum).unwrap();
    let fault = plant(Fault::AsynchronousError);
    let told = failed(all[0].1.synchronize());
    drop(fault);
    assert!(
        matches!(&told.cause, CollectiveCause::Library { why } if why.contains("ncclRemoteError")),
        "{told}"
    );
    assert_eq!(poisoned(array.copy_to_host()), told);
}

#[test]
fn a_call_that_fails_ends_the_communicator() {
    let _alone = alone();
    let all = apart(2, &soon());
    let mut array = all[0].1.to_device(&[1]).unwrap();
    let fault = plant(Fault::FailingCalls);
    let told = failed(all[0].0.on(&all[0].1).all_reduce(InPlace, &mut array, Sum));
    drop(fault);
    assert!(
        matches!(&told.cause, CollectiveCause::Library { why } if why.contains("ncclSystemError")),
        "{told}"
    );
    assert_eq!(poisoned_or_failed(array.copy_to_host().map(drop)), told);
    failed(all[0].0.on(&all[0].1).barrier());
    // The group of the library was closed: other communicators work.
    let all = apart(2, &Options::new());
    all.iter().for_each(|(comm, stream)| comm.on(stream).barrier().unwrap());
    all.iter().for_each(|(_, stream)| stream.synchronize().unwrap());
}

#[test]
fn an_abort_that_hangs_keeps_no_caller() {
    let _alone = alone();
    let all = apart(2, &Options::new());
    let (comm, stream) = &all[0];
    let mut array = stream.to_device(&[1]).unwrap();
    comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    let fault = plant(Fault::HangingAbort);
    let began = Instant::now();
    comm.abort();
    assert!(began.elapsed() < Duration::from_secs(20));
    let told = failed(comm.on(stream).barrier());
    assert_eq!(told.cause, CollectiveCause::Aborted { rank: 0 });
    assert!(began.elapsed() < Duration::from_secs(20));
    // Work of the stream goes on when the library lets it.
    drop(fault);
    assert_eq!(failed(stream.synchronize()).cause, CollectiveCause::Aborted { rank: 0 });
    poisoned(array.copy_to_host());
}

#[test]
fn ranks_of_one_thread_are_called_together() {
    let _alone = alone();
    let all = apart(3, &soon());
    let fault = plant(Fault::WaitingCalls);
    let mut arrays: Vec<_> = all.iter().map(|(_, stream)| stream.to_device(&[1, 2]).unwrap()).collect();
    let ends: Vec<(&Comm, &Stream)> = all.iter().map(|(comm, stream)| (comm, stream)).collect();
    Communicator::group_all(&ends, |groups| {
        groups
            .iter_mut()
            .zip(&mut arrays)
            .try_for_each(|(group, array)| group.all_reduce(InPlace, array, Sum))
    })
    .unwrap();
    assert!(arrays.iter().all(|array| array.copy_to_host().unwrap().to_vec() == [3, 6]));
    // Alone, the call waits for the others, and is ended by its deadline.
    let began = Instant::now();
    let told = failed(all[0].0.on(&all[0].1).all_reduce(InPlace, &mut arrays[0], Sum));
    assert!(is_timeout(&told) && began.elapsed() < Duration::from_secs(20), "{told}");
    drop(fault);
    assert_eq!(poisoned_or_failed(arrays[0].copy_to_host().map(drop)), told);
}

#[test]
fn a_captured_stream_is_refused_before_anything_is_called() {
    let _alone = alone();
    let all = apart(2, &Options::new());
    let (comm, stream) = &all[0];
    let mut array = stream.to_device(&[1]).unwrap();
    raw(comm.device()).set_capturing(true);
    let refused = comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap_err();
    assert!(
        matches!(refused.kind(), ErrorKind::Unsupported { what } if what.contains("captures")),
        "{refused}"
    );
    raw(comm.device()).set_capturing(false);
    let mut second = all[1].1.to_device(&[2]).unwrap();
    comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    all[1].0.on(&all[1].1).all_reduce(InPlace, &mut second, Sum).unwrap();
    assert_eq!(array.copy_to_host().unwrap().to_vec(), [3]);
}

#[test]
fn splits_form_smaller_communicators() {
    let _alone = alone();
    let before = alive();
    let all = apart(4, &Options::new());
    let (comms, streams): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let parts =
        Communicator::split_all(&comms, |rank| ((rank.rank() < 3).then_some(5), -(rank.rank() as i64)))
            .unwrap();
    assert!(parts[3].is_none());
    let mut sums = Vec::new();
    for (rank, (part, stream)) in parts.iter().flatten().zip(&streams).enumerate() {
        assert_eq!((part.rank(), part.size()), (2 - rank, 3));
        let mut sum = stream.to_device(&[1 << rank]).unwrap();
        part.on(stream).all_reduce(InPlace, &mut sum, Sum).unwrap();
        sums.push(sum);
    }
    assert!(sums.iter().all(|sum| sum.copy_to_host().unwrap().to_vec() == [7]));
    drop((parts, sums, comms, streams));
    wait_for_alive(before);
}

#[test]
fn a_split_that_a_rank_does_not_call_fails_in_time() {
    let _alone = alone();
    let all = apart(2, &soon());
    let began = Instant::now();
    let failure = poisoned_or_failed(all[0].0.split(Some(1), 0).map(drop));
    assert!(is_timeout(&failure) && began.elapsed() < Duration::from_secs(20), "{failure}");
}

/// The caller panics when it is asked for the part of the second rank: none has begun a split then.
#[test]
fn a_split_whose_caller_panics_leaves_the_ranks_in_step() {
    let _alone = alone();
    let before = alive();
    let (comms, streams): (Vec<_>, Vec<_>) = apart(2, &soon()).into_iter().unzip();
    let given_up = catch_unwind(|| {
        Communicator::split_all(
            &comms,
            |rank| if rank.rank() == 0 { (Some(0), 0) } else { panic!("as planned") },
        )
        .map(drop)
    });
    given_up.unwrap_err().downcast_ref::<&str>().unwrap();
    let parts = Communicator::split_all(&comms, |_| (Some(0), 0)).unwrap();
    thread::scope(|scope| {
        for (part, stream) in parts.iter().flatten().zip(&streams) {
            scope.spawn(|| part.on(stream).barrier().and_then(|()| stream.synchronize()).unwrap());
        }
    });
    assert_eq!(parts.iter().flatten().count(), 2);
    drop((parts, comms, streams));
    wait_for_alive(before);
}

/// A rank has no memory for what it is to say in a split: its next operation must not meet the others' split.
#[test]
fn a_rank_whose_split_fails_calls_no_later_operation() {
    let _alone = alone();
    let before = alive();
    let (comms, streams): (Vec<_>, Vec<_>) = apart(2, &soon()).into_iter().unzip();
    let mut filled = Vec::new();
    for bytes in (0..28).rev().map(|power| 1_usize << power) {
        while let Ok(array) = streams[1].device_array::<u8, _>(bytes) {
            filled.push(array);
        }
    }
    let began = Instant::now();
    thread::scope(|scope| {
        let first = scope.spawn(|| comms[0].split(Some(0), 0).map(drop));
        let refused = comms[1].split(Some(0), 0).map(drop).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::OutOfMemory { .. }), "{refused}");
        let told = failed(comms[1].on(&streams[1]).barrier());
        assert!(matches!(told.cause, CollectiveCause::PeerLost { rank: 1, .. }), "{told}");
        poisoned_or_failed(first.join().unwrap());
    });
    assert!(began.elapsed() < Duration::from_secs(20));
    drop((filled, comms, streams));
    wait_for_alive(before);
}

#[test]
fn a_rank_that_never_joins_fails_the_others_in_time() {
    let _alone = alone();
    let device = concurrent();
    let id = CommunicatorId::for_device(&device).unwrap();
    let comm = Comm::join(&device, &id, 0, 2, &soon()).unwrap();
    let began = Instant::now();
    let told = failed(comm.on(&device.stream().unwrap()).barrier());
    assert!(is_timeout(&told) && began.elapsed() < Duration::from_secs(20), "{told}");
    let began = Instant::now();
    drop(comm);
    assert!(began.elapsed() < Duration::from_secs(1), "less than the deadline");
}

#[test]
fn dropped_communicators_let_their_operations_go_on() {
    let _alone = alone();
    let before = alive();
    let mut all = apart(2, &Options::new());
    let (second, second_stream) = all.pop().unwrap();
    let (first, first_stream) = all.pop().unwrap();
    let mut array = first_stream.to_device(&[1]).unwrap();
    first.on(&first_stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    let began = Instant::now();
    drop((first, first_stream));
    assert!(began.elapsed() < Duration::from_secs(1), "less than the deadline");
    let mut other = second_stream.to_device(&[2]).unwrap();
    second.on(&second_stream).all_reduce(InPlace, &mut other, Sum).unwrap();
    drop((second, second_stream));
    assert_eq!((array.get(0).unwrap(), other.get(0).unwrap()), (3, 3));
    wait_for_alive(before);
}

#[test]
fn identities_of_other_engines_are_refused() {
    let device = concurrent();
    let wrong = |id: &CommunicatorId| Comm::join(&device, id, 0, 1, &Options::new()).unwrap_err().to_string();
    let message = wrong(&CommunicatorId::new());
    assert!(message.contains("made for another engine"), "{message}");
    let id = CommunicatorId::for_device(&device).unwrap();
    assert_eq!(CommunicatorId::from_bytes(&id.to_bytes()).unwrap(), id);
    let mut of_amd = id.to_bytes();
    of_amd[5] = 3;
    let message = wrong(&CommunicatorId::from_bytes(&of_amd).unwrap());
    assert!(message.contains("made for another engine"), "{message}");
    let mut unknown = id.to_bytes();
    unknown[5] = 200;
    assert!(wrong(&CommunicatorId::from_bytes(&unknown).unwrap()).contains("another engine"));
    let refused = Comm::join(&device, &id, 3, 2, &Options::new()).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::InvalidArgument { .. }));
}

/// Streams of one device wait for each other's operations, unless the communicators are concurrent.
#[test]
fn operations_of_two_communicators_keep_the_order_of_the_host() {
    let _alone = alone();
    for concurrent in [false, true] {
        let options = Options::new().concurrent(concurrent);
        let devices = [common::concurrent(), common::concurrent()];
        let first = Communicator::all_with(&devices, &options).unwrap();
        let second = Communicator::all_with(&devices, &options).unwrap();
        let streams: Vec<[Stream; 2]> =
            devices.iter().map(|device| [device.stream().unwrap(), device.stream().unwrap()]).collect();
        // Rank 0 calls both, rank 1 the second one only, so far.
        first[0].on(&streams[0][0]).barrier().unwrap();
        second[0].on(&streams[0][1]).barrier().unwrap();
        second[1].on(&streams[1][1]).barrier().unwrap();
        thread::sleep(Duration::from_millis(50));
        assert_eq!(streams[0][1].query().unwrap(), concurrent);
        first[1].on(&streams[1][0]).barrier().unwrap();
        if concurrent {
            streams.iter().flatten().for_each(|stream| stream.synchronize().unwrap());
        } else {
            first[0].abort();
            first[1].abort();
        }
    }
}

#[test]
fn a_check_names_the_ranks_that_call_something_else_on_every_rank() {
    let _alone = alone();
    let all = apart(3, &Options::new().check(true).timeout(Duration::from_secs(20)));
    type Call =
        fn(&Comm, &Stream, &mut gpumem_runtime::DeviceArray<i32, ndarray::Ix1, B>) -> gpumem_core::Result<()>;
    let others: [Call; 5] = [
        |comm, stream, array| comm.on(stream).broadcast(array, 0),
        |comm, stream, array| comm.on(stream).all_reduce(InPlace, array, gpumem_collectives::Max),
        |comm, stream, array| comm.on(stream).all_reduce(InPlace, &mut array.slice_mut(s![..2])?, Sum),
        |comm, stream, _| comm.on(stream).all_reduce(InPlace, &mut stream.to_device(&[1.0_f32; 3])?, Sum),
        |comm, stream, _| comm.on(stream).barrier(),
    ];
    for (case, other) in others.iter().enumerate() {
        let odd = case % 3;
        let call = |rank: usize| {
            let (comm, stream) = &all[rank];
            let mut array = stream.to_device(&[1, 2, 3]).unwrap();
            let called = match rank {
                rank if rank == odd => other(comm, stream, &mut array),
                _ => comm.on(stream).all_reduce(InPlace, &mut array, Sum),
            };
            let failure = failed(called);
            assert_eq!(failure.sequence, case as u64);
            let CollectiveCause::Mismatch { mine, theirs } = &failure.cause else { panic!("{failure}") };
            let named: Vec<usize> = theirs.iter().map(|(rank, _)| *rank).collect();
            let wanted = if rank == odd { (0..3).filter(|rank| *rank != odd).collect() } else { vec![odd] };
            assert_eq!(named, wanted, "rank {rank}, case {case}");
            assert_eq!(mine.operation == "all_reduce", rank != odd || case % 4 != 0, "case {case}");
            assert_eq!(comm.failure(), Some(failure.clone()));
            assert_eq!(array.copy_to_host().unwrap().to_vec(), [1, 2, 3], "nothing was moved");
        };
        thread::scope(|scope| (0..3).for_each(|rank| drop(scope.spawn(move || call(rank)))));
    }
    // The communicators go on. One thread may drive all ranks.
    let mut arrays: Vec<_> = all.iter().map(|(_, stream)| stream.to_device(&[1, 2]).unwrap()).collect();
    let ends: Vec<(&Comm, &Stream)> = all.iter().map(|(comm, stream)| (comm, stream)).collect();
    Communicator::group_all(&ends, |groups| {
        groups
            .iter_mut()
            .zip(&mut arrays)
            .try_for_each(|(group, array)| group.all_reduce(InPlace, array, Sum))
    })
    .unwrap();
    assert!(arrays.iter().all(|array| array.copy_to_host().unwrap().to_vec() == [3, 6]));
}

#[test]
fn a_check_names_the_ranks_whose_blocks_do_not_fit() {
    let _alone = alone();
    let all = apart(3, &Options::new().check(true).timeout(Duration::from_secs(20)));
    // Rows to each rank. Rank 2 sends rank 1 a row too many, and none to rank 0, which wants none.
    for sent in [[[1, 1, 1], [1, 1, 1], [0, 2, 1]], [[1, 1, 1], [1, 1, 1], [1, 1, 1]]] {
        let call = |rank: usize| {
            let (comm, stream) = &all[rank];
            let source = stream.to_device(&[rank as i32 * 10, 1, 2]).unwrap();
            let received = if rank == 0 { [1, 1, sent[2][0]] } else { [1; 3] };
            let mut destination = stream.to_device(&vec![-1; received.iter().sum::<usize>()]).unwrap();
            let called = comm.on(stream).all_to_all_v((&source, &sent[rank]), (&mut destination, &received));
            let got = destination.copy_to_host().unwrap().to_vec();
            if sent[2][1] == 1 {
                called.unwrap();
                assert_eq!(got[0], if rank == 0 { 0 } else { rank as i32 });
                return;
            }
            let failure = failed(called);
            let CollectiveCause::Mismatch { theirs, .. } = &failure.cause else { panic!("{failure}") };
            let named: Vec<usize> = theirs.iter().map(|(rank, _)| *rank).collect();
            assert_eq!(named, [[1, 2].as_slice(), &[2], &[1]][rank], "rank {rank}: {failure}");
            assert!(got.iter().all(|value| *value == -1), "nothing was moved");
        };
        thread::scope(|scope| (0..3).for_each(|rank| drop(scope.spawn(move || call(rank)))));
    }
}

#[test]
fn operations_of_a_lost_device_are_not_told_as_done() {
    let _alone = alone();
    let all = apart(2, &soon());
    let (comm, stream) = &all[0];
    let mut array = stream.to_device(&[1]).unwrap();
    comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    // The other rank never comes.
    raw(comm.device()).host().lose("the test loses it");
    let began = Instant::now();
    let states = || comm.recent().iter().map(|record| record.state).collect::<Vec<_>>();
    while states() == [CollectiveState::UnderWay] && began.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(states(), [CollectiveState::Failed]);
    let failure = comm.failure().unwrap();
    assert!(matches!(failure.cause, CollectiveCause::PeerLost { rank: 0, .. }), "{failure}");
}
