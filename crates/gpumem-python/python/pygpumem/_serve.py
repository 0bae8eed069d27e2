"""What the modules for the allocators of other libraries share."""

import functools

from ._native import Device


@functools.cache
def _gpu(number):
    return Device(f"cuda:{number}")


def device(given):
    """The device of a GPU's number; a device of gpumem is itself."""
    return given if isinstance(given, Device) else _gpu(int(given))


def handle(stream):
    """The driver's handle of a stream, by CUDA's stream protocol; ``None`` where there is no stream."""
    return None if stream is None else stream.__cuda_stream__()[1]


class Blocks:
    """The memory that a library has, by address: it is given back by address, too."""

    def __init__(self):
        self._blocks = {}

    def add(self, memory):
        if memory.address:
            self._blocks[memory.address] = memory
        return memory.address

    def forget(self, address):
        """The memory goes back as its last reference does, unless it has gone back."""
        self._blocks.pop(address, None)

    def free(self, address, stream):
        if not address:
            return
        memory = self._blocks.pop(address, None)
        if memory is None:
            raise ValueError(f"no memory of this resource is at {address:#x}: it was given back before, or is another's")
        memory.free(handle(stream))
