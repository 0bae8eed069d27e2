// What HIP's compiler knows and NVRTC does not. It comes before every program that hipRTC is given.
//
// Only what the hipRTC of ROCm 5.2 knows too, so that nothing is accepted here that AMD's would refuse.
//
// Common to both and so not here: threadIdx and its kin, __syncthreads, __threadfence*, atomics, __shared__,
// __launch_bounds__, mathematical functions, clock64, printf.
#pragma once

#define __HIP__ 1
#define __HIPCC__ 1
#define __HIPCC_RTC__ 1
#define __HIP_DEVICE_COMPILE__ 1
// Neither __HIP_PLATFORM_AMD__ nor __AMDGCN__: code for AMD's hardware alone must not be chosen.
#define __HIP_PLATFORM_NVIDIA__ 1
#define __HIP_ON_CUDA__ 1

// Orders of the fences below.
#ifndef __ATOMIC_RELAXED
#define __ATOMIC_RELAXED 0
#define __ATOMIC_CONSUME 1
#define __ATOMIC_ACQUIRE 2
#define __ATOMIC_RELEASE 3
#define __ATOMIC_ACQ_REL 4
#define __ATOMIC_SEQ_CST 5
#endif

namespace hip_on_cuda {
__device__ inline unsigned lane() {
    unsigned lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}
// Scopes are "wavefront", "workgroup", "agent", "singlethread" and, for the whole system, "". The order has no
// influence: CUDA's fences order both ways.
__device__ inline void fence(const char* scope) {
    switch (scope[0]) {
    case 'w': __threadfence_block(); break;
    case 'a': __threadfence(); break;
    case 's': break;
    default: __threadfence_system();
    }
}
// Compares in every lane and gives the answers as the bits of a mask. The codes are LLVM's: 32 equal, 33 not equal.
__device__ inline unsigned long long compare(unsigned left, unsigned right, int how) {
    return __ballot_sync(__activemask(), how == 32 ? left == right : left != right);
}
// What AMD's packet says of a launch, as far as kernels read it: the shared memory beside what is declared.
struct packet {
    unsigned words[16];
    __device__ packet() : words() { asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(words[7])); }
};
}  // namespace hip_on_cuda

// Clang's name for IEEE binary16, as far as conversions go.
struct _Float16 {
    unsigned short raw;
    _Float16() = default;
    __device__ explicit _Float16(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(raw) : "f"(value)); }
    __device__ explicit operator float() const {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(raw));
        return value;
    }
};

#define __builtin_trap() __trap()
#define __builtin_amdgcn_dispatch_ptr() hip_on_cuda::packet().words
#define __builtin_amdgcn_groupstaticsize() 0u
#define __builtin_amdgcn_uicmp(left, right, how) hip_on_cuda::compare((left), (right), (how))
// Lanes are addressed in bytes.
#define __builtin_amdgcn_ds_bpermute(address, word) __shfl_sync(__activemask(), (word), (address) >> 2)

// AMD's barrier orders no memory by itself. A wave of CUDA's need not run in step: its barrier is a real one.
#define __builtin_amdgcn_s_barrier() __syncthreads()
#define __builtin_amdgcn_wave_barrier() __syncwarp()
#define __builtin_amdgcn_fence(order, scope) hip_on_cuda::fence(scope)
#define __builtin_amdgcn_workgroup_id_x() blockIdx.x
#define __builtin_amdgcn_workgroup_id_y() blockIdx.y
#define __builtin_amdgcn_workgroup_id_z() blockIdx.z
#define __builtin_amdgcn_workitem_id_x() threadIdx.x
#define __builtin_amdgcn_workitem_id_y() threadIdx.y
#define __builtin_amdgcn_workitem_id_z() threadIdx.z
#define __builtin_amdgcn_mbcnt_lo(mask, add) (__popc((mask) & ((1u << hip_on_cuda::lane()) - 1u)) + (add))
#define __builtin_amdgcn_mbcnt_hi(mask, add) (add)

__device__ inline unsigned __lane_id() { return hip_on_cuda::lane(); }

// HIP's operations of a wave take no mask. Those who do not take part may have gone, so that the active ones are
// meant. HIP's ballot has 64 bits.
template <typename T> __device__ inline T __shfl(T value, int lane, int width = warpSize) {
    return __shfl_sync(__activemask(), value, lane, width);
}
template <typename T> __device__ inline T __shfl_up(T value, unsigned delta, int width = warpSize) {
    return __shfl_up_sync(__activemask(), value, delta, width);
}
template <typename T> __device__ inline T __shfl_down(T value, unsigned delta, int width = warpSize) {
    return __shfl_down_sync(__activemask(), value, delta, width);
}
template <typename T> __device__ inline T __shfl_xor(T value, int mask, int width = warpSize) {
    return __shfl_xor_sync(__activemask(), value, mask, width);
}
#define __any(predicate) __any_sync(__activemask(), (predicate))
#define __all(predicate) __all_sync(__activemask(), (predicate))
#define __ballot(predicate) ((unsigned long long)__ballot_sync(__activemask(), (predicate)))
