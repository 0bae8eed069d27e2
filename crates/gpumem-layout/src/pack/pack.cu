// Copies between any two layouts in memory that the device reaches, for NVRTC and hipRTC alike. The host side is work.rs,
// which describes the structures below in the same order. After a change run build.py of gpumem-cuda, which writes pack.ptx.

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

// A loop nest; the last axis is the innermost. Strides count bytes.
struct Walk {
    u64 from, to;
    u64 total;
    u64 rank;
    i64 length[8];
    i64 from_stride[8];
    i64 to_stride[8];
};

// One unit after the other: neighbouring threads take neighbours of the innermost axis.
template <typename T, typename Index>
__device__ __forceinline__ void walk(const Walk &w) {
    const Index total = (Index)w.total;
    const int rank = (int)w.rank;
    const Index step = (Index)gridDim.x * (Index)blockDim.x;
    for (Index i = (Index)blockIdx.x * (Index)blockDim.x + (Index)threadIdx.x; i < total; i += step) {
        Index rest = i;
        i64 from = 0, to = 0;
#pragma unroll
        for (int axis = 7; axis >= 0; axis--) {
            if (axis < rank) {
                Index at = rest;
                if (axis > 0) {
                    const Index length = (Index)w.length[axis];
                    const Index next = rest / length;
                    at = rest - next * length;
                    rest = next;
                }
                from += (i64)at * w.from_stride[axis];
                to += (i64)at * w.to_stride[axis];
            }
        }
        *(T *)(w.to + to) = *(const T *)(w.from + from);
    }
}

// A transpose: units lie side by side along one axis in the destination, and along another in the source.
struct Turn {
    u64 from, to;
    u64 tiles;
    u64 rank;
    // Of the axis along which the destination is read in a row, and of the one along which the source is.
    i64 length_to, length_from;
    i64 tiles_to, tiles_from;
    i64 from_stride_to, to_stride_to;
    i64 from_stride_from, to_stride_from;
    // The axes around them, outermost first.
    i64 length[6];
    i64 from_stride[6];
    i64 to_stride[6];
};

// A group of TILE x ROWS threads. A whole tile is read before any of it is written to shared memory, so that all reads of a
// thread are on their way at once.
template <typename T, int TILE>
__device__ __forceinline__ void turn(const Turn &w) {
    enum { ROWS = 8, EACH = TILE / ROWS };
    __shared__ T tile[TILE][TILE + 1];
    const int rank = (int)w.rank, x = threadIdx.x, y = threadIdx.y;
    for (u64 i = blockIdx.x; i < w.tiles; i += gridDim.x) {
        i64 first_to, first_from;
        u64 from = w.from, to = w.to;
        // Dividing 64 bits takes as long as moving several units.
        if (w.tiles <= 0xFFFFFFFFu) {
            u32 rest = (u32)i;
            u32 next = rest / (u32)w.tiles_to;
            first_to = (i64)(rest - next * (u32)w.tiles_to) * TILE;
            rest = next;
            next = rest / (u32)w.tiles_from;
            first_from = (i64)(rest - next * (u32)w.tiles_from) * TILE;
            rest = next;
            for (int axis = rank - 1; axis >= 0; axis--) {
                next = rest / (u32)w.length[axis];
                const i64 at = (i64)(rest - next * (u32)w.length[axis]);
                from += (u64)(at * w.from_stride[axis]);
                to += (u64)(at * w.to_stride[axis]);
                rest = next;
            }
        } else {
            u64 rest = i;
            first_to = (i64)(rest % (u64)w.tiles_to) * TILE;
            rest /= (u64)w.tiles_to;
            first_from = (i64)(rest % (u64)w.tiles_from) * TILE;
            rest /= (u64)w.tiles_from;
            for (int axis = rank - 1; axis >= 0; axis--) {
                const i64 at = (i64)(rest % (u64)w.length[axis]);
                rest /= (u64)w.length[axis];
                from += (u64)(at * w.from_stride[axis]);
                to += (u64)(at * w.to_stride[axis]);
            }
        }
        from += (u64)((first_to + y) * w.from_stride_to + (first_from + x) * w.from_stride_from);
        to += (u64)((first_from + y) * w.to_stride_from + (first_to + x) * w.to_stride_to);
        const u64 from_step = (u64)(ROWS * w.from_stride_to), to_step = (u64)(ROWS * w.to_stride_from);
        if (first_to + TILE <= w.length_to && first_from + TILE <= w.length_from) {
            T units[EACH];
#pragma unroll
            for (int k = 0; k < EACH; k++) units[k] = *(const T *)(from + k * from_step);
#pragma unroll
            for (int k = 0; k < EACH; k++) tile[y + k * ROWS][x] = units[k];
            __syncthreads();
#pragma unroll
            for (int k = 0; k < EACH; k++) *(T *)(to + k * to_step) = tile[x][y + k * ROWS];
        } else {
            const i64 rows_from = w.length_to - first_to - y, rows_to = w.length_from - first_from - y;
            for (int k = 0; k < TILE && first_from + x < w.length_from && k < rows_from; k += ROWS, from += from_step)
                tile[y + k][x] = *(const T *)from;
            __syncthreads();
            for (int k = 0; k < TILE && first_to + x < w.length_to && k < rows_to; k += ROWS, to += to_step)
                *(T *)to = tile[x][y + k];
        }
        __syncthreads();
    }
}

// Lines of at least 32 bytes on both sides, and no more shared memory than every device has.
#define KERNELS(BYTES, TYPE, TILE) \
    extern "C" __global__ void gpumem_walk_##BYTES(const Walk w) { walk<TYPE, u32>(w); } \
    extern "C" __global__ void gpumem_walk_far_##BYTES(const Walk w) { walk<TYPE, u64>(w); } \
    extern "C" __global__ void gpumem_turn_##BYTES(const Turn w) { turn<TYPE, TILE>(w); }

// GPUMEM_PACK_UNIT chooses the kernels of one unit, where the compiler runs when they are needed.
#if !defined(GPUMEM_PACK_UNIT) || GPUMEM_PACK_UNIT == 1
KERNELS(1, unsigned char, 64)
#endif
#if !defined(GPUMEM_PACK_UNIT) || GPUMEM_PACK_UNIT == 2
KERNELS(2, unsigned short, 64)
#endif
#if !defined(GPUMEM_PACK_UNIT) || GPUMEM_PACK_UNIT == 4
KERNELS(4, unsigned int, 64)
#endif
#if !defined(GPUMEM_PACK_UNIT) || GPUMEM_PACK_UNIT == 8
KERNELS(8, u64, 32)
#endif
#if !defined(GPUMEM_PACK_UNIT) || GPUMEM_PACK_UNIT == 16
KERNELS(16, uint4, 32)
#endif
