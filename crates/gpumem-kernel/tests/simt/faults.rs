//! Faults of bodies, and the work-item that each error names.

use crate::common::{dims, launch, slice, value, view};
use gpumem_core::{
    BarrierScope::{Global, Local},
    LaunchConfig,
};
use gpumem_kernel::simt::{
    Executor, Load, Local as LocalArray, Slice, SliceMut, View, WorkItem, WorkItemIds,
};
use std::{
    hint::black_box,
    panic::{catch_unwind, resume_unwind},
    thread,
};

fn executor() -> Executor {
    Executor::new(32, 1024)
}

/// Launches a body without arguments.
fn fault(
    sizes: LaunchConfig,
    body: impl for<'g, 'p> AsyncFn(WorkItem<'g>, &'p ()) + Send + Sync + 'static,
) -> String {
    // SAFETY: there is no memory.
    let function = unsafe { executor().function(body) };
    launch(&function, sizes, &[]).unwrap_err()
}

#[track_caller]
fn has(found: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| found.contains(part)), "{found}");
}

#[test]
fn divergence_at_a_group_barrier() {
    let few = async |item: WorkItem<'_>, &(): &()| {
        if item.local_id(0) < 3 {
            item.barrier(Local).await;
        }
    };
    has(
        &fault(LaunchConfig::linear(1, 8), few),
        &["work-item (3, 0, 0) of group (0, 0, 0) has ended", "3 of 8"],
    );
    let early = async |item: WorkItem<'_>, &(): &()| {
        if item.group_id(1) == 1 && item.local_id(1) == 2 {
            return;
        }
        item.barrier(Global).await;
    };
    has(
        &fault(dims([1, 2, 1], [4, 4, 1]), early),
        &["(0, 2, 0) of group (0, 1, 0)", "12 of 16", "faults.rs"],
    );
    let elsewhere = async |item: WorkItem<'_>, &(): &()| match item.local_id(0) {
        5 => item.barrier(Local).await,
        _ => item.barrier(Local).await,
    };
    has(&fault(LaunchConfig::linear(1, 8), elsewhere), &["work-item (5, 0, 0)", "waits at", "7 of 8"]);
}

#[test]
fn divergence_in_a_wave() {
    let few = async |item: WorkItem<'_>, &(): &()| {
        if item.local_id(0) != 40 {
            item.wavebarrier().await;
        }
    };
    has(
        &fault(LaunchConfig::linear(1, 64), few),
        &["work-item (40, 0, 0)", "has ended", "31 of 32", "its wave"],
    );
    let other = async |item: WorkItem<'_>, &(): &()| {
        if item.local_id(0) == 7 {
            item.barrier(Local).await;
        } else {
            item.wave_sum(1u32).await;
        }
    };
    has(&fault(LaunchConfig::linear(1, 32), other), &["work-item (7, 0, 0)", "waits at", "31 of 32"]);
}

#[test]
fn a_foreign_await() {
    let foreign = async |item: WorkItem<'_>, &(): &()| {
        if item.global_id(0) == 9 {
            std::future::pending::<()>().await;
        }
    };
    has(
        &fault(LaunchConfig::linear(3, 4), foreign),
        &["work-item (1, 0, 0) of group (2, 0, 0) awaits something"],
    );
}

#[test]
fn an_index_past_the_end() {
    let mut memory = vec![0u32; 10];
    // SAFETY: the argument is the buffer; the test shows that the bytes outside are not touched.
    let function = unsafe {
        executor()
            .flat_function(|ids: &WorkItemIds<'_>, (out,): &(SliceMut<u32>,)| out.set(ids.global_id(0), 1))
    };
    let found = launch(&function, LaunchConfig::linear(3, 4), &[slice(&mut memory)]).unwrap_err();
    has(&found, &["work-item (2, 0, 0) of group (2, 0, 0)", "[10]", "shape [10]", "faults.rs"]);
    assert_eq!(memory, [1; 10]);

    // SAFETY: as above.
    let function = unsafe {
        executor().function(async |item: WorkItem<'_>, (input,): &(View<u32, 2>,)| {
            item.barrier(Local).await;
            input.get([item.local_id(0), 1]);
        })
    };
    let found = launch(&function, LaunchConfig::linear(1, 8), &[view(memory.as_mut_ptr(), [5, 2], [8, 4])]);
    has(&found.unwrap_err(), &["work-item (5, 0, 0)", "[5, 1]", "shape [5, 2]"]);

    let shared = async |item: WorkItem<'_>, &(): &()| {
        item.shared::<f32, 1>([4]).set(item.local_id(0), 0.0);
    };
    has(&fault(LaunchConfig::linear(1, 8), shared), &["work-item (4, 0, 0)", "[4]"]);
    let local = async |item: WorkItem<'_>, &(): &()| {
        let mut window = LocalArray::<f32, 2, 9>::zeroed([3, 3]);
        window.set([item.local_id(0), 2], window.get([0, 0]));
    };
    has(&fault(LaunchConfig::linear(1, 8), local), &["work-item (3, 0, 0)", "[3, 2]"]);
}

/// An index past the end of a local array, as a function reads it that kernels call, and the host may.
fn read(at: usize) -> u32 {
    [1u32; 4].load(black_box(at))
}

#[test]
fn a_fault_that_the_body_catches_is_over() {
    let ends_well = async |item: WorkItem<'_>, &(): &()| {
        assert!(catch_unwind(|| read(90)).is_err());
        item.barrier(Local).await;
    };
    // SAFETY: there is no memory.
    let function = unsafe { executor().function(ends_well) };
    launch(&function, LaunchConfig::linear(2, 4), &[]).unwrap();
    let has_another = async |item: WorkItem<'_>, &(): &()| {
        assert!(catch_unwind(|| read(90)).is_err());
        if item.local_id(0) == 2 {
            read(77);
        }
    };
    has(&fault(LaunchConfig::linear(1, 4), has_another), &["work-item (2, 0, 0)", "uses index [77]"]);
    // SAFETY: as above.
    let function = unsafe {
        executor().flat_function(|ids: &WorkItemIds<'_>, &(): &()| {
            assert!(catch_unwind(|| read(90)).is_err());
            read(ids.local_id(0) + 2);
        })
    };
    let found = launch(&function, LaunchConfig::linear(1, 4), &[]).unwrap_err();
    has(&found, &["work-item (2, 0, 0)", "uses index [4]"]);
}

#[test]
fn a_fault_on_a_thread_of_the_body_is_told() {
    let body = async |_: WorkItem<'_>, &(): &()| {
        if let Err(payload) = thread::spawn(|| read(9)).join() {
            resume_unwind(payload);
        }
    };
    has(&fault(LaunchConfig::linear(1, 1), body), &["uses index [9] of an array of shape [4]", "faults.rs"]);
}

#[test]
fn outside_of_a_launch_a_fault_is_a_panic() {
    let is_told = |ended: thread::Result<u32>| {
        let payload = ended.unwrap_err().downcast::<String>().unwrap();
        has(&payload, &["uses index [9] of an array of shape [4]", "faults.rs"]);
    };
    is_told(catch_unwind(|| read(9)));
    // Also after one.
    has(
        &fault(LaunchConfig::linear(1, 1), async |_, &()| {
            read(8);
        }),
        &["uses index [8]"],
    );
    is_told(catch_unwind(|| read(9)));
}

#[test]
fn a_panic_drops_the_live_values() {
    use std::sync::{Arc, atomic::AtomicU32, atomic::Ordering::SeqCst};
    struct Counted(Arc<AtomicU32>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let (made, dropped) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let counters = (made.clone(), dropped.clone());
    let body = async move |item: WorkItem<'_>, &(): &()| {
        let _held = Counted(counters.1.clone());
        counters.0.fetch_add(1, SeqCst);
        item.barrier(Local).await;
        assert_ne!(item.local_id(0), 6, "six is not allowed");
        item.barrier(Local).await;
    };
    has(&fault(LaunchConfig::linear(1, 8), body), &["work-item (6, 0, 0)", "panicked", "six is not allowed"]);
    assert_eq!((made.load(SeqCst), dropped.load(SeqCst)), (8, 8));
}

#[test]
fn a_panic_while_a_work_item_is_dropped() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("dropped");
            }
        }
    }
    let body = async |item: WorkItem<'_>, &(): &()| {
        let _bomb = Bomb;
        if item.local_id(0) < 5 {
            item.barrier(Local).await;
        }
        std::mem::forget(_bomb);
    };
    // The divergence is reported; the values of the waiting work-items panic in `Drop`, one by one.
    has(&fault(LaunchConfig::linear(1, 8), body), &["5 of 8"]);
}

#[test]
fn too_much_shared_memory() {
    let body = async |item: WorkItem<'_>, &(): &()| {
        item.shared::<u8, 1>([1000]);
        item.shared::<f32, 2>([8, 8]);
    };
    has(&fault(LaunchConfig::linear(1, 8), body), &["needs 1264 bytes of shared memory", "has 1024"]);
}

#[test]
fn arguments_that_do_not_match_the_parameters_are_refused() {
    // SAFETY: nothing is run.
    let function = unsafe { executor().flat_function(|_: &WorkItemIds<'_>, _: &(Slice<f32>, f32)| {}) };
    for wrong in [vec![], vec![value(0u64), value(1f32)], vec![value([0u64; 2]), value(1f64)]] {
        has(&launch(&function, LaunchConfig::linear(1, 1), &wrong).unwrap_err(), &["not those"]);
    }
}

#[test]
fn the_first_failing_group_is_reported() {
    let body = async |item: WorkItem<'_>, &(): &()| assert!(item.group_id(0) < 77, "too far");
    for _ in 0..5 {
        has(&fault(LaunchConfig::linear(5000, 64), body), &["(0, 0, 0) of group (77, 0, 0)"]);
    }
}
