"""The examples of Numba's pages on CUDA memory, on gpumem: the port of `original_numba.py`, which gives the same numbers.

What is different is listed in docs/src/coming-from-numba.md, "From Python": kernels are written in the portable source
and not in Python, and page-locked arrays are what `with pinned(..)` gives. On a device of the host, which has no compiler,
a function of NumPy stands beside each kernel.

    python3 gpumem_cuda.py             # on the default device
    GPUMEM_DEVICE=host python3 gpumem_cuda.py
"""

from pygpumem import cuda
import numpy as np

TPB = 16


def matmul_on_host(A, B, C):
    C[:] = A @ B


fast_matmul = cuda.compile(
    """
    using namespace gpumem;
    GPUMEM_KERNEL fast_matmul(view<const float, 2> A, view<const float, 2> B, view<float, 2> C) {
        constexpr int TPB = 16;
        GPUMEM_SHARED(float, sA, TPB, TPB);
        GPUMEM_SHARED(float, sB, TPB, TPB);
        u64 x = global_id(0), y = global_id(1);
        u32 tx = local_id(0), ty = local_id(1), bpg = groups(0);
        float tmp = 0;
        for (u32 i = 0; i < bpg; i++) {
            bool a = y < A.extent(0) && tx + i * TPB < A.extent(1);
            bool b = x < B.extent(1) && ty + i * TPB < B.extent(0);
            sA(ty, tx) = a ? A(y, tx + i * TPB) : 0;
            sB(ty, tx) = b ? B(ty + i * TPB, x) : 0;
            barrier(LOCAL);
            for (int j = 0; j < TPB; j++) tmp += sA(ty, j) * sB(j, tx);
            barrier(LOCAL);
        }
        if (y < C.extent(0) && x < C.extent(1)) C(y, x) = tmp;
    }
    """,
    host=matmul_on_host,
)


def increment_on_host(an_array):
    an_array += 1


increment_by_one = cuda.compile(
    """
    using namespace gpumem;
    GPUMEM_KERNEL increment_by_one(slice<float> an_array) {
        u64 pos = global_id(0);
        if (pos < an_array.size()) an_array[pos] += 1;
    }
    """,
    host=increment_on_host,
)


def main():
    found = {}

    # Data transfer
    ary = np.arange(10)
    d_ary = cuda.to_device(ary)
    found["copy_to_host"] = d_ary.copy_to_host()
    hary = np.empty_like(ary)
    d_ary.copy_to_host(hary)
    found["copy_to_host(ary)"] = hary
    stream = cuda.stream()
    d_ary = cuda.to_device(ary, stream=stream)
    found["stream"] = d_ary.copy_to_host(stream=stream)
    stream.synchronize()

    # Device arrays
    arr = np.arange(1000, dtype=np.float32)
    d_arr = cuda.device_array_like(arr)
    d_arr.copy_to_device(arr)
    threadsperblock = 32
    blockspergrid = (arr.size + (threadsperblock - 1)) // threadsperblock
    increment_by_one[blockspergrid, threadsperblock](d_arr)
    found["increment_by_one"] = d_arr.copy_to_host()
    section = list(d_arr.split(300))
    found["split"] = section[3].copy_to_host()
    found["reshape"] = d_arr.reshape(10, 100).copy_to_host()
    found["ravel"] = d_arr.reshape(10, 100).ravel().copy_to_host()
    found["slice"] = d_arr[100:200].copy_to_host()
    found["flags"] = np.array([d_arr.is_c_contiguous(), d_arr.reshape(10, 100).is_f_contiguous()])

    # Pinned and mapped memory
    arr = np.arange(1000, dtype=np.float32)
    with cuda.pinned(arr) as (locked,):
        d_arr = cuda.to_device(locked, stream=stream)
        increment_by_one[blockspergrid, threadsperblock, stream](d_arr)
        d_arr.copy_to_host(locked, stream=stream)
        stream.synchronize()
    found["pinned"] = arr.copy()
    pinned = cuda.pinned_array(1000, dtype=np.float32)
    pinned[:] = np.arange(1000)
    found["pinned_array"] = cuda.to_device(pinned).copy_to_host()
    mapped = cuda.mapped_array(1000, dtype=np.float32)
    mapped[:] = np.arange(1000)
    increment_by_one[blockspergrid, threadsperblock](mapped.device_view)
    cuda.synchronize()
    found["mapped_array"] = np.array(mapped)
    arr = np.arange(1000, dtype=np.float32)
    with cuda.mapped(arr) as d_arr:
        increment_by_one[blockspergrid, threadsperblock](d_arr)
        cuda.synchronize()
    found["mapped"] = arr.copy()

    # Streams
    with stream.auto_synchronize():
        d_arr = cuda.to_device(arr, stream=stream)
        increment_by_one[blockspergrid, threadsperblock, stream](d_arr)
    found["auto_synchronize"] = d_arr.copy_to_host()

    # Shared memory
    x_h = np.arange(115 * 30, dtype=np.float32).reshape([115, 30]) % 7
    y_h = np.ones([30, 175], dtype=np.float32)
    x_d, y_d = cuda.to_device(x_h), cuda.to_device(y_h)
    z_d = cuda.to_device(np.zeros([115, 175], dtype=np.float32))
    grid = (max(175, 115) + TPB - 1) // TPB
    fast_matmul[(grid, grid), (TPB, TPB)](x_d, y_d, z_d)
    found["fast_matmul"] = z_d.copy_to_host()

    # Deallocation behaviour
    with cuda.defer_cleanup():
        for value in range(20):
            d_arr = cuda.to_device(np.full(100, value, dtype=np.float32))
        found["defer_cleanup"] = d_arr.copy_to_host()
    return found


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name:<20} {value.sum()}")
