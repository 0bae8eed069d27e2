"""The names of ``numba.roc``, for a program's side of the host: ``from pygpumem import roc``.

Without another choice the device is the default one, as everywhere: ``GPUMEM_DEVICE=roc:0`` makes it an AMD GPU.
"""

from . import _native
from .cuda import *  # noqa: F403


def to_device(obj, stream=0, context=None, copy=True, to=None):
    """The elements of an array or of another object on a device, which ``context`` names."""
    return _native.to_device(obj, stream=stream, copy=copy, to=to, device=context)

