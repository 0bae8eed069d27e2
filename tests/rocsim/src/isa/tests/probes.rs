//! Small kernels that use every function that device code of the project can call.

/// What a compiler gets: the prelude for waves of that size, and the probes.
pub(super) fn text(wave: u32) -> String {
    let kernel = gpumem_kernels::all().into_iter().find(|kernel| kernel.name == "saxpy").unwrap();
    let text = kernel.text(wave, true);
    let prelude = text.split("#line 1 \"kernel\"").next().unwrap();
    format!("{prelude}\n{SOURCE}")
}

const SOURCE: &str = r#"
using namespace gpumem;
GPUMEM_KERNEL places(u64* out) {
    u64 group = group_size(0) * group_size(1) * group_size(2);
    u64* o = out + (group_linear() * group + local_linear()) * 8;
    o[0] = global_id(0); o[1] = global_id(1); o[2] = global_id(2); o[3] = local_linear();
    o[4] = wave_id(); o[5] = lane(); o[6] = wave_items(); o[7] = wave_size();
}
template <class T> GPUMEM_DEVICE void exchange(const T* in, T* out) {
    u32 i = local_linear(), n = group_size(0); T v = in[i];
    out[i] = shuffle(v, (lane() * 7 + 3) % wave_size()); out[n + i] = shuffle_up(v, 5);
    out[2 * n + i] = shuffle_down(v, 5); out[3 * n + i] = shuffle_xor(v, 9);
}
GPUMEM_KERNEL exchange_u8(const u8* in, u8* out) { exchange(in, out); }
GPUMEM_KERNEL exchange_u32(const u32* in, u32* out) { exchange(in, out); }
GPUMEM_KERNEL exchange_f64(const double* in, double* out) { exchange(in, out); }
template <class T> GPUMEM_DEVICE void reduced(const T* in, T* out) {
    u32 i = local_linear(), n = group_size(0); T v = in[i];
    out[i] = wave_sum(v); out[n + i] = wave_min(v); out[2 * n + i] = wave_max(v); out[3 * n + i] = wave_scan(v);
}
GPUMEM_KERNEL reduced_u32(const u32* in, u32* out) { reduced(in, out); }
GPUMEM_KERNEL reduced_i64(const i64* in, i64* out) { reduced(in, out); }
GPUMEM_KERNEL reduced_f32(const float* in, float* out) { reduced(in, out); }
GPUMEM_KERNEL reduced_f64(const double* in, double* out) { reduced(in, out); }
GPUMEM_KERNEL votes(const u32* in, u64* out) {
    u32 i = local_linear(), v = in[i];
    out[i * 3] = wave_ballot(v & 1); out[i * 3 + 1] = wave_any(v == 77); out[i * 3 + 2] = wave_all(v < 1000);
}
GPUMEM_KERNEL turned(const u32* in, u32* out) {
    GPUMEM_SHARED(u32, t, 256); GPUMEM_DYNAMIC_SHARED(u32, dynamic);
    u32 i = local_linear(), n = group_size(0);
    t(i) = in[i]; dynamic[i] = in[i] * 3; barrier(LOCAL);
    u32 x = t(n - 1 - i) + dynamic[(i + 40) % n]; barrier(BOTH);
    t(i) = x; barrier(LOCAL); out[i] = t(n - 1 - i);
}
GPUMEM_KERNEL in_global_memory(u32* data, u32* out) {
    u32 i = local_linear(), n = group_size(0); data[i] = i * 5 + 1; barrier(GLOBAL); out[i] = data[n - 1 - i];
}
GPUMEM_KERNEL fenced(u32* data, u32* flag) { data[local_linear()] = 7; memory_fence(); atomic_add(flag[0], 1u); }
template <class T> GPUMEM_DEVICE void counted(const T* in, T* global, T* shared) {
    u32 i = local_linear();
    if (i < 3) shared[i] = in[i];
    barrier(LOCAL);
    atomic_add(global[0], in[i]); atomic_min(global[1], in[i]); atomic_max(global[2], in[i]);
    atomic_add(shared[0], in[i]); atomic_min(shared[1], in[i]); atomic_max(shared[2], in[i]);
    barrier(LOCAL);
    if (i < 3) global[3 + i] = shared[i];
}
#define COUNTED(N, T) GPUMEM_KERNEL counted_##N(const T* in, T* global) { GPUMEM_SHARED(T, s, 4); counted(in, global, &s(0)); }
COUNTED(u32, u32) COUNTED(i32, i32) COUNTED(u64, u64) COUNTED(i64, i64) COUNTED(f32, float) COUNTED(f64, double)
GPUMEM_KERNEL updated(u64* x) { atomic_update(x[0], [](u64 o) { return o * 3 + 1; }); }
GPUMEM_KERNEL from_half(const u16* in, float* out) { u64 i = global_id(0); f16 h; h.raw = in[i]; out[i] = h; }
GPUMEM_KERNEL to_half(const float* in, u16* out) { u64 i = global_id(0); out[i] = f16(in[i]).raw; }
GPUMEM_KERNEL to_bfloat(const float* in, u16* out) { u64 i = global_id(0); out[i] = bf16(in[i]).raw; }
GPUMEM_KERNEL in_private_memory(const u32* in, u32* out) {
    u64 i = global_id(0); array<u32, 4, 5> a; u32 sum = 0;
    for (u32 k = 0; k < 20; ++k) a(k / 5, k % 5) = in[(i + k) % 64];
    for (u32 k = 0; k < 20; ++k) sum = sum * 31 + a(in[(i * 3 + k) % 64] % 4, in[(i + 2 * k) % 64] % 5);
    out[i] = sum;
}
GPUMEM_KERNEL divided(const u64* a, const u64* b, u64* out) {
    u64 i = global_id(0);
    out[i * 4] = a[i] / b[i]; out[i * 4 + 1] = a[i] % b[i]; out[i * 4 + 2] = (u64)((i64)a[i] / (i64)b[i]);
    out[i * 4 + 3] = (u32)a[i] / ((u32)b[i] | 1u);
}
"#;
