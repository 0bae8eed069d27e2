//! Ranks that disagree, come late, fail or go away: a typed error on every other rank, and nothing hangs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "suite/comings.rs"]
mod comings;
mod common;
#[path = "suite/failed_groups.rs"]
mod failed_groups;

use common::*;
use gpumem_collectives::{CollectiveCause, Communicator, CommunicatorId, InPlace, Max, Options, Sum};
use gpumem_core::ErrorKind;
use gpumem_core::MemoryKind;
use gpumem_host::{HostOptions, Injection, Operation};
use gpumem_runtime::memory::LimitingResource;
use ndarray::s;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

#[test]
fn a_disagreement_names_the_ranks_on_every_rank_and_moves_nothing() {
    type Wrong = fn(
        &Comm,
        &Stream,
        &mut gpumem_runtime::DeviceArray<i32, ndarray::Ix1, gpumem_host::Host>,
    ) -> gpumem_core::Result<()>;
    let wrong: [Wrong; 5] = [
        |comm, stream, array| comm.on(stream).broadcast(array, 0),
        |comm, stream, array| comm.on(stream).all_reduce(InPlace, array, Max),
        |comm, stream, array| {
            comm.on(stream).all_reduce(InPlace, &mut array.slice_mut(ndarray::s![..2])?, Sum)
        },
        |comm, stream, _| comm.on(stream).all_reduce(InPlace, &mut stream.to_device(&[1.0_f32; 4])?, Sum),
        |comm, stream, _| comm.on(stream).barrier(),
    ];
    for (index, wrong) in wrong.iter().enumerate() {
        for seed in seeds(4) {
            let all = ranks(4, seed);
            let odd = index % 4;
            let mut arrays = Vec::new();
            for (comm, stream) in &all {
                let mut array = stream.to_device(&[1, 2, 3, 4]).unwrap();
                let called = match comm.rank() {
                    rank if rank == odd => wrong(comm, stream, &mut array),
                    _ => comm.on(stream).all_reduce(InPlace, &mut array, Sum),
                };
                if comm.rank() == 3 {
                    failed(called);
                } else {
                    called.unwrap();
                }
                arrays.push(array);
            }
            for (rank, (comm, stream)) in all.iter().enumerate() {
                let failure = comm.failure().or_else(|| stream.synchronize().err().and(comm.failure()));
                let expected =
                    if rank == odd { (0..4).filter(|other| *other != odd).collect() } else { vec![odd] };
                assert_eq!(others(&failure.unwrap()), expected, "rank {rank}, case {index}, {seed:?}");
                if rank == 3 {
                    // Refused at the call: its array is as it was.
                    assert_eq!(arrays[rank].copy_to_host().unwrap().to_vec(), [1, 2, 3, 4]);
                }
            }
        }
    }
}

#[test]
fn of_many_ranks_that_disagree_each_is_told_of_sixteen() {
    let all = ranks(if cfg!(miri) { 40 } else { 200 }, None);
    let mut last = Ok(());
    for (comm, stream) in &all {
        let mut array = stream.to_device(&vec![1; 1 + comm.rank() % 2]).unwrap();
        last = comm.on(stream).all_reduce(InPlace, &mut array, Sum);
    }
    assert_eq!(others(&failed(last)), (0..16).map(|at| 2 * at).collect::<Vec<_>>());
    for (comm, stream) in &all {
        let _told = stream.synchronize();
        let named = others(&comm.failure().unwrap());
        assert!(named.len() == 16 && named.iter().all(|other| other % 2 != comm.rank() % 2), "{named:?}");
    }
}

#[test]
fn roots_and_blocks_that_differ_are_named() {
    let all = ranks(2, None);
    let mut array = all[0].1.to_device(&[1, 2]).unwrap();
    all[0].0.on(&all[0].1).broadcast(&mut array, 0).unwrap();
    assert_eq!(
        others(&failed(all[1].0.on(&all[1].1).broadcast(&mut all[1].1.to_device(&[0, 0]).unwrap(), 1))),
        [0]
    );

    let all = ranks(3, None);
    let (counts, mut kept) = ([[1, 1, 1], [1, 1, 1], [0, 2, 1]], Vec::new());
    for (comm, stream) in &all {
        let source = stream.to_device(&[1, 2, 3]).unwrap();
        let received = if comm.rank() == 0 { [1, 1, 0] } else { [1, 1, 1] };
        let mut destination = stream.device_array::<i32, _>(received.iter().sum::<usize>()).unwrap();
        let called =
            comm.on(stream).all_to_all_v((&source, &counts[comm.rank()]), (&mut destination, &received));
        assert_eq!(called.is_err(), comm.rank() == 2);
        kept.push((source, destination));
    }
    assert_eq!(others(&all[2].0.failure().unwrap()), [1], "rank 2 sends rank 1 too many rows");
    all[0].1.synchronize().unwrap_err();
    assert_eq!(others(&all[0].0.failure().unwrap()), [1, 2], "a rank without a part in it is told of both");
}

#[test]
fn operations_of_two_communicators_in_different_order_are_named() {
    for seed in seeds(6) {
        for concurrent in [false, true] {
            let all =
                ranks_with(2, seed, &Options::new().concurrent(concurrent).timeout(Duration::from_secs(5)));
            let (comms, streams): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            let copies = Communicator::split_all(&comms, |_| (Some(0), 0)).unwrap();
            let copies: Vec<Comm> = copies.into_iter().map(Option::unwrap).collect();
            let second = comms[1].device().stream().unwrap();
            comms[0].on(&streams[0]).barrier().unwrap();
            copies[0].on(&streams[0]).barrier().unwrap();
            let reversed = copies[1].on(&streams[1]).barrier();
            let later = comms[1].on(&second).barrier();
            if concurrent {
                // Each on a stream of its own: the order does not matter.
                reversed.and(later).unwrap();
                streams.iter().for_each(|stream| stream.synchronize().unwrap());
            } else {
                assert_eq!(others(&failed(reversed)), [0]);
                assert_eq!(others(&failed(later)), [0]);
                streams[0].synchronize().unwrap_err();
                assert_eq!(others(&copies[0].failure().unwrap()), [1]);
                assert_eq!(others(&comms[0].failure().unwrap()), [1]);
            }
        }
    }
}

#[test]
fn the_order_in_a_part_that_was_aborted_is_not_compared() {
    for seed in seeds(6) {
        let all = ranks_with(2, seed, &Options::new().timeout(Duration::from_secs(60)));
        let (comms, streams): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let parts = Communicator::split_all(&comms, |_| (Some(0), 0)).unwrap();
        let parts: Vec<Comm> = parts.into_iter().map(Option::unwrap).collect();
        parts[0].on(&streams[0]).barrier().unwrap();
        parts[0].abort();
        failed(parts[1].on(&streams[1]).barrier());
        streams[0].synchronize().unwrap_err();
        // One rank has called one operation of the part, and the other none.
        for (comm, stream) in comms.iter().zip(&streams) {
            comm.on(stream).barrier().unwrap();
        }
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
    }
}

#[test]
fn a_rank_that_never_calls_is_named_in_time_and_the_device_works_on() {
    for seed in seeds(4) {
        let all = ranks_with(3, seed, &soon());
        let began = Instant::now();
        let mut arrays = Vec::new();
        for (comm, stream) in &all[..2] {
            let mut array = stream.to_device(&[1, 2]).unwrap();
            comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
            arrays.push(array);
        }
        for ((comm, stream), array) in all.iter().zip(&mut arrays) {
            let error = stream.synchronize().unwrap_err().to_string();
            assert!(error.contains("all_reduce") && error.contains("ranks [2] did not take part"), "{error}");
            let failure = poisoned(array.copy_to_host());
            assert_eq!((failure.operation, failure.sequence), ("all_reduce", 0));
            assert_eq!((failure.rank, failure.size), (comm.rank(), 3));
            assert!(matches!(&failure.cause, CollectiveCause::Timeout { missing, .. } if *missing == [2]));
            assert_eq!(comm.failure(), Some(failure));
            stream.fill(array, 5).unwrap();
            assert_eq!(array.copy_to_host().unwrap().to_vec(), [5, 5], "it was written anew");
        }
        assert!(began.elapsed() < Duration::from_secs(2));
        let (late, stream) = &all[2];
        let failure = failed(late.on(stream).barrier());
        assert!(matches!(failure.cause, CollectiveCause::Timeout { .. }), "later operations fail at once");
    }
}

#[test]
fn aborting_and_leaving_fail_what_the_others_wait_for() {
    for seed in seeds(6) {
        let mut all = ranks(3, seed);
        let mut array = all[0].1.to_device(&[1]).unwrap();
        all[0].0.on(&all[0].1).broadcast(&mut array, 1).unwrap();
        all[1].0.abort();
        all[0].1.synchronize().unwrap_err();
        assert_eq!(poisoned(array.get(0)).cause, CollectiveCause::Aborted { rank: 1 });
        assert_eq!(failed(all[2].0.on(&all[2].1).barrier()).cause, CollectiveCause::Aborted { rank: 1 });

        all = ranks(3, seed);
        all[0].0.on(&all[0].1).barrier().unwrap();
        let mut array = all[0].1.to_device(&[1]).unwrap();
        all[0].0.on(&all[0].1).receive(&mut array, 2).unwrap();
        all[1].0.on(&all[1].1).barrier().unwrap();
        all[2].0.on(&all[2].1).barrier().unwrap();
        drop(all.pop());
        // The barrier was called by all and takes place; nothing is sent.
        all[1].1.synchronize().unwrap();
        let lost = |cause: &CollectiveCause| matches!(cause, CollectiveCause::PeerLost { rank: 2, .. });
        all[0].1.synchronize().unwrap_err();
        assert!(lost(&poisoned(array.get(0)).cause));
        assert!(lost(&failed(all[1].0.on(&all[1].1).barrier()).cause));
        all[1].1.synchronize().unwrap();
        assert!(all.remove(0).0.destroy().is_err() && all.remove(0).0.destroy().is_err());
    }
}

#[test]
fn a_failed_source_fails_the_operation_on_every_rank_and_later_ones_work() {
    for seed in seeds(6) {
        let all = ranks(2, seed);
        let mut arrays: Vec<_> = all.iter().map(|(_, stream)| stream.to_device(&[1, 2]).unwrap()).collect();
        all[1].0.device().raw().inject(Injection::next(
            Operation::Fill,
            ErrorKind::AsynchronousFault { what: "the test wants it".to_owned() },
        ));
        all[1].1.fill(&mut arrays[1], 7).unwrap();
        let called: Vec<_> = all
            .iter()
            .zip(&mut arrays)
            .map(|((comm, stream), array)| comm.on(stream).all_reduce(InPlace, array, Sum))
            .collect();
        called[0].as_ref().unwrap();
        all[1].1.synchronize().unwrap_err();
        all[0].1.synchronize().unwrap_err();
        let failure = poisoned(arrays[0].copy_to_host());
        assert!(matches!(failure.cause, CollectiveCause::PeerLost { rank: 1, .. }), "{failure}");
        arrays[1].copy_to_host().unwrap_err();
        for ((comm, stream), array) in all.iter().zip(&mut arrays) {
            stream.fill(array, 3).unwrap();
            comm.on(stream).all_reduce(InPlace, array, Sum).unwrap();
        }
        assert_eq!(arrays[0].copy_to_host().unwrap().to_vec(), [6, 6]);
    }
}

#[test]
fn a_rank_whose_device_is_lost_is_named() {
    let devices = [devices(1, None).remove(0), devices(1, None).remove(0)];
    let all = Communicator::all_with(&devices, &soon()).unwrap();
    let streams = devices.each_ref().map(|device| device.stream().unwrap());
    let (mut array, mut root) = (streams[0].to_device(&[1]).unwrap(), streams[1].to_device(&[2]).unwrap());
    all[0].on(&streams[0]).broadcast(&mut array, 1).unwrap();
    devices[1].raw().lose("the test loses it");
    all[1].on(&streams[1]).broadcast(&mut root, 1).unwrap_err();
    streams[0].synchronize().unwrap_err();
    match poisoned(array.get(0)).cause {
        CollectiveCause::Timeout { missing, .. } => assert_eq!(missing, [1]),
        CollectiveCause::PeerLost { rank, .. } => assert_eq!(rank, 1),
        other => panic!("{other}"),
    }
}

#[test]
fn one_rank_must_not_write_what_another_reads() {
    for seed in [None, Some(0), Some(2)] {
        let all = ranks(2, seed);
        let (first, second) = (&all[0], &all[1]);
        let mut both = first.1.to_device(&[1, 2]).unwrap();
        let (mut sum, own) =
            (first.1.device_array::<i32, _>(2).unwrap(), second.1.to_device(&[3, 4]).unwrap());
        first.0.on(&first.1).all_reduce(&both, &mut sum, Sum).unwrap();
        let failure = failed(second.0.on(&second.1).all_reduce(&own, &mut both, Sum));
        assert_eq!(failure.cause, CollectiveCause::Overlap { writer: 1, user: 0 }, "{seed:?}");
        first.1.synchronize().unwrap_err();
        assert_eq!(poisoned(sum.copy_to_host()).cause, failure.cause, "{seed:?}");
    }
}

#[test]
fn ranks_may_write_different_parts_of_one_array() {
    for seed in [None, Some(0), Some(2)] {
        let all = ranks(2, seed);
        // The second stream waits for the upload on the first one, and not for the operation after it.
        let mut array = all[0].1.to_device(&[1, 2, 3]).unwrap();
        let (mut left, mut rest) = array.split_at_mut(0, 1).unwrap();
        all[0].0.on(&all[0].1).all_reduce(InPlace, &mut left, Sum).unwrap();
        let mut last = rest.slice_mut(ndarray::s![1..]).unwrap();
        all[1].0.on(&all[1].1).all_reduce(InPlace, &mut last, Sum).unwrap();
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [4, 2, 4]);
    }
}

#[test]
fn ranks_join_by_an_identity() {
    let (device, id, options) = (concurrent(), CommunicatorId::new(), Options::new());
    let id = CommunicatorId::from_bytes(&id.to_bytes()).unwrap();
    let join = |rank, size, options: &Options| Communicator::join(&device, &id, rank, size, options);
    let first = join(0, 2, &options).unwrap();
    for refused in [join(0, 2, &options), join(1, 3, &options), join(2, 2, &options), join(1, 2, &soon())] {
        assert!(matches!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument { .. }));
    }
    let second = join(1, 2, &options).unwrap();
    let streams = [device.stream().unwrap(), device.stream().unwrap()];
    first.on(&streams[0]).barrier().unwrap();
    second.on(&streams[1]).barrier().unwrap();
    streams[0].synchronize().unwrap();
    let bytes = id.to_bytes();
    for wrong in [&bytes[1..], &[0; 136], &[]] {
        assert!(CommunicatorId::from_bytes(wrong).is_err());
    }
    let mut of_another_process = bytes;
    of_another_process[8] ^= 1;
    let id = CommunicatorId::from_bytes(&of_another_process).unwrap();
    assert!(Communicator::join(&device, &id, 0, 1, &options).is_err());
}

#[test]
fn a_group_that_fails_or_panics_enqueues_nothing() {
    let all = ranks(2, Some(5));
    let (comm, stream) = &all[0];
    let (source, before) = (stream.to_device(&[1]).unwrap(), stream.submission_index());
    let failed = comm.group(stream, |group| {
        group.send(&source, 1)?;
        group.send(&source, 9)
    });
    assert!(failed.is_err());
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        comm.group(stream, |group| -> gpumem_core::Result<()> {
            group.send(&source, 1)?;
            panic!("the test's")
        })
    }));
    assert!(unwound.is_err());
    assert_eq!(stream.submission_index(), before);
    comm.on(stream).send(&source, 1).unwrap();
    let mut received = all[1].1.to_device(&[0]).unwrap();
    all[1].0.on(&all[1].1).receive(&mut received, 0).unwrap();
    assert_eq!(received.get(0).unwrap(), 1, "the first that was sent");
}

#[test]
fn splits_wait_for_all_ranks_and_may_leave_some_out() {
    let all = ranks(5, None);
    let sizes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = all
            .iter()
            .map(|(comm, stream)| {
                scope.spawn(move || {
                    let rank = comm.rank();
                    let part = comm.split((rank != 4).then_some(rank as u64 % 2), -(rank as i64)).unwrap()?;
                    let mut array = stream.to_device(&[rank as i32]).unwrap();
                    part.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
                    Some((part.rank(), part.size(), array.get(0).unwrap()))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(sizes, [Some((1, 2, 2)), Some((1, 2, 4)), Some((0, 2, 2)), Some((0, 2, 4)), None]);
    let late = ranks_with(2, None, &soon());
    let error = late[0].0.split(Some(0), 0);
    assert!(matches!(failed(error).cause, CollectiveCause::Timeout { missing, .. } if missing == [1]));
}

#[test]
fn many_ranks_on_two_workers_finish() {
    let raw = gpumem_host::Host::open_with(&HostOptions::new().memory(64 << 20).workers(2)).unwrap();
    let all = Communicator::all(&vec![Device::from_raw(raw); 64]).unwrap();
    let mut sums = Vec::new();
    for comm in &all {
        let stream = comm.device().stream().unwrap();
        let mut sum = stream.to_device(&[comm.rank() as u64; 100]).unwrap();
        for _ in 0..5 {
            comm.on(&stream).all_reduce(InPlace, &mut sum, Max).unwrap();
            comm.on(&stream).barrier().unwrap();
        }
        comm.on(&stream).all_reduce(InPlace, &mut sum, Sum).unwrap();
        sums.push(sum);
    }
    for sum in sums {
        assert_eq!(sum.copy_to_host().unwrap().to_vec(), [63 * 64; 100]);
    }
}

#[test]
fn what_is_in_flight_may_be_dropped_or_forgotten() {
    for seed in seeds(20) {
        let mut sums = Vec::new();
        let all = ranks(3, seed);
        for (comm, stream) in all {
            let rank = comm.rank();
            let source = stream.to_device(&[rank as i32; 1000]).unwrap();
            let mut sum = stream.device_array::<i32, _>(1000).unwrap();
            comm.on(&stream).all_reduce(&source, &mut sum, Sum).unwrap();
            let mut lost = stream.device_array::<i32, _>((20, 50)).unwrap();
            let view = lost.view_mut().reversed_axes();
            let mut view = view;
            comm.on(&stream).all_reduce(InPlace, &mut view, Sum).unwrap();
            match rank {
                0 => drop((source, comm)),
                1 => std::mem::forget((source, comm)),
                _ => drop((comm, source)),
            }
            drop(lost);
            let next = stream.to_device(&[9; 1000]).unwrap();
            if rank == 1 {
                std::mem::forget(stream);
            }
            sums.push((sum, next));
        }
        for (sum, next) in sums {
            assert_eq!(sum.copy_to_host().unwrap().to_vec(), [3; 1000], "{seed:?}");
            assert_eq!(next.copy_to_host().unwrap().to_vec(), [9; 1000]);
        }
    }
}

#[test]
fn other_streams_wait_for_an_operation_and_its_array_only() {
    for seed in seeds(10) {
        let all = ranks(2, seed);
        let (comm, stream) = &all[0];
        let mut array = stream.to_device(&[1, 2, 3, 4]).unwrap();
        stream.synchronize().unwrap(); // an event after the upload would come after the operation too
        let other = comm.device().stream().unwrap();
        let mut copy = other.device_array::<i32, _>(2).unwrap();
        let (mut left, mut right) = array.split_at_mut(0, 2).unwrap();
        comm.on(stream).all_reduce(InPlace, &mut left, Sum).unwrap();
        other.fill(&mut right, 7).unwrap();
        other.synchronize().unwrap();
        other.copy_to_device(&mut copy, &left).unwrap();
        assert!(!other.query().unwrap(), "it waits for the operation");
        let mut theirs = all[1].1.to_device(&[10, 20]).unwrap();
        all[1].0.on(&all[1].1).all_reduce(InPlace, &mut theirs, Sum).unwrap();
        assert_eq!(copy.copy_to_host().unwrap().to_vec(), [11, 22]);
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [11, 22, 7, 7]);
    }
}

#[test]
fn a_rank_without_memory_for_a_call_does_not_meet_the_others_later() {
    let devices = [devices(1, None).remove(0), devices(1, None).remove(0)];
    let all = Communicator::all_with(&devices, &soon()).unwrap();
    let streams = devices.each_ref().map(|device| device.stream().unwrap());
    let mut arrays = streams.each_ref().map(|stream| stream.to_device(&[1_u32; 1 << 10]).unwrap());
    // As many elements as the first call has: only their order tells the calls apart.
    let mut others = streams.each_ref().map(|stream| stream.to_device(&[100_u32; 1 << 9]).unwrap());
    let full = devices[0].memory_resource(MemoryKind::Device).unwrap();
    let full = LimitingResource::new(full, 0);
    devices[0].set_memory_resource(MemoryKind::Device, Arc::new(full)).unwrap();
    let mut refused = Vec::new();
    for ((comm, stream), (array, other)) in all.iter().zip(&streams).zip(arrays.iter_mut().zip(&mut others)) {
        // Every second element is packed first.
        let half = comm.on(stream).all_reduce(InPlace, &mut array.slice_mut(s![..;2]).unwrap(), Sum);
        // The program of the first rank goes on.
        refused.push((half.err(), comm.on(stream).all_reduce(InPlace, other, Sum).err()));
    }
    assert!(refused[0].0.as_ref().is_some_and(gpumem_core::Error::is_out_of_memory));
    // No rank takes the sum of two calls for that of one: each call is refused, or its array tells.
    for ((half, all), (array, other)) in refused.iter().zip(arrays.iter().zip(&others)) {
        assert!(half.is_some() || array.copy_to_host().is_err());
        assert!(all.is_some() || other.copy_to_host().is_err());
    }
}
