//! Kernels: one declaration, the same results as a plain loop on every device.

use crate::{Lab, Level, Stop, Verdict, skip};
use gpumem_core::{
    Backend,
    BarrierScope::{Global, Local},
    ErrorKind,
};
use gpumem_runtime::kernel::{
    Ids, Kernel, KernelDeclaration, Parameters, Slice, SliceMut, View, ViewMut, WorkItem, cover,
};
use ndarray::{Array1, Array2, s};

cases! { Level::Kernel;
    saxpy_of_any_length: "K6",
    transpose_through_a_padded_tile: "K1 K4 K6",
    sums_by_tree_and_by_wave: "K1 K4 K5",
    histogram_with_shared_atomics: "K1 K4",
    records_are_updated_in_place: "A10 K6",
}

/// The kernel for the device under test, or a skip where it takes none.
fn load<P: Parameters, B: Backend>(
    lab: &Lab<B>,
    declaration: &KernelDeclaration<P>,
) -> Verdict<Kernel<P, B>> {
    match declaration.clone().check(true).load(lab.device()) {
        Ok(kernel) => Ok(kernel),
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. } | ErrorKind::Load(_)) => {
            skip(error)
        }
        Err(error) => Err(error.into()),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(found: T, expected: T, what: &dyn std::fmt::Debug) -> Verdict {
    if found == expected {
        return Ok(());
    }
    Err(Stop::Failed(format!("{what:?}: {found:?} where {expected:?} is right")))
}

type Saxpy = (Slice<f32>, SliceMut<f32>, f32);

fn saxpy_of_any_length<B: Backend>(lab: &Lab<B>) -> Verdict {
    // SAFETY: each work-item uses its own elements.
    let declaration = unsafe { KernelDeclaration::<Saxpy>::new("saxpy") }
        .portable(
            "using namespace gpumem;
            GPUMEM_KERNEL saxpy(slice<const float> x, slice<float> y, float a) {
                u64 i = global_id(0);
                if (i < y.size()) y[i] = a * x[i] + y[i];
            }",
        )
        .host_flat(|ids: &Ids<'_>, (x, y, a): &Saxpy| {
            let i = ids.global_id(0);
            if i < y.len() {
                y.set(i, a * x.get(i) + y.get(i));
            }
        });
    let kernel = load(lab, &declaration)?;
    let stream = lab.device().stream()?;
    for len in [0usize, 1, 255, 256, 257, 10_000] {
        let [x, y] = [3, 7].map(|step| Array1::from_iter((0..len).map(|i| (i % 1000 * step) as f32)));
        let (on_device, mut out) = (stream.to_device(&x)?, stream.to_device(&y)?);
        kernel.launch(&stream, &cover([len, 1, 1], [256, 1, 1]), (&on_device, &mut out, 2.0f32))?;
        same(out.copy_to_host()?, x * 2.0 + y, &len)?;
    }
    Ok(())
}

type Transpose = (View<f32, 2>, ViewMut<f32, 2>);

fn transpose_through_a_padded_tile<B: Backend>(lab: &Lab<B>) -> Verdict {
    // SAFETY: each work-item writes its own element, and the tile is shared behind a barrier.
    let declaration = unsafe { KernelDeclaration::<Transpose>::new("transpose") }
        .portable(
            "using namespace gpumem;
            GPUMEM_KERNEL transpose(view<const float, 2> input, view<float, 2> output) {
                GPUMEM_SHARED(float, tile, 16, 17);
                u32 x = local_id(0), y = local_id(1);
                u64 row = global_id(1), column = global_id(0);
                if (row < input.extent(0) && column < input.extent(1)) tile(y, x) = input(row, column);
                barrier(LOCAL);
                row = group_id(0) * 16 + y;
                column = group_id(1) * 16 + x;
                if (row < output.extent(0) && column < output.extent(1)) output(row, column) = tile(x, y);
            }",
        )
        .host(async |item: WorkItem<'_>, (input, output): &Transpose| {
            let tile = item.shared::<f32, 2>([16, 17]);
            let (x, y) = (item.local_id(0), item.local_id(1));
            let (row, column) = (item.global_id(1), item.global_id(0));
            if row < input.extent(0) && column < input.extent(1) {
                tile.set([y, x], input.get([row, column]));
            }
            item.barrier(Local).await;
            let (row, column) = (item.group_id(0) * 16 + y, item.group_id(1) * 16 + x);
            if row < output.extent(0) && column < output.extent(1) {
                output.set([row, column], tile.get([x, y]));
            }
        })
        .shared_bytes(16 * 17 * 4);
    let kernel = load(lab, &declaration)?;
    let stream = lab.device().stream()?;
    for (rows, columns) in [(1, 1), (16, 16), (13, 37), (70, 5)] {
        let host = Array2::from_shape_fn((rows * 2, columns), |(y, x)| (y * 1000 + x) as f32);
        let whole = stream.to_device(&host)?;
        let input = whole.slice(s![..;-2, ..;-1])?;
        let mut output = lab.device().device_array::<f32, _>((columns, rows))?;
        kernel.launch(&stream, &cover([columns, rows, 1], [16, 16, 1]), (&input, &mut output))?;
        same(output.copy_to_host()?, host.slice(s![..;-2, ..;-1]).t().to_owned(), &(rows, columns))?;
    }
    Ok(())
}

type Sums = (Slice<f32>, SliceMut<f32>, SliceMut<f32>);

fn sums_by_tree_and_by_wave<B: Backend>(lab: &Lab<B>) -> Verdict {
    // SAFETY: each group writes its own elements, and what is shared lies behind barriers.
    let declaration = unsafe { KernelDeclaration::<Sums>::new("sums") }
        .portable(
            "using namespace gpumem;
            GPUMEM_KERNEL sums(slice<const float> x, slice<float> by_tree, slice<float> by_wave) {
                GPUMEM_SHARED(float, tree, 256);
                GPUMEM_SHARED(float, waves, 8);
                u64 i = global_id(0);
                u32 local = local_id(0);
                float value = i < x.size() ? x[i] : 0.0f;
                tree(local) = value;
                barrier(LOCAL);
                for (u32 step = 128; step > 0; step /= 2) {
                    if (local < step) tree(local) += tree(local + step);
                    barrier(LOCAL);
                }
                float sum = wave_sum(value);
                if (lane() == 0) waves(wave_id()) = sum;
                barrier(LOCAL);
                if (local == 0) {
                    by_tree[group_id(0)] = tree(0);
                    float all = 0;
                    for (u32 wave = 0; wave < 256 / wave_size(); ++wave) all += waves(wave);
                    by_wave[group_id(0)] = all;
                }
            }",
        )
        .host(async |item: WorkItem<'_>, (x, by_tree, by_wave): &Sums| {
            let (tree, waves) = (item.shared::<f32, 1>([256]), item.shared::<f32, 1>([8]));
            let (i, local) = (item.global_id(0), item.local_id(0));
            let value = if i < x.len() { x.get(i) } else { 0.0 };
            tree.set(local, value);
            item.barrier(Local).await;
            let mut step = 128;
            while step > 0 {
                if local < step {
                    tree.set(local, tree.get(local) + tree.get(local + step));
                }
                item.barrier(Local).await;
                step /= 2;
            }
            let sum = item.wave_sum(value).await;
            if item.lane() == 0 {
                waves.set(item.wave_id(), sum);
            }
            item.barrier(Local).await;
            if local == 0 {
                by_tree.set(item.group_id(0), tree.get(0));
                by_wave.set(item.group_id(0), (0..256 / item.wave_size()).map(|wave| waves.get(wave)).sum());
            }
        })
        .shared_bytes((256 + 8) * 4);
    let kernel = load(lab, &declaration)?;
    let stream = lab.device().stream()?;
    for len in [1usize, 256, 1000, 5000] {
        let host = Array1::from_iter((0..len).map(|i| (i % 13) as f32));
        let x = stream.to_device(&host)?;
        let groups = len.div_ceil(256);
        let mut tree = lab.device().device_array::<f32, _>(groups)?;
        let mut wave = lab.device().device_array::<f32, _>(groups)?;
        kernel.launch(&stream, &cover([len, 1, 1], [256, 1, 1]), (&x, &mut tree, &mut wave))?;
        let expected =
            Array1::from_iter((0..groups).map(|g| host.slice(s![g * 256..len.min(g * 256 + 256)]).sum()));
        same(tree.copy_to_host()?, expected.clone(), &("tree", len))?;
        same(wave.copy_to_host()?, expected, &("wave", len))?;
    }
    Ok(())
}

type Histogram = (Slice<u8>, SliceMut<u32>);

fn histogram_with_shared_atomics<B: Backend>(lab: &Lab<B>) -> Verdict {
    // SAFETY: bins are changed atomically, but for what barriers order.
    let declaration = unsafe { KernelDeclaration::<Histogram>::new("histogram") }
        .portable(
            "using namespace gpumem;
            GPUMEM_KERNEL histogram(slice<const u8> values, slice<u32> totals) {
                GPUMEM_SHARED(u32, bins, 256);
                bins(local_id(0)) = 0;
                barrier(LOCAL);
                for (u64 i = global_id(0); i < values.size(); i += global_size(0)) atomic_add(bins(values[i]), 1u);
                barrier(LOCAL);
                atomic_add(totals[local_id(0)], bins(local_id(0)));
            }",
        )
        .host(async |item: WorkItem<'_>, (values, totals): &Histogram| {
            let bins = item.shared::<u32, 1>([256]);
            bins.set(item.local_id(0), 0);
            item.barrier(Local).await;
            for i in (item.global_id(0)..values.len()).step_by(item.global_size(0)) {
                bins.atomic_add(usize::from(values.get(i)), 1);
            }
            item.barrier(Local).await;
            totals.atomic_add(item.local_id(0), bins.get(item.local_id(0)));
        })
        .shared_bytes(1024);
    let kernel = load(lab, &declaration)?;
    let stream = lab.device().stream()?;
    for len in [0usize, 1, 3000] {
        let host = Array1::from_iter((0..len).map(|i| (i * i % 251) as u8));
        let values = stream.to_device(&host)?;
        let mut totals = lab.device().device_array::<u32, _>(256)?;
        kernel.launch(&stream, &cover([1024, 1, 1], [256, 1, 1]), (&values, &mut totals))?;
        let mut expected = Array1::<u32>::zeros(256);
        host.iter().for_each(|value| expected[usize::from(*value)] += 1);
        same(totals.copy_to_host()?, expected, &len)?;
    }
    Ok(())
}

/// A particle of 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Particle {
    place: f32,
    speed: f32,
    steps: u32,
}

fn records_are_updated_in_place<B: Backend>(lab: &Lab<B>) -> Verdict {
    // SAFETY: each work-item uses its own record.
    let declaration = unsafe { KernelDeclaration::<(SliceMut<Particle>, f32)>::new("advance") }
        .portable(
            "struct particle { float place, speed; gpumem::u32 steps; };
            GPUMEM_KERNEL advance(gpumem::slice<particle> particles, float time) {
                gpumem::u64 i = gpumem::global_id(0);
                if (i >= particles.size()) return;
                particle& p = particles[i];
                p.place += p.speed * time;
                p.steps += 1;
            }",
        )
        .host(async |item: WorkItem<'_>, (particles, time): &(SliceMut<Particle>, f32)| {
            item.barrier(Global).await;
            let i = item.global_id(0);
            if i < particles.len() {
                let p = particles.get(i);
                particles.set(i, Particle { place: p.place + p.speed * time, steps: p.steps + 1, ..p });
            }
        });
    let kernel = load(lab, &declaration)?;
    let stream = lab.device().stream()?;
    let host = Array1::from_iter((0..300u16).map(|i| Particle { place: f32::from(i), speed: 2.0, steps: 7 }));
    let mut particles = stream.to_device(&host)?;
    kernel.launch(&stream, &cover([300, 1, 1], [128, 1, 1]), (&mut particles, 0.5f32))?;
    let expected = host.mapv(|p| Particle { place: p.place + 1.0, steps: 8, ..p });
    same(particles.copy_to_host()?, expected, &"particles")
}
