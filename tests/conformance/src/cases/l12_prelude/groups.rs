//! Where a work-item is, barriers, shared memory, and arrays of one work-item.

use super::{Parameters, Probe, case, items_of, one_group, random};
use crate::Case;
use gpumem_core::{Backend, BarrierScope, LaunchConfig};
use gpumem_kernel::{KernelDef, Local, WorkItem, WorkItemIds};

pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    vec![
        case::<Places, B>(),
        case::<SharedBarriers, B>(),
        case::<GlobalBarriers, B>(),
        case::<WaveBarriers, B>(),
        case::<LocalArrays, B>(),
    ]
}

/// All ids and sizes, in groups of odd sizes along three axes.
struct Places;

const PLACES: usize = 22;

impl Probe for Places {
    type In = u32;
    type Out = u64;

    fn launches() -> Vec<LaunchConfig> {
        let sizes = [
            ([3, 2, 4], [7, 5, 3]),
            ([1, 1, 1], [1, 1, 1]),
            ([5, 1, 1], [64, 1, 1]),
            ([1, 3, 1], [1, 33, 2]),
        ];
        sizes.map(|(groups, group_size)| LaunchConfig { groups, group_size, shared_bytes: 0 }).into()
    }

    fn declaration() -> KernelDef<Parameters<Self>> {
        let source = "using namespace gpumem;
GPUMEM_KERNEL places(slice<const u32> x, slice<u64> y) {
    u64 group = (u64)group_size(0) * group_size(1) * group_size(2);
    u64 at = 22 * (group_linear() * group + local_linear());
    for (int axis = 0; axis < 3; ++axis) {
        y[at++] = local_id(axis);
        y[at++] = group_id(axis);
        y[at++] = group_size(axis);
        y[at++] = groups(axis);
        y[at++] = global_id(axis);
        y[at++] = global_size(axis);
    }
    y[at++] = wave_id();
    y[at++] = lane();
    y[at++] = wave_items();
    y[at++] = wave_size() + x[0];
}";
        // SAFETY: each work-item writes its own elements.
        unsafe { KernelDef::new("places") }.source(source).host_body(
            async |item: WorkItem<'_>, (x, y): &Parameters<Self>| {
                let group: usize = (0..3).map(|axis| item.group_size(axis)).product();
                let mut at = PLACES * (item.group_linear() * group + item.local_linear());
                let mut put = |value: usize| {
                    y.set(at, value as u64);
                    at += 1;
                };
                for axis in 0..3 {
                    put(item.local_id(axis));
                    put(item.group_id(axis));
                    put(item.group_size(axis));
                    put(item.groups(axis));
                    put(item.global_id(axis));
                    put(item.global_size(axis));
                }
                put(item.wave_id());
                put(item.lane());
                put(item.wave_items());
                put(item.wave_size() + x.get(0) as usize);
            },
        )
    }

    fn input(_: usize) -> Vec<u32> {
        vec![0]
    }

    fn before(items: usize) -> Vec<u64> {
        vec![u64::MAX; PLACES * items]
    }

    fn after(_: &[u32], dims: &LaunchConfig, wave: usize) -> Vec<u64> {
        let items: u32 = dims.group_size.iter().product();
        let mut all = Vec::new();
        let along = |lengths: [u32; 3], at: u32| {
            [at % lengths[0], at / lengths[0] % lengths[1], at / lengths[0] / lengths[1]]
        };
        for group in 0..dims.groups.iter().product() {
            for local in 0..items {
                let (group_id, local_id) = (along(dims.groups, group), along(dims.group_size, local));
                for axis in 0..3 {
                    let (size, groups) = (dims.group_size[axis], dims.groups[axis]);
                    let global = group_id[axis] * size + local_id[axis];
                    let numbers = [local_id[axis], group_id[axis], size, groups, global, groups * size];
                    all.extend(numbers.map(u64::from));
                }
                let (wave, local, items) = (wave as u64, u64::from(local), u64::from(items));
                let first = local / wave * wave;
                all.extend([local / wave, local - first, wave.min(items - first), wave]);
            }
        }
        all
    }
}

/// Static and dynamic shared memory between barriers of the scopes that have shared memory in them.
struct SharedBarriers;

impl Probe for SharedBarriers {
    type In = u32;
    type Out = u32;

    fn launches() -> Vec<LaunchConfig> {
        let sizes = [[7, 5, 3], [1, 1, 1], [64, 2, 2]];
        sizes.map(|size| LaunchConfig { shared_bytes: 4 * 256, ..one_group(size) }).into()
    }

    fn declaration() -> KernelDef<Parameters<Self>> {
        let source = "using namespace gpumem;
GPUMEM_KERNEL shared_barriers(slice<const u32> x, slice<u32> y) {
    GPUMEM_SHARED(u32, tile, 256);
    GPUMEM_DYNAMIC_SHARED(u32, dynamic);
    u32 i = local_linear(), n = (u32)x.size();
    tile(i) = x[i];
    dynamic[i] = 3 * x[i];
    barrier(LOCAL);
    u32 sum = tile(n - 1 - i) + dynamic[(i + 40) % n];
    barrier(BOTH);
    tile(i) = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    y[i] = tile((i + 1) % n);
}";
        // SAFETY: each work-item writes its own elements; barriers separate writes from reads.
        unsafe { KernelDef::new("shared_barriers") }.shared_bytes(4 * 256).source(source).host_body(
            async |item: WorkItem<'_>, (x, y): &Parameters<Self>| {
                let (tile, dynamic) = (item.shared::<u32, 1>([256]), item.dynamic_shared::<u32>());
                let (i, n) = (item.local_linear(), x.len());
                tile.set(i, x.get(i));
                dynamic.set(i, x.get(i).wrapping_mul(3));
                item.barrier(BarrierScope::Local).await;
                let sum = tile.get(n - 1 - i).wrapping_add(dynamic.get((i + 40) % n));
                item.barrier(BarrierScope::Both).await;
                tile.set(i, sum);
                item.barrier(BarrierScope::Local).await;
                y.set(i, tile.get((i + 1) % n));
            },
        )
    }

    fn input(items: usize) -> Vec<u32> {
        random(items).map(|number| number as u32).collect()
    }

    fn before(items: usize) -> Vec<u32> {
        vec![0; items]
    }

    fn after(input: &[u32], _: &LaunchConfig, _: usize) -> Vec<u32> {
        let n = input.len();
        let sum = |i: usize| input[n - 1 - i].wrapping_add(input[(i + 40) % n].wrapping_mul(3));
        (0..n).map(|i| sum((i + 1) % n)).collect()
    }
}

/// Global memory that others of the group wrote before a barrier.
struct GlobalBarriers;

impl Probe for GlobalBarriers {
    type In = u32;
    type Out = u32;

    fn declaration() -> KernelDef<Parameters<Self>> {
        let source = "using namespace gpumem;
GPUMEM_KERNEL global_barriers(slice<const u32> x, slice<u32> y) {
    u64 i = local_linear(), n = x.size();
    y[i] = 5 * x[i] + 1;
    barrier(GLOBAL);
    y[n + i] = y[n - 1 - i];
    memory_fence();
    barrier();
    y[2 * n + i] = y[n + (i + 1) % n] + y[i];
}";
        // SAFETY: each work-item writes its own elements; barriers separate writes from reads.
        unsafe { KernelDef::new("global_barriers") }.source(source).host_body(
            async |item: WorkItem<'_>, (x, y): &Parameters<Self>| {
                let (i, n) = (item.local_linear(), x.len());
                y.set(i, x.get(i).wrapping_mul(5).wrapping_add(1));
                item.barrier(BarrierScope::Global).await;
                y.set(n + i, y.get(n - 1 - i));
                item.memory_fence();
                item.barrier(BarrierScope::Global).await;
                y.set(2 * n + i, y.get(n + (i + 1) % n).wrapping_add(y.get(i)));
            },
        )
    }

    fn input(items: usize) -> Vec<u32> {
        random(items).map(|number| number as u32).collect()
    }

    fn before(items: usize) -> Vec<u32> {
        vec![0; 3 * items]
    }

    fn after(input: &[u32], _: &LaunchConfig, _: usize) -> Vec<u32> {
        let n = input.len();
        let first: Vec<u32> = input.iter().map(|x| x.wrapping_mul(5).wrapping_add(1)).collect();
        let second: Vec<u32> = first.iter().rev().copied().collect();
        let third = (0..n).map(|i| second[(i + 1) % n].wrapping_add(first[i]));
        first.iter().chain(&second).copied().chain(third).collect()
    }
}

/// Shared memory between work-items of one wave.
struct WaveBarriers;

impl Probe for WaveBarriers {
    type In = u32;
    type Out = u32;

    fn declaration() -> KernelDef<Parameters<Self>> {
        let source = "using namespace gpumem;
GPUMEM_KERNEL wave_barriers(slice<const u32> x, slice<u32> y) {
    GPUMEM_SHARED(u32, tile, 256);
    u32 i = local_linear();
    tile(i) = x[i];
    wavebarrier();
    y[i] = tile(i - lane() + (lane() + 1) % wave_items());
}";
        // SAFETY: each work-item writes its own elements; the barrier separates writes from reads of one wave.
        unsafe { KernelDef::new("wave_barriers") }.shared_bytes(4 * 256).source(source).host_body(
            async |item: WorkItem<'_>, (x, y): &Parameters<Self>| {
                let tile = item.shared::<u32, 1>([256]);
                let i = item.local_linear();
                tile.set(i, x.get(i));
                item.wavebarrier().await;
                y.set(i, tile.get(i - item.lane() + (item.lane() + 1) % item.wave_items()));
            },
        )
    }

    fn input(items: usize) -> Vec<u32> {
        random(items).map(|number| number as u32).collect()
    }

    fn before(items: usize) -> Vec<u32> {
        vec![0; items]
    }

    fn after(input: &[u32], _: &LaunchConfig, wave: usize) -> Vec<u32> {
        let turned = |wave: &[u32]| {
            let mut wave = wave.to_vec();
            wave.rotate_left(1);
            wave
        };
        input.chunks(wave).flat_map(turned).collect()
    }
}

/// Arrays of one work-item, read and written at indices that only the data know.
struct LocalArrays;

impl Probe for LocalArrays {
    type In = u32;
    type Out = u32;

    fn launches() -> Vec<LaunchConfig> {
        vec![LaunchConfig::linear(3, 64)]
    }

    fn declaration() -> KernelDef<Parameters<Self>> {
        let source = "using namespace gpumem;
GPUMEM_KERNEL local_arrays(slice<const u32> x, slice<u32> y) {
    u64 i = global_id(0), n = x.size();
    array<u32, 4, 5> own;
    for (u32 k = 0; k < 20; ++k) own(k / 5, k % 5) = x[(i + k) % n];
    u32 sum = 0;
    for (u32 k = 0; k < 20; ++k) sum = sum * 31 + own(x[(3 * i + k) % n] % 4, x[(i + 2 * k) % n] % 5);
    y[i] = sum;
}";
        // SAFETY: each work-item writes its own element.
        unsafe { KernelDef::new("local_arrays") }.source(source).host_loop(
            |ids: &WorkItemIds<'_>, (x, y): &Parameters<Self>| {
                let (i, n) = (ids.global_id(0), x.len());
                let mut own = Local::<u32, 2, 20>::zeroed([4, 5]);
                (0..20).for_each(|k| own.set([k / 5, k % 5], x.get((i + k) % n)));
                let read = |k: usize| {
                    own.get([(x.get((3 * i + k) % n) % 4) as usize, (x.get((i + 2 * k) % n) % 5) as usize])
                };
                y.set(i, (0..20).fold(0, |sum: u32, k| sum.wrapping_mul(31).wrapping_add(read(k))));
            },
        )
    }

    fn input(items: usize) -> Vec<u32> {
        random(items).map(|number| number as u32).collect()
    }

    fn before(items: usize) -> Vec<u32> {
        vec![0; items]
    }

    fn after(x: &[u32], dims: &LaunchConfig, _: usize) -> Vec<u32> {
        let n = x.len();
        let of = |i: usize| {
            let own: Vec<u32> = (0..20).map(|k| x[(i + k) % n]).collect();
            (0..20).fold(0u32, |sum, k| {
                let at = x[(3 * i + k) % n] % 4 * 5 + x[(i + 2 * k) % n] % 5;
                sum.wrapping_mul(31).wrapping_add(own[at as usize])
            })
        };
        (0..items_of(dims)).map(of).collect()
    }
}
