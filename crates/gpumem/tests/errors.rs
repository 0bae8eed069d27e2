//! Error messages: the operation, the device, and for a launch the kernel, the argument and the numbers.
#![cfg(feature = "host")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use gpumem::{
    Device, ErrorKind, LaunchConfig,
    kernel::{ConstantArray, In, Kernel, KernelDef, Out, Slice, SliceMut, View, WorkItemIds},
    ndarray::Array2,
    s,
};
use std::process::Command;

type Scale = (Slice<f32>, SliceMut<f32>);

const SOURCE: &str =
    "GPUMEM_KERNEL scale(gpumem::slice<const float> x, gpumem::slice<float> y) { y[0] = x[0]; }";

fn declaration() -> KernelDef<Scale> {
    // SAFETY: each work-item writes its own element.
    unsafe { KernelDef::<Scale>::new("scale") }.source(SOURCE)
}

fn scale(device: &Device) -> Kernel<Scale, gpumem::AnyBackend> {
    let body = |ids: &WorkItemIds<'_>, (x, y): &Scale| y.set(ids.global_id(0), x.get(ids.global_id(0)));
    declaration().host_loop(body).load(device).unwrap()
}

#[track_caller]
fn says<T>(result: gpumem::Result<T>, message: &str) {
    match result {
        Ok(_) => panic!("it succeeded, and should have said: {message}"),
        Err(error) => assert_eq!(error.to_string(), message),
    }
}

#[test]
fn errors_of_arrays_name_the_device() {
    let device = Device::open("host").unwrap();
    let mut array = device.to_device(&Array2::<f32>::zeros((3, 4))).unwrap();
    let error = array.copy_to_device(&Array2::<f32>::zeros((4, 3))).map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        "copy_to_device on host:0: the shapes differ: [4, 3] where [3, 4] is needed"
    );
    assert_eq!((error.backend(), error.device().as_deref()), ("host", Some("host:0")));
    says(array.slice(s![7.., ..]).map(drop), "slice on host:0: index 7 is outside axis 0 of length 3");
    says(array.get([0, 9]), "get on host:0: index 9 is outside axis 1 of length 4");
    says(
        array.slice(s![.., ..3]).unwrap().reinterpret::<u64>().map(drop),
        "reinterpret on host:0: the last axis is 12 bytes long, which is no multiple of elements of 8 bytes",
    );
    says(
        array.reinterpret::<[u8; 3]>().map(drop),
        "reinterpret on host:0: elements of 4 bytes are no whole number of elements of 3 bytes",
    );
}

#[test]
fn errors_of_launches_name_the_kernel_the_argument_and_the_numbers() {
    let device = Device::open("host").unwrap();
    let (kernel, stream, dims) = (scale(&device), device.stream().unwrap(), LaunchConfig::linear(1, 1));
    let x = device.to_device(&[1f32, 2.0]).unwrap();
    let square = device.to_device(&Array2::<f32>::zeros((4, 4))).unwrap();
    let mut y = device.device_array::<f32, _>(2).unwrap();
    says(
        kernel.launch(&stream, &dims, (&square.slice(s![.., ..2]).unwrap(), &mut y)),
        "launch of scale on host:0: argument #1: shape [4, 2] with strides [16, 4] cannot be viewed that way; it needs a \
         copy (the kernel takes a packed array here: give it a copy, or declare a `View`)",
    );
    let has = device.capabilities();
    let most = has.max_group_size;
    let large = LaunchConfig { group_size: [most, 2, 1], ..dims };
    says(
        kernel.launch(&stream, &large, (&x, &mut y)),
        &format!("launch of scale on host:0: work-items of a group: {} asked for, {most} at most", 2 * most),
    );
    let large = LaunchConfig { shared_bytes: u32::MAX, ..dims };
    says(
        kernel.launch(&stream, &large, (&x, &mut y)),
        &format!(
            "launch of scale on host:0: bytes of shared memory of a group: {} asked for, {} at most",
            u32::MAX,
            has.shared_memory
        ),
    );
    let error = kernel.launch(&stream, &LaunchConfig { groups: [0; 3], ..dims }, (&x, &mut y)).unwrap_err();
    assert_eq!(error.kernel(), Some("scale"));
    let error = kernel.launch(&stream, &dims, (&square, &mut y)).err();
    assert!(error.is_none(), "a packed array of any rank is a slice");
}

#[test]
fn errors_name_the_rank_and_the_constants_of_an_argument() {
    type Look = (u32, View<f32, 1>, ConstantArray<f32, 1>, SliceMut<f32>);
    let device = Device::open("host").unwrap();
    // SAFETY: it does nothing.
    let look = unsafe { KernelDef::<Look>::new("look") }.host_loop(|_: &WorkItemIds<'_>, _: &Look| {});
    let (look, stream) = (look.load(&device).unwrap(), device.stream().unwrap());
    let dims = LaunchConfig::linear(1, 1);
    let square = device.device_array::<f32, _>((2, 3)).unwrap();
    let row = device.device_array::<f32, _>(3).unwrap();
    let mut y = [0f32; 2];
    says(
        look.launch(&stream, &dims, (1u32, &square, In(&[1f32]), Out(&mut y))),
        "launch of look on host:0: argument #2: 2 axes given where 1 are needed",
    );
    says(
        look.launch(&stream, &dims, (1u32, &row, In(&Array2::<f32>::zeros((1, 1))), Out(&mut y))),
        "launch of look on host:0: argument #3: 2 axes given where 1 are needed",
    );
    let error = look.launch(&stream, &dims, (1u32, &row, In(&vec![0f32; 1 << 20]), Out(&mut y))).unwrap_err();
    assert_eq!(error.argument(), Some(3));
    let message = error.to_string();
    let start =
        "launch of look on host:0: argument #3: out of memory: 4194304 bytes of constant memory requested, ";
    assert!(message.starts_with(start), "{message}");
}

/// Two host devices need a process of their own.
#[test]
fn errors_name_the_position_of_an_array_of_another_device() {
    const CHILD: &str = "GPUMEM_TEST_SUBPROCESS";
    if std::env::var_os(CHILD).is_none() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "errors_name_the_position_of_an_array_of_another_device"]);
        let output = child.env(CHILD, "1").env("GPUMEM_HOST_DEVICES", "2").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let (first, second) = (Device::open("host:0").unwrap(), Device::open("host:1").unwrap());
    let (kernel, stream, dims) = (scale(&first), first.stream().unwrap(), LaunchConfig::linear(1, 1));
    let x = first.to_device(&[1f32]).unwrap();
    let mut far = second.device_array::<f32, _>(1).unwrap();
    says(
        kernel.launch(&stream, &dims, (&x, &mut far)),
        "launch of scale on host:0: argument #2: the array belongs to host:1, and host:0 was expected",
    );
    let mut near = first.device_array::<f32, _>(1).unwrap();
    says(
        kernel.launch(&second.stream().unwrap(), &dims, (&x, &mut near)),
        "launch of scale on host:1: the kernel belongs to host:0, and host:1 was expected",
    );
    let names: Vec<_> = Device::list()
        .unwrap()
        .iter()
        .filter(|info| info.backend == "host")
        .map(|info| info.name.clone())
        .collect();
    assert_ne!(names[0], names[1]);
    assert_eq!(Device::select(&Device::list().unwrap().pop().unwrap()).unwrap().name(), "host:1");
}

#[test]
fn errors_of_loading_name_the_kernel_and_the_reason() {
    let device = Device::open("host").unwrap();
    says(
        declaration().load(&device).map(drop),
        "load of scale on host:0: not supported here: a kernel without a body for the host",
    );
    says(
        declaration().compile(&device),
        "compile of scale on host:0: not supported here: compiling for the host, whose kernels are bodies in Rust",
    );
}

#[test]
fn errors_of_opening_give_the_reason() {
    says(Device::open("gpu").map(drop), "open: there is no backend \"gpu\": the names are cuda, roc, host");
    if !cfg!(feature = "roc") {
        let error = Device::open("roc:0").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BackendNotEnabled { .. }));
        assert_eq!(error.hint(), Some("enable the feature `roc` of gpumem"));
    }
}

#[test]
fn out_of_memory_errors_show_only_known_numbers() {
    let device = Device::open("host").unwrap();
    for error in [
        device.pinned_array::<u8, _>(usize::MAX / 4).map(drop).unwrap_err(),
        device.device_array::<u8, _>(usize::MAX / 4).map(drop).unwrap_err(),
    ] {
        let message = error.to_string();
        assert!(error.is_out_of_memory() && message.contains(" on host:0: out of memory: "), "{message}");
        assert!(!message.contains("0 of 0 free"), "{message}");
    }
}

#[test]
fn errors_of_waits_in_callbacks_name_the_device() {
    let device = Device::open("host").unwrap();
    let (stream, (send, receive)) = (device.stream().unwrap(), std::sync::mpsc::channel());
    let again = device.clone();
    stream.add_callback(move |_| send.send(again.synchronize()).unwrap()).unwrap();
    says(
        receive.recv().unwrap(),
        "synchronize on host:0: a callback or a kernel's body may not wait for a device",
    );
}

#[test]
fn the_end_of_main_and_a_report_print_the_message_once() {
    let device = Device::open("host").unwrap();
    let array = device.device_array::<f32, _>(3).unwrap();
    let error = array.get(9).unwrap_err();
    let message = "get on host:0: index 9 is outside axis 0 of length 3";
    assert_eq!(format!("{error:?}"), message);
    let boxed: Box<dyn std::error::Error> = error.into();
    assert_eq!(boxed.to_string(), message);
    assert!(boxed.source().is_none());
}
