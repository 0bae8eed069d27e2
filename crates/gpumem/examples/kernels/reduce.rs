//! One sum for each group, found in two ways: by a tree in shared memory, and by waves that exchange values and leave one sum each.
//! Launched again on the sums, until one is left.
//!
//! Once the tree has come down to a wave, what is left of it is that wave's own business, and waits for no other.

use gpumem::{
    BarrierScope::Local,
    kernel::{KernelDef, Slice, SliceMut, WorkItem},
};

/// `x`, and for each group of work-items the sum by tree and the sum by wave.
pub type Parameters = (Slice<f32>, SliceMut<f32>, SliceMut<f32>);

/// Work-items of a group, and so elements of a sum.
pub const GROUP: u32 = 256;

const SOURCE: &str = "using namespace gpumem;
GPUMEM_KERNEL reduce(slice<const float> x, slice<float> by_tree, slice<float> by_wave) {
    GPUMEM_SHARED(float, tree, 256);
    GPUMEM_SHARED(float, waves, 8);
    u64 i = global_id(0);
    u32 local = local_id(0);
    float value = i < x.size() ? x[i] : 0.0f;
    tree(local) = value;
    barrier(LOCAL);
    for (u32 step = 128; step > 0; step /= 2) {
        if (local < step) tree(local) += tree(local + step);
        if (step > wave_size()) barrier(LOCAL);
        else wavebarrier();
    }
    float sum = wave_sum(value);
    if (lane() == 0) waves(wave_id()) = sum;
    barrier(LOCAL);
    if (local == 0) {
        by_tree[group_id(0)] = tree(0);
        float all = 0.0f;
        for (u32 wave = 0; wave < 256 / wave_size(); ++wave) all += waves(wave);
        by_wave[group_id(0)] = all;
    }
}";

/// The kernel, for groups of [`GROUP`] along x that cover `x`.
pub fn declaration() -> KernelDef<Parameters> {
    // SAFETY: each group writes its own elements, and what is shared lies behind barriers of those who share it.
    unsafe { KernelDef::new("reduce") }.shared_bytes((256 + 8) * 4).source(SOURCE).host_body(
        async |item: WorkItem<'_>, (x, by_tree, by_wave): &Parameters| {
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
                if step > item.wave_size() {
                    item.barrier(Local).await;
                } else {
                    item.wavebarrier().await;
                }
                step /= 2;
            }
            let sum = item.wave_sum(value).await;
            if item.lane() == 0 {
                waves.set(item.wave_id(), sum);
            }
            item.barrier(Local).await;
            if local == 0 {
                by_tree.set(item.group_id(0), tree.get(0));
                let mut all = 0.0;
                for wave in 0..256 / item.wave_size() {
                    all += waves.get(wave);
                }
                by_wave.set(item.group_id(0), all);
            }
        },
    )
}
