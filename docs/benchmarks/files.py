#!/usr/bin/env python3
"""What it takes to load files into device memory, beside the libraries that others use for it.

    python3 docs/benchmarks/files.py --folder /mnt/disk --gb 2

One run writes the files, lets every library load them in turns, and removes them. Each number is the bytes of the elements by the time
from the call until the device has them, in GB/s (10^9 bytes): the median of the rounds, and the lowest and the highest. `warm` files are
in the page cache; `cold` ones are dropped from it before each load (posix_fadvise). What was loaded is compared bit for bit with what
was written, in the first round, outside of the time. Libraries that are not installed are left out with the reason, and so is what a library refuses.
"""
import argparse
import gc
import os
import statistics
import sys
import tempfile
import time

import numpy
import torch

SMALL = 256 << 10


class Gpumem:
    name = "gpumem"

    def __init__(self):
        import pygpumem as gpumem

        self.gpumem, self.version = gpumem, gpumem.__version__

    def model(self, path):
        return self.gpumem.load(path, device="cuda:0")

    array = model


class Safetensors:
    name = "safetensors"

    def __init__(self):
        import safetensors.torch

        self.load, self.version = safetensors.torch.load_file, safetensors.__version__

    def model(self, path):
        return self.load(path, device="cuda:0")


class FastSafetensors:
    name = "fastsafetensors, nogds"

    def __init__(self):
        import fastsafetensors

        self.open, self.version = fastsafetensors.fastsafe_open, fastsafetensors.__version__

    def model(self, path):
        with self.open([path], framework="pt", device="cuda:0", nogds=True) as file:
            return {name: file.get_tensor(name) for name in file.keys()}


class InstantTensor:
    name = "InstantTensor"

    def __init__(self):
        import importlib.metadata

        import instanttensor

        self.open, self.version = instanttensor.safe_open, importlib.metadata.version("instanttensor")

    def model(self, path):
        with self.open(path, framework="pt", device=0) as file:
            return dict(file.tensors())


class KvikIO:
    """It reads bytes, and knows no format: an array of which shape and type are known."""

    name = "KvikIO"

    def __init__(self):
        import cupy
        import kvikio

        self.cupy, self.kvikio, self.version = cupy, kvikio, kvikio.__version__

    def array(self, path):
        header = numpy.lib.format.open_memmap(path, mode="r")
        array = self.cupy.empty(header.shape, dtype=header.dtype)
        with self.kvikio.CuFile(path, "r") as file:
            file.read(array, file_offset=header.offset)
        return array


class NumPy:
    name = "numpy.load and PyTorch's copy"

    def __init__(self):
        self.version = numpy.__version__

    def array(self, path):
        return torch.from_numpy(numpy.load(path)).to("cuda:0")


class Torch:
    """Its own format, of the same tensors."""

    name = "torch.load"

    def __init__(self):
        self.version = torch.__version__

    def model(self, path):
        return torch.load(path.removesuffix(".safetensors") + ".pt", map_location="cuda:0", weights_only=True)


def is_equal(found, expected):
    """Whether an array of any library on the device has the bits of one on the host."""
    found = found if isinstance(found, torch.Tensor) else torch.from_dlpack(found)
    # The device's own numbers are of the same length: the bits are compared as integers.
    return torch.equal(found.cpu().contiguous().view(torch.int16).flatten(), expected.view(torch.int16).flatten())


def write_model(folder, name, tensors):
    import safetensors.torch

    path = os.path.join(folder, name + ".safetensors")
    safetensors.torch.save_file(tensors, path)
    torch.save(tensors, os.path.join(folder, name + ".pt"))
    return path


def files(folder, total):
    """The rows: a name, what loads it, its path, the bytes of its elements, and a check of what was loaded."""
    generator = torch.Generator().manual_seed(0)

    def random(length):
        return torch.randint(-(2**15), 2**15, (length,), dtype=torch.int16, generator=generator)

    def model(name, count, length):
        data = random(length)
        tensors = {f"layer.{at}": torch.roll(data, at).view(torch.bfloat16) for at in range(count)}
        last = f"layer.{count - 1}"
        check = lambda loaded: len(loaded) == count and is_equal(loaded[last], tensors[last])
        return name, "model", write_model(folder, name, tensors), count * length * 2, check

    data = random(total // 2).view(torch.float32)
    path = os.path.join(folder, "array.npy")
    numpy.save(path, data.numpy())
    yield "array.npy", "array", path, total, lambda loaded: is_equal(loaded, data)
    yield model("model", 64, total // 64 // 2)
    yield model("small", total // SMALL, SMALL // 2)


def drop_from_cache(path):
    for name in (path, path.removesuffix(".safetensors") + ".pt"):
        if os.path.exists(name):
            file = os.open(name, os.O_RDONLY)
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def measure(library, how, path, size, cold):
    if cold:
        drop_from_cache(path)
    torch.cuda.synchronize()
    start = time.perf_counter()
    loaded = getattr(library, how)(path)
    torch.cuda.synchronize()
    return size / (time.perf_counter() - start) / 1e9, loaded


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", help="where the files are written")
    parser.add_argument("--gb", type=float, default=2, help="length of each file, in GiB")
    parser.add_argument("--rounds", type=int, default=5, help="loads of warm files")
    parser.add_argument("--cold", type=int, default=1, help="loads of cold files")
    options = parser.parse_args()
    libraries = []
    for make in (Gpumem, Safetensors, FastSafetensors, InstantTensor, KvikIO, NumPy, Torch):
        try:
            libraries.append(make())
        except Exception as error:  # not installed, or it finds no device
            print(f"{make.name}: left out: {error}", file=sys.stderr)
    print(", ".join(f"{library.name} {library.version}" for library in libraries), flush=True)
    print("| file | cache | library | GB/s | lowest to highest | of gpumem |")
    print("|---|---|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name, how, path, size, check in files(folder, int(options.gb * 2**30) // SMALL * SMALL):
            able = [library for library in libraries if hasattr(library, how)]
            for cold, rounds in ((False, options.rounds), (True, options.cold)):
                found = {library: [] for library in able}
                # One round more: the first makes memory, and brings a warm file into the cache.
                for at in range(rounds + 1):
                    for library in able:
                        if found[library] is None:
                            continue
                        try:
                            speed, loaded = measure(library, how, path, size, cold and at > 0)
                            if at == 0 and not check(loaded):
                                raise ValueError("what it loaded is not what was written")
                            found[library] += [speed] if at else []
                        except Exception as error:
                            print(f"{library.name}, {name}: left out: {error}", file=sys.stderr)
                            found[library] = None
                        loaded = None
                        gc.collect()
                ours = next(statistics.median(speeds) for speeds in found.values())
                for library, speeds in found.items():
                    if speeds:
                        middle = statistics.median(speeds)
                        spread = f"{min(speeds):.2f} to {max(speeds):.2f}"
                        cache = "cold" if cold else "warm"
                        row = (name, cache, library.name, f"{middle:.2f}", spread, f"{middle / ours:.2f}")
                        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
