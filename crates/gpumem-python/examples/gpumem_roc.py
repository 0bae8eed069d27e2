"""The examples of Numba's pages on ROC memory, on gpumem. The original needs numba 0.53, the last with `numba.roc`;
what it computes is held against NumPy here, on whatever device there is.

    GPUMEM_DEVICE=roc:0 python3 gpumem_roc.py
"""

from pygpumem import roc
import numpy as np

BLOCKSIZE, GRIDSIZE = 20, 20


def matmul_on_host(A, B, C):
    C[:] = A @ B


# `roc.shared.array(shape=(blocksize, blocksize), dtype=float32)` and `roc.barrier(1)`, in the portable source.
matmulfast = roc.compile(
    """
    using namespace gpumem;
    GPUMEM_KERNEL matmulfast(view<const float, 2> A, view<const float, 2> B, view<float, 2> C) {
        constexpr int blocksize = 20, gridsize = 20;
        u64 x = global_id(0), y = global_id(1);
        u32 tx = local_id(0), ty = local_id(1);
        GPUMEM_SHARED(float, sA, blocksize, blocksize);
        GPUMEM_SHARED(float, sB, blocksize, blocksize);
        float tmp = 0;
        for (int i = 0; i < gridsize; i++) {
            // preload
            sA(tx, ty) = x < A.extent(0) && ty + i * blocksize < A.extent(1) ? A(x, ty + i * blocksize) : 0;
            sB(tx, ty) = tx + i * blocksize < B.extent(0) && y < B.extent(1) ? B(tx + i * blocksize, y) : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            // compute
            for (int j = 0; j < blocksize; j++) tmp += sA(tx, j) * sB(j, ty);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (x < C.extent(0) && y < C.extent(1)) C(x, y) = tmp;
    }
    """,
    host=matmul_on_host,
)


def copy_on_host(src, dst):
    dst[:] = src


copy_kernel = roc.compile(
    """
    using namespace gpumem;
    GPUMEM_KERNEL copy_kernel(slice<const i64> src, slice<i64> dst) {
        u64 i = global_id(0);
        if (i < dst.size()) dst[i] = src[i];
    }
    """,
    host=copy_on_host,
)


def main():
    found, expected = {}, {}

    # Data transfer
    ary = np.arange(10)
    d_ary = roc.to_device(ary)
    found["copy_to_host"], expected["copy_to_host"] = d_ary.copy_to_host(), ary
    hary = np.empty(shape=d_ary.shape, dtype=d_ary.dtype)
    d_ary.copy_to_host(hary)
    found["copy_to_host(ary)"], expected["copy_to_host(ary)"] = hary, ary

    # Device arrays
    d_copy = roc.device_array(shape=10, dtype=np.int64)
    copy_kernel[1, 64](d_ary, d_copy)
    found["device_array"], expected["device_array"] = d_copy.copy_to_host(), ary
    found["device_array_like"] = np.array(roc.device_array_like(ary.reshape(2, 5)).shape)
    expected["device_array_like"] = np.array([2, 5])

    # Streams and registered memory
    src, dst = np.arange(1 << 16), np.zeros(1 << 16, dtype=np.int64)
    stream = roc.stream()
    with roc.register(src, dst), stream.auto_synchronize():
        d_src = roc.to_device(src, stream=stream)
        d_dst = roc.device_array_like(src)
        copy_kernel[(src.size + 255) // 256, 256, stream](d_src, d_dst)
        d_dst.copy_to_host(dst, stream=stream)
    found["register"], expected["register"] = dst, np.arange(1 << 16)
    roc.register(src)
    roc.deregister(src)

    # Shared memory
    size = BLOCKSIZE * GRIDSIZE
    A, B = (np.random.default_rng(seed).integers(0, 8, (size, size)).astype(np.float32) for seed in (1, 2))
    dA, dB = roc.to_device(A), roc.to_device(B)
    dC = roc.device_array_like(A)
    matmulfast[(GRIDSIZE, GRIDSIZE), (BLOCKSIZE, BLOCKSIZE)](dA, dB, dC)
    found["matmulfast"], expected["matmulfast"] = dC.copy_to_host(), A @ B
    return found, expected


if __name__ == "__main__":
    found, expected = main()
    for name, value in found.items():
        np.testing.assert_array_equal(value, expected[name])
        print(f"{name:<20} {value.sum()}")
