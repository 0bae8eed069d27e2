//! The device code of the probes.

pub(super) const SOURCE: &str = r#"
using namespace gpumem;
struct triple { u32 a, b, c; };
GPUMEM_DEVICE u32 items() { return group_size(0) * group_size(1) * group_size(2); }
GPUMEM_KERNEL places(u64* out) {
    u64* o = out + (group_linear() * items() + local_linear()) * 24;
    for (int axis = 0; axis < 4; ++axis) {
        o[axis] = local_id(axis); o[4 + axis] = group_id(axis);
        o[8 + axis] = group_size(axis); o[12 + axis] = groups(axis);
    }
    o[16] = global_id(0); o[17] = global_id(1); o[18] = global_id(2); o[19] = global_size(1);
    o[20] = wave_id(); o[21] = lane(); o[22] = wave_items(); o[23] = wave_size();
}
template <class T> GPUMEM_DEVICE void exchange(const T* in, T* out) {
    u32 i = local_linear(), n = items(); T v = in[i];
    out[i] = shuffle(v, (lane() * 7 + 3) % (wave_size() + 5));
    out[n + i] = shuffle_up(v, 5); out[2 * n + i] = shuffle_down(v, 5); out[3 * n + i] = shuffle_xor(v, 9);
    out[4 * n + i] = shuffle_up(v, 70); out[5 * n + i] = shuffle_down(v, 70); out[6 * n + i] = shuffle_xor(v, 33);
    out[7 * n + i] = shuffle(v, 0xffffffffu); out[8 * n + i] = shuffle_down(v, 0xffffffffu);
    out[9 * n + i] = shuffle(v, 0x40000001u);
}
#define EXCHANGE(N, T) GPUMEM_KERNEL exchange_##N(const T* in, T* out) { exchange(in, out); }
EXCHANGE(u8, u8) EXCHANGE(i16, i16) EXCHANGE(u32, u32) EXCHANGE(f32, float) EXCHANGE(f64, double) EXCHANGE(u64, u64)
EXCHANGE(c64, complex<float>) EXCHANGE(c128, complex<double>) EXCHANGE(f16, f16) EXCHANGE(bf16, bf16)
EXCHANGE(triple, triple)
GPUMEM_KERNEL votes(const u32* in, u64* out) {
    u32 i = local_linear(), v = in[i];
    out[i * 4] = wave_ballot(v & 1); out[i * 4 + 1] = wave_ballot(true);
    out[i * 4 + 2] = wave_any(v == 77) | wave_any(v > 1000) << 1 | wave_any(true) << 2;
    out[i * 4 + 3] = wave_all(v < 1000) | wave_all(v != 77) << 1 | wave_all(false) << 2;
}
template <class T> GPUMEM_DEVICE void reduced(const T* in, T* out) {
    u32 i = local_linear(), n = items(); T v = in[i];
    out[i] = wave_sum(v); out[n + i] = wave_min(v); out[2 * n + i] = wave_max(v); out[3 * n + i] = wave_scan(v);
}
#define REDUCED(N, T) GPUMEM_KERNEL reduced_##N(const T* in, T* out) { reduced(in, out); }
REDUCED(u32, u32) REDUCED(i32, i32) REDUCED(u64, u64) REDUCED(i64, i64) REDUCED(f32, float) REDUCED(f64, double)
GPUMEM_KERNEL turned(const u32* in, u32* out) {
    GPUMEM_SHARED(u32, t, 256); GPUMEM_DYNAMIC_SHARED(u32, dynamic);
    u32 i = local_linear(), n = items();
    t(i) = in[i]; dynamic[i] = in[i] * 3; barrier(LOCAL);
    u32 x = t(n - 1 - i) + dynamic[(i + 40) % n]; barrier(BOTH);
    t(i) = x; barrier(CLK_LOCAL_MEM_FENCE); out[i] = t(n - 1 - i);
}
GPUMEM_KERNEL in_global_memory(u32* data, u32* out) {
    u32 i = local_linear(), n = items(); data[i] = i * 5 + 1; barrier(GLOBAL); out[i] = data[n - 1 - i]; barrier();
}
GPUMEM_KERNEL within_waves(const u32* in, u32* out) {
    GPUMEM_SHARED(u32, t, 256);
    u32 i = local_linear(); t(i) = in[i]; wavebarrier(); out[i] = t(i - lane() + (lane() + 1) % wave_items());
}
GPUMEM_KERNEL fenced(u32* data, u32* count) { data[local_linear()] = 7; memory_fence(); atomic_add(count[0], 1u); }
template <class T> GPUMEM_DEVICE void counted(const T* in, T* global, T* old, T* shared, T most, T least) {
    u32 i = local_linear();
    if (i < 3) shared[i] = T(0);
    if (i == 3) shared[3] = most;
    if (i == 4) shared[4] = least;
    barrier(LOCAL);
    old[i] = atomic_add(global[i % 3], T(1)); atomic_min(global[3], in[i]); atomic_max(global[4], in[i]);
    old[256 + i] = atomic_add(shared[i % 3], T(1)); atomic_min(shared[3], in[i]); atomic_max(shared[4], in[i]);
    barrier(LOCAL);
    if (i < 5) global[5 + i] = shared[i];
}
#define COUNTED(N, T) GPUMEM_KERNEL counted_##N(const T* in, T* global, T* old, T most, T least) { \
    GPUMEM_SHARED(T, s, 8); counted(in, global, old, &s(0), most, least); }
COUNTED(u32, u32) COUNTED(i32, i32) COUNTED(u64, u64) COUNTED(i64, i64) COUNTED(f32, float) COUNTED(f64, double)
GPUMEM_KERNEL updated(u64* x) { atomic_update(x[0], [](u64 old) { return old * 3 + 1; }); }
GPUMEM_KERNEL from_half(const u16* in, float* out) { u64 i = global_id(0); f16 h; h.raw = in[i]; out[i] = h; }
GPUMEM_KERNEL to_half(const float* in, u16* out) { u64 i = global_id(0); out[i] = f16(in[i]).raw; }
GPUMEM_KERNEL from_bfloat(const u16* in, float* out) { u64 i = global_id(0); bf16 h; h.raw = in[i]; out[i] = h; }
GPUMEM_KERNEL to_bfloat(const float* in, u16* out) { u64 i = global_id(0); out[i] = bf16(in[i]).raw; }
GPUMEM_KERNEL in_private_memory(const u32* in, u32* out) {
    u64 i = global_id(0); array<u32, 4, 5> a; u32 sum = 0;
    for (u32 k = 0; k < 20; ++k) a(k / 5, k % 5) = in[(i + k) % 64];
    for (u32 k = 0; k < 20; ++k) sum = sum * 31 + a(in[(i * 3 + k) % 64] % 4, in[(i + 2 * k) % 64] % 5);
    out[i] = sum;
}
GPUMEM_KERNEL past_a_slice(slice<u32> x, u32 first) { x[first + local_linear()] = 5; }
GPUMEM_KERNEL past_a_view(view<u32, 2> x, u32 row) { x(row, local_id(0)) = 5; }
GPUMEM_KERNEL viewed(view<const u16, 2> from, view<u16, 2> to) {
    u64 row = global_id(1), column = global_id(0);
    if (row < to.extent(0) && column < to.extent(1)) to(row, column) = from(row, column);
}
GPUMEM_KERNEL by_value(constant<float, 5> c, triple t, view<i64, 0> out, u32 n, u8 small, double d) {
    if (global_id(0) == 0) out() = (i64)(c[n] * 10) + t.c + small + (i64)d;
}
GPUMEM_KERNEL weighted(constant_array<float, 2> weights, constant_array<double, 0> scale, float* out) {
    u64 i = global_id(0); out[i] = (float)(weights(1, 2) * scale()) + weights(i % weights.extent(0), 0);
}
GPUMEM_KERNEL divided(const u64* a, const u64* b, u64* wide, u32* narrow) {
    u64 i = global_id(0); u32 p = (u32)a[i], q = (u32)b[i] | 1u;
    wide[i * 4] = a[i] / b[i]; wide[i * 4 + 1] = a[i] % b[i];
    wide[i * 4 + 2] = (u64)((i64)a[i] / (i64)b[i]); wide[i * 4 + 3] = (u64)((i64)a[i] % (i64)b[i]);
    narrow[i * 4] = p / q; narrow[i * 4 + 1] = p % q;
    narrow[i * 4 + 2] = (u32)((i32)p / (i32)q); narrow[i * 4 + 3] = (u32)((i32)p % (i32)q);
}
template <class T> GPUMEM_DEVICE void computed(const T* a, const T* b, T* out) {
    u64 i = global_id(0);
    out[i * 4] = a[i] / b[i]; out[i * 4 + 1] = a[i] * b[i]; out[i * 4 + 2] = a[i] + b[i]; out[i * 4 + 3] = a[i] * b[i] - a[i];
}
GPUMEM_KERNEL computed_f32(const float* a, const float* b, float* out) { computed(a, b, out); }
GPUMEM_KERNEL computed_f64(const double* a, const double* b, double* out) { computed(a, b, out); }
"#;
