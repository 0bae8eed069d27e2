"""The device memory of CuPy from gpumem's pool: ``cupy.cuda.set_allocator(pygpumem.cupy.allocator)``."""

import contextlib

try:
    import cupy.cuda as cuda
    from cupy.cuda.memory import OutOfMemoryError
except ImportError as error:
    raise ImportError("pygpumem.cupy needs cupy") from error

from . import _serve
from ._native import memory_report, serve_memory


def allocator(size):
    """Memory of the current device in the order of the current stream, as CuPy's own pool has it."""
    number, stream = cuda.device.get_device_id(), cuda.get_current_stream()
    device = _serve.device(number)
    # CuPy names no stream when it gives memory back. Its own streams are kept until then; one of others, which `from_external` makes a
    # `Stream`, too, may have ended by then.
    is_own = isinstance(stream, cuda.Stream) and getattr(stream, "_foreign_stream_ref", None) is None
    owner = stream if is_own else None
    try:
        memory = serve_memory(size, "cupy", stream.ptr, owner, device)
    except MemoryError as error:
        served = 0
        with contextlib.suppress(Exception):
            served = memory_report(device).as_dict()["served"].get("cupy", 0)
        raise OutOfMemoryError(size, served) from error
    return cuda.MemoryPointer(cuda.UnownedMemory(memory.address, size, memory, number), 0)
