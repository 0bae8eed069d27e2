// Copies between any two layouts in memory that the device reaches. The host side is strided.rs, which prepares the
// structures below; both files describe them in the same order. After a change run build.py, which writes pack.ptx.

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

#define TILE 32
#define ROWS 8

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

template <typename T>
__device__ __forceinline__ void turn(const Turn &w) {
    __shared__ T tile[TILE][TILE + 1];
    const int rank = (int)w.rank;
    for (u64 i = blockIdx.x; i < w.tiles; i += gridDim.x) {
        u64 rest = i;
        const i64 first_to = (i64)(rest % (u64)w.tiles_to) * TILE;
        rest /= (u64)w.tiles_to;
        const i64 first_from = (i64)(rest % (u64)w.tiles_from) * TILE;
        rest /= (u64)w.tiles_from;
        u64 from = w.from, to = w.to;
        for (int axis = rank - 1; axis >= 0; axis--) {
            const u64 next = rest / (u64)w.length[axis];
            const i64 at = (i64)(rest - next * (u64)w.length[axis]);
            from += (u64)(at * w.from_stride[axis]);
            to += (u64)(at * w.to_stride[axis]);
            rest = next;
        }
        const i64 across = first_from + threadIdx.x;
        for (int y = threadIdx.y; y < TILE; y += ROWS) {
            const i64 along = first_to + y;
            if (along < w.length_to && across < w.length_from) {
                tile[y][threadIdx.x] =
                    *(const T *)(from + (u64)(along * w.from_stride_to + across * w.from_stride_from));
            }
        }
        __syncthreads();
        const i64 along = first_to + threadIdx.x;
        for (int y = threadIdx.y; y < TILE; y += ROWS) {
            const i64 across_row = first_from + y;
            if (along < w.length_to && across_row < w.length_from) {
                *(T *)(to + (u64)(along * w.to_stride_to + across_row * w.to_stride_from)) =
                    tile[threadIdx.x][y];
            }
        }
        __syncthreads();
    }
}

#define KERNELS(BYTES, TYPE) \
    extern "C" __global__ void gpumem_walk_##BYTES(const Walk w) { walk<TYPE, u32>(w); } \
    extern "C" __global__ void gpumem_walk_far_##BYTES(const Walk w) { walk<TYPE, u64>(w); } \
    extern "C" __global__ void gpumem_turn_##BYTES(const Turn w) { turn<TYPE>(w); }

KERNELS(1, unsigned char)
KERNELS(2, unsigned short)
KERNELS(4, unsigned int)
KERNELS(8, u64)
KERNELS(16, uint4)
