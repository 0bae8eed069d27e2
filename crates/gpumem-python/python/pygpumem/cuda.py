"""The names of ``numba.cuda``, for a program's side of the host: ``from pygpumem import cuda``.

Devices are those of every backend, AMD's GPUs and the host among them. What differs from Numba is in the book, "Coming
from Numba".
"""

from . import _native
from ._native import *  # noqa: F403
from ._native import GpuMemError, as_cuda_array, get_current_device, list_devices, synchronize

# The exceptions of Numba by their names. A program that catches them catches what is raised here.
CudaAPIError = CudaDriverError = CudaSupportError = KernelRuntimeError = GpuMemError
TypingError = TypeError


class _Described:
    """An object that a description of memory belongs to."""

    __slots__ = ("__cuda_array_interface__", "owner")

    def __init__(self, description, owner):
        self.__cuda_array_interface__, self.owner = description, owner


def from_cuda_array_interface(desc, owner=None, sync=True):
    """An array of the memory that a dictionary describes, which ``owner`` keeps alive.

    The array's work comes after that of the stream that the description names, on the device: ``sync`` changes nothing."""
    return as_cuda_array(_Described(desc, owner))


def detect():
    """Prints the devices, and returns whether there is a GPU."""
    names = list_devices()
    print(f"Found {len(names)} devices")
    for number, name in enumerate(names):
        print(f"id {number}    {name}    {Device(name).product}")  # noqa: F405
    return _native.is_available()


def close():
    """Waits for the device and gives the memory that is not in use back to its driver. Arrays stay valid."""
    synchronize()
    get_current_device().flush()


def require_context(function):
    """The function itself: devices are opened when they are used."""
    return function
