"""The names of ``numba.cuda``, for a program's side of the host: ``from pygpumem import cuda``.

Devices are those of every backend, AMD's GPUs and the host among them. What differs from Numba is in the book, "Coming
from Numba".
"""

import contextlib as _contextlib
import ctypes as _ctypes
import os as _os
import types as _types
from functools import update_wrapper as _update_wrapper

import numpy as _np

from . import _native
from ._native import *  # noqa: F403
from ._native import GpuMemError, as_cuda_array, get_current_device



def _variable(name, make, default, own=None):
    """The value of a variable of Numba's. Where the library has its own, that one is set unless it is there."""
    text = _os.environ.get(name, "")
    try:
        value = make(text)
    except ValueError:
        return default
    if own is not None and value:
        _os.environ.setdefault(own[0], own[1] or text)
    return value


# Numba's settings that have a meaning here. It has many more, about its compiler: they may be set, too, and change nothing.
config = _types.SimpleNamespace(
    ENABLE_CUDASIM=_variable("NUMBA_ENABLE_CUDASIM", int, 0, ("GPUMEM_DEVICE", "host")),
    DISABLE_CUDA=_variable("NUMBA_DISABLE_CUDA", int, 0),
    CUDA_DEALLOCS_COUNT=_variable("NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT", int, 10, ("GPUMEM_MAX_PENDING_DEALLOCS_COUNT", "")),
    CUDA_DEALLOCS_RATIO=_variable("NUMBA_CUDA_MAX_PENDING_DEALLOCS_RATIO", float, 0.2, ("GPUMEM_MAX_PENDING_DEALLOCS_RATIO", "")),
)

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

    @property
    def __cuda_array_interface__(self):
        """That of `device_view`: pinned arrays and parts have none."""
        try:
            # Lent as long as the view lives, which is as long as the array.
            self._lent = self.device_view
        except ValueError as error:
            raise AttributeError(str(error)) from None
        return self._lent.__cuda_array_interface__


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


def is_available():
    """Whether there is a GPU that can be used, unless `config.DISABLE_CUDA` says not to."""
    return not config.DISABLE_CUDA and _native.is_available()


def list_devices():
    """The GPUs of every backend."""
    return _native.gpus.lst


def detect():
    """Prints the devices, and returns whether there is a GPU."""
    names = _native.list_devices()
    print(f"Found {len(names)} devices")
    for number, name in enumerate(names):
        print(f"id {number}    {name}    {Device(name).product}")  # noqa: F405
    return is_available()


def close():
    """Waits for the device and gives the memory that is not in use back to its driver. Arrays stay valid."""
    get_current_device().reset()


def require_context(function):
    """The function itself: devices are opened when they are used."""
    return function


def _profile(call):
    """Calls the driver's function in the context of the current device, if that is one of NVIDIA's."""
    device = get_current_device()
    if not device.name.startswith("cuda:"):
        return
    # The device is open, so its driver is loaded and its context is there.
    driver, context = _ctypes.CDLL("libcuda.so.1"), _ctypes.c_void_p()
    status = driver.cuDevicePrimaryCtxRetain(_ctypes.byref(context), device.id)
    if status == 0:
        status = driver.cuCtxPushCurrent_v2(context)
        if status == 0:
            status = getattr(driver, call)()
            driver.cuCtxPopCurrent_v2(_ctypes.byref(_ctypes.c_void_p()))
        driver.cuDevicePrimaryCtxRelease_v2(device.id)
    if status != 0:
        raise GpuMemError(f"{call} reports {status}")


def profile_start():
    """Has a profiler of NVIDIA's record from now on. Does nothing on other devices."""
    _profile("cuProfilerStart")


def profile_stop():
    """Has it record no more."""
    _profile("cuProfilerStop")


@_contextlib.contextmanager
def profiling():
    """A context in which it records."""
    profile_start()
    try:
        yield
    finally:
        profile_stop()
