//! Short copies of the caller's memory, which need no pipeline: the results, and memory that is never touched
//! afterwards.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{double, is_clean};
use gpumem_core::ErrorKind;
use gpumem_host::HostOptions;
use gpumem_runtime::TransferOptions;
use host_double::{Script, Trouble};
use ndarray::{Array1, Array2, s};

fn numbers(len: usize) -> Array1<u32> {
    Array1::from_iter(0..len as u32)
}

#[test]
fn a_short_upload_takes_one_copy_through_one_block() {
    let (device, raw) = double(HostOptions::new());
    let mut array = device.device_array::<u32, _>(16 << 10).unwrap();
    let copies = || raw.host().counters().copies;
    for round in 0..3_u32 {
        let before = copies();
        let mut source = numbers(16 << 10) + round;
        array.copy_to_device(&source).unwrap();
        assert_eq!(copies(), before + 1);
        source.fill(u32::MAX);
        assert_eq!(array.copy_to_host().unwrap(), numbers(16 << 10) + round);
    }
    // Others than packed ones, long ones, and where it is switched off: through the pipeline.
    let wide = Array2::from_shape_fn((40, 60), |(i, j)| (i * 60 + j) as u32);
    for view in [wide.slice(s![.., ..;2]), wide.slice(s![..;-1, ..]), wide.t()] {
        assert_eq!(device.to_device(&view).unwrap().copy_to_host().unwrap(), view);
    }
    // In pieces, and the last one shorter than the others.
    let long = numbers((300 << 10) / 4 + 1);
    assert_eq!(device.to_device(&long).unwrap().copy_to_host().unwrap(), long);
    device.set_transfer_options(TransferOptions::new().single_block_bytes(0));
    array.copy_to_device(&numbers(16 << 10)).unwrap();
    assert_eq!(array.copy_to_host().unwrap(), numbers(16 << 10));
    drop(array);
    is_clean(&device, raw.host());
}

/// However slow the device is, the staged data is bounded: a caller with many copies in flight waits.
#[test]
fn uploads_in_a_row_take_few_blocks() {
    for (len, rounds) in [(1, 1000), (100 << 10, 60)] {
        let (device, raw) = double(HostOptions::new().adversarial(7));
        let mut array = device.device_array::<u32, _>(len).unwrap();
        for round in 0..rounds {
            array.copy_to_device(&(numbers(len) + round)).unwrap();
        }
        assert_eq!(array.copy_to_host().unwrap(), numbers(len) + (rounds - 1));
        let pinned = raw.host().counters().live_pinned_bytes;
        assert!(pinned <= 16 << 20, "{pinned} bytes for uploads of {len} elements");
        drop(array);
        is_clean(&device, raw.host());
    }
}

/// Ordered as any other use, whatever the schedule delays, and the caller's memory is the caller's again on return.
#[test]
fn no_schedule_tears_a_short_copy() {
    for seed in 0..24 {
        let host = HostOptions::new().adversarial(seed);
        let (device, raw) = double(host);
        let (one, two) = (device.stream().unwrap(), device.stream().unwrap());
        let mut array = one.to_device(&numbers(1000)).unwrap();
        for round in 0..4_u32 {
            let mut source = numbers(1000) + round;
            array.copy_to_device(&source).unwrap();
            source.fill(u32::MAX);
            drop(source);
            let copy = two.to_device(&array).unwrap();
            one.fill(&mut array, 5).unwrap();
            let mut host = Array1::zeros(1000);
            copy.copy_to_host_into(host.view_mut()).unwrap();
            assert_eq!(host, numbers(1000) + round, "seed {seed}");
            // A part, between elements that stay.
            let mut part = Array1::from_elem(1000, 9_u32);
            array.slice(s![10..20]).unwrap().copy_to_host_into(part.slice_mut(s![30..40])).unwrap();
            assert!(
                part.iter()
                    .enumerate()
                    .all(|(at, value)| *value == if (30..40).contains(&at) { 5 } else { 9 })
            );
            array.set(3, round).unwrap();
            assert_eq!((array.get(3).unwrap(), array.get(4).unwrap()), (round, 5), "seed {seed}");
        }
        drop((array, one, two));
        is_clean(&device, raw.host());
    }
}

/// No data of a failed copy arrives, and the next copy works.
#[test]
fn a_failure_is_returned_and_no_data_arrives() {
    for trouble in [Trouble::Refuse, Trouble::Lose] {
        let mut struck = 0;
        for at in 0..24 {
            let (device, raw) = double(HostOptions::new());
            let source = numbers(1000);
            let mut array = device.device_array::<u32, _>(source.len()).unwrap();
            let mut host = Array1::from_elem(source.len(), 9_u32);
            raw.script().begin(Some((at, trouble)));
            let up = array.copy_to_device(&source).map(drop);
            let down = array.copy_to_host_into(host.view_mut()).map(drop);
            struck += usize::from(raw.script().struck().is_some());
            for error in [&up, &down].into_iter().filter_map(|result| result.as_ref().err()) {
                match trouble {
                    Trouble::Refuse => assert_eq!(*error.kind(), Script::REFUSED),
                    Trouble::Lose => assert!(error.is_device_lost(), "{error}"),
                }
            }
            let expected = if up.is_ok() && down.is_ok() { numbers(1000) } else { host.clone() };
            assert!(host == expected && (down.is_ok() || host.iter().all(|value| *value == 9)), "call {at}");
            raw.script().begin(None);
            if trouble == Trouble::Refuse {
                array.copy_to_device(&source).unwrap();
                assert_eq!(array.copy_to_host().unwrap(), source, "call {at}");
            }
        }
        assert!(struck > 2, "{struck} calls of the driver");
    }
}

/// A wait inside a callback would wait for its own thread.
#[test]
fn a_callback_may_not_wait_for_a_short_copy() {
    let (device, _raw) = double(HostOptions::new());
    let stream = device.stream().unwrap();
    let array = stream.to_device(&numbers(10)).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let work = move |_: gpumem_core::Result<()>| {
        let mut array = array;
        let up = array.copy_to_device(&numbers(10)).map(drop);
        sender.send((up, array.copy_to_host().map(drop))).unwrap();
    };
    stream.add_callback(work).unwrap();
    let (up, down) = receiver.recv().unwrap();
    for result in [up, down] {
        assert!(matches!(result, Err(error) if *error.kind() == ErrorKind::BlockingInCallback));
    }
}
