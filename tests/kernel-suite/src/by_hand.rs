//! The kernels that ship in C++ that was written by hand: what their Rust functions are held against, in instructions and in time.
//! Most have no bodies for the host.

use crate::{convolution, from_source, histogram, matmul, reduce, saxpy, scan, stencil, transpose, update};
use gpumem_kernel::KernelDef;

/// A kernel of both kinds.
#[derive(Debug)]
pub struct Twin<P> {
    /// That of the Rust function.
    pub rust: KernelDef<P>,
    /// That in C++.
    pub cpp: KernelDef<P>,
}

impl<P: gpumem_kernel::Parameters> Twin<P> {
    /// Both with or without checks of indices.
    #[must_use]
    pub fn bounds_checks(self, bounds: bool) -> Self {
        let Self { rust, cpp } = self;
        // SAFETY: the tests of the kernel show that its indices are inside.
        let rust = unsafe { rust.unsealed() }.bounds_checks(bounds);
        Self { rust, cpp: cpp.bounds_checks(bounds) }
    }
}

macro_rules! twins {
    ($($(#[$doc:meta])* $name:ident: $shared:literal, $source:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name() -> Twin<$name::Parameters> {
            // SAFETY: as the kernel in Rust, which says why in its file.
            let cpp = unsafe { KernelDef::new(stringify!($name)) };
            Twin { rust: $name::$name(), cpp: cpp.shared_bytes($shared).source($source) }
        }
    )*};
}

twins! {
    /// [`mod@saxpy`].
    saxpy: 0, "using namespace gpumem;
GPUMEM_KERNEL saxpy(slice<const float> x, slice<float> y, float a) {
    u64 i = global_id(0);
    if (i < y.size()) y[i] = a * x[i] + y[i];
}";
    /// [`mod@update`].
    update: 0, "using namespace gpumem;
struct particle { float place[2], speed[2]; u32 steps; };
struct step { float time, pull[2]; };
GPUMEM_KERNEL update(view<particle, 1> particles, step by) {
    u64 i = global_id(0);
    if (i >= particles.extent(0)) return;
    particle& p = particles(i);
    for (int axis = 0; axis < 2; ++axis) {
        p.speed[axis] += by.pull[axis] * by.time;
        p.place[axis] += p.speed[axis] * by.time;
    }
    p.steps += 1;
}";
    /// [`mod@stencil`].
    stencil: 0, "using namespace gpumem;
GPUMEM_KERNEL stencil(view<const float, 2> before, view<float, 2> after) {
    u64 y = global_id(1), x = global_id(0), height = before.extent(0), width = before.extent(1);
    if (y >= height || x >= width) return;
    bool inside = y > 0 && y + 1 < height && x > 0 && x + 1 < width;
    after(y, x) = inside
        ? 0.25f * ((before(y - 1, x) + before(y + 1, x)) + (before(y, x - 1) + before(y, x + 1)))
        : before(y, x);
}";
    /// [`mod@matmul`].
    matmul: 2048, "using namespace gpumem;
GPUMEM_KERNEL matmul(view<const float, 2> a, view<const float, 2> b, view<float, 2> c) {
    GPUMEM_SHARED(float, left, 16, 16);
    GPUMEM_SHARED(float, right, 16, 16);
    u32 x = local_id(0), y = local_id(1);
    u64 row = global_id(1), column = global_id(0), depth = a.extent(1);
    float sum = 0.0f;
    for (u64 start = 0; start < depth; start += 16) {
        left(y, x) = row < a.extent(0) && start + x < depth ? a(row, start + x) : 0.0f;
        right(y, x) = start + y < depth && column < b.extent(1) ? b(start + y, column) : 0.0f;
        barrier(LOCAL);
        for (u32 k = 0; k < 16; ++k) sum += left(y, k) * right(k, x);
        barrier(LOCAL);
    }
    if (row < c.extent(0) && column < c.extent(1)) c(row, column) = sum;
}";
    /// [`mod@reduce`].
    reduce: 1056, "using namespace gpumem;
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
    /// [`mod@scan`].
    scan: 128, "using namespace gpumem;
GPUMEM_KERNEL scan(slice<const u32> x, slice<const u32> before, slice<u32> totals, slice<u32> out) {
    GPUMEM_SHARED(u32, waves, 32);
    u64 i = global_id(0), group = group_id(0);
    u32 sum = wave_scan(i < x.size() ? x[i] : 0u);
    if (lane() + 1 == wave_items()) waves(wave_id()) = sum;
    barrier(LOCAL);
    for (u32 wave = 0; wave < wave_id(); ++wave) sum += waves(wave);
    if (group > 0 && group <= before.size()) sum += before[group - 1];
    if (i < out.size()) out[i] = sum;
    if (group < totals.size() && local_id(0) + 1 == group_size(0)) totals[group] = sum;
}";
    /// [`mod@histogram`].
    histogram: 1024, "using namespace gpumem;
GPUMEM_KERNEL histogram(view<const u8, 1> values, slice<u32> totals) {
    GPUMEM_SHARED(u32, bins, 256);
    u32 local = local_id(0);
    bins(local) = 0;
    barrier(LOCAL);
    for (u64 i = global_id(0); i < values.extent(0); i += global_size(0)) atomic_add(bins(values(i)), 1u);
    barrier(LOCAL);
    atomic_add(totals[local], bins(local));
}";
}

/// [`mod@transpose`], and its declaration [from a source](from_source::transpose).
pub fn transpose() -> Twin<transpose::Parameters> {
    Twin { rust: transpose::transpose(), cpp: from_source::transpose::declaration() }
}

/// [`mod@convolution`], and its declaration [from a source](from_source::convolution).
pub fn convolution() -> Twin<convolution::Parameters> {
    Twin { rust: convolution::convolution(), cpp: from_source::convolution::declaration() }
}
