//! Ranks of one process over the double of NCCL that call something else, without a check that waits: each is told at once, and the
//! library writes nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_collectives::{
    CollectiveCause, CollectiveError, Communicator, CommunicatorId, InPlace, Max, Options, Sum,
};
use gpumem_core::{ErrorKind, Result};
use gpumem_host::HostOptions;
use gpumem_runtime::DeviceArray;
use host_double::{Double, DoubleOptions, Trouble};
use ndarray::{Ix1, s};
use std::{thread, time::Duration};

type Array = DeviceArray<i32, Ix1, B>;
type Call = fn(&Comm, &Stream, &mut Array) -> Result<()>;

/// Longer than a test may take: who is told by it has waited for it.
fn late() -> Options {
    Options::new().timeout(Duration::from_secs(60))
}

fn apart(ranks: usize) -> Vec<(Comm, Stream)> {
    apart_with(ranks, &late())
}

fn apart_with(ranks: usize, options: &Options) -> Vec<(Comm, Stream)> {
    let devices: Vec<Device> = (0..ranks).map(|_| concurrent()).collect();
    let all = Communicator::all_with(&devices, options).unwrap();
    all.into_iter().map(|rank| (rank.device().stream().unwrap(), rank)).map(|(s, r)| (r, s)).collect()
}

/// How the call of each rank fails: at once, or in a wait for it. What it was to write is as it was, or known to be bad.
fn failures(
    all: &[(Comm, Stream)],
    call: impl Fn(usize, &mut Array) -> Result<()> + Sync,
) -> Vec<CollectiveError> {
    let one = |rank: usize| {
        let (comm, stream) = &all[rank];
        let mut array = stream.to_device(&[1, 2, 3]).unwrap();
        let called = call(rank, &mut array).and_then(|()| stream.synchronize());
        // Another operation may use what one that failed was to write.
        let is_refused = called.as_ref().is_err_and(|error| error.is_poisoned());
        let failure = if is_refused { poisoned(called) } else { failed(called) };
        match array.copy_to_host() {
            Ok(values) => assert_eq!(values.to_vec(), [1, 2, 3]),
            Err(error) if error.is_poisoned() => {}
            // The library had been called already: the stream tells it too.
            told => assert_eq!(failed(told).cause, failure.cause),
        }
        // That of a rank that had not called yet is not one of its operations.
        // Of several operations under way, the communicator tells of the last one.
        let last = comm.failure().map(|last| last.cause);
        assert!(told(&failure).is_none() || last == Some(failure.cause.clone()), "{failure:?}, {last:?}");
        // Nothing goes on.
        failed(comm.on(stream).barrier());
        failure
    };
    let one = &one;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..all.len()).map(|rank| scope.spawn(move || one(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Those that a rank is told of.
fn told(failure: &CollectiveError) -> Option<Vec<usize>> {
    match &failure.cause {
        CollectiveCause::Mismatch { theirs, .. } => Some(theirs.iter().map(|(rank, _)| *rank).collect()),
        CollectiveCause::PeerLost { .. } => None,
        other => panic!("{other}"),
    }
}

#[test]
fn a_rank_that_calls_something_else_ends_the_communicator_at_once() {
    let others: [Call; 7] = [
        |comm, stream, array| comm.on(stream).broadcast(array, 0),
        |comm, stream, array| comm.on(stream).all_reduce(InPlace, array, Max),
        |comm, stream, array| comm.on(stream).all_reduce(InPlace, &mut array.slice_mut(s![..2])?, Sum),
        |comm, stream, _| comm.on(stream).all_reduce(InPlace, &mut stream.to_device(&[1_u32; 3])?, Sum),
        |comm, stream, _| comm.on(stream).all_reduce(InPlace, &mut stream.to_device(&[1; 300])?, Sum),
        |comm, stream, _| comm.on(stream).barrier(),
        |comm, stream, array| {
            comm.group(stream, |group| {
                group.all_reduce(InPlace, array, Sum)?;
                group.barrier()
            })
        },
    ];
    for (case, other) in others.iter().enumerate() {
        let (all, odd) = (apart(3), case % 3);
        let found = failures(&all, |rank, array| {
            let (comm, stream) = &all[rank];
            match rank == odd {
                true => other(comm, stream, array),
                false => comm.on(stream).all_reduce(InPlace, array, Sum),
            }
        });
        // Whichever has called last finds it. One that had not called yet is told who did.
        let named: Vec<_> = found.iter().map(told).collect();
        assert!(named.iter().flatten().count() >= 2, "case {case}: {found:?}");
        for (rank, named) in named.iter().enumerate() {
            let fits = |other: &usize| (*other == odd) != (rank == odd);
            assert!(named.iter().flatten().all(fits), "case {case}, rank {rank}: {named:?}");
        }
    }
}

#[test]
fn a_send_meets_the_receive_of_the_same_number() {
    let others: [Call; 3] = [
        |comm, stream, array| comm.on(stream).receive(&mut array.slice_mut(s![..2])?, 0),
        |comm, stream, _| comm.on(stream).receive(&mut stream.to_device(&[0; 4])?, 0),
        |comm, stream, _| comm.on(stream).receive(&mut stream.to_device(&[0_f32; 3])?, 0),
    ];
    for other in others {
        let all = apart(3);
        // Calls of the two others with the third, which differ from these in number and in length.
        let right = |rank: usize, stream: &Stream| -> Result<()> {
            let comm = &all[rank].0;
            let (mut one, two) = (stream.to_device(&[1])?, stream.to_device(&[1, 2])?);
            let mut into = stream.to_device(&[0, 0])?;
            comm.group(stream, |group| match rank {
                2 => {
                    group.receive(&mut one, 0)?;
                    group.send(&two, 1)
                }
                1 => group.receive(&mut into, 2),
                _ => group.send(&one, 2),
            })
        };
        for (rank, (_, stream)) in all.iter().enumerate() {
            right(rank, stream).unwrap();
        }
        all.iter().for_each(|(_, stream)| stream.synchronize().unwrap());
        let found = failures(&all[..2], |rank, array| {
            let (comm, stream) = &all[rank];
            if rank == 1 { other(comm, stream, array) } else { comm.on(stream).send(array, 1) }
        });
        assert_eq!(found.iter().map(told).collect::<Vec<_>>(), [Some(vec![1]), Some(vec![0])]);
        // The third one has not called, and is told all the same.
        let (comm, stream) = &all[2];
        assert_eq!(told(&failed(comm.on(stream).barrier())), None);
    }
}

#[test]
fn blocks_of_other_lengths_are_found_between_any_two_ranks() {
    let all = apart(3);
    // Rows to each rank. Rank 2 sends rank 1 a row more than that one takes.
    let (sent, received) = ([[1, 1, 1], [1, 1, 1], [1, 2, 0]], [[1, 1, 1], [1, 1, 1], [1, 1, 0]]);
    let found = failures(&all, |rank, _| {
        let (comm, stream) = &all[rank];
        let rows = |rows: &[usize; 3]| stream.to_device(&vec![-1; rows.iter().sum::<usize>()]);
        let (source, mut destination) = (rows(&sent[rank])?, rows(&received[rank])?);
        comm.on(stream).all_to_all_v((&source, &sent[rank]), (&mut destination, &received[rank]))
    });
    let named: Vec<_> = found.iter().map(told).collect();
    assert_eq!((&named[1], &named[2]), (&Some(vec![2]), &Some(vec![1])), "{found:?}");
}

/// A split tells its parts by operations of the library, which look like the caller's.
#[test]
fn what_a_split_tells_meets_no_operation() {
    for check in [false, true] {
        let all = apart_with(2, &late().check(check));
        let (comm, stream) = &all[1];
        // As many bytes as a split tells first.
        let (own, mut into) =
            (stream.to_device(&[7_u8; 24]).unwrap(), stream.to_device(&[0_u8; 48]).unwrap());
        thread::scope(|scope| {
            let split = scope.spawn(|| all[0].0.split(Some(5), 5).map(drop));
            let failure =
                failed(comm.on(stream).all_gather(&own, &mut into).and_then(|()| stream.synchronize()));
            let CollectiveCause::Mismatch { mine, theirs } = &failure.cause else { panic!("{failure}") };
            assert_eq!((mine.operation, theirs[0].1.operation), ("all_gather", "split"), "check: {check}");
            split.join().unwrap().unwrap_err();
        });
        // Nothing of the split is in the array.
        assert!(
            into.copy_to_host()
                .map_or_else(|error| error.is_poisoned(), |all| all.iter().all(|one| *one == 0))
        );
    }
}

/// One thread calls for all ranks: the library takes all of it, or none.
#[test]
fn ranks_of_one_thread_are_compared_before_anything_is_called() {
    let all = apart(3);
    let mut arrays: Vec<_> = all.iter().map(|(_, stream)| stream.to_device(&[1, 2, 3]).unwrap()).collect();
    let ends: Vec<(&Comm, &Stream)> = all.iter().map(|(comm, stream)| (comm, stream)).collect();
    let called = Communicator::group_all(&ends, |groups| {
        groups.iter_mut().zip(&mut arrays).enumerate().try_for_each(|(rank, (group, array))| match rank {
            1 => group.all_reduce(InPlace, array, Max),
            _ => group.all_reduce(InPlace, array, Sum),
        })
    });
    assert_eq!(told(&failed(called)), Some(vec![0]));
    for ((comm, stream), array) in all.iter().zip(&arrays) {
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [1, 2, 3]);
        failed(comm.on(stream).barrier());
    }
}

/// Ranks that compare their calls by the library would meet the calls of those that do not.
#[test]
fn ranks_that_join_otherwise_than_others_are_refused() {
    let device = concurrent();
    let id = CommunicatorId::for_device(&device).unwrap();
    let join = |rank, size, options: &Options| Comm::join(&device, &id, rank, size, options);
    let first = join(0, 2, &late()).unwrap();
    let others = [
        (1, 3, late(), "number of ranks"),
        (1, 2, late().check(!late().check), "options"),
        (1, 2, late().concurrent(true), "options"),
        (1, 2, Options::new().timeout(Duration::from_secs(61)), "options"),
        (0, 2, late(), "this rank"),
    ];
    for (rank, size, options, word) in others {
        let refused = join(rank, size, &options).unwrap_err();
        let ErrorKind::InvalidArgument { why } = refused.kind() else { panic!("{refused}") };
        assert!(why.contains(word), "{refused}");
    }
    // None of them is one of the ranks.
    let all = [first, join(1, 2, &late()).unwrap()];
    let sums = all.each_ref().map(|comm| {
        let stream = device.stream().unwrap();
        let mut sum = stream.to_device(&[1 << comm.rank()]).unwrap();
        comm.on(&stream).all_reduce(InPlace, &mut sum, Sum).unwrap();
        sum
    });
    assert!(sums.iter().all(|sum| sum.copy_to_host().unwrap().to_vec() == [3]));
}

#[test]
fn calls_of_one_thread_that_are_taken_back_leave_no_number() {
    let mut taken_back = 0;
    for number in 0.. {
        let devices = [concurrent(), concurrent()];
        let [first, last] = devices
            .each_ref()
            .map(|device| Comm::all_with(std::slice::from_ref(device), &late()).unwrap().remove(0));
        let streams = [0, 0, 1].map(|device: usize| devices[device].stream().unwrap());
        let mut arrays = streams.each_ref().map(|stream| stream.to_device(&[1]).unwrap());
        first.on(&streams[0]).barrier().and_then(|()| streams[0].synchronize()).unwrap();
        let ends = [(&first, &streams[0]), (&first, &streams[1]), (&last, &streams[2])];
        raw(&devices[1]).script().begin(Some((number, Trouble::Refuse)));
        let called = Comm::group_all(&ends, |groups| {
            let mut all = groups.iter_mut().zip(&mut arrays);
            all.try_for_each(|(group, array)| group.all_reduce(InPlace, array, Sum))
        });
        let struck = raw(&devices[1]).script().struck();
        raw(&devices[1]).script().begin(None);
        if struck.is_none() {
            break;
        }
        if called.is_ok() || first.failure().is_some() {
            continue;
        }
        taken_back += 1;
        first.on(&streams[0]).barrier().unwrap();
        let numbers: Vec<u64> = first.recent().iter().map(|record| record.sequence).collect();
        assert_eq!(numbers, [0, 1], "{struck:?}");
    }
    assert!(taken_back > 0);
}

/// Calls that fit are forgotten: the ranks may be far apart.
#[test]
fn ranks_that_agree_are_not_disturbed() {
    let all = apart(2);
    let call = |rank: usize| {
        let (comm, stream) = &all[rank];
        let mut array = stream.to_device(&[1, 2, 3]).unwrap();
        for round in 0..50 {
            comm.on(stream).all_reduce(InPlace, &mut array, Max).unwrap();
            comm.on(stream).broadcast(&mut array.slice_mut(s![round % 3..]).unwrap(), round % 2).unwrap();
            match rank {
                0 => comm.on(stream).send(&array, 1).unwrap(),
                _ => comm.on(stream).receive(&mut array, 0).unwrap(),
            }
        }
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [1, 2, 3]);
    };
    let call = &call;
    thread::scope(|scope| (0..2).for_each(|rank| drop(scope.spawn(move || call(rank)))));
}

/// The library has sends and receives alone, of which gathers, scatters and exchanges consist: it pairs them in the order of the calls.
#[test]
fn what_consists_of_sends_meets_no_receive_of_the_caller() {
    // Rank 0 calls the operation before it sends, and rank 1 after it has received.
    let operations: [Call; 4] = [
        |comm, stream, array| {
            let mut all = stream.device_array::<i32, _>(6)?;
            comm.on(stream).gather(array, (comm.rank() == 1).then(|| all.view_mut()), 1)
        },
        |comm, stream, array| {
            let all = stream.device_array::<i32, _>(6)?;
            comm.on(stream).scatter((comm.rank() == 0).then(|| all.view()), array, 0)
        },
        |comm, stream, _| {
            comm.on(stream).all_to_all(&stream.to_device(&[1; 6])?, &mut stream.to_device(&[0; 6])?)
        },
        |comm, stream, _| {
            let (from, mut to) = (stream.to_device(&[1; 6])?, stream.to_device(&[0; 6])?);
            comm.on(stream).all_to_all_v((&from, &[3, 3]), (&mut to, &[3, 3]))
        },
    ];
    for (case, operation) in operations.iter().enumerate() {
        let all = apart(2);
        let found = failures(&all, |rank, array| {
            let (comm, stream) = &all[rank];
            if rank == 0 {
                operation(comm, stream, array)?;
                return comm.on(stream).send(&stream.to_device(&[7, 8, 9])?, 1);
            }
            comm.on(stream).receive(array, 0)?;
            operation(comm, stream, array)
        });
        assert!(found.iter().filter_map(told).count() >= 1, "case {case}: {found:?}");
    }
}

/// In a group none waits for another: each send meets its receive, wherever the group has the other operations.
#[test]
fn a_group_has_its_sends_apart_from_what_consists_of_sends() {
    let all = apart(2);
    let one = |rank: usize| {
        let (comm, stream) = &all[rank];
        let (mine, theirs) =
            (stream.to_device(&[rank as i32]).unwrap(), stream.to_device(&[10 + rank as i32]).unwrap());
        let mut gathered = stream.to_device(&[-1, -1]).unwrap();
        let mut received = stream.to_device(&[-1]).unwrap();
        let done = comm.group(stream, |group| match rank {
            0 => {
                group.gather(&mine, None, 1)?;
                group.send(&theirs, 1)
            }
            _ => {
                group.receive(&mut received, 0)?;
                group.gather(&mine, Some(gathered.view_mut()), 1)
            }
        });
        done.unwrap();
        stream.synchronize().unwrap();
        (gathered.copy_to_host().unwrap().to_vec(), received.copy_to_host().unwrap().to_vec())
    };
    let one = &one;
    let found = thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|rank| scope.spawn(move || one(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).last()
    });
    assert_eq!(found, Some((vec![0, 1], vec![10])));
}

/// What comes after the library's call on one rank says nothing about another one.
#[test]
fn a_rank_gets_its_results_where_another_of_the_same_thread_fails() {
    let alone = || {
        let (comm, stream) = apart(1).remove(0);
        comm.on(&stream).barrier().unwrap();
        (comm, stream)
    };
    let mut checked = 0;
    for call in 0.. {
        let [(a, on_a), (b, on_b)] = [alone(), alone()];
        let mut x = on_a.to_device(&[1, 2]).unwrap();
        // The borrower waits for the operation, once the library has been called.
        let _loan = x.lend(&a.device().stream().unwrap()).unwrap();
        let (y, mut z) = (on_b.to_device(&[3, 4]).unwrap(), on_b.to_device(&[0; 4]).unwrap());
        let mut places = z.slice_mut(s![..;2]).unwrap();
        let script = raw(a.device()).script();
        script.begin(Some((call, Trouble::Refuse)));
        let grouped = Comm::group_all(&[(&a, &on_a), (&b, &on_b)], |groups| {
            groups[0].all_reduce(InPlace, &mut x, Sum)?;
            groups[1].all_reduce(&y, &mut places, Sum)
        });
        let struck = script.struck();
        script.begin(None);
        if struck.is_none() {
            grouped.unwrap();
            break;
        }
        if grouped.is_err() && b.recent().len() == 2 {
            checked += 1;
            assert_eq!(places.copy_to_host().unwrap().to_vec(), [3, 4], "call {call}: {struck:?}");
        }
    }
    assert!(checked > 0);
}

#[test]
fn ranks_of_different_engines_are_not_called_together() {
    let (comm, stream) = apart(1).remove(0);
    let options = DoubleOptions { host: HostOptions::new().workers(2), ..DoubleOptions::default() };
    let device = Device::from_raw(Double::open_with(&options).unwrap());
    let local = Comm::join(&device, &CommunicatorId::new(), 0, 1, &late()).unwrap();
    let on_local = device.stream().unwrap();
    let ends = [(&comm, &stream), (&local, &on_local)];
    for ends in [ends, [ends[1], ends[0]]] {
        let called = Comm::group_all(&ends, |groups| groups.iter_mut().try_for_each(|group| group.barrier()));
        assert!(matches!(called.unwrap_err().kind(), ErrorKind::InvalidArgument { .. }));
        ends.iter().for_each(|(comm, stream)| comm.on(stream).barrier().unwrap());
    }
}
