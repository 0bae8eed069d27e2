"""Collectives of one rank on the device, with arrays of other libraries. On a GPU they go over the NCCL that those have loaded."""

import importlib
import importlib.util
import pathlib

import pygpumem as gpumem
import numpy as np


def arrays_of(name, device):
    def run():
        library = importlib.import_module(name)
        if name == "torch":
            where = "cpu" if device == "host" else device
            make, read = lambda values: library.tensor(values, device=where), lambda array: array.cpu().numpy()
        else:
            make, read = library.asarray, lambda array: np.asarray(array.get() if name == "cupy" else array)
        (rank,) = gpumem.Communicator.all([gpumem.Device(device)])
        own, into, received = make([1.0, 2.0, 3.0]), make([0.0] * 3), make([0.0] * 3)
        rank.all_reduce(own)
        rank.all_gather(own, into)
        with rank.group() as group:
            group.send(own, 0)
            group.receive(received, 0)
        rank.synchronize()
        for array in (own, into, received):
            np.testing.assert_array_equal(read(array), [1.0, 2.0, 3.0])
        rank.destroy()
        if device.startswith("cuda"):
            lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
            loaded = {line.split()[-1] for line in lines if "libnccl.so" in line}
            assert loaded == {str(gpumem.Communicator.library()[0].resolve())}, loaded

    return run


def cases(device):
    names = ("numpy", "torch") if device == "host" else ("torch", "cupy")
    there = [name for name in names if importlib.util.find_spec(name)]
    return [(f"collectives: arrays of {name}", arrays_of(name, device)) for name in there]
