//! A second handle of a rank's own array, which an import has made: it is refused beside the array where one of the two is
//! written, before any rank hears of the operation.

use crate::common::*;
use gpumem_collectives::{Communicator, Sum};
use gpumem_core::{ErrorKind, Result};
use gpumem_runtime::{DeviceArray, ImportedArray};
use ndarray::{Ix1, s};

type Own = DeviceArray<u32, Ix1, B>;
type Second = ImportedArray<u32, Ix1, B>;

/// What every rank does.
type Step = dyn Fn(&Comm, &Stream, &mut Own, &Second) -> Result<()> + Sync;

const COUNT: u32 = 8;

/// Two ranks on devices of their own.
fn two() -> Vec<(Comm, Stream)> {
    let devices = [concurrent(), concurrent()];
    let all = Communicator::all(&devices).unwrap().into_iter();
    all.map(|rank| (rank.device().stream().unwrap(), rank)).map(|(stream, rank)| (rank, stream)).collect()
}

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
    let all = two();
    let (comm, stream) = &all[0];
    let (mut array, second) = twice(stream);
    let mut other = stream.device_array::<u32, _>(COUNT as usize).unwrap();
    stream.synchronize().unwrap();
    let before = stream.submission_index();
    let (low, high) = (second.slice(s![..4]).unwrap(), second.slice(s![4..]).unwrap());
    // The whole, a part of it, and one that is off by an element.
    refused("all_reduce", comm.all_reduce(stream, &second, &mut array, Sum));
    let shifted = second.slice(s![..7]).unwrap();
    refused("all_reduce", comm.all_reduce(stream, &shifted, &mut array.slice_mut(s![1..]).unwrap(), Sum));
    refused("reduce", comm.reduce(stream, &second, Some(array.view_mut()), Sum, 0));
    refused("all_gather", comm.all_gather(stream, &low, &mut array));
    refused("all_gather", comm.all_gather(stream, &high, &mut array));
    refused("all_gather_v", comm.all_gather_v(stream, &low, (&mut array, &[4, 4])));
    refused(
        "reduce_scatter",
        comm.reduce_scatter(stream, &second, &mut array.slice_mut(s![..4]).unwrap(), Sum),
    );
    refused("all_to_all", comm.all_to_all(stream, &second, &mut array));
    let six = second.slice(s![..6]).unwrap();
    refused("all_to_all", comm.all_to_all(stream, &six, &mut array.slice_mut(s![2..]).unwrap()));
    refused("all_to_all_v", comm.all_to_all_v(stream, (&second, &[4, 4]), (&mut array, &[4, 4])));
    refused("gather", comm.gather(stream, &low, Some(array.view_mut()), 0));
    let whole = second.view();
    refused("scatter", comm.scatter(stream, Some(whole), &mut array.slice_mut(s![4..]).unwrap(), 0));
    // The operations of a group run at the same time.
    refused(
        "receive and send",
        comm.group(stream, |group| {
            group.receive(&mut array, 1)?;
            group.send(&second, 1)
        }),
    );
    refused(
        "in place, and read by another operation",
        comm.group(stream, |group| {
            group.all_reduce_in_place(&mut array, Sum)?;
            group.all_reduce(&second, &mut other, Sum)
        }),
    );
    assert_eq!(stream.submission_index(), before);
    assert_eq!(array.copy_to_host().unwrap().to_vec(), Vec::from_iter(0..COUNT));
    // The other rank has heard of nothing.
    assert_eq!((comm.failure(), comm.recent()), (None, Vec::new()));
}

#[test]
fn operations_in_place_take_an_array_that_has_a_second_handle() {
    let all = two();
    let mut arrays: Vec<(Own, Second)> = all.iter().map(|(_, stream)| twice(stream)).collect();
    let mut together = |call: &Step| {
        std::thread::scope(|scope| {
            for ((comm, stream), (array, second)) in all.iter().zip(&mut arrays) {
                scope.spawn(move || call(comm, stream, array, second).unwrap());
            }
        });
        let read = |(array, second): &(Own, Second)| {
            let elements = array.copy_to_host().unwrap().to_vec();
            assert_eq!(second.copy_to_host().unwrap().to_vec(), elements);
            elements
        };
        arrays.iter().map(read).collect::<Vec<_>>()
    };
    let sums = together(&|comm, stream, array, _| comm.all_reduce_in_place(stream, array, Sum));
    assert_eq!(sums, vec![Vec::from_iter((0..COUNT).map(|element| 2 * element)); 2]);
    let sums = together(&|comm, stream, array, _| comm.reduce_in_place(stream, array, Sum, 1));
    assert_eq!(sums[1], Vec::from_iter((0..COUNT).map(|element| 4 * element)));
    let all_gathered = together(&|comm, stream, array, _| comm.all_gather_in_place(stream, array));
    assert_eq!(all_gathered, vec![vec![0, 2, 4, 6, 16, 20, 24, 28]; 2]);
    let scattered = together(&|comm, stream, array, _| comm.reduce_scatter_in_place(stream, array, Sum));
    assert_eq!((&scattered[0][..4], &scattered[1][4..]), (&[0, 4, 8, 12][..], &[32, 40, 48, 56][..]));
    let same = together(&|comm, stream, array, _| comm.broadcast(stream, array, 0));
    assert_eq!(same[0], same[1]);
    // Two parts that lie apart are two arrays.
    let halves = together(&|comm, stream, array, second| {
        comm.all_reduce(stream, &second.slice(s![..4])?, &mut array.slice_mut(s![4..])?, Sum)
    });
    assert_eq!(&halves[0][4..], [0, 8, 16, 24]);
    // And reading twice is no conflict.
    together(&|comm, stream, array, second| {
        let mut sums = [stream.device_array::<u32, _>(COUNT as usize)?, stream.device_array(COUNT as usize)?];
        let [one, other] = &mut sums;
        comm.group(stream, |group| {
            group.all_reduce(&*array, one, Sum)?;
            group.all_reduce(second, other, Sum)
        })?;
        assert_eq!(sums[0].copy_to_host()?, sums[1].copy_to_host()?);
        Ok(())
    });
}
