//! Operations in graphs, on the host: also where a part of a launch fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;
#[path = "suite/graphs.rs"]
mod suite;

use common::*;
use gpumem_collectives::{CollectiveCause, InPlace, Sum};
use gpumem_core::ErrorKind;
use gpumem_host::{Injection, Operation};
use gpumem_runtime::{reads, writes};

#[test]
#[cfg_attr(miri, ignore = "starts processes")]
fn all_of_this_holds_over_mpi() {
    if launcher::of_this_process().is_none() {
        launcher::pass(4, &["suite::"], &[]);
    }
}

#[test]
fn a_part_that_fails_fails_the_operation_on_all_and_the_next_launch_is_right() {
    if launcher::of_this_process().is_some() {
        return;
    }
    for seed in seeds(6) {
        let all = ranks(3, seed);
        let graphs = all.iter().map(|(comm, _)| {
            let forms = (reads::<i32, _>(4), writes::<i32, _>(4));
            comm.device().record(forms, |stream, (x, mut w)| {
                let mut g = stream.to_device(&x)?;
                if comm.rank() == 1 {
                    stream.fill(&mut g, 5)?;
                }
                comm.on(stream).all_reduce(InPlace, &mut g, Sum)?;
                stream.copy_to_device(&mut w, &g)?;
                comm.on(stream).all_reduce(InPlace, &mut w, Sum)?;
                stream.copy_to_host(&w)
            })
        });
        let graphs: Vec<_> = graphs.map(Result::unwrap).collect();
        let what = "the test wants it".to_owned();
        for fails in [true, false] {
            if fails {
                let injection =
                    Injection::next(Operation::Fill, ErrorKind::AsynchronousFault { what: what.clone() });
                all[1].0.device().raw().inject(injection);
            }
            let mut kept = Vec::new();
            for ((_, stream), graph) in all.iter().zip(&graphs) {
                let x = stream.to_device(&[1_i32, 2, 3, 4]).unwrap();
                let mut w = stream.to_device(&[0_i32; 4]).unwrap();
                // A failure may be known by then.
                kept.push((graph.launch(stream, (&x, &mut w)), w));
            }
            for (((comm, stream), (launched, w)), rank) in all.iter().zip(kept).zip(0..) {
                let ended = stream.synchronize();
                if !fails {
                    ended.unwrap();
                    assert_eq!(w.copy_to_host().unwrap().to_vec(), [21, 27, 33, 39], "{seed:?}");
                    assert_eq!(launched.unwrap().view().unwrap().to_vec(), [21, 27, 33, 39], "{seed:?}");
                    continue;
                }
                assert!(launched.is_err() || ended.is_err(), "rank {rank}, {seed:?}");
                let read = w.copy_to_host().map(drop).unwrap_err();
                assert!(matches!(read.kind(), ErrorKind::Poisoned { .. }), "rank {rank}, {seed:?}: {read:?}");
                let cause = comm.failure().unwrap().cause;
                assert!(
                    matches!(cause, CollectiveCause::PeerLost { .. }),
                    "rank {rank}, {seed:?}: {cause:?}"
                );
            }
        }
    }
}

/// What a rank had left out of its launch would be met by its next one.
#[test]
fn a_launch_calls_its_operations_also_after_one_that_fails() {
    if launcher::of_this_process().is_some() {
        return;
    }
    for seed in seeds(6) {
        let all = ranks(2, seed);
        let record = |comm: &Comm, first: usize| {
            comm.device().record((writes::<i64, _>(4),), |stream, (mut w,)| {
                stream.fill(&mut w, comm.rank() as i64 + 1)?;
                let mut other = stream.device_array::<i64, _>(first)?;
                comm.on(stream).all_reduce(InPlace, &mut other, Sum)?;
                stream.fill(&mut w, 10 * (comm.rank() as i64 + 1))?;
                comm.on(stream).all_reduce(InPlace, &mut w, Sum)
            })
        };
        let wrong = [record(&all[0].0, 3).unwrap(), record(&all[1].0, 4).unwrap()];
        let right = [record(&all[0].0, 3).unwrap(), record(&all[1].0, 3).unwrap()];
        let mut arrays: Vec<_> =
            all.iter().map(|(_, stream)| stream.to_device(&[0_i64; 4]).unwrap()).collect();
        for (((_, stream), graph), w) in all.iter().zip(&wrong).zip(&mut arrays) {
            let launched = graph.launch(stream, (w,));
            // The first has not heard of it.
            assert!(
                launched.is_ok() || matches!(launched.unwrap_err().kind(), ErrorKind::Collective(_)),
                "{seed:?}"
            );
        }
        for ((comm, stream), w) in all.iter().zip(&mut arrays) {
            let _told = stream.synchronize();
            let causes = comm.recent().len();
            assert_eq!((causes, comm.rank() == 0 || w.copy_to_host().is_err()), (2, true), "{seed:?}");
            stream.fill(w, 0).unwrap();
            stream.synchronize().unwrap();
        }
        for (((_, stream), graph), w) in all.iter().zip(&right).zip(&mut arrays) {
            graph.launch(stream, (w,)).unwrap();
        }
        for ((comm, stream), w) in all.iter().zip(&arrays) {
            stream.synchronize().unwrap();
            assert_eq!(w.copy_to_host().unwrap().to_vec(), [30; 4], "{seed:?}");
            assert_eq!(comm.recent().len(), 4);
        }
    }
}
