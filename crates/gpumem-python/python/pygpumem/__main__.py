"""Prints the devices with what they can do, and why a backend or a library is missing."""

import sys

import numpy

import pygpumem

# The least that a device's compiler takes.
KERNEL = "GPUMEM_KERNEL nothing(gpumem::slice<float> x) { }"


def compiles(device):
    """What compiles kernels for a device."""
    if device.name.startswith("host:"):
        return "functions of NumPy"
    try:
        pygpumem.compile(KERNEL).load(device)
    except Exception as error:  # Whatever it is, it says why.
        return f"none: {error}"
    return "compiled"


def devices():
    """A line for each device."""
    for name in pygpumem.list_devices():
        try:
            device = pygpumem.Device(name)
            free, total = device.memory_info()
        except pygpumem.GpuMemError as error:
            yield f"{name}: cannot be used: {error}"
            continue
        gib = 1 << 30
        yield f"{name}: {device.product}, {device.architecture}, {free / gib:.1f} of {total / gib:.1f} GiB free; kernels: {compiles(device)}"


def libraries():
    """A line for each library of collectives."""
    for name in ("nccl", "rccl"):
        try:
            path, version = pygpumem.Communicator.library(name)
        except (OSError, RuntimeError) as error:
            yield f"{name}: {error}"
        else:
            yield f"{name}: {version}, {path}"


def main():
    """The report."""
    print(f"pygpumem {pygpumem.__version__}, NumPy {numpy.__version__}, Python {sys.version.split()[0]}")
    for line in devices():
        print(line)
    for backend, why in pygpumem.unavailable().items():
        print(f"{backend}: {why}")
    for line in libraries():
        print(line)


if __name__ == "__main__":
    main()
