//! Groups that fail: none of their operations is met by one that is called later.

use crate::common::*;
use gpumem_collectives::{CollectiveCause, Communicator, InPlace, Options, Sum};
use gpumem_core::ErrorKind;
use gpumem_host::{Injection, Operation};
use std::time::Duration;

type Array = gpumem_runtime::DeviceArray<i32, ndarray::Ix1, B>;

/// So long a rank waits for an operation that another one has left out.
fn patient() -> Options {
    Options::new().timeout(Duration::from_secs(if cfg!(miri) { 600 } else { 5 }))
}

#[test]
fn a_group_that_fails_leaves_no_operation_for_the_next_call() {
    for seed in seeds(6) {
        let all = ranks_with(2, seed, &patient());
        let array = |rank: usize, count, value| all[rank].1.to_device(&vec![value; count]).unwrap();
        let mut firsts = [array(0, 4, 1), array(1, 5, 1)];
        let mut seconds = [array(0, 4, 100), array(1, 4, 200)];
        let called: Vec<_> = all
            .iter()
            .zip(firsts.iter_mut().zip(&mut seconds))
            .map(|((comm, stream), (first, second))| {
                comm.group(stream, |group| {
                    group.all_reduce(InPlace, first, Sum)?;
                    group.all_reduce(InPlace, second, Sum)
                })
            })
            .collect();
        assert!(called[0].is_ok(), "{seed:?}");
        let failure = failed(called.into_iter().nth(1).unwrap());
        assert_eq!((others(&failure), failure.sequence), (vec![0], 0), "{seed:?}");
        assert_eq!(all[1].0.failure(), Some(failure), "{seed:?}");
        let mut next = [array(0, 4, 1000), array(1, 4, 2000)];
        for ((comm, stream), array) in all.iter().zip(&mut next).rev() {
            comm.on(stream).all_reduce(InPlace, array, Sum).unwrap();
        }
        for (rank, next) in next.iter().enumerate() {
            assert_eq!(next.copy_to_host().unwrap().to_vec(), [3000; 4], "rank {rank}, {seed:?}");
        }
        assert_eq!(others(&poisoned(seconds[0].copy_to_host())), [1], "{seed:?}");
    }
}

#[test]
fn a_group_with_a_rank_that_has_left_leaves_no_send_for_the_next_call() {
    for seed in seeds(6) {
        let mut all = ranks_with(3, seed, &patient());
        drop(all.pop());
        let [(first, to), (second, from)] = &all[..] else { panic!("two ranks are left") };
        let (wrong, right) = (to.to_device(&[1]).unwrap(), to.to_device(&[2]).unwrap());
        let mut received = [from.to_device(&[0]).unwrap(), from.to_device(&[0]).unwrap()];
        let grouped = first.group(to, |group| {
            group.send(&wrong, 2)?;
            group.send(&wrong, 1)
        });
        assert!(matches!(failed(grouped).cause, CollectiveCause::PeerLost { rank: 2, .. }), "{seed:?}");
        first.on(to).send(&right, 1).unwrap();
        let [lost, found] = &mut received;
        let _told = second.on(from).receive(lost, 0);
        second.on(from).receive(found, 0).unwrap();
        assert_eq!(received[1].get(0).unwrap(), 2, "{seed:?}");
        assert!(received[0].get(0).is_err(), "{seed:?}");
    }
}

#[test]
fn a_rank_that_fails_in_a_group_of_all_holds_no_other_rank_back() {
    for seed in seeds(6) {
        let all = ranks_with(3, seed, &patient());
        let ends: Vec<(&Comm, &Stream)> = all.iter().map(|(comm, stream)| (comm, stream)).collect();
        let mut arrays: Vec<_> = all.iter().map(|(_, stream)| stream.to_device(&[1]).unwrap()).collect();
        let what = "the test wants it".to_owned();
        let injection = Injection::next(Operation::Fill, ErrorKind::AsynchronousFault { what });
        all[0].0.device().raw().inject(injection);
        all[0].1.fill(&mut arrays[0], 7).unwrap();
        all[0].1.synchronize().unwrap_err();
        let sum = |arrays: &mut [_]| {
            Communicator::group_all(&ends, |groups| {
                let mut each = groups.iter_mut().zip(arrays);
                each.try_for_each(|(group, array)| group.all_reduce(InPlace, array, Sum))
            })
        };
        let refused = sum(&mut arrays).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Poisoned { .. }), "{refused}");
        all.iter().zip(&mut arrays).for_each(|((_, stream), array)| stream.fill(array, 10).unwrap());
        sum(&mut arrays).unwrap();
        for array in &arrays {
            assert_eq!(array.get(0).unwrap(), 30, "{seed:?}");
        }
        assert!(all.iter().all(|(comm, _)| comm.recent().len() == 2), "{seed:?}");
    }
}

#[test]
fn a_rank_gets_what_it_receives_where_another_of_the_same_thread_fails() {
    for seed in seeds(6) {
        let mut all = ranks_with(4, seed, &patient());
        drop(all.pop());
        let [(first, to), (second, other), (third, from)] = &all[..] else { panic!("three ranks are left") };
        for step in [1, 2] {
            let (sent, lost) = (from.to_device(&[7, 8]).unwrap(), other.to_device(&[9]).unwrap());
            third.on(from).send(&sent, 0).unwrap();
            let mut received = to.device_array::<i32, _>(4).unwrap();
            let mut places = received.slice_mut(ndarray::s![..2 * step;step as isize]).unwrap();
            let grouped = Communicator::group_all(&[(first, to), (second, other)], |groups| {
                groups[0].receive(&mut places, 2)?;
                groups[1].send(&lost, 3)
            });
            let failure = failed(grouped);
            assert!(matches!(failure.cause, CollectiveCause::PeerLost { rank: 3, .. }), "{seed:?}");
            assert_eq!(places.copy_to_host().unwrap().to_vec(), [7, 8], "every {step}, {seed:?}");
        }
    }
}

/// Whether its elements are packed first makes no difference: the other ranks call the operation.
#[test]
fn a_poisoned_source_of_any_layout_fails_the_operation_on_all_ranks() {
    for (seed, step) in seeds(6).flat_map(|seed| [(seed, 1), (seed, 2)]) {
        let all = ranks_with(2, seed, &patient());
        let [(first, here), (second, there)] = &all[..] else { panic!("two ranks") };
        let mut sources = [here.to_device(&[1; 8]).unwrap(), there.to_device(&[2; 8]).unwrap()];
        let mut sums = [here.to_device(&[0; 4]).unwrap(), there.to_device(&[0; 4]).unwrap()];
        let what = "the test wants it".to_owned();
        first.device().raw().inject(Injection::next(Operation::Fill, ErrorKind::AsynchronousFault { what }));
        here.fill(&mut sources[0], 7).unwrap();
        here.synchronize().unwrap_err();
        let call = |rank: usize, sources: &[Array], sums: &mut [Array]| {
            let source = sources[rank].slice(ndarray::s![..4 * step;step as isize]).unwrap();
            all[rank].0.on(&all[rank].1).all_reduce(&source, &mut sums[rank], Sum)
        };
        let called = [call(0, &sources, &mut sums), call(1, &sources, &mut sums)];
        for (called, stream) in called.into_iter().zip([here, there]) {
            assert!(called.and(stream.synchronize()).is_err(), "{seed:?}, {step}");
        }
        here.fill(&mut sources[0], 10).unwrap();
        for rank in [0, 1] {
            call(rank, &sources, &mut sums).unwrap();
        }
        for sum in &sums {
            assert_eq!(sum.copy_to_host().unwrap().to_vec(), [12; 4], "{seed:?}, {step}");
        }
        assert_eq!((first.recent().len(), second.recent().len()), (2, 2), "{seed:?}, {step}");
    }
}
