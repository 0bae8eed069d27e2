//! Wrong calls are one typed error each and enqueue nothing; what is in flight may be dropped or forgotten.

use crate::common::*;
use gpumem_collectives::{Communicator, CommunicatorId, InPlace, Options, Sum};
use gpumem_core::{ErrorKind, LayoutError, MemoryKind, NotRecorded, Result};
use ndarray::s;
use std::{collections::BTreeSet, slice, sync::mpsc, time::Duration};

/// Ranks on devices of their own.
fn apart(count: usize, options: &Options) -> Vec<(Comm, Stream)> {
    let devices: Vec<Device> = (0..count).map(|_| concurrent()).collect();
    let all = Communicator::all_with(&devices, options).unwrap();
    all.into_iter().map(|rank| (rank.device().stream().unwrap(), rank)).map(|(s, r)| (r, s)).collect()
}

#[track_caller]
fn wrong(result: Result<()>) {
    is(|kind| matches!(kind, ErrorKind::WrongDevice { .. }), result);
}

#[track_caller]
fn is(expected: fn(&ErrorKind) -> bool, result: Result<()>) {
    let error = result.unwrap_err();
    assert!(expected(error.kind()), "{error:?}");
}

#[test]
fn wrong_arguments_are_one_typed_error_and_enqueue_nothing() {
    let all = apart(2, &Options::new());
    let (comm, stream) = &all[0];
    let (mut a, mut b) = (stream.to_device(&[1, 2]).unwrap(), stream.to_device(&[1, 2, 3]).unwrap());
    let other = concurrent();
    let theirs = other.stream().unwrap();
    let mut foreign = theirs.to_device(&[1, 2]).unwrap();
    theirs.synchronize().unwrap();
    let before = stream.submission_index();
    let invalid = |result| is(|kind| matches!(kind, ErrorKind::InvalidArgument { .. }), result);
    let shapes =
        |result| is(|kind| matches!(kind, ErrorKind::Layout(LayoutError::ShapeMismatch { .. })), result);
    invalid(comm.on(stream).broadcast(&mut a, 2));
    invalid(comm.on(stream).reduce(InPlace, Some(a.view_mut()), Sum, 2));
    invalid(comm.on(stream).send(&a, 2));
    invalid(comm.on(stream).receive(&mut a, 2));
    invalid(comm.on(stream).send(&a, 0));
    invalid(comm.on(stream).receive(&mut a, 0));
    invalid(comm.on(stream).all_gather(InPlace, &mut b));
    invalid(comm.on(stream).gather(&a, None, 0));
    invalid(comm.on(stream).all_to_all_v((&b, &[1, 1]), (&mut a, &[1, 1])));
    // To itself a rank sends what it receives from itself.
    invalid(comm.on(stream).all_to_all_v((&a, &[2, 0]), (&mut b, &[1, 2])));
    invalid(comm.on(stream).all_gather_v(&a, (&mut b, &[2, 2])));
    invalid(comm.on(stream).all_gather_v(&a, (&mut b, &[3])));
    shapes(comm.on(stream).all_gather_v(&a, (&mut b, &[1, 2])));
    shapes(comm.on(stream).all_reduce(&a, &mut b, Sum));
    shapes(comm.on(stream).all_gather(&a, &mut b));
    shapes(comm.on(stream).reduce_scatter(&b, &mut a, Sum));
    wrong(comm.on(&theirs).barrier());
    wrong(comm.on(stream).broadcast(&mut foreign, 0));
    wrong(comm.on(stream).all_reduce(&foreign, &mut a, Sum));
    wrong(comm.all_reduce_scalar(&theirs, 1.0, Sum).map(drop));
    assert_eq!(stream.submission_index(), before);
    assert_eq!((comm.failure(), comm.recent()), (None, Vec::new()));
    // The other rank has heard of nothing.
    let (theirs, their_stream) = &all[1];
    let mut own = their_stream.to_device(&[10, 20]).unwrap();
    comm.on(stream).all_reduce(InPlace, &mut a, Sum).unwrap();
    theirs.on(their_stream).all_reduce(InPlace, &mut own, Sum).unwrap();
    assert_eq!(a.copy_to_host().unwrap().to_vec(), [11, 22]);
}

#[test]
fn a_wrong_array_of_one_rank_enqueues_nothing_for_the_others() {
    let all = apart(2, &Options::new());
    let ends: Vec<(&Comm, &Stream)> = all.iter().map(|(comm, stream)| (comm, stream)).collect();
    let mut own = all[0].1.to_device(&[1, 2]).unwrap();
    let mut foreign = all[0].1.to_device(&[3, 4]).unwrap();
    let before = all[0].1.submission_index();
    let called = Communicator::group_all(&ends, |groups| {
        groups[0].all_reduce(InPlace, &mut own, Sum)?;
        groups[1].all_reduce(InPlace, &mut foreign, Sum)
    });
    is(|kind| matches!(kind, ErrorKind::WrongDevice { .. }), called);
    assert_eq!(all[0].1.submission_index(), before);
    assert_eq!((all[0].0.recent(), all[1].0.recent()), (Vec::new(), Vec::new()));
}

#[test]
fn a_refused_operation_leaves_none_of_its_calls_in_the_group() {
    let all = apart(2, &Options::new());
    let foreign = all[0].1.to_device(&[7]).unwrap();
    let (comm, stream) = &all[1];
    let (mut own, mut apart) = (stream.to_device(&[1, 2]).unwrap(), stream.to_device(&[1, 2, 3]).unwrap());
    let before = stream.submission_index();
    comm.group(stream, |group| {
        // The array of another device is the source of the second of the two calls, that for this rank.
        wrong(group.all_gather_v(&foreign, (&mut own, &[1, 1])));
        Ok(())
    })
    .unwrap();
    let mut strided = apart.slice_mut(s![..;2]).unwrap();
    comm.group(stream, |group| {
        wrong(group.all_gather_v(&foreign, (&mut strided, &[1, 1])));
        Ok(())
    })
    .unwrap();
    assert_eq!((stream.submission_index(), comm.recent()), (before, Vec::new()));
    assert_eq!(own.copy_to_host().unwrap().to_vec(), [1, 2]);
    assert_eq!(apart.copy_to_host().unwrap().to_vec(), [1, 2, 3]);
}

#[test]
fn ranks_that_cannot_be_are_refused() {
    let device = concurrent();
    let id = CommunicatorId::for_device(&device).unwrap();
    let join = |rank, size| Communicator::join(&device, &id, rank, size, &Options::new()).map(drop);
    for (rank, size) in [(2, 2), (0, 0), (usize::MAX, 2)] {
        is(|kind| matches!(kind, ErrorKind::InvalidArgument { .. }), join(rank, size));
    }
    is(|kind| matches!(kind, ErrorKind::InvalidArgument { .. }), Communicator::<B>::all(&[]).map(drop));
}

#[test]
fn arrays_and_streams_from_before_a_reset_are_stale() {
    let all = apart(1, &Options::new());
    let (comm, stream) = &all[0];
    let mut array = stream.to_device(&[1, 2]).unwrap();
    stream.synchronize().unwrap();
    // SAFETY: nothing else uses the device.
    unsafe { comm.device().reset() }.unwrap();
    let stale = |result| is(|kind| matches!(kind, ErrorKind::Stale { .. }), result);
    stale(comm.on(stream).all_reduce(InPlace, &mut array, Sum));
    let new = comm.device().stream().unwrap();
    stale(comm.on(&new).broadcast(&mut array, 0));
    assert_eq!(comm.recent(), []);
}

#[test]
fn a_callback_may_call_what_waits_for_nothing() {
    let all = apart(1, &Options::new());
    let (comm, stream) = all.into_iter().next().unwrap();
    let mut array = stream.to_device(&[5]).unwrap();
    let (second, (tell, told)) = (comm.device().stream().unwrap(), mpsc::channel());
    let of_library = comm.device().capabilities().collective_library.is_some();
    stream
        .add_callback(move |_| {
            let before = second.submission_index();
            let called = comm.on(&second).all_reduce(InPlace, &mut array, Sum);
            let scalar = comm.all_reduce_scalar(&second, 1, Sum).map(drop);
            let split = comm.split(Some(0), 0).map(drop);
            let enqueued = second.submission_index() > before;
            tell.send((called, enqueued, [scalar, split], comm)).unwrap();
        })
        .unwrap();
    let (called, enqueued, others, comm) = told.recv_timeout(Duration::from_secs(10)).unwrap();
    let blocks = |kind: &ErrorKind| matches!(kind, ErrorKind::BlockingInCallback);
    others.into_iter().for_each(|result| is(blocks, result));
    if of_library {
        // A call of the library may wait for other ranks.
        is(blocks, called);
        assert!(!enqueued && comm.recent().is_empty());
    } else {
        called.unwrap();
    }
}

/// What is lost right after an operation has been enqueued: the source, the destination, the stream and the communicator.
const LOST: [&str; 5] = ["nothing", "source", "destination", "stream", "communicator"];

#[test]
fn what_is_dropped_or_forgotten_in_flight_is_not_reused_and_leaks_nothing_else() {
    const LEN: usize = 50_000;
    for lost in LOST {
        for forgotten in [false, true] {
            let mut all = apart(2, &Options::new());
            let device = all[0].0.device().clone();
            let blocks =
                |device: &Device| device.memory_resource(MemoryKind::Device).unwrap().statistics().blocks;
            let before = blocks(&device);
            let (comm, stream) = all.remove(0);
            let source = stream.to_device(&vec![1_i32; LEN]).unwrap();
            let mut destination = stream.device_array::<i32, _>(LEN).unwrap();
            stream.synchronize().unwrap();
            comm.on(&stream).all_reduce(&source, &mut destination, Sum).unwrap();
            let places = BTreeSet::from([source.address(), destination.address()]);
            let (mut comm, mut stream) = (Some(comm), Some(stream));
            let (mut source, mut destination) = (Some(source), Some(destination));
            fn lose<T>(value: &mut Option<T>, forgotten: bool) {
                if forgotten { std::mem::forget(value.take()) } else { drop(value.take()) }
            }
            match lost {
                "source" => lose(&mut source, forgotten),
                "destination" => lose(&mut destination, forgotten),
                "stream" => lose(&mut stream, forgotten),
                "communicator" => lose(&mut comm, forgotten),
                _ => {}
            }
            // Memory of the same size that is used at once: that of the operation would not be ready.
            for _ in 0..4 {
                let other = device.to_device(&vec![9_i32; LEN]).unwrap();
                assert!(!places.contains(&other.address()), "{lost}: memory in flight was given away");
                assert_eq!(other.get(7).unwrap(), 9);
            }
            let (theirs, their_stream) = &all[0];
            let mut array = their_stream.to_device(&vec![2_i32; LEN]).unwrap();
            theirs.on(their_stream).all_reduce(InPlace, &mut array, Sum).unwrap();
            assert_eq!(array.get(LEN - 1).unwrap(), 3, "{lost}: the other rank has the sum");
            if let Some(destination) = &destination {
                assert_eq!(destination.copy_to_host().unwrap().to_vec(), vec![3; LEN], "{lost}");
            }
            device.synchronize().unwrap();
            drop((source, destination, stream));
            let leaked = usize::from(forgotten && ["source", "destination"].contains(&lost));
            let mut left = usize::MAX;
            for _ in 0..100 {
                left = blocks(&device);
                if left == before + leaked {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            assert_eq!(left, before + leaked, "{lost}, forgotten: {forgotten}");
            drop((comm, all));
        }
    }
}

#[test]
fn disjoint_halves_of_an_array_do_not_wait_for_each_other() {
    let all = apart(2, &Options::new());
    let (comm, stream) = &all[0];
    let other = comm.device().stream().unwrap();
    let mut array = stream.to_device(&[1, 2, 3, 4]).unwrap();
    stream.synchronize().unwrap();
    let (mut left, mut right) = array.split_at_mut(0, 2).unwrap();
    comm.on(stream).all_reduce(InPlace, &mut left, Sum).unwrap();
    let waits = || comm.device().counters().waits;
    let before = waits();
    other.fill(&mut right, 7).unwrap();
    assert_eq!(waits(), before, "the halves are apart");
    other.synchronize().unwrap(); // the other rank has not called yet
    assert_eq!(right.copy_to_host().unwrap().to_vec(), [7, 7]);
    other.fill(&mut left.slice_mut(ndarray::s![1..]).unwrap(), 8).unwrap();
    assert_eq!(waits(), before + 1, "the same half waits");
    let (theirs, their_stream) = &all[1];
    let mut part = their_stream.to_device(&[10, 20]).unwrap();
    theirs.on(their_stream).all_reduce(InPlace, &mut part, Sum).unwrap();
    assert_eq!(array.copy_to_host().unwrap().to_vec(), [11, 8, 7, 7]);
}

/// Structures of one function may have one name.
#[test]
fn types_of_one_name_are_different_types() {
    let options = Options::new().check(true).timeout(Duration::from_secs(60));
    let all = apart(2, &options);
    let gathered: Vec<Result<()>> = std::thread::scope(|scope| {
        let wide = scope.spawn(|| {
            #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
            #[repr(C)]
            struct Item(u64);
            let (comm, stream) = &all[0];
            let source = stream.to_device(&[Item(u64::MAX); 8]).unwrap();
            let mut destination = stream.device_array::<Item, _>(16).unwrap();
            comm.on(stream).all_gather(&source, &mut destination).and_then(|()| stream.synchronize())
        });
        let narrow = scope.spawn(|| {
            #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
            #[repr(C)]
            struct Item(u8);
            let (comm, stream) = &all[1];
            let source = stream.to_device(&[Item(7); 8]).unwrap();
            let mut destination = stream.device_array::<Item, _>(16).unwrap();
            comm.on(stream).all_gather(&source, &mut destination).and_then(|()| stream.synchronize())
        });
        vec![wide.join().unwrap(), narrow.join().unwrap()]
    });
    for result in gathered {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("the ranks disagree"), "{error}");
    }
}

/// As a call of its own, which is a group of broadcasts.
#[test]
fn ranks_that_name_their_elements_differently_gather_nothing() {
    let all = apart(2, &Options::new());
    let mut arrays: Vec<_> = all.iter().map(|(_, stream)| stream.to_device(&[0, 0]).unwrap()).collect();
    let called: Vec<_> = all
        .iter()
        .zip(&mut arrays)
        .zip(["V1", "V2"])
        .map(|(((comm, stream), array), name)| {
            let own = stream.to_device(&[1]).unwrap();
            let mut operations = comm.on(stream);
            operations.name_elements(Some(name.into()));
            operations.all_gather_v(&own, (array, &[1, 1]))
        })
        .collect();
    for (called, (_, stream)) in called.into_iter().zip(&all) {
        let error = called.and(stream.synchronize()).unwrap_err().to_string();
        assert!(error.contains("the ranks disagree"), "{error}");
    }
}

/// The library would know the memory longer than it is the device's.
#[test]
fn memory_that_is_locked_for_a_scope_is_not_registered() {
    let (comm, _) = apart(1, &Options::new()).remove(0);
    let mut elements = ndarray::Array1::from_elem(1000, 1_u32);
    let locked =
        comm.device().mapped([elements.view_mut()], |locked| comm.register(&locked[0].device_view()));
    is(|kind| matches!(kind, ErrorKind::Unsupported { .. }), locked.unwrap());
}

/// Ranks that a body joins would meet others at once, and their operations would run when the body does.
#[test]
fn the_device_of_a_recording_joins_nothing() {
    let device = concurrent();
    let refused = |result| {
        is(|kind| *kind == ErrorKind::NotRecordable { what: NotRecorded::Communicator }, result);
    };
    let id = CommunicatorId::for_device(&device).unwrap();
    let mut y = device.to_device(&[1, 2, 3, 4]).unwrap();
    let graph = device.record((&mut y,), |inside, _| {
        let device = inside.device();
        for device in [device, &device.clone()] {
            refused(Communicator::join(device, &id, 0, 1, &Options::new()).map(drop));
            refused(Communicator::all(slice::from_ref(device)).map(drop));
            refused(Communicator::from_environment(device).map(drop));
            refused(CommunicatorId::for_device(device).map(drop));
        }
        Ok(())
    });
    // Nothing has been recorded, and the identity is free.
    assert_eq!(graph.unwrap().report(), Default::default());
    let joined = Communicator::join(&device, &id, 0, 1, &Options::new()).unwrap();
    let stream = device.stream().unwrap();
    joined.on(&stream).all_reduce(InPlace, &mut y, Sum).unwrap();
    assert_eq!(y.copy_to_host().unwrap().to_vec(), [1, 2, 3, 4]);
}
