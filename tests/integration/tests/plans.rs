//! The plan of a copy, as returned and printed, matches the copy.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{direct_double, double, packing_double};
use gpumem_host::HostOptions;
use gpumem_runtime::{ArraySpec, Route, TransferOptions};
use ndarray::{Array2, Array3, s};

#[test]
fn plans_are_printed_in_one_line() {
    let (device, _raw) = double(HostOptions::new());
    let cube = device.device_array::<u32, _>((4, 6, 8)).unwrap();
    let plan = |target: &gpumem_runtime::DeviceView<'_, u32, _, _>,
                source: &gpumem_runtime::DeviceView<'_, u32, ndarray::Ix3, _>| {
        target.copy_plan(source).unwrap().to_string()
    };
    let other = device.device_array::<u32, _>((4, 6, 8)).unwrap();
    assert_eq!(
        plan(&other.view(), &cube.view()),
        "1 copy of 192 × 4 B: run 768 B (the driver copies it in one call)"
    );
    // Both sides reversed: turned, and one run again.
    let backwards = s![..;-1, ..;-1, ..;-1];
    let turned = plan(&other.slice(backwards).unwrap(), &cube.slice(backwards).unwrap());
    assert_eq!(turned, "1 copy of 192 × 4 B: run 768 B (the driver copies it in one call)");
    // A corner: planes of rows.
    let corner = s![1..3, 2..5, 3..7];
    let text = plan(&other.slice(corner).unwrap(), &cube.slice(corner).unwrap());
    assert_eq!(
        text,
        "1 copy of 24 × 4 B: slices 2 × (192, 192), rows 3 × (32, 32), run 16 B (the driver copies it in one call)"
    );
    // One axis reversed on one side only: a call for each step, along the shortest way.
    let text = plan(&other.slice(s![.., .., ..]).unwrap(), &cube.slice(s![..;-1, .., ..]).unwrap());
    assert_eq!(
        text,
        "4 copies of 192 × 4 B: loop 4 × (-192, 192), run 192 B (no kernel of the device would be faster)"
    );
    let empty = plan(&other.slice(s![2..2, .., ..]).unwrap(), &cube.slice(s![2..2, .., ..]).unwrap());
    assert_eq!(empty, "nothing to copy");
    assert!(cube.copy_plan(&other.slice(s![1.., .., ..]).unwrap()).is_err(), "other shapes");
}

#[test]
fn copies_follow_their_plan() {
    let source = Array3::from_shape_fn((5, 6, 7), |(i, j, k)| (100 * i + 10 * j + k) as u32);
    let (device, raw) = double(HostOptions::new());
    let from = device.to_device(&source).unwrap();
    let views = [s![.., .., ..], s![..;2, 1..4, ..], s![..;-1, .., ..;3], s![1..2, ..;-2, 2..6]];
    for view in views {
        let from = from.slice(view).unwrap();
        let mut to = device.device_array::<u32, _>(from.raw_dim()).unwrap();
        let plan = to.copy_plan(&from).unwrap();
        let Route::DriverCalls(calls) = plan.route() else { unreachable!("{plan}") };
        let before = raw.host().counters().copies;
        to.copy_to_device(&from).unwrap();
        assert_eq!(raw.host().counters().copies - before, calls as u64, "{plan}");
        let loops: usize = plan.loops().iter().map(|axis| axis.len).product();
        let rows: usize = plan.rows_and_slices().iter().map(|axis| axis.len).product();
        assert_eq!((loops, loops * rows * plan.run_bytes()), (calls, plan.bytes()));
    }
}

#[test]
fn each_device_has_its_routes() {
    let matrix = Array2::<f32>::zeros((256, 256));
    let (gpu, _gpu) = double(HostOptions::new());
    let (packing, _packing) = packing_double(HostOptions::new());
    let (direct, _direct) = direct_double(HostOptions::new());
    let transposed = |array: &gpumem_runtime::DeviceArray<f32, ndarray::Ix2, _>| {
        array.copy_plan(&array.t()).unwrap().to_string()
    };
    let array = gpu.to_device(&matrix).unwrap();
    assert_eq!(
        transposed(&array),
        "256 copies of 65536 × 4 B: loop 256 × (1024, 4), rows 256 × (4, 1024), run 4 B (no kernel of the device would be faster)"
    );
    let array = packing.to_device(&matrix).unwrap();
    assert!(transposed(&array).starts_with("1 strided copy of 65536 × 4 B:"));
    // From memory of the caller.
    gpu.set_transfer_options(TransferOptions::new().threads(2).block_bytes(32 << 10).parallel_bytes(1));
    let array = gpu.to_device(&matrix).unwrap();
    let plan = array.copy_plan(&matrix).unwrap();
    assert_eq!(plan.route(), Route::Pipeline { threads: 2, piece_bytes: 32 << 10 });
    assert_eq!(
        plan.to_string(),
        "blocks of 32768 B by 2 threads of 65536 × 4 B: run 262144 B (the device reaches page-locked memory only)"
    );
    let array = direct.to_device(&matrix).unwrap();
    assert_eq!(array.copy_plan(&matrix).unwrap().route(), Route::CallingThread);
    assert_eq!(array.copy_plan(&matrix.t()).unwrap().route(), Route::CallingThread);
}

/// Kernels read page-locked memory where the link would carry single elements otherwise, or where that takes many calls.
#[test]
fn page_locked_memory_is_copied_by_kernels_where_that_is_faster() {
    let (device, raw) = packing_double(HostOptions::new());
    let (other, _other) = double(HostOptions::new());
    let stream = device.stream().unwrap();
    let way = |rows: usize, columns: usize, strides: [isize; 2]| {
        let spec = || ArraySpec::new((rows, columns)).strides(&strides);
        let mut pinned = device.pinned_array::<f32, _>(spec()).unwrap();
        let mut array = device.device_array::<f32, _>((rows, columns)).unwrap();
        let plan = array.copy_plan(&pinned).unwrap();
        let before = raw.host().counters();
        stream.copy_to_device(&mut array, &pinned).unwrap();
        let after = raw.host().counters();
        let walked = after.strided_copies - before.strided_copies;
        assert_eq!(walked == 1, plan.route() == Route::Kernel, "{plan}");
        // Downwards, and along an axis of length one.
        stream.copy_to_host_into(&array, &mut pinned).unwrap();
        let down = raw.host().counters().strided_copies - after.strided_copies;
        let there = other.device_array::<f32, _>((rows, columns)).unwrap();
        let pinned = other.pinned_array::<f32, _>(spec()).unwrap();
        assert_ne!(there.copy_plan(&pinned).unwrap().route(), Route::Kernel);
        (plan.route(), down)
    };
    // Single elements: up only. Runs of a line: by the driver.
    assert_eq!(way(256, 256, [2048, 8]), (Route::Kernel, 0));
    assert_eq!(way(4096, 16, [128, 4]), (Route::DriverCalls(1), 0));
    assert_eq!(way(16, 16, [128, 8]), (Route::DriverCalls(1), 0), "a few");
    // Many calls either way, or calls that are long.
    assert_eq!(way(300, 200, [4, 1200]), (Route::Kernel, 1));
    assert_eq!(way(32, 1024, [-4096, 4]), (Route::Kernel, 1));
    assert_eq!(way(4, 64 << 10, [-(256 << 10), 4]), (Route::DriverCalls(4), 0));
    stream.synchronize().unwrap();
}
