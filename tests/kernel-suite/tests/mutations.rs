//! The kernels that ship with one mistake each in the host's body: the host finds it, and names the work-item.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use gpumem_core::{BarrierScope::Local, ErrorKind};
use gpumem_host::{Host, HostOptions};
use gpumem_kernel::{Change, KernelDef, Parameters, WorkItem, WorkItemIds};
use gpumem_kernel_suite::{
    Convolution, Histogram, Matmul, Reduce, Saxpy, Scan, ShippedKernel, Stencil, Transpose, convolution,
    histogram, matmul, reduce, saxpy, scan, stencil, transpose,
};
use gpumem_runtime::Device;

/// Runs the declaration in check mode on the host, and returns the first fault of any of the kernel's problems.
fn told<K: ShippedKernel>(declaration: KernelDef<K::Parameters>) -> String {
    told_by::<K>(declaration, 32)
}

fn told_by<K: ShippedKernel>(declaration: KernelDef<K::Parameters>, wave_size: u32) -> String {
    let device = Device::<Host>::from_raw(Host::open_with(&HostOptions::new().wave_size(wave_size)).unwrap());
    let kernel = declaration.race_checks(true).load(&device).unwrap();
    for problem in K::problems() {
        let stream = device.stream().unwrap();
        // An answer of no elements waits for nothing.
        if let Err(error) = K::run(&kernel, &stream, &problem).and_then(|_| stream.synchronize()) {
            // The fault of the stream, or of the memory that the kernel was to write.
            let is_fault =
                matches!(error.kind(), ErrorKind::AsynchronousFault { .. } | ErrorKind::Poisoned { .. });
            assert!(is_fault, "{error}");
            return error.to_string();
        }
    }
    "nothing".to_owned()
}

/// The declaration, for another body.
fn unsealed<P: Parameters>(declaration: KernelDef<P>) -> KernelDef<P> {
    // SAFETY: the bodies of this file run in check mode alone, which finds their races.
    unsafe { declaration.unsealed() }
}

#[track_caller]
fn has(found: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| found.contains(part)), "{found}");
}

#[test]
fn shipped_kernels_have_no_faults() {
    assert_eq!(told::<Transpose>(transpose::transpose()), "nothing");
    assert_eq!(told_by::<Reduce>(reduce::reduce(), 64), "nothing");
}

#[test]
fn a_transpose_without_its_barrier_is_found() {
    let planted = unsealed(transpose::transpose()).host_body(
        async |item: WorkItem<'_>, (input, output): &transpose::Parameters| {
            let tile = item.shared::<f32, 2>([16, 17]);
            let (x, y) = (item.local_id(0), item.local_id(1));
            let (row, column) = (item.global_id(1), item.global_id(0));
            if row < input.extent(0) && column < input.extent(1) {
                tile.set([y, x], input.get([row, column]));
            }
            // Here it was.
            let (row, column) = (item.group_id(0) * 16 + y, item.group_id(1) * 16 + x);
            if row < output.extent(0) && column < output.extent(1) {
                output.set([row, column], tile.get([x, y]));
            }
        },
    );
    // Work-items run in turn until they wait: the second one reads an element that has not been written yet.
    has(
        &told::<Transpose>(planted),
        &["work-item (1, 0, 0) of group (0, 0, 0)", "shared memory that was never written", "mutations.rs"],
    );
}

#[test]
fn a_product_that_overwrites_its_tiles_too_early_is_found() {
    let planted =
        unsealed(matmul::matmul()).host_body(async |item: WorkItem<'_>, (a, b, c): &matmul::Parameters| {
            let (left, right) = (item.shared::<f32, 2>([16, 16]), item.shared::<f32, 2>([16, 16]));
            let (x, y) = (item.local_id(0), item.local_id(1));
            let (row, column, depth) = (item.global_id(1), item.global_id(0), a.extent(1));
            let mut sum = 0.0;
            for start in (0..depth).step_by(16) {
                let is_left = row < a.extent(0) && start + x < depth;
                left.set([y, x], if is_left { a.get([row, start + x]) } else { 0.0 });
                let is_right = start + y < depth && column < b.extent(1);
                right.set([y, x], if is_right { b.get([start + y, column]) } else { 0.0 });
                item.barrier(Local).await;
                for k in 0..16 {
                    sum += left.get([y, k]) * right.get([k, x]);
                }
                // Here was the second one.
            }
            if row < c.extent(0) && column < c.extent(1) {
                c.set([row, column], sum);
            }
        });
    // The first work-item of a row starts the next tile where the others have yet to read this one, or have just read it.
    let told = told::<Matmul>(planted);
    has(&told, &["races in shared memory", "work-item (0, 0, 0)", "work-item (1, 0, 0)", "written", "read"]);
}

#[test]
fn a_tree_that_leaves_its_wave_too_early_is_found() {
    let planted = || {
        unsealed(reduce::reduce()).host_body(
            async |item: WorkItem<'_>, (x, by_tree, _): &reduce::Parameters| {
                let tree = item.shared::<f32, 1>([256]);
                let (i, local) = (item.global_id(0), item.local_id(0));
                tree.set(local, if i < x.len() { x.get(i) } else { 0.0 });
                item.barrier(Local).await;
                let mut step = 128;
                while step > 0 {
                    if local < step {
                        tree.set(local, tree.get(local) + tree.get(local + step));
                    }
                    // Right for waves of 64, and wrong for those of 32.
                    if step > 64 {
                        item.barrier(Local).await;
                    } else {
                        item.wavebarrier().await;
                    }
                    step /= 2;
                }
                if local == 0 {
                    by_tree.set(item.group_id(0), tree.get(0));
                }
            },
        )
    };
    has(
        &told_by::<Reduce>(planted(), 32),
        &["races in shared memory", "work-item (0, 0, 0)", "work-item (32, 0, 0)", "group (0, 0, 0)"],
    );
    assert_eq!(told_by::<Reduce>(planted(), 64), "nothing");
}

#[test]
fn a_scan_that_reads_sums_too_early_is_found() {
    let planted =
        unsealed(scan::scan()).host_body(async |item: WorkItem<'_>, (x, _, _, out): &scan::Parameters| {
            let waves = item.shared::<u32, 1>([32]);
            let i = item.global_id(0);
            let mut sum = item.wave_scan(if i < x.len() { x.get(i) } else { 0 }).await;
            if item.lane() + 1 == item.wave_items() {
                waves.set(item.wave_id(), sum);
            }
            for wave in 0..item.wave_id() {
                sum = sum.wrapping_add(waves.get(wave));
            }
            if i < out.len() {
                out.set(i, sum);
            }
        });
    has(&told::<Scan>(planted), &["work-item (32, 0, 0) of group (0, 0, 0)", "races in shared memory"]);
}

#[test]
fn a_histogram_whose_bins_are_cleared_too_late_is_found() {
    let planted = unsealed(histogram::histogram()).host_body(
        async |item: WorkItem<'_>, (values, totals): &histogram::Parameters| {
            let bins = item.shared::<u32, 1>([256]);
            let local = item.local_id(0);
            bins.set(local, 0);
            for i in (item.global_id(0)..values.extent(0)).step_by(item.global_size(0)) {
                bins.atomic_add(usize::from(values.get(i)), 1);
            }
            item.barrier(Local).await;
            totals.atomic_add(local, bins.get(local));
        },
    );
    let told = told::<Histogram>(planted);
    has(&told, &["work-item (", "of group (0, 0, 0)", "shared memory", "mutations.rs"]);
}

#[test]
fn a_convolution_whose_edge_misses_the_barrier_is_found() {
    let planted = unsealed(convolution::convolution()).host_body(
        async |item: WorkItem<'_>, (image, _, _, _): &convolution::Parameters| {
            // Returning here, as a kernel without a barrier would.
            if item.global_id(1) >= image.extent(0) || item.global_id(0) >= image.extent(1) {
                return;
            }
            item.barrier(Local).await;
        },
    );
    // The first image with height and width, of 5 by 5 pixels.
    has(
        &told::<Convolution>(planted),
        &["work-item (5, 0, 0) of group (0, 0, 0) has ended", "25 of 256 work-items of its group wait"],
    );
}

/// Declares a kernel that has only this body, for one without `unsafe`: that takes no other.
macro_rules! planted {
    ($parameters:ty, $body:expr) => {
        // SAFETY: the check finds the fault before a write, or the write goes to the work-item's own element.
        unsafe { KernelDef::<$parameters>::new("planted") }.host_loop($body)
    };
}

#[test]
fn indices_past_the_end() {
    let planted = planted!(saxpy::Parameters, |ids: &WorkItemIds<'_>, (x, y, a): &saxpy::Parameters| {
        let i = ids.global_id(0);
        y.set(ids.own(), a * x.get(i) + y.get(ids.own()));
    });
    // Nothing has no first element.
    has(&told::<Saxpy>(planted), &["work-item (0, 0, 0) of group (0, 0, 0)", "index [0]", "shape [0]"]);
    let planted =
        planted!(stencil::Parameters, |ids: &WorkItemIds<'_>, (before, after): &stencil::Parameters| {
            let (y, x, [height, width]) = (ids.global_id(1), ids.global_id(0), before.extents());
            if y < height && x < width {
                after.set(ids.own(), before.get([y + 1, x]));
            }
        });
    has(
        &told::<Stencil>(planted),
        &["work-item (0, 0, 0) of group (0, 0, 0)", "index [1, 0]", "shape [1, 1]"],
    );
}

#[test]
fn two_work_items_with_one_element_are_found() {
    let planted = unsealed(transpose::transpose()).host_loop(
        |ids: &WorkItemIds<'_>, (_, output): &transpose::Parameters| {
            let (y, x) = (ids.global_id(1), ids.global_id(0) / 2);
            if y < output.extent(0) && x < output.extent(1) {
                output.set([y, x], 1.0);
            }
        },
    );
    has(
        &told::<Transpose>(planted),
        &["races in global memory", "work-item (1, 0, 0)", "work-item (0, 0, 0)", "written"],
    );
}
