"""The examples of Numba's pages on CUDA memory, as a script for numba-cuda. `gpumem_cuda.py` is its port."""

import numpy as np
from numba import cuda, float32

TPB = 16


# Numba, "Example: Matrix multiplication": a block computes a tile of C from tiles in shared memory.
@cuda.jit
def fast_matmul(A, B, C):
    sA = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    sB = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    bpg = cuda.gridDim.x
    tmp = float32(0.0)
    for i in range(bpg):
        sA[ty, tx] = 0
        sB[ty, tx] = 0
        if y < A.shape[0] and (tx + i * TPB) < A.shape[1]:
            sA[ty, tx] = A[y, tx + i * TPB]
        if x < B.shape[1] and (ty + i * TPB) < B.shape[0]:
            sB[ty, tx] = B[ty + i * TPB, x]
        cuda.syncthreads()
        for j in range(TPB):
            tmp += sA[ty, j] * sB[j, tx]
        cuda.syncthreads()
    if y < C.shape[0] and x < C.shape[1]:
        C[y, x] = tmp


@cuda.jit
def increment_by_one(an_array):
    pos = cuda.grid(1)
    if pos < an_array.size:
        an_array[pos] += 1


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
    with cuda.pinned(arr):
        d_arr = cuda.to_device(arr, stream=stream)
        increment_by_one[blockspergrid, threadsperblock, stream](d_arr)
        d_arr.copy_to_host(arr, stream=stream)
        stream.synchronize()
    found["pinned"] = arr.copy()
    pinned = cuda.pinned_array(1000, dtype=np.float32)
    pinned[:] = np.arange(1000)
    found["pinned_array"] = cuda.to_device(pinned).copy_to_host()
    mapped = cuda.mapped_array(1000, dtype=np.float32)
    mapped[:] = np.arange(1000)
    increment_by_one[blockspergrid, threadsperblock](mapped)
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
