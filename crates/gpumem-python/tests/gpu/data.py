"""What is moved: element types, layouts, and a kernel that makes a stream late."""

import ctypes
import functools

import numpy as np

TYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]

# Views of an array of shape (2, 3, 4), in indices that every library understands.
LAYOUTS = {
    "C": lambda a: a,
    "F": lambda a: a.T if a.ndim != 3 or not hasattr(a, "permute") else a.permute(2, 1, 0),
    "strided": lambda a: a[:, ::2, 1::2],
    "reversed": lambda a: a[::-1, :, ::-2],
    "broadcast": None,
    "zero-size": lambda a: a[1:1],
    "0-d": lambda a: a[1:2, 2:3, 3:4].reshape(()),
}
WIDE = (3, 4)


def cube(dtype):
    """Values that differ from their neighbours, and that every type holds."""
    numbers = np.arange(24).reshape(2, 3, 4)
    return numbers % 3 == 1 if dtype == "?" else (numbers + 1).astype(dtype)


def view(array, layout):
    """A layout of an array of NumPy's, ours, or of a library that is indexed like it."""
    if layout != "broadcast":
        return LAYOUTS[layout](array)
    row = array[0, 0]
    if hasattr(row, "expand"):
        return row.expand(WIDE)
    return row.broadcast_to(WIDE) if hasattr(row, "broadcast_to") else np.broadcast_to(row, WIDE)


# ---- the driver, by hand: independent of every library that is tested -------------------------------------------------

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry delay(.param .u64 nanoseconds)
{
    .reg .u64 %d<4>;
    .reg .pred %p;
    ld.param.u64 %d1, [nanoseconds];
    mov.u64 %d2, %globaltimer;
again:
    mov.u64 %d3, %globaltimer;
    sub.u64 %d3, %d3, %d2;
    setp.lt.u64 %p, %d3, %d1;
    @%p bra again;
    ret;
}
\0"""


class Driver:
    """The few calls of the CUDA driver that a late stream takes."""

    def __init__(self):
        self.api = ctypes.CDLL("libcuda.so.1")
        self.context, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self.module = ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self("cuCtxPushCurrent_v2", self.context)
        self("cuModuleLoadData", ctypes.byref(self.module), PTX)
        self("cuModuleGetFunction", ctypes.byref(self.function), self.module, b"delay")
        self("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def __call__(self, name, *arguments):
        status = getattr(self.api, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} says {status}")

    def delay(self, handle, milliseconds):
        """Keeps a stream busy."""
        time = ctypes.c_uint64(int(milliseconds * 1e6))
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(time), ctypes.c_void_p))
        self("cuCtxPushCurrent_v2", self.context)
        one = [ctypes.c_uint(1)] * 6
        self("cuLaunchKernel", self.function, *one, 0, ctypes.c_void_p(handle), arguments, None)
        self("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


@functools.cache
def driver():
    return Driver()
