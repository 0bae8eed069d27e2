//! The check mode: races and reads of memory that was never written, and no alarm where there is nothing.

use crate::common::{launch, slice, view};
use gpumem_core::{
    BarrierScope::{self, Both, Global, Local},
    HostFunction, LaunchConfig,
};
use gpumem_kernel::simt::{Change, Executor, Load, SliceMut, Store, ViewMut, WorkItem};

fn checked<P: gpumem_kernel::simt::Parameters>(
    body: impl for<'g, 'p> AsyncFn(WorkItem<'g>, &'p P) + Send + Sync + 'static,
) -> HostFunction {
    // SAFETY: a checked launch runs on one thread, so that races are harmless.
    unsafe { Executor::new(32, 16 << 10).race_checks(true).function(body) }
}

fn outcome(
    sizes: LaunchConfig,
    body: impl for<'g, 'p> AsyncFn(WorkItem<'g>, &'p (SliceMut<u32>,)) + Send + Sync + 'static,
) -> Result<(), String> {
    launch(&checked(body), sizes, &[slice(&mut vec![0u32; 4096])])
}

#[track_caller]
fn has(found: Result<(), String>, parts: &[&str]) {
    let found = found.unwrap_err();
    assert!(parts.iter().all(|part| found.contains(part)), "{found}");
}

/// Reads the neighbour's element of shared memory, after a barrier of `between`.
fn neighbour(between: Option<BarrierScope>) -> Result<(), String> {
    outcome(LaunchConfig::linear(2, 64), async move |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| {
        let tile = item.shared::<u32, 1>([64]);
        tile.set(item.local_id(0), 1);
        if let Some(scope) = between {
            item.barrier(scope).await;
        }
        out.set(item.global_id(0), tile.get((item.local_id(0) + 63) % 64));
    })
}

#[test]
fn a_missing_barrier_is_found_and_one_of_the_wrong_scope() {
    neighbour(Some(Local)).unwrap();
    neighbour(Some(Both)).unwrap();
    has(neighbour(Some(Global)), &["races in shared memory", "work-item (0, 0, 0)", "work-item (63, 0, 0)"]);
    // No one has written the element of the last work-item when the first one reads it.
    has(neighbour(None), &["work-item (0, 0, 0)", "that was never written"]);
}

#[test]
fn a_read_before_the_write_of_another_is_found() {
    let body = async |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| {
        let value = out.get((item.local_id(0) + 1) % 64);
        out.set(item.local_id(0), value);
    };
    has(outcome(LaunchConfig::linear(1, 64), body), &["global", "(1, 0, 0)", "written", "read"]);
    let twice = async |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| out.set(item.local_id(0) / 2, 1);
    has(outcome(LaunchConfig::linear(1, 64), twice), &["global", "written by work-item (1, 0, 0)"]);
}

#[test]
fn a_race_names_the_argument_and_the_index() {
    let body = async |item: WorkItem<'_>,
                      (_, rows, out): &(SliceMut<u32>, ViewMut<u32, 2>, SliceMut<u32>)| {
        rows.set([1, 2], 7);
        out.set(item.global_id(0), 1);
    };
    let (mut first, mut rows, mut out) = (vec![0u32; 4], vec![0u32; 12], vec![0u32; 64]);
    // The rows from the last to the first.
    let rows = view(rows.as_mut_ptr().wrapping_add(8), [3, 4], [-16, 4]);
    let told =
        launch(&checked(body), LaunchConfig::linear(1, 64), &[slice(&mut first), rows, slice(&mut out)]);
    let start = "work-item (1, 0, 0) of group (0, 0, 0) races in global memory: element [1, 2] of argument #2 is written \
                 by work-item (1, 0, 0) of group (0, 0, 0) at ";
    let told = told.unwrap_err();
    assert!(told.starts_with(start), "{told}");
    assert!(told.contains(", and written by work-item (0, 0, 0) of group (0, 0, 0) at "), "{told}");
    let body = async |item: WorkItem<'_>, _: &(SliceMut<u32>,)| item.shared::<u32, 2>([2, 2]).set([1, 0], 3);
    has(
        outcome(LaunchConfig::linear(1, 64), body),
        &["races in shared memory: element [1, 0] is written by"],
    );
}

#[test]
fn global_memory_needs_a_global_barrier() {
    for (scope, good) in [(Local, false), (Global, true), (Both, true)] {
        let body = async move |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| {
            out.set(item.local_id(0), 1);
            item.barrier(scope).await;
            out.set(64 + item.local_id(0), out.get(63 - item.local_id(0)));
        };
        assert_eq!(outcome(LaunchConfig::linear(1, 64), body).is_ok(), good, "{scope:?}");
    }
}

#[test]
fn a_wave_barrier_orders_its_wave_only() {
    let within = async |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| {
        out.set(item.local_id(0), 1);
        item.wavebarrier().await;
        out.get(item.local_id(0) ^ 1);
        item.wavebarrier().await;
        out.set(item.local_id(0) ^ 2, 2);
    };
    outcome(LaunchConfig::linear(1, 64), within).unwrap();
    let across = async |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| {
        out.set(item.local_id(0), 1);
        item.wavebarrier().await;
        out.get(item.local_id(0) ^ 32);
    };
    has(outcome(LaunchConfig::linear(1, 64), across), &["(0, 0, 0)", "(32, 0, 0)"]);
    let exchange = async |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| {
        out.set(item.local_id(0), 1);
        item.wave_sum(1u32).await;
        out.get(item.local_id(0) ^ 1);
    };
    // Exchanging values is no fence.
    has(outcome(LaunchConfig::linear(1, 64), exchange), &["races"]);
}

#[test]
fn nothing_orders_two_groups_but_atomics() {
    let same = async |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| {
        item.barrier(Both).await;
        out.set(item.local_id(0), 1);
    };
    has(outcome(LaunchConfig::linear(2, 4), same), &["group (1, 0, 0)", "group (0, 0, 0)"]);
    let atomic = async |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| {
        out.atomic_add(0, 1);
        out.get(item.local_id(0) + 1);
    };
    outcome(LaunchConfig::linear(3, 64), atomic).unwrap();
    let mixed = async |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| {
        if item.global_id(0) == 9 {
            out.get(0);
        } else {
            out.atomic_add(0, 1);
        }
    };
    has(outcome(LaunchConfig::linear(3, 4), mixed), &["group (2, 0, 0)", "read", "changed atomically"]);
    let late = async |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| {
        // Written by the first group, then hidden by its later reads.
        if item.group_id(0) == 0 {
            if item.local_id(0) == 0 {
                out.set(0, 1);
            }
            item.barrier(Global).await;
            out.get(0);
        } else {
            item.barrier(Global).await;
            out.get(0);
        }
    };
    has(
        outcome(LaunchConfig::linear(2, 4), late),
        &["group (1, 0, 0)", "written by work-item (0, 0, 0) of group (0, 0, 0)"],
    );
}

#[test]
fn many_readers_hide_no_writer() {
    let body = async |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| {
        out.get(0);
        if item.local_id(0) == 127 {
            out.set(0, 1);
        }
    };
    has(outcome(LaunchConfig::linear(1, 128), body), &["(127, 0, 0)", "races"]);
    // Two readers of another wave, then one of the writer's own wave: a fence of that wave hides only the last.
    let waves = async |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| {
        if item.wave_id() == 0 {
            out.get(0);
        } else {
            out.get(0);
            item.wavebarrier().await;
            if item.lane() == 5 {
                out.set(0, 1);
            }
        }
    };
    has(
        outcome(LaunchConfig::linear(1, 64), waves),
        &["(37, 0, 0)", "wave"].map(|part| if part == "wave" { "(0, 0, 0)" } else { part }),
    );
}

/// Writes numbers to dynamic shared memory, of which `bytes` uses the bytes.
fn as_bytes(bytes: impl Fn(WorkItem<'_>) + Send + Sync + 'static) -> Result<(), String> {
    let sizes = LaunchConfig { shared_bytes: 256, ..LaunchConfig::linear(1, 64) };
    outcome(sizes, async move |item: WorkItem<'_>, _: &(SliceMut<u32>,)| {
        item.dynamic_shared::<u32>().set(item.local_id(0), 7);
        item.barrier(Global).await;
        bytes(item);
    })
}

#[test]
fn dynamic_memory_is_known_by_its_bytes_whatever_their_types() {
    let own = |item: WorkItem<'_>| {
        item.dynamic_shared::<u8>().get(4 * item.local_id(0) + 3);
    };
    as_bytes(own).unwrap();
    let next = |item: WorkItem<'_>| item.dynamic_shared::<u8>().set((4 * item.local_id(0) + 7) % 256, 1);
    has(as_bytes(next), &["races in shared memory", "(0, 0, 0)", "(1, 0, 0)"]);
    let wide = |item: WorkItem<'_>| {
        item.dynamic_shared::<u64>().get(item.local_id(0) / 2);
    };
    has(as_bytes(wide), &["races in shared memory", "work-item (0, 0, 0)"]);
}

/// As wide as it is aligned, and yet of two parts.
#[derive(Clone, Copy)]
#[repr(C)]
struct Twins {
    aligned: [u64; 0],
    parts: [u32; 2],
}
// SAFETY: plain data without padding.
unsafe impl bytemuck::Zeroable for Twins {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Twins {}

#[test]
fn parts_are_known_however_an_element_is_aligned() {
    let body = async |item: WorkItem<'_>, (all,): &(SliceMut<Twins>,)| {
        if item.local_id(0) == 0 {
            all.set(0, Twins { aligned: [], parts: [1, 2] });
        } else {
            all.load_part(0, |twins| &mut twins.parts[1]);
        }
    };
    let mut memory = [Twins { aligned: [], parts: [0; 2] }];
    has(launch(&checked(body), LaunchConfig::linear(1, 2), &[slice(&mut memory)]), &["races"]);
    let apart = async |item: WorkItem<'_>, (all,): &(SliceMut<Twins>,)| {
        let part = item.local_id(0);
        all.store_part(0, |twins| &mut twins.parts[part], 1);
    };
    launch(&checked(apart), LaunchConfig::linear(1, 2), &[slice(&mut memory)]).unwrap();
}

#[test]
fn elements_without_bytes_do_not_race() {
    let body = async |item: WorkItem<'_>, (all,): &(SliceMut<[u32; 0]>,)| {
        all.set(item.global_id(0), all.get(item.global_id(0)));
    };
    launch(&checked(body), LaunchConfig::linear(2, 2), &[slice(&mut [[0u32; 0]; 4])]).unwrap();
}
