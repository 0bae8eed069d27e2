//! Operations in graphs: a launch does what the calls do by themselves, in the order of the body.

use crate::common::*;
use gpumem_collectives::{CollectiveCause, CollectiveState, Communicator, InPlace, Sum};
use gpumem_core::{ErrorKind, NotRecorded, Result};
use gpumem_runtime::{DeviceArray, DeviceView, DeviceViewMut, PinnedArray, reads, writes};
use ndarray::{Ix1, s};
use std::{slice, thread};

type Array = DeviceArray<i64, Ix1, B>;
type View<'a> = DeviceView<'a, i64, Ix1, B>;
type ViewMut<'a> = DeviceViewMut<'a, i64, Ix1, B>;

/// What a rank gives in a round.
fn given(rank: usize, round: usize, count: usize) -> Vec<i64> {
    (0..count).map(|at| (rank * 1000 + round * 10 + at) as i64).collect()
}

/// The sums over all ranks.
fn sums(ranks: usize, round: usize, count: usize) -> Vec<i64> {
    let of = |at| (0..ranks).map(|rank| given(rank, round, count)[at]).sum();
    (0..count).map(of).collect()
}

/// Work before an operation, and work after it: what comes out of turn gives other sums.
fn turned_sum(
    comm: &Comm,
    stream: &Stream,
    x: &View<'_>,
    w: &mut ViewMut<'_>,
) -> Result<PinnedArray<i64, Ix1, B>> {
    let mut g = stream.to_device(&x.slice(s![..;-1])?)?;
    comm.on(stream).all_reduce(InPlace, &mut g, Sum)?;
    stream.copy_to_device(&mut w.slice_mut(s![..;-1])?, &g)?;
    comm.on(stream).all_reduce(InPlace, w, Sum)?;
    stream.fill(&mut g, 7)?;
    stream.copy_to_host(w)
}

#[test]
fn a_graph_is_launched_often_with_other_arrays() {
    let count = 5;
    for &number in counts() {
        for seed in seeds(4) {
            let all = ranks(number, seed);
            let form = || (reads::<i64, _>(count), writes::<i64, _>(count));
            let record = |(comm, _): &(Comm, Stream)| {
                comm.device().record(form(), |stream, (x, mut w)| turned_sum(comm, stream, &x, &mut w))
            };
            let graphs: Vec<_> = all.iter().map(|rank| record(rank).unwrap()).collect();
            // Nothing is called before a launch.
            assert!(all.iter().all(|(comm, _)| comm.recent().is_empty()));
            let rounds = if seed.is_none() && !cfg!(miri) { 100 } else { 6 };
            let mut kept = Vec::new();
            for round in 0..rounds {
                for ((comm, stream), graph) in all.iter().zip(&graphs) {
                    let x = stream.to_device(&given(comm.rank(), round, count)).unwrap();
                    let mut w = stream.device_array::<i64, _>(count).unwrap();
                    let host = graph.launch(stream, (&x, &mut w)).unwrap();
                    kept.push((round, w, host));
                }
            }
            for (round, w, host) in kept {
                let expected: Vec<i64> =
                    sums(number, round, count).iter().map(|sum| sum * number as i64).collect();
                assert_eq!(
                    host.view().unwrap().to_vec(),
                    expected,
                    "{number} ranks, {seed:?}, round {round}"
                );
                assert_eq!(w.copy_to_host().unwrap().to_vec(), expected, "{number} ranks, {seed:?}");
            }
            for (comm, _) in &all {
                let calls = comm.recent();
                assert_eq!(calls.len(), 2 * rounds);
                assert!(calls.iter().all(|call| call.state == CollectiveState::Done));
            }
        }
    }
}

type Body = fn(&Comm, &Stream, &View<'_>, &mut ViewMut<'_>) -> Result<()>;

/// Operations on twelve elements for each of up to four ranks.
const BODIES: &[(&str, Body)] = &[
    ("all_gather", |comm, stream, x, w| {
        let (rank, size) = (comm.rank(), comm.size());
        let own = 12 / size;
        comm.on(stream).all_gather(&x.slice(s![rank..rank + own])?, &mut w.slice_mut(s![..own * size])?)
    }),
    ("all_gather, in place and apart", |comm, stream, x, w| {
        stream.copy_to_device(w, x)?;
        comm.on(stream).all_gather(InPlace, &mut w.slice_mut(s![..12 / comm.size() * comm.size();-1])?)
    }),
    ("all_gather_v", |comm, stream, x, w| {
        let rows: Vec<usize> = (0..comm.size()).collect();
        let all = rows.iter().sum::<usize>();
        comm.on(stream)
            .all_gather_v(&x.slice(s![..comm.rank()])?, (&mut w.slice_mut(s![..2 * all;2])?, &rows))
    }),
    ("all_to_all", |comm, stream, x, w| {
        let all = 12 / comm.size() * comm.size();
        comm.on(stream).all_to_all(&x.slice(s![..all])?, &mut w.slice_mut(s![..all])?)
    }),
    ("all_to_all_v", |comm, stream, x, w| {
        let rows = vec![2; comm.size()];
        let all = 2 * comm.size();
        comm.on(stream).all_to_all_v((&x.slice(s![..all])?, &rows), (&mut w.slice_mut(s![..all])?, &rows))
    }),
    ("broadcast", |comm, stream, x, w| {
        stream.copy_to_device(w, x)?;
        comm.on(stream).broadcast(w, comm.size() - 1)
    }),
    ("reduce", |comm, stream, x, w| {
        stream.copy_to_device(w, x)?;
        comm.on(stream).reduce(InPlace, Some(w.slice_mut(s![..;3])?), Sum, 0)
    }),
    ("reduce_scatter", |comm, stream, x, w| {
        let own = 12 / comm.size();
        comm.on(stream).reduce_scatter(&x.slice(s![..own * comm.size()])?, &mut w.slice_mut(s![..own])?, Sum)
    }),
    ("gather and scatter", |comm, stream, x, w| {
        let (root, own) = (comm.size() - 1, 12 / comm.size());
        let mut all = stream.device_array::<i64, _>(own * comm.size())?;
        comm.on(stream).gather(&x.slice(s![..own])?, Some(all.view_mut()), root)?;
        comm.on(stream).scatter(Some(all.view()), &mut w.slice_mut(s![..own])?, root)?;
        comm.on(stream).barrier()
    }),
    ("group", |comm, stream, x, w| {
        let (rank, size) = (comm.rank(), comm.size());
        let (mut one, mut other) = w.split_at_mut(0, 6)?;
        let (sent, added, mut received) = (x.slice(s![..3])?, x.slice(s![6..])?, one.slice_mut(s![..;2])?);
        comm.group(stream, |group| {
            group.send(&sent, (rank + 1) % size)?;
            group.receive(&mut received, (rank + size - 1) % size)?;
            group.all_reduce(&added, &mut other, Sum)
        })
    }),
    ("nothing", |comm, stream, x, w| {
        comm.on(stream).all_reduce(&x.slice(s![..0])?, &mut w.slice_mut(s![..0])?, Sum)?;
        comm.on(stream).broadcast(&mut w.slice_mut(s![3..3])?, 0)
    }),
];

#[test]
fn each_operation_gives_what_its_call_gives() {
    for &number in counts().iter().filter(|number| **number <= 4) {
        for seed in seeds(2) {
            let all = ranks(number, seed);
            for (name, body) in BODIES {
                let arrays = |(comm, stream): &(Comm, Stream), round| {
                    let x = stream.to_device(&given(comm.rank(), round, 12)).unwrap();
                    (x, stream.to_device(&[-1_i64; 12]).unwrap())
                };
                let called: Vec<Array> = all
                    .iter()
                    .map(|rank| {
                        let (x, mut w) = arrays(rank, 1);
                        body(&rank.0, &rank.1, &x.view(), &mut w.view_mut()).unwrap();
                        w
                    })
                    .collect();
                let forms = (reads::<i64, _>(12), writes::<i64, _>(12));
                let graphs = all.iter().map(|(comm, _)| {
                    comm.device().record(forms.clone(), |stream, (x, mut w)| body(comm, stream, &x, &mut w))
                });
                let graphs: Vec<_> = graphs.map(Result::unwrap).collect();
                for round in [0, 1] {
                    let launched = all.iter().zip(&graphs).map(|(rank, graph)| {
                        let (x, mut w) = arrays(rank, round);
                        graph.launch(&rank.1, (&x, &mut w)).unwrap();
                        w
                    });
                    let launched: Vec<Array> = launched.collect();
                    for (called, launched) in called.iter().zip(&launched).filter(|_| round == 1) {
                        let called = called.copy_to_host().unwrap();
                        assert_eq!(
                            launched.copy_to_host().unwrap(),
                            called,
                            "{name}, {number} ranks, {seed:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_graph_shows_its_operations_and_what_they_come_between() {
    let all = ranks(counts()[0], None);
    for (comm, stream) in &all {
        let graph =
            comm.device().record((writes::<i32, _>(4), writes::<i32, _>(4)), |stream, (mut x, mut y)| {
                let other = stream.device().stream()?;
                stream.fill(&mut x, 1)?;
                other.fill(&mut y, 2)?;
                comm.on(stream).all_reduce(InPlace, &mut x, Sum)?;
                other.fill(&mut y, 3)
            });
        let graph = graph.unwrap();
        let report = graph.report();
        assert_eq!((report.nodes, report.fills, report.collectives, report.edges), (4, 3, 1, 3));
        assert!(report.to_string().contains("3 fills, and 1 operations of several ranks"), "{report}");
        let dot = graph.dot();
        assert!(dot.contains("s2 [label=\"all_reduce\"];"), "{dot}");
        for edge in ["s0 -> s2", "s1 -> s2", "s2 -> s3"] {
            assert!(dot.contains(edge), "{dot}");
        }
        let mut arrays = [stream.to_device(&[0_i32; 4]).unwrap(), stream.to_device(&[0_i32; 4]).unwrap()];
        let [x, y] = &mut arrays;
        graph.launch(stream, (x, y)).unwrap();
        stream.synchronize().unwrap();
    }
}

#[test]
fn frozen_arrays_and_uploads_are_read_and_a_graph_is_part_of_another() {
    for seed in seeds(3) {
        let all = ranks(counts()[1], seed);
        let size = counts()[1] as i64;
        let mut kept = Vec::new();
        for (comm, stream) in &all {
            let weights = stream.to_device(&[1_i64, 2, 3, 4]).unwrap().freeze().map_err(|(_, error)| error);
            let weights = weights.unwrap();
            let inner = comm.device().record((writes::<i64, _>(4),), |stream, (mut w,)| {
                comm.on(stream).all_reduce(&weights, &mut w, Sum)?;
                let upload = stream.to_device(&[10_i64, 20, 30, 40])?;
                let mut sum = stream.device_array::<i64, _>(4)?;
                comm.on(stream).all_reduce(&upload, &mut sum, Sum)?;
                Ok(sum)
            });
            let inner = inner.unwrap();
            let outer = comm.device().record((writes::<i64, _>(8),), |stream, (mut both,)| {
                let (mut one, mut other) = both.split_at_mut(0, 4)?;
                let sum = inner.launch(stream, (&mut one,))?;
                stream.copy_to_device(&mut other, &sum)
            });
            drop((inner, weights));
            let outer = outer.unwrap();
            assert_eq!(outer.report().collectives, 2);
            let mut both = stream.device_array::<i64, _>(8).unwrap();
            outer.launch(stream, (&mut both,)).unwrap();
            kept.push(both);
        }
        for both in kept {
            let expected = [1, 2, 3, 4, 10, 20, 30, 40].map(|value| value * size);
            assert_eq!(both.copy_to_host().unwrap().to_vec(), expected);
        }
    }
}

/// Parts of two launches take turns on their streams, and neither sees temporaries of the other.
#[test]
fn two_threads_launch_one_graph() {
    let device = concurrent();
    let Some(comm) = own_rank(&device) else { return };
    let graph = device.record((reads::<i64, _>(256), writes::<i64, _>(256)), |stream, (x, mut w)| {
        let mut g = stream.to_device(&x)?;
        comm.on(stream).all_reduce(InPlace, &mut g, Sum)?;
        stream.copy_to_device(&mut w, &g)
    });
    let graph = graph.unwrap();
    thread::scope(|scope| {
        for thread in 0..2 {
            let (graph, device) = (&graph, &device);
            scope.spawn(move || {
                let stream = device.stream().unwrap();
                for round in 0..if cfg!(miri) { 2 } else { 200 } {
                    let x = stream.to_device(&given(thread, round, 256)).unwrap();
                    let mut w = stream.device_array::<i64, _>(256).unwrap();
                    graph.launch(&stream, (&x, &mut w)).unwrap();
                    let host = stream.copy_to_host(&w).unwrap();
                    assert_eq!(host.view().unwrap().to_vec(), given(thread, round, 256));
                }
            });
        }
    });
}

/// A communicator of one rank, in one process.
fn own_rank(device: &Device) -> Option<Comm> {
    let all = is_in_one_process().then(|| Communicator::all(slice::from_ref(device)).unwrap());
    all.map(|mut all| all.remove(0))
}

#[test]
fn a_rank_that_does_not_launch_is_missing_on_the_others() {
    if !is_in_one_process() {
        return;
    }
    for &number in counts().iter().filter(|number| [2, 3, 4].contains(*number)) {
        let all = ranks_with(number, None, &soon());
        let record = |comm: &Comm| {
            comm.device().record((writes::<i64, _>(3),), |stream, (mut w,)| {
                let g = stream.to_device(&[1_i64, 2, 3])?;
                comm.on(stream).all_reduce(&g, &mut w, Sum)?;
                let host = stream.copy_to_host(&w)?;
                comm.on(stream).barrier()?;
                Ok(host)
            })
        };
        let mut kept = Vec::new();
        for (comm, stream) in all.iter().filter(|(comm, _)| comm.rank() > 0) {
            let (graph, mut w) = (record(comm).unwrap(), stream.to_device(&[0_i64; 3]).unwrap());
            let host = graph.launch(stream, (&mut w,)).unwrap();
            kept.push((comm, stream, graph, w, host));
        }
        for (comm, stream, graph, mut w, host) in kept {
            // The second operation fails because the first one has.
            assert!(host.view().is_err());
            stream.synchronize().unwrap_err();
            let failure = poisoned(w.copy_to_host());
            assert!(matches!(failure.cause, CollectiveCause::Timeout { .. }), "{failure}");
            assert_eq!((failure.operation, failure.sequence), ("all_reduce", 0));
            assert!(matches!(comm.failure().unwrap().cause, CollectiveCause::Timeout { .. }));
            // Refused before anything is enqueued.
            stream.fill(&mut w, 5).unwrap();
            failed(graph.launch(stream, (&mut w,)));
            assert_eq!(w.copy_to_host().unwrap().to_vec(), [5; 3]);
        }
    }
}

#[test]
fn a_graph_keeps_the_part_of_its_rank() {
    for seed in seeds(3) {
        let mut all = ranks(counts()[1], seed);
        let size = counts()[1] as i64;
        let record = |comm: &Comm| {
            comm.device().record((writes::<i64, _>(2),), |stream, (mut w,)| {
                stream.fill(&mut w, 1)?;
                comm.on(stream).all_reduce(InPlace, &mut w, Sum)
            })
        };
        let graphs: Vec<_> = all.iter().map(|(comm, _)| record(comm).unwrap()).collect();
        let (comms, streams): (Vec<_>, Vec<_>) = all.drain(..).unzip();
        drop(comms);
        let arrays = streams.iter().zip(&graphs).map(|(stream, graph)| {
            let mut w = stream.to_device(&[0_i64, 0]).unwrap();
            graph.launch(stream, (&mut w,)).unwrap();
            w
        });
        for w in arrays.collect::<Vec<_>>() {
            assert_eq!(w.copy_to_host().unwrap().to_vec(), [size; 2]);
        }
    }
}

#[test]
fn after_the_communicator_was_given_up_launches_are_refused() {
    let device = concurrent();
    let Some(comm) = own_rank(&device) else { return };
    let graph = device.record((writes::<i64, _>(2),), |stream, (mut w,)| {
        stream.fill(&mut w, 1)?;
        comm.on(stream).all_reduce(InPlace, &mut w, Sum)
    });
    let (graph, stream) = (graph.unwrap(), device.stream().unwrap());
    let mut w = stream.to_device(&[3_i64, 4]).unwrap();
    graph.launch(&stream, (&mut w,)).unwrap();
    comm.destroy().unwrap();
    stream.fill(&mut w, 5).unwrap();
    let refused = failed(graph.launch(&stream, (&mut w,)));
    let is_given_up = matches!(refused.cause, CollectiveCause::PeerLost { rank: 0, .. });
    assert!(is_given_up || matches!(refused.cause, CollectiveCause::Aborted { rank: 0 }), "{refused}");
    assert_eq!(w.copy_to_host().unwrap().to_vec(), [5, 5]);
}

#[test]
fn what_cannot_be_recorded_is_refused_and_nothing_recorded() {
    let (device, other) = (concurrent(), concurrent());
    let (Some(comm), Some(theirs)) = (own_rank(&device), own_rank(&other)) else { return };
    let mut outside = device.to_device(&[1_i64, 2, 3, 4]).unwrap();
    let mut kept = None;
    let graph = device.record((writes::<i64, _>(4),), |stream, (mut w,)| {
        let source = stream.uninit_array::<i64, _>(1)?;
        // SAFETY: nothing that reads it is recorded.
        let source = unsafe { source.assume_init() };
        let kind = |result: Result<()>| result.unwrap_err().kind().clone();
        let refused = |what| ErrorKind::NotRecordable { what };
        let mut packed = w.slice_mut(s![..;2])?;
        let several = Communicator::group_all(&[(&comm, stream)], |groups| {
            groups[0].all_reduce(InPlace, &mut packed, Sum)
        });
        assert_eq!(kind(several), refused(NotRecorded::SeveralRanks));
        assert_eq!(kind(comm.all_reduce_scalar(stream, 1, Sum).map(drop)), refused(NotRecorded::Wait));
        let called = comm.on(stream).all_reduce(InPlace, &mut outside, Sum);
        assert_eq!(kind(called), refused(NotRecorded::OutsideArray));
        // Its elements lie apart: a copy after the operation would write them.
        let called = comm.on(stream).all_gather(&source, &mut outside.slice_mut(s![..;4])?);
        assert_eq!(kind(called), refused(NotRecorded::OutsideArray));
        assert!(matches!(kind(theirs.on(stream).barrier()), ErrorKind::WrongDevice { what: "stream", .. }));
        assert!(matches!(kind(comm.on(stream).broadcast(&mut w, 1)), ErrorKind::InvalidArgument { .. }));
        let grouped = comm.group(stream, |group| {
            group.barrier()?;
            group.broadcast(&mut w, 7)
        });
        assert!(matches!(kind(grouped), ErrorKind::InvalidArgument { .. }));
        kept = Some(stream.device().stream()?);
        Ok(())
    });
    assert_eq!(graph.unwrap().report(), Default::default());
    let kept = kept.unwrap();
    let error = comm.on(&kept).barrier().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::OfRecording { .. }), "{error:?}");
    assert_eq!((comm.recent(), comm.failure(), theirs.recent()), (Vec::new(), None, Vec::new()));
}
