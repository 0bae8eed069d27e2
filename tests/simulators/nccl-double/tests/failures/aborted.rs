//! What was enqueued behind an operation that is aborted: what it wrote is poisoned, and nothing shows it.

use super::{apart, is_timeout, poisoned_or_failed, wait_for_alive, wait_for_failure};
use crate::common::*;
use gpumem_collectives::{Communicator, InPlace, Options, Sum};
use gpumem_runtime::{reads, writes};
use nccl_double::Fault;
use ndarray::s;
use std::{
    thread,
    time::{Duration, Instant},
};

#[test]
fn what_later_work_of_the_stream_copied_is_not_shown() {
    let _alone = alone();
    let all = apart(2, &soon());
    let (comm, stream) = &all[0];
    let mut array = stream.to_device(&[1, 2]).unwrap();
    comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    // Enqueued before the operation fails, on its stream and on another one.
    let other = comm.device().stream().unwrap();
    let (here, there) = (stream.copy_to_host(&array).unwrap(), other.copy_to_host(&array).unwrap());
    let told = failed(here.view());
    assert!(is_timeout(&told));
    assert_eq!(poisoned(there.view()), told);
    poisoned(array.copy_to_host());
}

/// Also where a wait for the stream has told of the failure, or the library itself has waited.
#[test]
fn what_was_computed_from_aborted_work_is_poisoned() {
    let _alone = alone();
    let before = alive();
    let all = apart(2, &soon());
    let (comm, stream) = &all[0];
    let mut array = stream.to_device(&[1, 2]).unwrap();
    comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    let (first, second) = (stream.copy_to_host(&array).unwrap(), stream.copy_to_host(&array).unwrap());
    let mut computed = stream.to_device(&[0, 0]).unwrap();
    stream.copy_to_device(&mut computed, &array).unwrap();
    let mut other = comm.device().device_array::<u8, _>(1 << 20).unwrap();
    stream.fill(&mut other, 1).unwrap();
    drop(other);
    wait_for_failure(comm);
    // The other rank still has its own.
    wait_for_alive(before + 1);
    // The memory of the array goes back, and is used again.
    comm.device().flush().unwrap();
    drop(comm.device().to_device(&vec![0_u8; 1 << 20]).unwrap());
    for copy in [&first, &second, &first] {
        assert!(is_timeout(&poisoned(copy.view())));
    }
    let told = poisoned_or_failed(stream.copy_to_host(&computed).and_then(|copy| copy.view().map(drop)));
    assert!(is_timeout(&told), "{told}");
    let _ = stream.synchronize();
    // What is written anew is good, and no more.
    stream.fill(&mut computed.slice_mut(s![..1]).unwrap(), 7).unwrap();
    assert_eq!(computed.slice(s![..1]).unwrap().copy_to_host().unwrap().to_vec(), [7]);
    poisoned_or_failed(computed.slice(s![1..]).unwrap().copy_to_host().map(drop));
}

/// The memory of its temporaries is the same in each launch, and each writes first what it reads there.
#[test]
fn a_graph_that_was_launched_behind_aborted_work_can_be_launched_again() {
    let _alone = alone();
    let all = apart(2, &soon());
    let (comm, stream) = &all[0];
    let mut array = stream.to_device(&[1, 2]).unwrap();
    let graph = comm.device().record((writes::<i32, _>(2),), |stream, (mut given,)| {
        let mut temporary = stream.device_array::<i32, _>(2)?;
        stream.fill(&mut temporary, 7)?;
        stream.copy_to_device(&mut given, &temporary)
    });
    let graph = graph.unwrap();
    comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    let mut given = stream.to_device(&[0, 0]).unwrap();
    graph.launch(stream, (&mut given,)).unwrap();
    assert!(is_timeout(&failed(stream.synchronize())));
    poisoned_or_failed(given.copy_to_host().map(drop));
    for _ in 0..2 {
        let mut fresh = stream.to_device(&[0, 0]).unwrap();
        graph.launch(stream, (&mut fresh,)).unwrap();
        assert_eq!(fresh.copy_to_host().unwrap().to_vec(), [7, 7]);
    }
}

/// The library waits for work to know that memory is free: no caller gets what such a wait returns.
#[test]
fn a_wait_of_the_library_leaves_the_failure_to_the_next_of_the_caller() {
    let _alone = alone();
    let before = alive();
    let all = apart(2, &soon());
    let (comm, stream) = &all[0];
    let mut array = stream.to_device(&[1, 2]).unwrap();
    comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    wait_for_failure(comm);
    wait_for_alive(before + 1);
    let mut temporary = comm.device().device_array::<u8, _>(1 << 20).unwrap();
    stream.fill(&mut temporary, 1).unwrap();
    drop(temporary);
    comm.device().flush().unwrap();
    let mut other = stream.to_device(&[0]).unwrap();
    other.fill(1).unwrap();
    assert!(is_timeout(&failed(stream.synchronize())));
    stream.synchronize().unwrap();
}

/// The loan stands for work of its borrower on the same stream, which comes later.
#[test]
fn what_was_computed_in_lent_memory_is_poisoned() {
    let _alone = alone();
    for is_ended in [false, true] {
        let all = apart(2, &soon());
        let (comm, stream) = (&all[0].0, all[0].1.clone());
        let (mut array, mut lent) = (stream.to_device(&[1, 2]).unwrap(), stream.to_device(&[0, 0]).unwrap());
        let loan = lent.lend_mut(&stream).unwrap();
        comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        stream.copy_to_device(&mut lent, &array).unwrap();
        wait_for_failure(comm);
        // The double writes the bytes when the aborted operation lets it, and a device of the host calls them good then.
        while let Ok(false) = stream.query() {
            thread::sleep(Duration::from_millis(5));
        }
        let loan = (!is_ended).then_some(loan);
        poisoned_or_failed(lent.copy_to_host().map(drop));
        drop(loan);
    }
}

#[test]
fn uploads_behind_aborted_work_leave_nothing_to_others() {
    let _alone = alone();
    let all = apart(2, &soon());
    let (comm, stream) = &all[0];
    let mut array = stream.to_device(&[1, 2]).unwrap();
    comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    let uploaded = stream.to_device(&[3_i32; 1000]).unwrap();
    wait_for_failure(comm);
    // Through the same block of staging memory.
    let other = comm.device().stream().unwrap();
    for value in 0..4 {
        let fresh = other.to_device(&[value; 1000]).unwrap();
        assert_eq!(fresh.copy_to_host().unwrap().to_vec(), [value; 1000]);
    }
    drop(uploaded);
}

/// Its block was used by the aborted operation last: later work follows that, and has nothing of it.
#[test]
fn memory_of_aborted_work_is_as_good_as_new() {
    let _alone = alone();
    let all = apart(2, &soon());
    let (comm, stream) = &all[0];
    let x = stream.to_device(&[1, 2]).unwrap();
    let graph = comm.device().record((reads::<i32, _>(2),), |stream, (x,)| {
        let mut y = stream.device_array::<i32, _>(2)?;
        stream.copy_to_device(&mut y, &x)?;
        Ok(y)
    });
    let graph = graph.unwrap();
    let mut array = stream.to_device(&[3, 4]).unwrap();
    comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    drop(array);
    wait_for_failure(comm);
    for _ in 0..3 {
        let y = graph.launch(stream, (&x,)).unwrap();
        assert_eq!(y.copy_to_host().unwrap().to_vec(), [1, 2]);
    }
}

#[test]
fn what_another_device_copied_is_not_shown() {
    let _alone = alone();
    let all = apart(2, &soon());
    let (comm, stream) = &all[0];
    let mut array = stream.to_device(&[1, 2]).unwrap();
    comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    // A device that is no rank waits for the operation, and another one for that device.
    let [second, third] = [concurrent().stream().unwrap(), concurrent().stream().unwrap()];
    let mut copies = [second.to_device(&[0, 0]).unwrap(), third.to_device(&[0, 0]).unwrap()];
    let [of_second, of_third] = &mut copies;
    second.copy_to_device(of_second, &array).unwrap();
    third.copy_to_device(of_third, &*of_second).unwrap();
    assert!(is_timeout(&failed(stream.synchronize())));
    for (waiting, copy) in [second, third].iter().zip(&copies) {
        let told = failed(waiting.synchronize());
        assert!(is_timeout(&told), "{told}");
        assert_eq!(poisoned_or_failed(copy.copy_to_host().map(drop)), told);
    }
}

#[test]
fn a_stream_that_has_waited_for_many_others_still_fails() {
    let _alone = alone();
    let all = apart(2, &soon());
    let (comm, stream) = &all[0];
    let mut array = stream.to_device(&[1, 2]).unwrap();
    comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
    let waiting = comm.device().stream().unwrap();
    let mut copy = waiting.to_device(&[0, 0]).unwrap();
    waiting.copy_to_device(&mut copy, &array).unwrap();
    // More streams than a queue remembers to have waited for. Their work is late, and has nothing to do with the operation.
    let late = comm.device().stream().unwrap();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    late.add_callback(move |_| {
        let _ = ended.recv();
    })
    .unwrap();
    let behind = late.record_event().unwrap();
    let others: Vec<Stream> = (0..100).map(|_| comm.device().stream().unwrap()).collect();
    for other in &others {
        other.wait(&behind).unwrap();
        let mut late = other.to_device(&[0]).unwrap();
        other.fill(&mut late, 1).unwrap();
        waiting.wait(&other.record_event().unwrap()).unwrap();
    }
    assert!(is_timeout(&failed(stream.synchronize())));
    drop(end);
    let told = failed(waiting.synchronize());
    assert!(is_timeout(&told), "{told}");
    assert_eq!(poisoned_or_failed(copy.copy_to_host().map(drop)), told);
}

#[test]
fn a_strided_destination_is_poisoned_where_its_elements_are() {
    let _alone = alone();
    let all = apart(2, &soon());
    let (comm, stream) = &all[0];
    let mut array = stream.to_device(&ndarray::Array2::<f32>::zeros((4, 6))).unwrap();
    let (left, mut right) = array.split_at_mut(1, 3).unwrap();
    comm.on(stream).all_reduce(InPlace, &mut right.slice_mut(s![..3, ..;2]).unwrap(), Sum).unwrap();
    failed(stream.synchronize());
    poisoned(right.slice(s![..3, ..;2]).unwrap().copy_to_host());
    assert!(right.slice(s![3.., ..]).unwrap().copy_to_host().is_ok(), "the row after it");
    drop(left);
}

/// The library has been called when what it reads turns out to be bad: what it has written is bad too, also where it was before.
#[test]
fn a_source_that_fails_during_the_call_fails_the_result() {
    let _alone = alone();
    let options = Options::new().timeout(Duration::from_secs(30)).concurrent(true);
    let devices = [concurrent(), concurrent()];
    let [first, second] = [(); 2].map(|()| Communicator::all_with(&devices, &options).unwrap());
    let streams = [devices[0].stream().unwrap(), devices[1].stream().unwrap()];
    let mut x = streams[0].to_device(&[1_i32; 4]).unwrap();
    let mut y = streams[0].to_device(&[42_i32; 4]).unwrap();
    let other = streams[1].to_device(&[10_i32; 4]).unwrap();
    let mut sum = streams[1].to_device(&[42_i32; 4]).unwrap();
    // The other rank does not come.
    first[0].on(&streams[0]).all_reduce(InPlace, &mut x, Sum).unwrap();
    let planted = plant(Fault::WaitingCalls);
    let called = thread::scope(|scope| {
        let call = scope.spawn(|| second[0].on(&streams[0]).all_reduce(&x, &mut y, Sum));
        let began = Instant::now();
        while second[0].recent().is_empty() && began.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(5));
        }
        // Most of the time it is in the library by now; else it is refused there.
        thread::sleep(Duration::from_millis(100));
        first[0].abort();
        let _ = second[1].on(&streams[1]).all_reduce(&other, &mut sum, Sum);
        call.join().unwrap()
    });
    drop(planted);
    assert!(called.unwrap_err().is_poisoned());
    // The other rank may have got what is bad.
    failed(second[0].on(&streams[0]).barrier());
    let _ = streams[0].synchronize();
    match y.copy_to_host() {
        Ok(unwritten) => assert_eq!(unwritten.to_vec(), [42; 4]),
        Err(error) => assert!(error.is_poisoned(), "{error}"),
    }
}
