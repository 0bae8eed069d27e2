//! Ranks that join when others have left, that give a split up, and numbers of ranks that no process has.

use crate::common::*;
use gpumem_collectives::{CollectiveCause, Communicator, CommunicatorId, InPlace, Options, Sum};
use gpumem_core::ErrorKind;
use gpumem_host::{Injection, Operation};
use ndarray::Array2;
use std::time::Duration;

/// Long enough that no rank comes to it.
fn patient() -> Options {
    Options::new().timeout(Duration::from_secs(if cfg!(miri) { 600 } else { 60 }))
}

/// What the last rank is told, if it joins before or after the others have left: the work of rank 1 failed, or it left
/// without a call.
fn told(joins_late: bool, fails: bool) -> CollectiveCause {
    let (device, id) = (adversarial(1), CommunicatorId::new());
    let join = |rank| Communicator::join(&device, &id, rank, 3, &patient()).unwrap();
    let mut all: Vec<Comm> = (0..2).map(join).collect();
    let early = (!joins_late).then(|| join(2));
    let mut arrays = Vec::new();
    for comm in &all {
        let stream = device.stream().unwrap();
        let mut array = stream.to_device(&[1, 2]).unwrap();
        if comm.rank() == 1 {
            if !fails {
                break;
            }
            let what = "the test wants it".to_owned();
            device.raw().inject(Injection::next(Operation::Fill, ErrorKind::AsynchronousFault { what }));
            stream.fill(&mut array, 7).unwrap();
        }
        // The failure may be known by now: then the others have been told of it.
        let _ = comm.on(&stream).all_reduce(InPlace, &mut array, Sum);
        arrays.push((array, stream));
    }
    if fails {
        arrays.iter().for_each(|(array, _)| drop(array.copy_to_host().unwrap_err()));
    }
    all.clear();
    let late = early.unwrap_or_else(|| join(2));
    let stream = device.stream().unwrap();
    let mut array = stream.to_device(&[1, 2]).unwrap();
    let called = late.on(&stream).all_reduce(InPlace, &mut array, Sum);
    called.and_then(|()| array.copy_to_host().map(drop)).unwrap_err();
    late.failure().unwrap().cause
}

#[test]
fn a_rank_that_joins_late_is_told_what_one_that_joined_before_is_told() {
    for fails in [false, true] {
        let cause = told(true, fails);
        assert!(matches!(cause, CollectiveCause::PeerLost { rank: 1, .. }), "{cause}");
        assert_eq!(cause, told(false, fails));
    }
}

#[test]
fn an_identity_of_which_all_ranks_have_joined_and_left_is_free_again() {
    let (device, id) = (adversarial(0), CommunicatorId::new());
    let join = |rank| Communicator::join(&device, &id, rank, 2, &Options::new());
    let first = join(0).unwrap();
    join(0).unwrap_err();
    drop(first);
    join(0).unwrap_err();
    drop(join(1).unwrap());
    drop([join(0).unwrap(), join(1).unwrap()]);
}

#[test]
fn more_ranks_than_a_process_has_are_refused() {
    let device = adversarial(0);
    for size in [1 << 17, 1 << 40, usize::MAX] {
        let joined = Communicator::join(&device, &CommunicatorId::new(), 0, size, &Options::new());
        let error = joined.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    }
}

#[test]
fn a_rank_that_gives_a_split_up_is_told_to_the_others() {
    // One thread splits all ranks, and each within that alone: the first waits in vain.
    let device = adversarial(0);
    let all = Communicator::all_with(&vec![device; 2], &soon()).unwrap();
    let mut inner = Vec::new();
    let outer = Communicator::split_all(&all, |rank| {
        inner.push(rank.split(Some(0), 0));
        (Some(0), 0)
    });
    assert!(outer.unwrap().iter().all(Option::is_some), "it is a split of its own");
    let mut causes = inner.into_iter().map(|split| failed(split).cause);
    let first = causes.next().unwrap();
    assert!(matches!(&first, CollectiveCause::Timeout { missing, .. } if *missing == [1]), "{first}");
    assert_eq!(
        causes.next().unwrap(),
        first,
        "the second gets no communicator that the first is no member of"
    );
}

#[test]
fn ranks_can_be_split_after_a_panic_in_a_split() {
    let all = Communicator::all_with(&vec![adversarial(0); 3], &soon()).unwrap();
    let panics = |rank: &Comm| if rank.rank() == 1 { panic!("on purpose") } else { (Some(0), 0) };
    let split = || Communicator::split_all(&all, panics);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(split)).unwrap_err();
    let parts = Communicator::split_all(&all, |_| (Some(0), 0)).unwrap();
    assert!(parts.iter().flatten().all(|part| part.size() == 3) && parts.len() == 3);
}

#[test]
fn what_a_rank_sends_to_itself_fails_when_it_leaves() {
    for seed in seeds(4) {
        for sends in [true, false] {
            let mut all = ranks_with(2, seed, &patient());
            let (comm, stream) = all.remove(0);
            let mut array = stream.to_device(&[1, 2]).unwrap();
            let called = comm.group(&stream, |group| match sends {
                true => group.send(&array, 0),
                false => group.receive(&mut array, 0),
            });
            called.unwrap();
            drop(comm);
            let told = stream.synchronize().unwrap_err().to_string();
            assert!(told.contains("rank 0 did not take part: its communicator was dropped"), "{told}");
        }
    }
}

#[test]
fn ranks_do_not_wait_for_one_that_leaves_its_part_of_a_split() {
    let (mut all, alone) = (ranks_with(2, None, &patient()), ranks_with(2, None, &soon()));
    let (second, (first, stream)) = (all.pop().unwrap().0, all.pop().unwrap());
    std::thread::scope(|scope| {
        // It splits a rank of another communicator before, whose split comes to nothing: so it takes no part of its own.
        let split = scope.spawn(move || {
            let ranks = [alone.into_iter().next().unwrap().0, second];
            Communicator::split_all(&ranks, |_| (Some(0), 0)).map(drop).map_err(|_| ranks)
        });
        let part = first.split(Some(0), 0);
        let _ranks = split.join().unwrap().unwrap_err();
        // It has given the split up before this rank came to it, or left its part afterwards.
        let cause = failed(part.and_then(|part| part.unwrap().on(&stream).barrier())).cause;
        assert!(matches!(cause, CollectiveCause::PeerLost { rank: 1, .. }), "{cause}");
    });
}

/// Elements of one rank lie between those of the other, so the second one's stream waits for what the first one receives.
#[test]
fn ranks_whose_streams_wait_for_each_other_are_told_at_once() {
    for seed in seeds(4) {
        let device = seed.map_or_else(concurrent, adversarial);
        let ranks = Communicator::all_with(&[device.clone(), device.clone()], &patient()).unwrap();
        let streams = [device.stream().unwrap(), device.stream().unwrap()];
        let mut table = streams[0].to_device(&Array2::<i32>::ones((4, 4))).unwrap();
        streams[0].synchronize().unwrap();
        let (mut left, mut right) = table.split_at_mut(1, 2).unwrap();
        ranks[0].on(&streams[0]).all_reduce(InPlace, &mut left, Sum).unwrap();
        // The operation may have failed by the time at which the result is to be copied.
        let _ = ranks[1].on(&streams[1]).all_reduce(InPlace, &mut right, Sum);
        let told = streams[0].synchronize().unwrap_err().to_string();
        let why = "rank 1 did not take part: its stream waits for work of rank 0";
        assert!(told.contains(why), "{told}, {seed:?}");
        assert!(streams[1].synchronize().is_err(), "{seed:?}");
        streams[0].fill(&mut table, 1).unwrap();
        let (mut left, mut right) = table.split_at_mut(1, 2).unwrap();
        let ends = [(&ranks[0], &streams[0]), (&ranks[1], &streams[1])];
        Communicator::group_all(&ends, |groups| {
            groups[0].all_reduce(InPlace, &mut left, Sum)?;
            groups[1].all_reduce(InPlace, &mut right, Sum)
        })
        .unwrap();
        assert_eq!(table.copy_to_host().unwrap(), Array2::from_elem((4, 4), 2), "{seed:?}");
    }
}

/// The work of one would wait for that of the other until the deadline.
#[test]
fn ranks_with_one_stream_are_told_at_once() {
    let device = adversarial(1);
    let ranks =
        Communicator::all_with(&[device.clone(), device.clone(), device.clone()], &patient()).unwrap();
    let (shared, own) = (device.stream().unwrap(), device.stream().unwrap());
    let mut arrays = [1, 2, 3].map(|number| shared.to_device(&[number]).unwrap());
    let ends = [(&ranks[0], &shared), (&ranks[1], &own), (&ranks[2], &shared)];
    let called = Communicator::group_all(&ends, |groups| {
        let mut each = groups.iter_mut().zip(&mut arrays);
        each.try_for_each(|(group, array)| group.all_reduce(InPlace, array, Sum))
    });
    let told = failed(called).to_string();
    assert!(told.contains("rank 2 did not take part: its stream is that of rank 0"), "{told}");
    let cause = ranks[2].failure().unwrap().cause;
    for (rank, stream) in ends {
        let _ = stream.synchronize();
        assert_eq!(rank.failure().unwrap().cause, cause);
    }
    // Two streams of the library that are one of the driver's.
    let legacy = [device.legacy_stream().unwrap(), device.legacy_stream().unwrap()];
    let mut arrays = [1, 2].map(|number| device.to_device(&[number]).unwrap());
    let pair = Communicator::all_with(&[device.clone(), device.clone()], &patient()).unwrap();
    pair[0].on(&legacy[0]).all_reduce(InPlace, &mut arrays[0], Sum).unwrap();
    let told = failed(pair[1].on(&legacy[1]).all_reduce(InPlace, &mut arrays[1], Sum)).to_string();
    assert!(told.contains("rank 1 did not take part: its stream is that of rank 0"), "{told}");
    let _ = legacy[0].synchronize();
    // A rank may send to itself on one stream.
    let (own, mut received) = (shared.to_device(&[7]).unwrap(), shared.to_device(&[0]).unwrap());
    ranks[0]
        .group(&shared, |group| group.send(&own, 0).and_then(|()| group.receive(&mut received, 0)))
        .unwrap();
    assert_eq!(received.get(0).unwrap(), 7);
}
