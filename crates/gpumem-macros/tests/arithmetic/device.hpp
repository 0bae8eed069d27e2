// The words of HIP that the prelude is written with, for one work-item at a time on a processor.
#include <math.h>
#include <string.h>

#define __HIP__ 1
#define __device__
#define __global__
#define __constant__
#define __shared__ static
#define __forceinline__ inline
// Half precision is not run here.
#define _Float16 short

struct three {
    unsigned x, y, z;
};
static three threadIdx = {0, 0, 0}, blockIdx = {0, 0, 0}, blockDim = {1, 1, 1}, gridDim = {1, 1, 1};

// No shared memory beyond what is declared.
static unsigned packet[16];
#define __builtin_amdgcn_dispatch_ptr() packet
#define __builtin_amdgcn_groupstaticsize() 0u
#define __builtin_amdgcn_fence(order, scope)
#define __builtin_amdgcn_s_barrier()
#define __builtin_amdgcn_wave_barrier()
#define __builtin_amdgcn_ds_bpermute(lane, word) (word)
#define __builtin_amdgcn_uicmp(a, b, predicate) ((a) != (b) ? 1ull : 0ull)

template <class T> T atomicAdd(T* target, T value) {
    T old = *target;
    *target += value;
    return old;
}
template <class T> T atomicMin(T* target, T value) {
    T old = *target;
    if (value < old) *target = value;
    return old;
}
template <class T> T atomicMax(T* target, T value) {
    T old = *target;
    if (value > old) *target = value;
    return old;
}
template <class T> T atomicCAS(T* target, T seen, T wanted) {
    T old = *target;
    if (old == seen) *target = wanted;
    return old;
}
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __clzll(long long bits) { return bits == 0 ? 64 : __builtin_clzll((unsigned long long)bits); }
inline unsigned long long __brevll(unsigned long long bits) {
    unsigned long long reversed = 0;
    for (int at = 0; at < 64; ++at) reversed |= (bits >> at & 1) << (63 - at);
    return reversed;
}
inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }

// Which work-item runs next.
extern "C" void work_item(unsigned number) { blockIdx.x = number; }
// Which lane of a wave of 32 runs next. The others give what it gives.
extern "C" void lane_of_wave(unsigned number) { blockDim.x = 32, threadIdx.x = number; }
