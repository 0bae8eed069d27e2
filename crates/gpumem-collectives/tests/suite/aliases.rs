//! A second handle of a rank's own array, which an import has made: it is refused beside the array where one of the two is
//! written, before any rank hears of the operation.

use crate::common::*;
use gpumem_collectives::{Communicator, InPlace, Sum};
use gpumem_core::{CollectiveCause, ErrorKind, Result};
use gpumem_runtime::{DeviceArray, ImportedArray};
use ndarray::{Ix1, s};
use std::thread;

type Own = DeviceArray<u32, Ix1, B>;
type Second = ImportedArray<u32, Ix1, B>;

/// What every rank does.
type Step = dyn Fn(&Comm, &Stream, &mut Own, &Second) -> Result<()> + Sync;

const COUNT: u32 = 8;

/// An array, and the handle that it is imported by again.
fn twice(stream: &Stream) -> (Own, Second) {
    let (array, borrower) = (stream.to_device(&Vec::from_iter(0..COUNT)), stream.device().stream());
    let array = array.unwrap();
    let second = stream.device().as_cuda_array(array.lend(&borrower.unwrap()).unwrap()).unwrap();
    (array, second)
}

#[track_caller]
fn refused(what: &str, result: Result<()>) {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::Overlap { .. }) => {}
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn no_operation_takes_an_array_and_a_second_handle_of_it() {
    for (comm, stream) in &ranks(2, None) {
        let (own, (mut array, second)) = (comm.rank(), twice(stream));
        let mut other = stream.device_array::<u32, _>(COUNT as usize).unwrap();
        stream.synchronize().unwrap();
        let before = stream.submission_index();
        // The whole, a part of it, and one that is off by an element.
        let (low, high) = (second.slice(s![..4]).unwrap(), second.slice(s![4..]).unwrap());
        let (six, seven) = (second.slice(s![..6]).unwrap(), second.slice(s![..7]).unwrap());
        refused("all_reduce", comm.on(stream).all_reduce(&second, &mut array, Sum));
        refused(
            "all_reduce",
            comm.on(stream).all_reduce(&seven, &mut array.slice_mut(s![1..]).unwrap(), Sum),
        );
        refused("reduce", comm.on(stream).reduce(&second, Some(array.view_mut()), Sum, own));
        refused("all_gather", comm.on(stream).all_gather(&low, &mut array));
        refused("all_gather", comm.on(stream).all_gather(&high, &mut array));
        refused("all_gather_v", comm.on(stream).all_gather_v(&low, (&mut array, &[4, 4])));
        let mut part = array.slice_mut(s![2..6]).unwrap();
        refused("reduce_scatter", comm.on(stream).reduce_scatter(&second, &mut part, Sum));
        refused("scatter", comm.on(stream).scatter(Some(second.view()), &mut part, own));
        refused("gather", comm.on(stream).gather(&low, Some(array.view_mut()), own));
        refused("all_to_all", comm.on(stream).all_to_all(&second, &mut array));
        refused("all_to_all", comm.on(stream).all_to_all(&six, &mut array.slice_mut(s![2..]).unwrap()));
        refused("all_to_all_v", comm.on(stream).all_to_all_v((&second, &[4, 4]), (&mut array, &[4, 4])));
        // The operations of a group run at the same time.
        let exchanged = comm.group(stream, |group| {
            group.receive(&mut array, 1 - own)?;
            group.send(&second, 1 - own)
        });
        refused("receive and send", exchanged);
        let read = comm.group(stream, |group| {
            group.all_reduce(InPlace, &mut array, Sum)?;
            group.all_reduce(&second, &mut other, Sum)
        });
        refused("in place, and read by another operation", read);
        let written = comm.group(stream, |group| {
            group.all_reduce(&second, &mut other, Sum)?;
            group.broadcast(&mut array, 1 - own)
        });
        refused("read, and written by another operation", written);
        assert_eq!(stream.submission_index(), before);
        assert_eq!(array.copy_to_host().unwrap().to_vec(), Vec::from_iter(0..COUNT));
        // No rank has heard of anything.
        assert_eq!((comm.failure(), comm.recent()), (None, Vec::new()));
    }
}

#[test]
fn ranks_of_one_thread_do_not_share_an_array_that_one_of_them_writes() {
    let device = concurrent();
    let all = Communicator::all(&[device.clone(), device.clone()]).unwrap();
    let [one, two] = <[Comm; 2]>::try_from(all).unwrap();
    let (ours, theirs) = (device.stream().unwrap(), device.stream().unwrap());
    let (mut array, second) = twice(&ours);
    ours.synchronize().unwrap();
    let together = Communicator::group_all(&[(&one, &ours), (&two, &theirs)], |groups| {
        let [first, other] = groups else { return Ok(()) };
        first.receive(&mut array, 1)?;
        other.send(&second, 0)
    });
    // Where all ranks are in this process, they find it when they compare their calls.
    match together.unwrap_err().kind() {
        ErrorKind::Overlap { .. } => {}
        ErrorKind::Collective(failure) => {
            assert_eq!(failure.cause, CollectiveCause::Overlap { writer: 0, user: 1 });
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn operations_in_place_take_an_array_that_has_a_second_handle() {
    let all = ranks(2, None);
    let mut arrays: Vec<(Own, Second)> = all.iter().map(|(_, stream)| twice(stream)).collect();
    // Calls it on every rank, and checks the elements that begin there.
    let mut together = |call: &Step, from: [(usize, &[u32]); 2]| {
        thread::scope(|scope| {
            for ((comm, stream), (array, second)) in all.iter().zip(&mut arrays) {
                scope.spawn(move || call(comm, stream, array, second).unwrap());
            }
        });
        for ((comm, _), (array, second)) in all.iter().zip(&arrays) {
            let (at, expected) = from[comm.rank()];
            for found in [array.copy_to_host().unwrap(), second.copy_to_host().unwrap()] {
                assert_eq!(found.as_slice().unwrap()[at..at + expected.len()], *expected);
            }
        }
    };
    let twofold = [0, 2, 4, 6, 8, 10, 12, 14];
    together(&|comm, stream, array, _| comm.on(stream).all_reduce(InPlace, array, Sum), [(0, &twofold); 2]);
    let fourfold = [0, 4, 8, 12, 16, 20, 24, 28];
    together(
        &|comm, stream, array, _| comm.on(stream).reduce(InPlace, Some(array.view_mut()), Sum, 1),
        [(0, &twofold), (0, &fourfold)],
    );
    let gathered = [0, 2, 4, 6, 16, 20, 24, 28];
    together(&|comm, stream, array, _| comm.on(stream).all_gather(InPlace, array), [(0, &gathered); 2]);
    together(
        &|comm, stream, array, _| comm.on(stream).reduce_scatter(InPlace, array, Sum),
        [(0, &[0, 4, 8, 12]), (4, &[32, 40, 48, 56])],
    );
    together(&|comm, stream, array, _| comm.on(stream).broadcast(array, 0), [(0, &[0, 4, 8, 12]); 2]);
    // Two parts that lie apart are two arrays.
    together(
        &|comm, stream, array, second| {
            comm.on(stream).all_reduce(&second.slice(s![..4])?, &mut array.slice_mut(s![4..])?, Sum)
        },
        [(4, &[0, 8, 16, 24]); 2],
    );
    // And reading twice is no conflict.
    together(
        &|comm, stream, array, second| {
            let mut one = stream.device_array::<u32, _>(COUNT as usize)?;
            let mut other = stream.device_array::<u32, _>(COUNT as usize)?;
            comm.group(stream, |group| {
                group.all_reduce(&*array, &mut one, Sum)?;
                group.all_reduce(second, &mut other, Sum)
            })?;
            assert_eq!(one.copy_to_host()?, other.copy_to_host()?);
            Ok(())
        },
        [(4, &[0, 8, 16, 24]); 2],
    );
    // Elements that are packed are read before anything is written.
    together(
        &|comm, stream, array, second| comm.on(stream).all_reduce(&second.slice(s![..;-1])?, array, Sum),
        [(0, &[48, 32, 16, 0, 24, 16, 8, 0]); 2],
    );
}
