"""Operations of several ranks with arrays of PyTorch, CuPy and NumPy, on GPUs, a process for each rank:

    torchrun --nproc-per-node 2 tests/gpu/ranks.py

Ranks that share a GPU look like machines of their own to NCCL, which otherwise refuses them. `--device host` runs on the host,
under ``mpiexec``. Ends with status 0 if all holds.
"""

import argparse
import os
import pathlib
import signal
import sys
import threading
import time


def copies_of_nccl():
    """The files of NCCL that this process has loaded."""
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    return {line.split()[-1] for line in lines if "libnccl.so" in line}


def reductions(rank, size, make, read):
    """Sums over all ranks, in place, into another array, and of every second column."""
    expected = sum(range(1, size + 1))
    own = make((4, 6), rank.rank + 1)
    rank.all_reduce(own)
    rank.synchronize()
    assert (read(own) == expected).all()
    own, into = make((4, 6), rank.rank + 1), make((4, 6), 0)
    rank.all_reduce(own[:, ::2], into[:, ::2])
    rank.synchronize()
    found = read(into)
    assert (found[:, ::2] == expected).all() and (found[:, 1::2] == 0).all()
    every = make((4 * size, 6), 0)
    rank.all_gather(own, every)
    rank.synchronize()
    assert [read(every)[4 * other, 0] for other in range(size)] == list(range(1, size + 1))


def torch_arrays(device):
    import torch

    place = "cpu" if device == "host" else device
    if place != "cpu" and not torch.cuda.is_available():
        raise ImportError("PyTorch has no CUDA")

    def make(shape, value):
        array = torch.full(shape, float(value), device=place)
        if place != "cpu":
            torch.cuda.synchronize()
        return array

    return make, lambda array: array.cpu().numpy()


def cupy_arrays(device):
    if device == "host":
        raise ImportError("it has no arrays of the host")
    import cupy

    def make(shape, value):
        array = cupy.full(shape, float(value), dtype="f4")
        cupy.cuda.get_current_stream().synchronize()
        return array

    return make, cupy.asnumpy


def numpy_arrays(_):
    import numpy

    return lambda shape, value: numpy.full(shape, float(value), dtype="f4"), lambda array: array


def own_arrays(device):
    import pygpumem as gpumem
    import numpy

    def make(shape, value):
        return gpumem.to_device(numpy.full(shape, float(value), dtype="f4"))

    return make, lambda array: array.copy_to_host()


def waits(rank, size):
    """While one rank waits for the others, its other threads run, and Ctrl-C ends the wait."""
    import pygpumem as gpumem
    import numpy

    counted, is_done = 0, False

    def count():
        nonlocal counted
        while not is_done:
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    if rank.rank == 1:
        time.sleep(1)
    own = gpumem.to_device(numpy.ones(3))
    rank.all_reduce(own)
    before = counted
    rank.synchronize()
    if rank.rank == 0:
        assert counted - before > 100, f"another thread counted to {counted - before} in a wait of a second"
    is_done = True
    thread.join()
    if rank.rank == 0:
        timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
        timer.start()
        rank.all_reduce(own)
        try:
            rank.synchronize()
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("Ctrl-C did not end the wait")
    else:
        time.sleep(1.5)
        rank.all_reduce(own)
    rank.synchronize()
    assert (own.copy_to_host() == size * size).all()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--gpus", type=int, default=1, help="of this machine")
    options = parser.parse_args()
    import pygpumem as gpumem

    number, size, local = gpumem.Communicator.process()
    device = options.device
    if device != "host":
        if options.gpus < size:
            os.environ.update(NCCL_HOSTID=f"rank{number}", NCCL_SHM_DISABLE="1", NCCL_P2P_DISABLE="1")
        device = f"{device}:{(local or 0) % options.gpus}"
    kinds = {"torch": torch_arrays, "cupy": cupy_arrays, "numpy": numpy_arrays, "gpumem": own_arrays}
    arrays = {}
    for name, prepare in kinds.items():
        try:
            arrays[name] = prepare(device)
        except ImportError as error:
            print(f"rank {number}: skipped: {name}: {error}", flush=True)
    gpumem.select_device(device)
    rank = gpumem.Communicator.from_environment(gpumem.Device(device), timeout=60)
    assert (rank.rank, rank.size) == (number, size)
    for name, (make, read) in arrays.items():
        reductions(rank, size, make, read)
        print(f"rank {number}: {name} holds", flush=True)
    if size > 1:
        waits(rank, size)
        print(f"rank {number}: waits hold", flush=True)
    if device != "host":
        copies = copies_of_nccl()
        assert len(copies) == 1, copies
        print(f"rank {number}: one copy of NCCL: {copies.pop()}", flush=True)
    rank.destroy()


if __name__ == "__main__":
    sys.exit(main())
