"""The names of ``numba.cuda``, for a program's side of the host: ``from pygpumem import cuda``.

Devices are those of every backend, AMD's GPUs and the host among them. What differs from Numba is in the book, "Coming
from Numba".
"""

from functools import update_wrapper as _update_wrapper

import numpy as _np

from . import _native
from ._native import *  # noqa: F403
from ._native import GpuMemError, as_cuda_array, get_current_device, list_devices, synchronize

# The exceptions of Numba by their names. A program that catches them catches what is raised here.
CudaAPIError = CudaDriverError = CudaSupportError = KernelRuntimeError = GpuMemError
TypingError = TypeError


class HostArray(_np.ndarray):
    """An array of NumPy's in page-locked, mapped or managed memory, for copies that are only enqueued.

    As in Numba, looking at it waits for nothing: call ``stream.synchronize()`` first. A part of it, and what is computed of it, is an
    ordinary array of the host."""

    # Read by the copies and launches of the module.
    _page_locked = None

    def __array_finalize__(self, obj):
        self._page_locked = None

    def __array_wrap__(self, array, context=None, return_scalar=False):
        if array is self:
            return self  # the result was written to it
        # Of NumPy 1 as well, which does not say whether it wants a number.
        array = _np.asarray(array)
        return array[()] if return_scalar or array.ndim == 0 else array

    @property
    def device_view(self):
        """The array as the device sees it, for mapped and managed arrays."""
        if self._page_locked is None:
            raise AttributeError("a part of an array has no `device_view`: take the part of the array's")
        return self._page_locked.device_view


def _with_numpy(make):
    """The function, whose result is an array of NumPy's."""

    def function(*arguments, **options):
        host = make(*arguments, **options)
        array = _np.asarray(host).view(HostArray)
        array._page_locked = host
        return array

    return _update_wrapper(function, make)


pinned_array = _with_numpy(_native.pinned_array)
pinned_array_like = _with_numpy(_native.pinned_array_like)
mapped_array = _with_numpy(_native.mapped_array)
mapped_array_like = _with_numpy(_native.mapped_array_like)
managed_array = _with_numpy(_native.managed_array)
managed_array_like = _with_numpy(_native.managed_array_like)


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
