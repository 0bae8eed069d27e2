//! Declared kernels on the host: arguments, ordering, refusals, faults.
#![allow(clippy::unwrap_used)] // helpers of tests

use gpumem_core::{BarrierScope::Local, Error, ErrorKind, LaunchConfig, LayoutError};
use gpumem_host::{Host, HostOptions};
use gpumem_kernel::{
    Constant, In, InOut, KernelDef, Out, Slice, SliceMut, Value, View, ViewMut, WorkItem, WorkItemIds,
    config_for_items,
};
use gpumem_runtime::Device;
use ndarray::{Array1, Array2, s};

fn devices() -> Vec<Device<Host>> {
    let options = [HostOptions::new(), HostOptions::new().wave_size(64), HostOptions::new().adversarial(7)];
    options.iter().map(|options| Device::from_raw(Host::open_with(options).unwrap())).collect()
}

type Saxpy = (Slice<f32>, SliceMut<f32>, f32);

fn saxpy() -> KernelDef<Saxpy> {
    // SAFETY: each work-item uses its own elements.
    unsafe { KernelDef::<Saxpy>::new("saxpy") }.host_loop(|ids: &WorkItemIds<'_>, (x, y, a): &Saxpy| {
        let i = ids.global_id(0);
        if i < y.len() {
            y.set(i, a * x.get(i) + y.get(i));
        }
    })
}

#[test]
fn launches_are_ordered_as_copies_are() {
    for device in devices() {
        let kernel = saxpy().load(&device).unwrap();
        let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
        let host = Array1::from_iter((0..1000).map(|i| i as f32));
        let x = first.to_device(&host).unwrap();
        let mut y = second.device_array::<f32, _>(1000).unwrap();
        for stream in [&first, &second, &first] {
            kernel
                .launch(stream, &config_for_items([1000, 1, 1], [256, 1, 1]), (&x, &mut y, 2.0f32))
                .unwrap();
        }
        // The kernel and its arrays may go while it runs.
        let result = second.copy_to_host(&y).unwrap();
        drop((kernel, x, y));
        assert_eq!(result.view().unwrap(), (host * 6.0).view());
        assert!(device.take_errors().is_empty());
    }
}

type Transpose = (View<f32, 2>, ViewMut<f32, 2>, Constant<f32, 2>, Value<[u16; 3]>);

#[test]
fn views_are_passed_with_their_strides() {
    for device in devices() {
        // SAFETY: each work-item writes its own element, and reads the shared tile after a barrier.
        let declaration = unsafe { KernelDef::<Transpose>::new("transpose") }.race_checks(true).host_body(
            async |item: WorkItem<'_>, (input, output, scale, extra): &Transpose| {
                let tile = item.shared::<f32, 2>([8, 9]);
                let (x, y) = (item.local_id(0), item.local_id(1));
                let (column, row) = (item.global_id(0), item.global_id(1));
                if row < input.extent(0) && column < input.extent(1) {
                    tile.set([y, x], input.get([row, column]));
                }
                item.barrier(Local).await;
                let (row, column) = (item.group_id(0) * 8 + y, item.group_id(1) * 8 + x);
                if row < output.extent(0) && column < output.extent(1) {
                    output.set([row, column], tile.get([x, y]) * scale.get(1) + f32::from(extra.0[2]));
                }
            },
        );
        let kernel = declaration.shared_bytes(8 * 9 * 4).load(&device).unwrap();
        let stream = device.stream().unwrap();
        for (rows, columns) in [(1, 1), (8, 8), (13, 21), (40, 7)] {
            let host = Array2::from_shape_fn((rows * 2, columns), |(y, x)| (y * 100 + x) as f32);
            let whole = device.to_device(&host).unwrap();
            let input = whole.slice(s![..;-2, ..]).unwrap();
            let mut output = device.device_array::<f32, _>((columns, rows)).unwrap();
            let dims = config_for_items([columns, rows, 1], [8, 8, 1]);
            let arguments = (&input, &mut output, Constant([0.0, 2.0]), Value([0u16, 1, 5]));
            kernel.launch(&stream, &dims, arguments).unwrap();
            let expected = host.slice(s![..;-2, ..]).t().mapv(|value| value * 2.0 + 5.0);
            assert_eq!(output.copy_to_host().unwrap(), expected);
        }
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused_before_the_launch() {
    let device = devices().remove(0);
    let kernel = saxpy().shared_bytes(1024).load(&device).unwrap();
    let stream = device.stream().unwrap();
    let x = device.device_array::<f32, _>((4, 6)).unwrap();
    let mut y = device.device_array::<f32, _>(24).unwrap();
    let good = LaunchConfig::linear(1, 32);
    let before = stream.submission_index();
    let has = device.capabilities();
    let sizes = |groups, group_size, shared_bytes| LaunchConfig { groups, group_size, shared_bytes };
    for wrong in [
        sizes([0, 1, 1], [1, 1, 1], 0),
        sizes([1, 1, 1], [1, 0, 1], 0),
        sizes([1, has.max_grid_dims[1] + 1, 1], [1, 1, 1], 0),
        sizes([1, 1, 1], [has.max_group_dims[0] + 1, 1, 1], 0),
        sizes([1, 1, 1], [1024, 2, 1], 0),
        sizes([1, 1, 1], [1, 1, 1], has.shared_memory as u32 - 1023),
    ] {
        let error = kernel.launch(&stream, &wrong, (&x, &mut y, 1f32)).unwrap_err();
        let is_zero = wrong.groups.contains(&0) || wrong.group_size.contains(&0);
        let is_right = match error.kind() {
            ErrorKind::InvalidArgument { .. } => is_zero,
            ErrorKind::LaunchTooLarge { .. } => !is_zero,
            _ => false,
        };
        assert!(is_right, "{wrong:?}: {error}");
    }
    for items in [usize::MAX, 1 << 44] {
        let error = kernel.launch(&stream, &config_for_items(items, 256), (&x, &mut y, 1f32)).unwrap_err();
        let ErrorKind::LaunchTooLarge { what: "groups along x", requested, most } = *error.kind() else {
            panic!("{error}")
        };
        assert_eq!((requested, most), (u64::from(u32::MAX), u64::from(has.max_grid_dims[0])));
    }
    let strided = x.slice(s![.., ..;2]).unwrap();
    let error = kernel.launch(&stream, &good, (&strided, &mut y, 1f32)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Layout(LayoutError::NeedsCopy { .. })), "{error}");
    let other = devices().remove(0);
    let far = other.device_array::<f32, _>(24).unwrap();
    let error = kernel.launch(&stream, &good, (&far, &mut y, 1f32)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WrongDevice { what: "array", .. }), "{error}");
    let error = kernel.launch(&other.stream().unwrap(), &good, (&x, &mut y, 1f32)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WrongDevice { what: "kernel", .. }), "{error}");
    // SAFETY: it does nothing.
    let of_rank = unsafe { KernelDef::<(View<f32, 2>,)>::new("of_rank") }.host_loop(|_, _| {});
    let of_rank = of_rank.load(&device).unwrap();
    let error = of_rank.launch(&stream, &good, (&y,)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Layout(LayoutError::RankMismatch { found: 1, expected: 2 })));
    assert_eq!(stream.submission_index(), before, "nothing was launched");
    kernel.launch(&stream, &good, (&x, &mut y, 1f32)).unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn empty_arrays_are_ordinary_arguments() {
    for device in devices() {
        let kernel = saxpy().load(&device).unwrap();
        let stream = device.stream().unwrap();
        let x = device.device_array::<f32, _>((0, 3)).unwrap();
        let mut y = device.device_array::<f32, _>(0).unwrap();
        kernel.launch(&stream, &config_for_items([0, 1, 1], [64, 1, 1]), (&x, &mut y, 1f32)).unwrap();
        stream.synchronize().unwrap();
    }
}

fn fault(error: Error) -> String {
    assert!(matches!(error.kind(), ErrorKind::AsynchronousFault { .. }), "{error}");
    error.to_string()
}

#[test]
fn faults_of_a_body_surface_at_the_next_wait() {
    for device in devices() {
        let stream = device.stream().unwrap();
        let mut y = device.device_array::<f32, _>(24).unwrap();
        // SAFETY: the host backend reports its faults.
        let past = unsafe { KernelDef::<(SliceMut<f32>,)>::new("past") }
            .host_loop(|ids: &WorkItemIds<'_>, (y,): &(SliceMut<f32>,)| y.set(ids.global_id(0), 1.0));
        past.load(&device).unwrap().launch(&stream, &LaunchConfig::linear(1, 32), (&mut y,)).unwrap();
        let told = fault(stream.synchronize().unwrap_err());
        assert!(
            told.contains("work-item (24, 0, 0) of group (0, 0, 0)") && told.contains("kernels.rs"),
            "{told}"
        );

        // SAFETY: as above; it is checked, so that it runs on one thread.
        let racy = unsafe { KernelDef::<(SliceMut<f32>,)>::new("racy") }.race_checks(true).host_body(
            async |item: WorkItem<'_>, (y,): &(SliceMut<f32>,)| {
                let tile = item.shared::<f32, 1>([24]);
                tile.set(item.local_id(0), 1.0);
                y.set(item.local_id(0), tile.get(item.local_id(0) / 2));
            },
        );
        let stream = device.stream().unwrap();
        y.fill(0.0).unwrap();
        racy.load(&device).unwrap().launch(&stream, &LaunchConfig::linear(1, 24), (&mut y,)).unwrap();
        let told = fault(stream.synchronize().unwrap_err());
        assert!(told.contains("races in shared memory") && told.contains("work-item (1, 0, 0)"), "{told}");
    }
}

#[test]
fn a_kernel_without_a_body_for_the_device_is_unsupported() {
    let device = devices().remove(0);
    // SAFETY: it never runs.
    let declaration = unsafe { KernelDef::<()>::new("nothing") }.source("GPUMEM_KERNEL nothing() {}");
    let error = declaration.load(&device).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
}

#[test]
fn a_name_that_is_no_identifier_is_refused() {
    let device = Device::<Host>::open("host").unwrap();
    for name in ["", "1k", "k()", "k(slice<f32> x) { } GPUMEM_KERNEL k2", "k\n#define f32 f64"] {
        // SAFETY: it does nothing.
        let kernel = unsafe { KernelDef::<(f32,)>::new(name) }.host_loop(|_: &WorkItemIds<'_>, _| {});
        let error = kernel.load(&device).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{name:?}: {error}");
    }
}

#[test]
fn a_failed_kernel_copies_no_results_back() {
    for device in devices() {
        // SAFETY: an index past the end is refused by the body's own checks.
        let declaration = unsafe { KernelDef::<Saxpy>::new("past_the_end") };
        let kernel = declaration
            .host_loop(|ids: &WorkItemIds<'_>, (x, y, _): &Saxpy| y.set(ids.global_id(0) + 60, x.get(0)))
            .load(&device)
            .unwrap();
        let stream = device.stream().unwrap();
        let x = Array1::from_elem(64, 1f32);
        let (mut out, mut both) = (Array1::from_elem(64, 5f32), Array1::from_elem(64, 7f32));
        let dims = config_for_items([64, 1, 1], [64, 1, 1]);
        let is_fault = |error: &Error| matches!(error.kind(), ErrorKind::AsynchronousFault { .. });
        let error = kernel.launch(&stream, &dims, (In(&x), Out(&mut out), 1f32)).unwrap_err();
        assert!(is_fault(&error) && error.to_string().contains("(4, 0, 0)"), "{error}");
        let error = stream
            .scope(|scope| kernel.launch_in(scope, &dims, (In(&x), InOut(&mut both), 1f32)))
            .unwrap_err();
        assert!(is_fault(&error), "{error}");
        assert_eq!((out, both), (Array1::from_elem(64, 5f32), Array1::from_elem(64, 7f32)));
        // The stream goes on.
        let again = saxpy().load(&device).unwrap();
        let mut y = vec![1f32; 64];
        again.launch(&stream, &dims, (In(&x), InOut(&mut y), 3f32)).unwrap();
        assert_eq!(y, [4.0; 64]);
        let told = device.synchronize().unwrap_err();
        assert!(is_fault(&told) && told.to_string().matches("(4, 0, 0)").count() == 2, "{told}");
        device.synchronize().unwrap();
        device.flush().unwrap();
        let report = device.memory_report().unwrap();
        let allocated =
            report.kinds.iter().find(|kind| kind.kind == "device").unwrap().resources[0].statistics.blocks;
        assert_eq!(allocated, 0, "the copies of the host's arrays were freed: {report:?}");
        device.take_errors();
    }
}

#[test]
fn a_launch_that_waits_is_refused_in_a_callback() {
    let device = devices().remove(0);
    let (kernel, stream) = (saxpy().load(&device).unwrap(), device.stream().unwrap());
    let (send, receive) = std::sync::mpsc::channel();
    let inner = stream.clone();
    let callback = move |_| {
        let mut y = [1f32; 8];
        let launched =
            kernel.launch(&inner, &LaunchConfig::linear(1, 8), (In(&[2f32; 8]), Out(&mut y), 1f32));
        let _ = send.send(launched);
    };
    stream.add_callback(callback).unwrap();
    let error = receive.recv().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BlockingInCallback), "{error}");
}
