//! A second handle of an array beside the array itself, in every kind of work that takes two arrays. What one piece of work
//! would write by the one and use by the other is an error; nothing is enqueued.

use super::device;
use gpumem::{ErrorKind, Result, kernel::*};
use gpumem_host::Host;
use gpumem_integration::slow_copy;
use gpumem_runtime::{Device, DeviceArray, ImportedArray};
use ndarray::{Array2, Ix1, s};

const LEN: usize = if cfg!(miri) { 1 << 6 } else { 1 << 10 };

#[track_caller]
fn refused<T: std::fmt::Debug>(what: &str, result: Result<T>) {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::Overlap { .. }) => {}
        other => panic!("{what}: {other:?}"),
    }
}

type Handles = (DeviceArray<u32, Ix1, Host>, ImportedArray<u32, Ix1, Host>);

fn elements() -> Vec<u32> {
    (0..LEN as u32).collect()
}

/// An array and a second handle of it, made in each of the ways.
fn handles(device: &Device<Host>) -> [Handles; 3] {
    let stream = device.stream().unwrap();
    let array = || device.to_device(&elements()).unwrap();
    let (one, two, three) = (array(), array(), array());
    let cuda = device.as_cuda_array(one.lend(&stream).unwrap()).unwrap();
    let dlpack = device.from_dlpack(two.lend_to_host().unwrap().into_dlpack().unwrap(), None).unwrap();
    // Once more, from the second one.
    let second: ImportedArray<u32, Ix1, Host> = device.as_cuda_array(three.lend(&stream).unwrap()).unwrap();
    let third = device.as_cuda_array(second.lend(&stream).unwrap()).unwrap();
    [(one, cuda), (two, dlpack), (three, third)]
}

/// Devices of one backend in one process have one address space: nothing else would notice.
#[test]
fn a_kernel_takes_no_array_of_another_device() {
    let (own, other) = (device(), device());
    let stream = own.stream().unwrap();
    let kernel = slow_copy().load(&own).unwrap();
    let (source, mut foreign) = (own.to_device(&elements()).unwrap(), other.to_device(&elements()).unwrap());
    let launched =
        kernel.launch(&stream, &config_for_items([LEN, 1, 1], [64, 1, 1]), (&source, &mut foreign));
    let kind = launched.as_ref().map_err(|error| error.kind());
    assert!(matches!(kind, Err(ErrorKind::WrongDevice { .. })), "{kind:?}");
}

#[test]
fn no_work_writes_an_array_that_it_uses_by_a_second_handle() {
    let device = device();
    let stream = device.stream().unwrap();
    let dims = config_for_items([LEN, 1, 1], [64, 1, 1]);
    let kernel = slow_copy().load(&device).unwrap();
    for (mut array, second) in handles(&device) {
        let before = stream.submission_index();
        // A launch, in each of its forms: also with nothing but host arrays beside it.
        refused("launch", kernel.launch(&stream, &dims, (&second, &mut array)));
        refused("launch of what is on the device", kernel.launch(&stream, &dims, (In(&second), &mut array)));
        refused(
            "launch of what is written back",
            kernel.launch(&stream, &dims, (&second, InOut(&mut array))),
        );
        // Copies: the whole, shifted, strided and backwards.
        refused("copy", array.copy_to_device(&second).map(drop));
        refused("assignment", array.assign(&second));
        refused("copy of a stream", stream.copy_to_device(&mut array, &second));
        refused("broadcast", array.assign(&second.slice(s![3..4]).unwrap()));
        let odd = second.slice(s![1..;2]).unwrap();
        refused("strided copy", stream.copy_to_device(&mut array.slice_mut(s![..LEN / 2]).unwrap(), &odd));
        let back = second.slice(s![..;-1]).unwrap();
        refused("copy backwards", stream.copy_to_device(&mut array, &back));
        refused(
            "copy with progress",
            array.copy_to_device_with_progress(&second, |_| std::ops::ControlFlow::Continue(())).map(drop),
        );
        assert_eq!(stream.submission_index(), before);
        refused(
            "launch in a scope",
            stream.scope(|scope| kernel.launch_in(scope, &dims, (&second, &mut array))).unwrap(),
        );
        assert_eq!(array.copy_to_host().unwrap().to_vec(), elements());
        assert_eq!(second.copy_to_host().unwrap().to_vec(), elements());
    }
    assert!(device.take_errors().is_empty());
}

#[test]
fn work_on_elements_that_lie_apart_is_done_whichever_handle_names_them() {
    let device = device();
    let stream = device.stream().unwrap();
    let host = Array2::from_shape_fn((6, 8), |(row, column)| (10 * row + column) as u32);
    let kernel = slow_copy().load(&device).unwrap();
    let dims = config_for_items([LEN / 2, 1, 1], [32, 1, 1]);
    for (mut array, second) in handles(&device) {
        let low = second.slice(s![..LEN / 2]).unwrap();
        kernel.launch(&stream, &dims, (&low, &mut array.slice_mut(s![LEN / 2..]).unwrap())).unwrap();
        let copied = array.copy_to_host().unwrap();
        assert_eq!(copied.slice(s![..LEN / 2]), copied.slice(s![LEN / 2..]));
    }
    // Elements that take turns: columns of a matrix, before and after there is a second handle.
    let mut array = device.to_device(&host).unwrap();
    let copy = |array: &mut DeviceArray<u32, _, Host>| {
        let (mut left, right) = array.split_at_mut(1, 4).unwrap();
        left.copy_to_device(&right.slice(s![.., ..;-1]).unwrap()).unwrap();
        array.copy_to_host().unwrap()
    };
    let once = copy(&mut array);
    let second: ImportedArray<u32, ndarray::Ix2, Host> =
        device.as_cuda_array(array.lend(&stream).unwrap()).unwrap();
    assert_eq!(copy(&mut array), once);
    let mut left = array.slice_mut(s![.., ..4]).unwrap();
    left.copy_to_device(&second.slice(s![.., 4..]).unwrap()).unwrap();
    assert_eq!(left.copy_to_host().unwrap(), host.slice(s![.., 4..]));
}
