#!/usr/bin/env python3
"""What PyTorch, CuPy and numba-cuda take for the transfers of `cargo xtask bench --cuda transfer/`.

    python3 docs/benchmarks/transfers.py [--report FILE] [--largest MIB] [torch] [cupy] [numba]

Each number is the median of repeated calls that have finished when they return, in GB/s (10^9 bytes). Libraries that are
not installed are left out, and so is what a library refuses. Memory is touched before, but for `untouched`.
"""
import argparse
import json
import statistics
import sys
import time

import numpy

SIDE = 8192
SIZES = [1, 256, 4 << 10, 16 << 10, 64 << 10, 256 << 10] + [1 << power for power in range(20, 31, 2)]


class Torch:
    name = "PyTorch"

    def __init__(self):
        import torch

        self.torch, self.device = torch, torch.device("cuda:0")
        torch.empty(1, device=self.device)
        self.version = torch.__version__

    def wait(self):
        self.torch.cuda.synchronize()

    def array(self, host):
        return self.torch.from_numpy(host).to(self.device)

    def pinned(self, host):
        return self.torch.from_numpy(host).pin_memory()

    def upload(self, host, device):
        source = self.torch.from_numpy(host) if isinstance(host, numpy.ndarray) else host
        return lambda: device.copy_(source)

    def download(self, device, host):
        target = self.torch.from_numpy(host) if isinstance(host, numpy.ndarray) else host
        return lambda: target.copy_(device)

    def fresh(self, device):
        return lambda: device.cpu()

    def empty(self, shape):
        return self.torch.empty(shape, dtype=self.torch.float32, device=self.device)

    def transpose(self, source, target):
        return lambda: target.copy_(source.t())


class Cupy:
    name = "CuPy"

    def __init__(self):
        import cupy

        self.cupy, self.version = cupy, cupy.__version__
        cupy.zeros(1)

    def wait(self):
        self.cupy.cuda.Device().synchronize()

    def array(self, host):
        return self.cupy.asarray(host)

    def pinned(self, host):
        import cupyx

        block = cupyx.empty_pinned(host.shape, host.dtype)
        block[...] = host
        return block

    def upload(self, host, device):
        # `set` takes nothing but contiguous arrays; a user of others calls `asarray`.
        if host.flags.c_contiguous:
            return lambda: device.set(host)
        return lambda: self.cupy.asarray(host)

    def download(self, device, host):
        if host.flags.c_contiguous:
            return lambda: device.get(out=host)

        def copy():
            host[...] = device.get()

        return copy

    def fresh(self, device):
        return lambda: device.get()

    def empty(self, shape):
        return self.cupy.empty(shape, dtype=numpy.float32)

    def transpose(self, source, target):
        def copy():
            target[...] = source.T

        return copy


class Numba:
    name = "numba-cuda"

    def __init__(self):
        from numba import cuda
        import numba

        self.cuda, self.version = cuda, getattr(numba, "__version__", "")
        cuda.device_array(1)

    def wait(self):
        self.cuda.synchronize()

    def array(self, host):
        return self.cuda.to_device(host)

    def pinned(self, host):
        block = self.cuda.pinned_array(host.shape, host.dtype)
        block[...] = host
        return block

    def upload(self, host, device):
        return lambda: device.copy_to_device(host)

    def download(self, device, host):
        return lambda: device.copy_to_host(host)

    def fresh(self, device):
        return lambda: device.copy_to_host()

    def empty(self, shape):
        return self.cuda.device_array(shape, numpy.float32)

    def transpose(self, source, target):
        return lambda: target.copy_to_device(source.T)


def measure(call, wait, budget=0.5, least=5, most=2000):
    """Seconds of one call."""
    call()
    wait()
    times, begin = [], time.perf_counter()
    while len(times) < least or (len(times) < most and time.perf_counter() - begin < budget):
        start = time.perf_counter()
        call()
        wait()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def cases(library, largest):
    """Name, bytes and how to get ready, for each number."""

    def host(size):
        return numpy.arange(size, dtype=numpy.uint8) if size < 256 else numpy.ones(size, dtype=numpy.uint8)

    for size in (size for size in SIZES if size <= largest):
        label = f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B"
        yield f"h2d pageable {label}", size, lambda size=size: library.upload(host(size), library.array(host(size)))
        yield f"d2h pageable {label}", size, lambda size=size: library.download(library.array(host(size)), host(size))
        if size >= 1 << 20:
            yield f"d2h untouched {label}", size, lambda size=size: library.fresh(library.array(host(size)))
            yield f"h2d pinned {label}", size, lambda size=size: library.upload(
                library.pinned(host(size)), library.array(host(size))
            )
    matrix = numpy.ones((SIDE, SIDE), dtype=numpy.float32)
    for step in (2, 16):
        size = SIDE * SIDE // step * 4
        part = matrix[:, ::step]
        yield f"h2d one column of {step}", size, lambda part=part, step=step: library.upload(
            part, library.empty((SIDE, SIDE // step))
        )
        yield f"d2h one column of {step}", size, lambda part=part, step=step: library.download(
            library.empty((SIDE, SIDE // step)), part
        )
    yield "d2d C to F order", SIDE * SIDE * 4, lambda: library.transpose(
        library.empty((SIDE, SIDE)), library.empty((SIDE, SIDE))
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("libraries", nargs="*", help="torch, cupy, numba (all by default)")
    parser.add_argument("--report", help="write the numbers there as JSON")
    parser.add_argument("--largest", type=int, default=1024, help="MiB of the largest transfer")
    options = parser.parse_args()
    known = {"torch": Torch, "cupy": Cupy, "numba": Numba}
    rows = []
    for key in options.libraries or known:
        try:
            library = known[key]()
        except Exception as error:  # not installed, or no device
            print(f"{key}: left out: {error}", file=sys.stderr)
            continue
        for name, size, prepare in cases(library, options.largest << 20):
            try:
                seconds = measure(prepare(), library.wait)
            except Exception as error:  # what the library refuses
                print(f"{library.name}: {name}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            row = {"library": library.name, "version": library.version, "name": name, "bytes": size}
            rows.append(row | {"microseconds": seconds * 1e6, "gb_per_s": size / seconds / 1e9})
            print(f"{library.name:10} {name:24} {seconds * 1e6:12.1f} us {size / seconds / 1e9:8.3f} GB/s", flush=True)
    if options.report:
        with open(options.report, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=2)


if __name__ == "__main__":
    main()
