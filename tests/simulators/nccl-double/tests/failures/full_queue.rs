//! A driver whose queue has no room keeps the thread that enqueues until an operation before it has ended.

use super::{apart, is_timeout};
use crate::common::*;
use gpumem_collectives::{CollectiveCause, Communicator, InPlace, Sum};
use gpumem_core::{DriverDevice, RawStream, Stream as _};
use std::{sync::mpsc, thread, time::Duration};

/// The next fill returns when its stream is idle.
fn fill_waits_for_room(stream: &Stream) {
    let device = stream.device();
    let (host, handle) = (raw(device).host().clone(), stream.raw_handle().unwrap());
    raw(device).script().during("fill", move || {
        // SAFETY: the test keeps the stream.
        let stream = unsafe { host.wrap_stream(RawStream(handle.0)) }.unwrap();
        while !stream.query().unwrap_or(true) {
            thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Runs `test`, which would wait for ever if the deadline were not kept.
fn in_time(test: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let thread = thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    if ended.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("the launch has not returned");
    }
    thread.join().unwrap();
}

#[test]
fn a_launch_that_waits_for_room_delays_no_deadline() {
    let _alone = alone();
    in_time(|| {
        let all = apart(2, &soon());
        let (comm, stream) = &all[0];
        let (mut array, mut later) = (stream.to_device(&[1, 2]).unwrap(), stream.to_device(&[3, 4]).unwrap());
        comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        fill_waits_for_room(stream);
        // It may be refused by then.
        let _ = stream.fill(&mut later, 5);
        let told = comm.failure().unwrap();
        assert!(is_timeout(&told), "{told}");
        assert_eq!(poisoned(array.copy_to_host()), told);
    });
}

#[test]
fn a_communicator_is_aborted_while_a_launch_waits_for_room() {
    let _alone = alone();
    in_time(|| {
        // Far later than the test.
        let all = apart(2, &soon().timeout(Duration::from_secs(600)));
        let (comm, stream) = &all[0];
        let (mut array, mut later) = (stream.to_device(&[1, 2]).unwrap(), stream.to_device(&[3, 4]).unwrap());
        comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        fill_waits_for_room(stream);
        thread::scope(|scope| {
            scope.spawn(|| {
                // While the other thread is inside the driver, also if that takes it a while.
                thread::sleep(Duration::from_millis(300));
                assert_eq!(comm.recent().len(), 1);
                comm.abort();
            });
            let _ = stream.fill(&mut later, 5);
        });
        let told = poisoned(array.copy_to_host());
        assert!(matches!(told.cause, CollectiveCause::Aborted { rank: 0 }), "{told}");
    });
}

/// A rank of a group waits for the lock of its stream, which a launch holds. The communicator of another rank is aborted meanwhile: the
/// library is not called with it.
#[test]
fn a_group_takes_no_communicator_before_all_its_streams_wait() {
    let _alone = alone();
    in_time(|| {
        // Of a communicator each: the second one is not told of the abort.
        let [first, second] = [(); 2].map(|()| apart(1, &soon().timeout(Duration::from_secs(600))).remove(0));
        let array = |rank: &(Comm, Stream)| rank.1.to_device(&[1, 2]).unwrap();
        let (mut a, mut b, mut other) = (array(&first), array(&second), array(&second));
        let ((go, gone), (entered, inside)) = (mpsc::channel::<()>(), mpsc::channel());
        let (has_entered, was_entered) = mpsc::channel();
        raw(second.1.device()).script().during("fill", move || {
            entered.send(()).unwrap();
            gone.recv().unwrap();
        });
        // Once the group looks at the first stream: all ranks have been checked by then.
        let launching = second.1.clone();
        raw(first.1.device()).script().during("record", move || {
            thread::spawn(move || launching.fill(&mut other, 5).unwrap());
            inside.recv().unwrap();
            has_entered.send(()).unwrap();
        });
        thread::scope(|scope| {
            let group = || {
                Communicator::group_all(&[(&first.0, &first.1), (&second.0, &second.1)], |ranks| {
                    ranks[0].all_reduce(InPlace, &mut a, Sum)?;
                    ranks[1].all_reduce(InPlace, &mut b, Sum)
                })
            };
            let grouped = scope.spawn(group);
            was_entered.recv().unwrap();
            thread::sleep(Duration::from_millis(200));
            first.0.abort();
            // Longer than a thread inside the library has to come back.
            thread::sleep(Duration::from_millis(500));
            go.send(()).unwrap();
            let told = failed(grouped.join().unwrap());
            assert!(matches!(told.cause, CollectiveCause::Aborted { .. }), "{told}");
        });
        second.0.on(&second.1).all_reduce(InPlace, &mut b, Sum).unwrap();
        assert_eq!(b.copy_to_host().unwrap().to_vec(), [1, 2], "the other communicator goes on");
    });
}
