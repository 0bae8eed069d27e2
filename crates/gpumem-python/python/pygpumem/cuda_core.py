"""The device memory of cuda.core from gpumem's pool: ``pygpumem.cuda_core.MemoryResource(0).allocate(size, stream=stream)``."""

import inspect

NEEDS = "pygpumem.cuda_core needs cuda-core 1.2 or newer"

try:
    import cuda.core as core
    from cuda.core import Buffer
except ImportError as error:
    raise ImportError(NEEDS) from error
# Before, a buffer ends in the order of the default stream.
if "stream" not in inspect.signature(Buffer.from_handle).parameters:
    raise ImportError(NEEDS)

from . import _serve
from ._native import serve_memory


class MemoryResource(core.MemoryResource):
    """Allocations and frees are in the order of the streams that they name."""

    def __init__(self, device=0):
        """The memory of a device: a number, or a ``cuda.core.Device``."""
        self._device = _serve.device(getattr(device, "device_id", device))
        self._blocks = _serve.Blocks()

    def allocate(self, size, *, stream):
        if stream is None:
            raise TypeError("memory is allocated for work on a stream, which must be given")
        memory = serve_memory(size, "cuda.core", _serve.handle(stream), device=self._device)
        address = self._blocks.add(memory)
        try:
            return Buffer.from_handle(address, size, mr=self, stream=stream)
        except BaseException:
            self._blocks.forget(address)
            raise

    def deallocate(self, ptr, size, *, stream):
        self._blocks.free(int(ptr), stream)

    @property
    def is_device_accessible(self):
        return True

    @property
    def is_host_accessible(self):
        return False

    @property
    def device_id(self):
        return int(self._device.name.split(":")[1])
