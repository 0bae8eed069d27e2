// The portable prelude of gpumem: what a kernel for CUDA and for ROCm is written with.
//
// It stands before every kernel's source, and needs no other header, neither of NVRTC nor of hipRTC. It is written in
// the common subset of CUDA C++ and HIP C++ (C++14). Three macros come from the library:
//
//   GPUMEM_WAVE    work-items of a wave of the device: 32 or 64
//   GPUMEM_BOUNDS  1: an index past the end stops the kernel, which fails with an asynchronous fault; 0: unchecked; 2: unchecked in
//                  slices and views, for a kernel of the library that gives a function of the caller's elements, not slices
//   GPUMEM_MOST_ITEMS      the most work-items of a group, with GPUMEM_LEAST_GROUPS, the groups that a multiprocessor is to hold, or 0
//   GPUMEM_CONSTANT_BYTES  bytes of constant memory for `constant_array` parameters; 0 without any
//
// A kernel:
//
//   using namespace gpumem;
//   GPUMEM_KERNEL saxpy(slice<const float> x, slice<float> y, float a) {
//       u64 i = global_id(0);
//       if (i < y.size()) y[i] = a * x[i] + y[i];
//   }
//
// Names are those of the Rust side (`WorkItem`, `Slice`, `View`, ..), so that both bodies of a kernel read alike.

#ifndef GPUMEM_PRELUDE
#define GPUMEM_PRELUDE 1

#if defined(__HIP__) || defined(__HIPCC_RTC__) || defined(__HIP_PLATFORM_AMD__)
#define GPUMEM_AMD 1
#else
#define GPUMEM_AMD 0
#endif

#ifndef GPUMEM_WAVE
#error "GPUMEM_WAVE, the wave size of the device, is not defined"
#endif
#ifndef GPUMEM_BOUNDS
#define GPUMEM_BOUNDS 0
#endif
#ifndef GPUMEM_CONSTANT_BYTES
#define GPUMEM_CONSTANT_BYTES 0
#endif

#define GPUMEM_DEVICE __device__ __forceinline__

// Begins a kernel: `GPUMEM_KERNEL name(parameters) { body }`. The name is not mangled.
#ifndef GPUMEM_MOST_ITEMS
#define GPUMEM_KERNEL extern "C" __global__ void
#elif GPUMEM_AMD || GPUMEM_LEAST_GROUPS == 0
// HIP's second number is not that of groups.
#define GPUMEM_KERNEL extern "C" __global__ void __launch_bounds__(GPUMEM_MOST_ITEMS)
#else
#define GPUMEM_KERNEL extern "C" __global__ void __launch_bounds__(GPUMEM_MOST_ITEMS, GPUMEM_LEAST_GROUPS)
#endif

namespace gpumem {

// ---- types ----------------------------------------------------------------------------------------------------------

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
static_assert(sizeof(i16) == 2 && sizeof(i32) == 4 && sizeof(i64) == 8 && sizeof(void*) == 8, "the sizes of integers");

namespace detail {
// Also a constant, as tables of constants need.
template <class To, class From> GPUMEM_DEVICE constexpr To bits(From from) { return __builtin_bit_cast(To, from); }
}  // namespace detail

// IEEE binary16, as the crate `half` has it. Arithmetic goes through float.
struct f16 {
    u16 raw;
    f16() = default;
    GPUMEM_DEVICE f16(float value) {
#if GPUMEM_AMD
        raw = detail::bits<u16>((_Float16)value);
#else
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(raw) : "f"(value));
#endif
    }
    GPUMEM_DEVICE operator float() const {
#if GPUMEM_AMD
        return (float)detail::bits<_Float16>(raw);
#else
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(raw));
        return value;
#endif
    }
};

// The upper half of a float, rounded to nearest even, as the crate `half` has it. Arithmetic goes through float.
struct bf16 {
    u16 raw;
    bf16() = default;
    GPUMEM_DEVICE bf16(float value) {
        u32 all = detail::bits<u32>(value);
        bool nan = (all & 0x7fffffffu) > 0x7f800000u;
        raw = (u16)(nan ? (all >> 16) | 0x40u : (all + 0x7fffu + ((all >> 16) & 1u)) >> 16);
    }
    GPUMEM_DEVICE operator float() const { return detail::bits<float>((u32)raw << 16); }
};

// A complex number, as the crate `num-complex` has it.
template <class T> struct complex {
    T re, im;
    complex() = default;
    GPUMEM_DEVICE constexpr complex(T real, T imaginary = T(0)) : re(real), im(imaginary) {}
    GPUMEM_DEVICE complex operator+(complex o) const { return complex(re + o.re, im + o.im); }
    GPUMEM_DEVICE complex operator-(complex o) const { return complex(re - o.re, im - o.im); }
    GPUMEM_DEVICE complex operator*(complex o) const {
        return complex(re * o.re - im * o.im, re * o.im + im * o.re);
    }
    GPUMEM_DEVICE bool operator==(complex o) const { return re == o.re && im == o.im; }
    GPUMEM_DEVICE bool operator!=(complex o) const { return !(*this == o); }
    GPUMEM_DEVICE complex conj() const { return complex(re, -im); }
    GPUMEM_DEVICE T norm_sqr() const { return re * re + im * im; }
};
static_assert(sizeof(f16) == 2 && sizeof(bf16) == 2 && sizeof(complex<float>) == 8 && alignof(complex<float>) == 4,
              "the sizes of elements");

// ---- ids: axis 0 is x, 1 is y, 2 is z ---------------------------------------------------------------------------------

// Position in the work-group (CUDA: threadIdx).
GPUMEM_DEVICE u32 local_id(int axis) {
    return axis == 0 ? threadIdx.x : axis == 1 ? threadIdx.y : axis == 2 ? threadIdx.z : 0;
}
// Position of the work-group (CUDA: blockIdx).
GPUMEM_DEVICE u32 group_id(int axis) {
    return axis == 0 ? blockIdx.x : axis == 1 ? blockIdx.y : axis == 2 ? blockIdx.z : 0;
}
// Work-items of a group (CUDA: blockDim).
GPUMEM_DEVICE u32 group_size(int axis) {
    return axis == 0 ? blockDim.x : axis == 1 ? blockDim.y : axis == 2 ? blockDim.z : 1;
}
// Groups of the launch (CUDA: gridDim).
GPUMEM_DEVICE u32 groups(int axis) {
    return axis == 0 ? gridDim.x : axis == 1 ? gridDim.y : axis == 2 ? gridDim.z : 1;
}
// Position in the launch.
GPUMEM_DEVICE u64 global_id(int axis) { return (u64)group_id(axis) * group_size(axis) + local_id(axis); }
// Work-items of the launch along an axis.
GPUMEM_DEVICE u64 global_size(int axis) { return (u64)groups(axis) * group_size(axis); }
// Position in the group with x running fastest: the order in which work-items fill waves.
GPUMEM_DEVICE u32 local_linear() {
    return (local_id(2) * group_size(1) + local_id(1)) * group_size(0) + local_id(0);
}
// Position of the group with x running fastest.
GPUMEM_DEVICE u64 group_linear() {
    return ((u64)group_id(2) * groups(1) + group_id(1)) * groups(0) + group_id(0);
}

// ---- barriers and fences ----------------------------------------------------------------------------------------------

// Which memory a barrier makes visible. A type and never a number. Not using one of the names is no reason to warn.
enum class barrier_scope { local, global, both };
__attribute__((unused)) constexpr barrier_scope LOCAL = barrier_scope::local;
__attribute__((unused)) constexpr barrier_scope GLOBAL = barrier_scope::global;
__attribute__((unused)) constexpr barrier_scope BOTH = barrier_scope::both;
__attribute__((unused)) constexpr barrier_scope CLK_LOCAL_MEM_FENCE = LOCAL;
__attribute__((unused)) constexpr barrier_scope CLK_GLOBAL_MEM_FENCE = GLOBAL;

// Waits until all work-items of the group have come here; what they wrote to the memory of the scope is there for all of
// them. All of the group must come to the same barrier. Both toolchains have one barrier for every scope.
GPUMEM_DEVICE void barrier(barrier_scope scope = GLOBAL) {
    (void)scope;
#if GPUMEM_AMD
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
#else
    __syncthreads();
#endif
}

// Waits until all work-items of the wave have come here, with a fence for shared and global memory among them.
GPUMEM_DEVICE void wavebarrier() {
#if GPUMEM_AMD
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
#else
    __syncwarp();
#endif
}

// Makes writes before it visible to other groups before writes after it.
GPUMEM_DEVICE void memory_fence() {
#if GPUMEM_AMD
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
#else
    __threadfence();
#endif
}

// ---- memory -----------------------------------------------------------------------------------------------------------

namespace detail {
// Stops the kernel. The launch fails with an asynchronous fault.
GPUMEM_DEVICE void stop() {
#if GPUMEM_AMD
    __builtin_trap();
#else
    asm volatile("trap;");
#endif
}
GPUMEM_DEVICE void in_bounds(u64 index, u64 extent) {
#if GPUMEM_BOUNDS
    if (index >= extent) stop();
#else
    (void)index, (void)extent;
#endif
}
// The same, of a slice or a view.
GPUMEM_DEVICE void in_parameter(u64 index, u64 extent) {
#if GPUMEM_BOUNDS == 1
    in_bounds(index, extent);
#else
    (void)index, (void)extent;
#endif
}

template <u64... Extents> struct product;
template <> struct product<> { static constexpr u64 value = 1; };
template <u64 First, u64... Rest> struct product<First, Rest...> {
    static constexpr u64 rest = product<Rest...>::value;
    static_assert(rest == 0 || First <= ~0ull / rest, "the extents have a product of 64 bits");
    static constexpr u64 value = First * rest;
};

// The row-major position of an index in fixed extents.
template <u64... Extents> struct row_major;
template <> struct row_major<> {
    GPUMEM_DEVICE static u64 at(u64 linear) { return linear; }
};
template <u64 First, u64... Rest> struct row_major<First, Rest...> {
    template <class... Indices> GPUMEM_DEVICE static u64 at(u64 linear, u64 index, Indices... rest) {
        in_bounds(index, First);
        return row_major<Rest...>::at(linear * First + index, rest...);
    }
};
}  // namespace detail

// An array of fixed extents: of one work-item (a local array) when declared as it is, of the group when declared with
// GPUMEM_SHARED. Indexed as `tile(y, x)`.
template <class T, u64... Extents> struct array {
    // C++ has no array without elements: that has one, which no index names.
    T elements[detail::product<Extents...>::value == 0 ? 1 : detail::product<Extents...>::value];
    template <class... Indices> GPUMEM_DEVICE T& operator()(Indices... indices) {
        static_assert(sizeof...(Indices) == sizeof...(Extents), "one index for each axis");
        return elements[detail::row_major<Extents...>::at(0, (u64)indices...)];
    }
    template <class... Indices> GPUMEM_DEVICE const T& operator()(Indices... indices) const {
        static_assert(sizeof...(Indices) == sizeof...(Extents), "one index for each axis");
        return elements[detail::row_major<Extents...>::at(0, (u64)indices...)];
    }
};

// A shared array: `GPUMEM_SHARED(float, tile, 32, 33);` is one float tile[32][33] for the group.
#define GPUMEM_SHARED(T, name, ...) __shared__ ::gpumem::array<T, __VA_ARGS__> name

// The dynamic shared memory of the launch, as a pointer to elements.
#define GPUMEM_DYNAMIC_SHARED(T, name)                                   \
    extern __shared__ __attribute__((aligned(16))) unsigned char gpumem_dynamic_shared[]; \
    T* name = reinterpret_cast<T*>(gpumem_dynamic_shared)

// Bytes of the dynamic shared memory of the launch.
GPUMEM_DEVICE u32 dynamic_shared_bytes() {
#if GPUMEM_AMD
    // A field of the packet that AMD's queue launched the kernel with: all of the group's memory.
    u32 all = *(const u32*)((const char*)(const void*)__builtin_amdgcn_dispatch_ptr() + 28);
    return all - __builtin_amdgcn_groupstaticsize();
#else
    u32 bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
#endif
}

namespace detail {
template <class A, class B> struct same;
template <class A> struct same<A, A> { typedef A type; };
}  // namespace detail

// A packed array as one row of elements. One that is written stands for one that is read.
template <class T> struct slice {
    T* data;
    u64 length;
    template <class U, class = typename detail::same<const T, U>::type> GPUMEM_DEVICE operator slice<U>() const {
        return slice<U>{data, length};
    }
    GPUMEM_DEVICE u64 size() const { return length; }
    GPUMEM_DEVICE T& operator[](u64 index) const {
        detail::in_parameter(index, length);
        return data[index];
    }
};

// An array of N axes, of any strides. Strides count bytes, as in NumPy. Indexed as `image(y, x)`.
template <class T, int N> struct view {
    T* data;
    u64 extents[N];
    i64 strides[N];
    template <class U, class = typename detail::same<const T, U>::type> GPUMEM_DEVICE operator view<U, N>() const {
        view<U, N> read = {data, {}, {}};
        for (int axis = 0; axis < N; ++axis) {
            read.extents[axis] = extents[axis];
            read.strides[axis] = strides[axis];
        }
        return read;
    }
    GPUMEM_DEVICE u64 extent(int axis) const { return axis < N ? extents[axis] : 1; }
    template <class... Indices> GPUMEM_DEVICE T& operator()(Indices... indices) const {
        static_assert(sizeof...(Indices) == N, "one index for each axis");
        return *(T*)((const char*)data + offset(0, (u64)indices...));
    }

   private:
    GPUMEM_DEVICE i64 offset(int) const { return 0; }
    template <class... Rest> GPUMEM_DEVICE i64 offset(int axis, u64 index, Rest... rest) const {
        detail::in_parameter(index, extents[axis]);
        return (i64)index * strides[axis] + offset(axis + 1, rest...);
    }
};
template <class T> struct view<T, 0> {
    T* data;
    template <class U, class = typename detail::same<const T, U>::type> GPUMEM_DEVICE operator view<U, 0>() const {
        return view<U, 0>{data};
    }
    GPUMEM_DEVICE u64 extent(int) const { return 1; }
    GPUMEM_DEVICE T& operator()() const { return *data; }
};

// A constant array, given by value with each launch. It lies where the device keeps arguments: in constant memory.
template <class T, u64 Length> struct constant {
    T elements[Length];
    GPUMEM_DEVICE u64 size() const { return Length; }
    GPUMEM_DEVICE const T& operator[](u64 index) const {
        detail::in_bounds(index, Length);
        return elements[index];
    }
};
template <class T> struct constant<T, 0> {
    GPUMEM_DEVICE u64 size() const { return 0; }
    GPUMEM_DEVICE T operator[](u64 index) const {
        detail::in_bounds(index, 0);
        return T();
    }
};

#if GPUMEM_CONSTANT_BYTES > 0
}  // namespace gpumem

// What the library fills before a launch; it finds it by this name.
__constant__ __attribute__((aligned(16))) unsigned char gpumem_constant_memory[GPUMEM_CONSTANT_BYTES];

namespace gpumem {
// An array of N axes in constant memory. Indexed as `weights(y, x)`.
template <class T, int N> struct constant_array {
    u64 address;
    u64 place;
    u64 extents[N];
    i64 strides[N];
    GPUMEM_DEVICE u64 extent(int axis) const { return axis < N ? extents[axis] : 1; }
    template <class... Indices> GPUMEM_DEVICE const T& operator()(Indices... indices) const {
        static_assert(sizeof...(Indices) == N, "one index for each axis");
        // From the name itself, so that the compiler knows which memory this is.
        return *(const T*)(gpumem_constant_memory + (place + offset(0, (u64)indices...)));
    }

   private:
    GPUMEM_DEVICE u64 offset(int) const { return 0; }
    template <class... Rest> GPUMEM_DEVICE u64 offset(int axis, u64 index, Rest... rest) const {
        detail::in_bounds(index, extents[axis]);
        return index * (u64)strides[axis] + offset(axis + 1, rest...);
    }
};
template <class T> struct constant_array<T, 0> {
    u64 address;
    u64 place;
    GPUMEM_DEVICE u64 extent(int) const { return 1; }
    GPUMEM_DEVICE const T& operator()() const { return *(const T*)(gpumem_constant_memory + place); }
};
#endif

// ---- waves ------------------------------------------------------------------------------------------------------------

// Work-items of a wave.
GPUMEM_DEVICE u32 wave_size() { return GPUMEM_WAVE; }
// The wave of this work-item in its group.
GPUMEM_DEVICE u32 wave_id() { return local_linear() / GPUMEM_WAVE; }
// The place of this work-item in its wave.
GPUMEM_DEVICE u32 lane() { return local_linear() % GPUMEM_WAVE; }
// Work-items of this wave: fewer in the last wave of a group whose size does not divide.
GPUMEM_DEVICE u32 wave_items() {
    u32 rest = group_size(0) * group_size(1) * group_size(2) - wave_id() * GPUMEM_WAVE;
    return rest < GPUMEM_WAVE ? rest : GPUMEM_WAVE;
}

namespace detail {
#if !GPUMEM_AMD
GPUMEM_DEVICE u32 wave_mask() {
    u32 items = wave_items();
    return items == 32 ? 0xffffffffu : (1u << items) - 1;
}
#endif
GPUMEM_DEVICE u32 word_of(u32 word, u32 from) {
#if GPUMEM_AMD
    return (u32)__builtin_amdgcn_ds_bpermute((int)(from << 2), (int)word);
#else
    return __shfl_sync(wave_mask(), word, (int)from);
#endif
}
}  // namespace detail

// What follows is done by all work-items of a wave together; of `lane`s that the wave does not have, every work-item
// gets its own value back.

// The value that `from` gives.
template <class T> GPUMEM_DEVICE T shuffle(T value, u64 from) {
    u32 words[(sizeof(T) + 3) / 4] = {};
    memcpy(words, &value, sizeof(T));
    u32 source = from < wave_items() ? (u32)from : lane();
    for (u32 i = 0; i < (sizeof(T) + 3) / 4; ++i) words[i] = detail::word_of(words[i], source);
    T result;
    memcpy(&result, words, sizeof(T));
    return result;
}
// The value of the lane `distance` below.
template <class T> GPUMEM_DEVICE T shuffle_up(T value, u64 distance) {
    return shuffle(value, lane() < distance ? lane() : lane() - (u32)distance);
}
// The value of the lane `distance` above.
template <class T> GPUMEM_DEVICE T shuffle_down(T value, u64 distance) {
    // The sum is computed only where it stays within the wave: it would wrap for the largest distances.
    return shuffle(value, distance < wave_items() ? lane() + (u32)distance : lane());
}
// The value of the lane whose number differs in the bits of `mask`.
template <class T> GPUMEM_DEVICE T shuffle_xor(T value, u64 mask) { return shuffle(value, lane() ^ mask); }

// A bit for each lane: whether its condition holds.
GPUMEM_DEVICE u64 wave_ballot(bool condition) {
#if GPUMEM_AMD
    return __builtin_amdgcn_uicmp((u32)condition, 0u, 33);
#else
    return __ballot_sync(detail::wave_mask(), condition);
#endif
}
// Whether the condition holds in any lane.
GPUMEM_DEVICE bool wave_any(bool condition) { return wave_ballot(condition) != 0; }
// Whether the condition holds in every lane.
GPUMEM_DEVICE bool wave_all(bool condition) { return wave_ballot(!condition) == 0; }

namespace detail {
// Integers wrap: a sum that does not fit a signed type would be undefined.
struct plus {
    template <class T> GPUMEM_DEVICE T operator()(T a, T b) const { return a + b; }
    GPUMEM_DEVICE i32 operator()(i32 a, i32 b) const { return (i32)((u32)a + (u32)b); }
    GPUMEM_DEVICE i64 operator()(i64 a, i64 b) const { return (i64)((u64)a + (u64)b); }
};
// Of a number and a NaN the number, as in Rust.
struct least {
    template <class T> GPUMEM_DEVICE T operator()(T a, T b) const { return b < a || a != a ? b : a; }
};
struct greatest {
    template <class T> GPUMEM_DEVICE T operator()(T a, T b) const { return b > a || a != a ? b : a; }
};
}  // namespace detail

// All values of the wave combined, for every lane: a tree over distances of half a wave down to 1, the same as on the
// host, so that sums of floating-point numbers are equal.
template <class T, class Op> GPUMEM_DEVICE T wave_reduce(T value, Op op) {
    for (u32 distance = GPUMEM_WAVE / 2; distance > 0; distance /= 2) {
        T other = shuffle_down(value, distance);
        // The values of other lanes are used no more, and what `op` makes of them might stop the kernel.
        if (lane() < distance && lane() + distance < wave_items()) value = op(value, other);
    }
    return shuffle(value, 0);
}
template <class T> GPUMEM_DEVICE T wave_sum(T value) { return wave_reduce(value, detail::plus()); }
template <class T> GPUMEM_DEVICE T wave_min(T value) { return wave_reduce(value, detail::least()); }
template <class T> GPUMEM_DEVICE T wave_max(T value) { return wave_reduce(value, detail::greatest()); }

// The sum over lanes 0 to this one.
template <class T> GPUMEM_DEVICE T wave_scan(T value) {
    for (u32 distance = 1; distance < GPUMEM_WAVE; distance *= 2) {
        T other = shuffle_up(value, distance);
        if (lane() >= distance) value = detail::plus()(other, value);
    }
    return value;
}

// ---- atomics: relaxed, for 32-bit and 64-bit numbers, in shared and in global memory; each gives the old value -----------

namespace detail {
template <unsigned Bytes> struct word;
template <> struct word<4> { typedef u32 type; };
template <> struct word<8> { typedef u64 type; };
}  // namespace detail

// Replaces a number by `change` of it; `change` may run several times.
template <class T, class Change> GPUMEM_DEVICE T atomic_update(T& target, Change change) {
    typedef typename detail::word<sizeof(T)>::type word;
    word* address = reinterpret_cast<word*>(&target);
    word seen = *reinterpret_cast<volatile word*>(address);
    for (;;) {
        word wanted = detail::bits<word>(change(detail::bits<T>(seen)));
        word found = atomicCAS(address, seen, wanted);
        if (found == seen) return detail::bits<T>(seen);
        seen = found;
    }
}
GPUMEM_DEVICE u32 atomic_add(u32& target, u32 value) { return atomicAdd(&target, value); }
GPUMEM_DEVICE i32 atomic_add(i32& target, i32 value) { return atomicAdd(&target, value); }
GPUMEM_DEVICE u64 atomic_add(u64& target, u64 value) { return atomicAdd(&target, value); }
GPUMEM_DEVICE i64 atomic_add(i64& target, i64 value) {
    return (i64)atomicAdd(reinterpret_cast<u64*>(&target), (u64)value);
}
GPUMEM_DEVICE float atomic_add(float& target, float value) {
#ifdef __CUDA_ARCH__
    // NVIDIA's addition in global memory takes subnormal numbers for zeros. It is right from 2^-101 on: such a value hides them,
    // and its sums are none.
    if (!(fabsf(value) >= 3.9443045e-31f)) return atomic_update(target, [value](float old) { return old + value; });
#endif
    return atomicAdd(&target, value);
}
GPUMEM_DEVICE double atomic_add(double& target, double value) { return atomicAdd(&target, value); }
template <class T> GPUMEM_DEVICE T atomic_min(T& target, T value) {
    return atomic_update(target, [value](T old) { return detail::least()(old, value); });
}
template <class T> GPUMEM_DEVICE T atomic_max(T& target, T value) {
    return atomic_update(target, [value](T old) { return detail::greatest()(old, value); });
}
GPUMEM_DEVICE u32 atomic_min(u32& target, u32 value) { return atomicMin(&target, value); }
GPUMEM_DEVICE i32 atomic_min(i32& target, i32 value) { return atomicMin(&target, value); }
GPUMEM_DEVICE u32 atomic_max(u32& target, u32 value) { return atomicMax(&target, value); }
GPUMEM_DEVICE i32 atomic_max(i32& target, i32 value) { return atomicMax(&target, value); }

// Replaces a number by `value`.
template <class T> GPUMEM_DEVICE T atomic_exchange(T& target, T value) {
    return atomic_update(target, [value](T) { return value; });
}
// Replaces a number by `value` where it has the bits of `expected`.
template <class T> GPUMEM_DEVICE T atomic_compare_exchange(T& target, T expected, T value) {
    typedef typename detail::word<sizeof(T)>::type word;
    word* address = reinterpret_cast<word*>(&target);
    return detail::bits<T>(atomicCAS(address, detail::bits<word>(expected), detail::bits<word>(value)));
}

// ---- what the library checks about a kernel ---------------------------------------------------------------------------

namespace detail {
// A type that the library knows by size and alignment only.
template <u64 Size, u64 Align> struct sized;

template <class Declared, class Found> struct fits { static constexpr bool value = false; };
template <class Same> struct fits<Same, Same> { static constexpr bool value = true; };
template <u64 Size, u64 Align, class Found> struct fits<sized<Size, Align>, Found> {
    static constexpr bool value = sizeof(Found) == Size && alignof(Found) == Align;
};

template <class... Types> struct list;
template <class Declared, class Found> struct all_fit { static constexpr bool value = false; };
template <> struct all_fit<list<>, list<>> { static constexpr bool value = true; };
template <class D, class... Ds, class F, class... Fs> struct all_fit<list<D, Ds...>, list<F, Fs...>> {
    static constexpr bool value = fits<D, F>::value && all_fit<list<Ds...>, list<Fs...>>::value;
};

template <class Function, class... Declared> struct has_parameters { static constexpr bool value = false; };
template <class... Found, class... Declared> struct has_parameters<void(Found...), Declared...> {
    static constexpr bool value = all_fit<list<Declared...>, list<Found...>>::value;
};
}  // namespace detail

}  // namespace gpumem

#endif
