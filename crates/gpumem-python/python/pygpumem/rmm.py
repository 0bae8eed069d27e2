"""The device memory of RMM, and so of cuDF and the other libraries of RAPIDS, from gpumem's pool:
``rmm.mr.set_current_device_resource(pygpumem.rmm.resource())``."""

try:
    from cuda.bindings import runtime
    from rmm.mr import CallbackMemoryResource
except ImportError as error:
    raise ImportError("pygpumem.rmm needs rmm") from error

from . import _serve
from ._native import serve_memory


def resource(device=None):
    """A resource for a device by its number; by default the current one. Allocations and frees are in the order of the streams that
    they name."""
    if device is None:
        status, device = runtime.cudaGetDevice()
        if status != runtime.cudaError_t.cudaSuccess:
            raise RuntimeError(f"CUDA has no current device: {status.name}")
    device, blocks = _serve.device(device), _serve.Blocks()

    def allocate(size, stream):
        return blocks.add(serve_memory(size, "rmm", _serve.handle(stream), device=device))

    def deallocate(address, size, stream):
        blocks.free(address, stream)

    return CallbackMemoryResource(allocate, deallocate)
