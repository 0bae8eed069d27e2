"""gpumem for Python: Numba's device arrays over CUDA, ROCm and the host.

``from pygpumem import cuda`` and ``from pygpumem import roc`` keep the words of a program for Numba.
``python3 -m pygpumem`` prints the devices, and why one is missing.
"""

from numpy import (
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

from ._native import *  # noqa: F403
from ._native import __version__ as __version__
