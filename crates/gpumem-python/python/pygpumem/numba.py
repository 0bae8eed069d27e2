"""The device memory of Numba from gpumem's pool: ``NUMBA_CUDA_MEMORY_MANAGER=pygpumem.numba``, or
``numba.cuda.set_memory_manager(pygpumem.numba.MemoryManager)`` before Numba's first use of a GPU."""

import contextlib
import ctypes
import weakref

try:
    from numba.cuda import GetIpcHandleMixin, HostOnlyCUDAMemoryManager, MemoryInfo, MemoryPointer
except ImportError as error:
    raise ImportError("pygpumem.numba needs numba-cuda") from error

from . import _serve
from ._native import defer_cleanup, memory_report, serve_memory


class MemoryManager(GetIpcHandleMixin, HostOnlyCUDAMemoryManager):
    """Numba names no stream: memory that it gets is idle, and memory that it gives back is free after everything that is on the device
    by then."""

    @property
    def _device(self):
        return _serve.device(self.context.device.id)

    @property
    def interface_version(self):
        return 1

    def initialize(self):
        # Numba's own manager does this for the memory of the host, which stays Numba's.
        if not self.deallocations.memory_capacity:
            self.deallocations.memory_capacity = self.get_memory_info().total

    def memalloc(self, size):
        memory = serve_memory(size, "numba", device=self._device)
        pointer = ctypes.c_void_p(memory.address)
        return MemoryPointer(weakref.proxy(self.context), pointer, size, finalizer=memory.free)

    def get_memory_info(self):
        report = memory_report(self._device).as_dict()
        return MemoryInfo(free=report["free"], total=report["total"])

    @contextlib.contextmanager
    def defer_cleanup(self):
        with super().defer_cleanup(), defer_cleanup(self._device):
            yield


_numba_memory_manager = MemoryManager
