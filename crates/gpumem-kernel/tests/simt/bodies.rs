//! Results of bodies: ids, barriers, waves, shared memory, atomics.

use crate::common::{dims, launch, slice, value, view};
use gpumem_core::{BarrierScope::Local, LaunchConfig};
use gpumem_kernel::simt::{
    Change, Constant, Executor, Slice, SliceMut, Value, View, ViewMut, WorkItem, WorkItemIds,
};

fn executors() -> Vec<Executor> {
    [32, 64]
        .into_iter()
        .flat_map(|wave| [false, true].map(|check| Executor::new(wave, 48 << 10).race_checks(check)))
        .collect()
}

#[test]
fn every_work_item_runs_once_and_knows_its_place() {
    for executor in executors() {
        let mut out = vec![0u32; 3 * 5 * 2 * 56];
        // SAFETY: the argument is the buffer, and each work-item writes its own element.
        let function = unsafe {
            executor.flat_function(|ids: &WorkItemIds<'_>, (out,): &(SliceMut<u32>,)| {
                let at = ids.group_linear() * 56 + ids.local_linear();
                out.set(at, out.get(at) + at as u32);
                assert_eq!(ids.global_id(1), ids.group_id(1) * 2 + ids.local_id(1));
                assert_eq!((ids.global_size(0), ids.groups(7), ids.local_id(7)), (12, 1, 0));
            })
        };
        launch(&function, dims([3, 5, 2], [4, 2, 7]), &[slice(&mut out)]).unwrap();
        assert!(out.iter().enumerate().all(|(at, value)| *value == at as u32));
    }
}

/// A tree over shared memory, which needs a real barrier at every step.
async fn tree(item: WorkItem<'_>, (input, out): &(Slice<f32>, SliceMut<f32>)) {
    let tile = item.shared::<f32, 1>([item.group_size(0)]);
    let local = item.local_id(0);
    let value = if item.global_id(0) < input.len() { input.get(item.global_id(0)) } else { 0.0 };
    tile.set(local, value);
    item.barrier(Local).await;
    let mut step = item.group_size(0) / 2;
    while step > 0 {
        if local < step {
            tile.set(local, tile.get(local) + tile.get(local + step));
        }
        item.barrier(Local).await;
        step /= 2;
    }
    if local == 0 {
        out.set(item.group_id(0), tile.get(0));
    }
}

#[test]
fn barriers_order_a_group() {
    for executor in executors() {
        for len in [1usize, 255, 256, 1000, 20_000] {
            let mut input: Vec<f32> = (0..len).map(|i| (i % 7) as f32).collect();
            let groups = len.div_ceil(256);
            let mut out = vec![-1.0f32; groups];
            // SAFETY: the arguments are the buffers, and each group writes its own element.
            let function = unsafe { executor.function(tree) };
            let sizes = LaunchConfig::linear(groups as u32, 256);
            launch(&function, sizes, &[slice(&mut input), slice(&mut out)]).unwrap();
            let expected: Vec<f32> = input.chunks(256).map(|chunk| chunk.iter().sum()).collect();
            assert_eq!(out, expected);
        }
    }
}

#[test]
fn waves_exchange_values_also_where_they_are_not_full() {
    for executor in executors() {
        for size in [1u32, 7, 32, 40, 64, 100, 256] {
            let mut out = vec![0u64; size as usize * 8];
            // SAFETY: the argument is the buffer, and each work-item writes its own elements.
            let function = unsafe {
                executor.function(async |item: WorkItem<'_>, (out,): &(SliceMut<u64>,)| {
                    let lane = item.lane() as u64;
                    let mut results = [0; 8];
                    results[0] = item.wave_sum(lane).await;
                    results[1] = item.wave_max(lane).await;
                    results[2] = item.wave_scan(1u64).await;
                    results[3] = item.wave_ballot(lane.is_multiple_of(3)).await;
                    results[4] = item.shuffle_up(lane, 1).await;
                    results[5] = item.shuffle_down(lane, 2).await;
                    results[6] = item.shuffle_xor(lane, 5).await;
                    results[7] = item.shuffle(lane, 3).await;
                    assert!(item.wave_any(lane == 0).await && item.wave_all(lane < 64).await);
                    assert_eq!(item.wave_all(lane == 0).await, item.wave_items() == 1);
                    for (at, result) in results.into_iter().enumerate() {
                        out.set(item.local_id(0) * 8 + at, result);
                    }
                })
            };
            launch(&function, LaunchConfig::linear(1, size), &[slice(&mut out)]).unwrap();
            let wave = if format!("{executor:?}").contains("wave_size: 32") { 32 } else { 64 };
            for (linear, found) in out.chunks(8).enumerate() {
                let (lane, first) = ((linear % wave) as u64, linear / wave * wave);
                let lanes = (size as usize - first).min(wave) as u64;
                let or_own = |other: u64| if other < lanes { other } else { lane };
                let ballot =
                    (0..lanes).filter(|lane| lane.is_multiple_of(3)).fold(0, |bits, lane| bits | 1 << lane);
                let expected = [
                    lanes * (lanes - 1) / 2,
                    lanes - 1,
                    lane + 1,
                    ballot,
                    lane.saturating_sub(1),
                    or_own(lane + 2),
                    or_own(lane ^ 5),
                    or_own(3),
                ];
                assert_eq!(found, expected, "{linear} of {size} in waves of {wave}");
            }
        }
    }
}

#[test]
fn wave_barriers_and_group_barriers_mix() {
    for executor in executors() {
        let mut out = vec![0u32; 128];
        // SAFETY: the argument is the buffer, and each work-item writes its own element.
        let function = unsafe {
            executor.function(async |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| {
                let tile = item.shared::<u32, 1>([128]);
                let local = item.local_id(0);
                tile.set(local, local as u32);
                item.wavebarrier().await;
                let first = item.wave_id() * item.wave_size();
                let neighbour = tile.get(first + (item.lane() + 1) % item.wave_size());
                item.wavebarrier().await;
                tile.set(local, neighbour);
                item.barrier(Local).await;
                // The first wave goes on alone, as the end of a reduction does.
                if item.wave_id() == 0 {
                    item.wavebarrier().await;
                }
                out.set(local, tile.get(127 - local));
            })
        };
        launch(&function, LaunchConfig::linear(1, 128), &[slice(&mut out)]).unwrap();
        let wave = if format!("{executor:?}").contains("wave_size: 32") { 32 } else { 64 };
        let expected = |local: u32| (127 - local) / wave * wave + (127 - local + 1) % wave;
        assert!((0..128).all(|local| out[local as usize] == expected(local)));
    }
}

#[test]
fn shared_arrays_are_named_by_their_line_and_dynamic_ones_by_the_launch() {
    for executor in executors() {
        let mut out = vec![0u32; 64];
        // SAFETY: the argument is the buffer, and each work-item writes its own element.
        let function = unsafe {
            executor.function(async |item: WorkItem<'_>, (out,): &(SliceMut<u32>,)| {
                let (x, y) = (item.local_id(0), item.local_id(1));
                let tile = item.shared::<u32, 2>([8, 9]);
                let other = item.shared::<u8, 3>([2, 4, 8]);
                let dynamic = item.dynamic_shared::<u16>();
                tile.set([y, x], (y * 8 + x) as u32);
                other.set([y / 4, y % 4, x], (y * 8 + x) as u8);
                dynamic.set(y * 8 + x, (y * 8 + x) as u16);
                assert_eq!((tile.extents(), tile.extent(9), dynamic.extent(0)), ([8, 9], 1, 64));
                item.barrier(Local).await;
                let sum = u32::from(other.get([x / 4, x % 4, y])) + u32::from(dynamic.get(x * 8 + y));
                out.set(y * 8 + x, tile.get([x, y]) * 1000 + sum);
            })
        };
        let sizes = LaunchConfig { shared_bytes: 128, ..dims([1; 3], [8, 8, 1]) };
        launch(&function, sizes, &[slice(&mut out)]).unwrap();
        for (at, found) in out.iter().enumerate() {
            let turned = (at % 8 * 8 + at / 8) as u32;
            assert_eq!(*found, turned * 1002);
        }
    }
}

#[test]
fn atomics_count_across_groups() {
    for executor in executors() {
        let mut totals = [0u32, 0, u32::MAX];
        let mut float = [0f32];
        // SAFETY: the arguments are the buffers, which are only changed atomically.
        let function = unsafe {
            executor.function(async |item: WorkItem<'_>, (totals, float): &(SliceMut<u32>, SliceMut<f32>)| {
                let bins = item.shared::<u32, 1>([1]);
                if item.local_id(0) == 0 {
                    bins.set(0, 0);
                }
                item.barrier(Local).await;
                bins.atomic_add(0, 1);
                item.barrier(Local).await;
                if item.local_id(0) == 0 {
                    totals.atomic_add(0, bins.get(0));
                }
                totals.atomic_max(1, item.global_id(0) as u32);
                totals.atomic_min(2, item.global_id(0) as u32 + 5);
                float.atomic_add(0, 0.5);
            })
        };
        launch(&function, LaunchConfig::linear(100, 96), &[slice(&mut totals), slice(&mut float)]).unwrap();
        assert_eq!((totals, float), ([9600, 9599, 5], [4800.0]));
    }
}

#[test]
fn views_have_any_strides_and_values_any_type() {
    #[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
    #[repr(C)]
    struct Pair {
        a: f32,
        b: u32,
    }
    type P = (View<f32, 2>, ViewMut<f32, 2>, Value<Pair>, Constant<f32, 3>, f64);
    for executor in executors() {
        let mut input: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let mut out = vec![0f32; 12];
        // SAFETY: the arguments are the buffers, and each work-item writes its own element.
        let function = unsafe {
            executor.flat_function(|ids: &WorkItemIds<'_>, (input, out, pair, weights, scale): &P| {
                let at = [ids.global_id(1), ids.global_id(0)];
                let value = input.get(at) * weights.get(at[0]) + pair.0.a + pair.0.b as f32;
                out.set(at, value * *scale as f32);
            })
        };
        // The input backwards, the output transposed.
        let last = &raw mut input[11];
        let arguments = [
            view(last, [3, 4], [-16, -4]),
            view(out.as_mut_ptr(), [3, 4], [4, 12]),
            value(Pair { a: 0.5, b: 100 }),
            value([1f32, 10.0, 100.0]),
            value(2f64),
        ];
        launch(&function, dims([2, 3, 1], [2, 1, 1]), &arguments).unwrap();
        for (y, weight) in [1.0, 10.0, 100.0].into_iter().enumerate() {
            for x in 0..4 {
                let expected = ((11 - (y * 4 + x)) as f32 * weight + 100.5) * 2.0;
                assert_eq!(out[x * 3 + y], expected, "{y} {x}");
            }
        }
    }
}

#[test]
fn the_prelude_order_of_sums_is_the_hosts() {
    // Numbers whose sum depends on the order: the tree over distances 16, 8, 4, 2, 1.
    let values: Vec<f32> = (0..32).map(|i| if i % 2 == 0 { 1e8 } else { 1.0 + i as f32 }).collect();
    let mut tree = values.clone();
    for distance in [16, 8, 4, 2, 1] {
        for lane in 0..distance {
            tree[lane] += tree[lane + distance];
        }
    }
    let (mut input, mut out) = (values, [0f32; 32]);
    // SAFETY: the arguments are the buffers, and each work-item writes its own element.
    let function = unsafe {
        Executor::new(32, 0).function(
            async |item: WorkItem<'_>, (input, out): &(Slice<f32>, SliceMut<f32>)| {
                out.set(item.lane(), item.wave_sum(input.get(item.lane())).await);
            },
        )
    };
    launch(&function, LaunchConfig::linear(1, 32), &[slice(&mut input), slice(&mut out)]).unwrap();
    assert_eq!(out, [tree[0]; 32]);
}
