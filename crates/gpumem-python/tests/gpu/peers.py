"""The libraries on the other side, in one set of words.

A peer takes our arrays and gives its own by one or two routes: ``dlpack``, the CUDA Array Interface (``cai``), or as the
argument of a kernel (``argument``). `refuses` says what the library itself cannot represent, with the reason.
"""

import contextlib

import pygpumem as gpumem
import numpy as np

from data import LAYOUTS, view


class Ends(Exception):
    """What must not be tried, because the library would end the process."""


class Peer:
    routes = ("dlpack", "cai")
    streams = True
    copies = False  # whether taking may copy, and what is taken is immutable

    def refuses(self, direction, route, dtype, layout):
        if direction == "ours" and layout == "broadcast":
            return "it takes no memory that may only be read"
        return None

    def view(self, theirs, layout):
        return view(theirs, layout)

    def give(self, route, theirs):
        return gpumem.from_dlpack(theirs) if route == "dlpack" else gpumem.as_cuda_array(theirs)

    def copy(self, theirs):
        return theirs.copy()


class Torch(Peer):
    def __init__(self, device):
        import torch

        self.torch, self.device = torch, "cpu" if device == "host" else device
        self.version = torch.__version__
        if device == "host":
            self.routes, self.streams = ("dlpack",), False
        else:
            torch.zeros(1, device=self.device)

    def refuses(self, direction, route, dtype, layout):
        if layout == "reversed":
            if direction == "ours":
                raise Ends("PyTorch ends the process for negative strides from every producer: see the note")
            return "PyTorch has no negative strides"
        return super().refuses(direction, route, dtype, layout)

    def view(self, theirs, layout):
        return LAYOUTS["F"](theirs) if layout == "F" else view(theirs, layout)

    def take(self, route, ours):
        if route == "dlpack":
            return self.torch.from_dlpack(ours)
        return self.torch.as_tensor(ours, device=self.device)

    def make(self, host):
        return self.torch.from_numpy(host.copy()).to(self.device)

    def numpy(self, theirs):
        return theirs.cpu().numpy()

    def address(self, theirs):
        return theirs.data_ptr()

    def write(self, theirs, value):
        theirs.fill_(value)

    def copy(self, theirs):
        return theirs.clone()

    def stream(self):
        return self.torch.cuda.Stream()

    def handle(self, stream):
        return stream.cuda_stream

    def on(self, stream):
        return self.torch.cuda.stream(stream)

    def settle(self):
        if self.device != "cpu":
            self.torch.cuda.synchronize()


class CuPy(Peer):
    def __init__(self, device):
        if device == "host":
            raise ImportError("CuPy has no arrays of the host")
        import cupy

        self.cupy, self.version = cupy, cupy.__version__
        cupy.zeros(1)

    def refuses(self, direction, route, dtype, layout):
        if (direction, route, layout) == ("theirs", "dlpack", "reversed"):
            return "CuPy divides negative strides as unsigned numbers"
        return super().refuses(direction, route, dtype, layout)

    def take(self, route, ours):
        return self.cupy.from_dlpack(ours) if route == "dlpack" else self.cupy.asarray(ours)

    def make(self, host):
        return self.cupy.asarray(host)

    def view(self, theirs, layout):
        if layout == "broadcast":
            return self.cupy.broadcast_to(theirs[0, 0], (3, 4))
        return view(theirs, layout)

    def numpy(self, theirs):
        return theirs.get()

    def address(self, theirs):
        return theirs.data.ptr

    def write(self, theirs, value):
        theirs.fill(value)

    def stream(self):
        return self.cupy.cuda.Stream(non_blocking=True)

    def handle(self, stream):
        return stream.ptr

    def on(self, stream):
        return stream

    def settle(self):
        self.cupy.cuda.Device().synchronize()


class Numba(Peer):
    routes = ("cai", "argument")

    def __init__(self, device):
        if device == "host":
            raise ImportError("numba-cuda has no arrays of the host")
        import warnings

        # What newer versions of NumPy have dropped, and numba still looks for.
        for gone, there in (("row_stack", "vstack"), ("in1d", "isin"), ("trapz", "trapezoid")):
            if not hasattr(np, gone):
                setattr(np, gone, getattr(np, there))
        import numba
        from numba import cuda

        warnings.filterwarnings("ignore", category=numba.core.errors.NumbaPerformanceWarning)
        self.cuda, self.version, self.now = cuda, numba.__version__, 0
        try:
            import numba_cuda

            self.version += f", numba-cuda {numba_cuda.__version__}"
        except ImportError:
            pass

        @cuda.jit
        def copy_0(x, out):
            out[()] = x[()]

        @cuda.jit
        def copy_1(x, out):
            i = cuda.grid(1)
            if i < x.size:
                out[i] = x[i]

        @cuda.jit
        def set_1(x, value):
            i = cuda.grid(1)
            if i < x.size:
                x[i] = value

        @cuda.jit
        def copy_2(x, out):
            for i in range(x.shape[0]):
                for j in range(x.shape[1]):
                    out[i, j] = x[i, j]

        @cuda.jit
        def copy_3(x, out):
            for i in range(x.shape[0]):
                for j in range(x.shape[1]):
                    for k in range(x.shape[2]):
                        out[i, j, k] = x[i, j, k]

        @cuda.jit
        def set_0(x, value):
            x[()] = value

        @cuda.jit
        def set_2(x, value):
            for i in range(x.shape[0]):
                for j in range(x.shape[1]):
                    x[i, j] = value

        @cuda.jit
        def set_3(x, value):
            for i in range(x.shape[0]):
                for j in range(x.shape[1]):
                    for k in range(x.shape[2]):
                        x[i, j, k] = value

        self.copiers = {0: copy_0, 1: copy_1, 2: copy_2, 3: copy_3}
        self.setters = {0: set_0, 1: set_1, 2: set_2, 3: set_3}
        cuda.to_device(np.zeros(1))

    def refuses(self, direction, route, dtype, layout):
        if dtype == "?" and layout not in ("C", "F") and (direction, route) != ("ours", "cai"):
            raise Ends("numba has no type for strided booleans of the interface")
        return super().refuses(direction, route, dtype, layout)

    def take(self, route, ours):
        return self.cuda.as_cuda_array(ours) if route == "cai" else ours

    def make(self, host):
        return self.cuda.to_device(host, stream=self.now)

    def view(self, theirs, layout):
        if layout == "C":
            return theirs
        if layout == "F":
            return self.cuda.to_device(np.asfortranarray(theirs.copy_to_host().T), stream=self.now)
        # Numba has few views of its own; the interface has all of them.
        says, host = dict(theirs.__cuda_array_interface__), np.empty(theirs.shape, theirs.dtype)
        part = view(host, layout)
        offset = part.__array_interface__["data"][0] - host.__array_interface__["data"][0]
        says["shape"], says["strides"] = part.shape, part.strides
        says["data"] = (says["data"][0] + offset if part.size else 0, False)
        return Said(theirs, says)

    def copy(self, theirs):
        out = self.cuda.device_array(theirs.shape, theirs.dtype, stream=self.now)
        if theirs.size:
            self.copiers[theirs.ndim][self.size(theirs)](theirs, out)
        return out

    def numpy(self, theirs):
        return self.copy(theirs).copy_to_host()

    def address(self, theirs):
        return theirs.__cuda_array_interface__["data"][0]

    def write(self, theirs, value):
        self.setters[theirs.ndim][self.size(theirs)](theirs, value)

    def size(self, theirs):
        return ((theirs.size + 255) // 256, 256, self.now) if theirs.ndim == 1 else (1, 1, self.now)

    def give(self, route, theirs):
        return gpumem.as_cuda_array(theirs)

    def stream(self):
        return self.cuda.stream()

    def handle(self, stream):
        handle = getattr(stream.handle, "value", stream.handle)
        return int(handle)

    @contextlib.contextmanager
    def on(self, stream):
        before, self.now = self.now, stream
        try:
            yield
        finally:
            self.now = before

    def settle(self):
        self.cuda.synchronize()


class Said:
    """An array that says something else of itself."""

    def __init__(self, keeps, says):
        self.keeps, self.__cuda_array_interface__ = keeps, says
        self.shape, self.dtype = says["shape"], np.dtype(says["typestr"])
        self.ndim, self.size = len(self.shape), int(np.prod(self.shape))


class Jax(Peer):
    streams, copies = False, True

    def __init__(self, device):
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax, self.version = jax, jax.__version__
        platform = jax.devices()[0].platform
        if (platform == "cpu") != (device == "host"):
            raise ImportError(f"this JAX is for {platform}")
        self.routes = ("dlpack",) if device == "host" else ("dlpack", "cai")

    def refuses(self, direction, route, dtype, layout):
        if direction == "ours" and layout in ("strided", "reversed", "broadcast"):
            return "JAX takes packed arrays only"
        if direction == "ours" and route == "cai":
            return "JAX has no way in for the interface"
        return None

    def take(self, route, ours):
        if route == "cai":
            raise NotImplementedError("JAX has no way in for the interface")
        return self.jax.dlpack.from_dlpack(ours)

    def make(self, host):
        # Its interface names no stream: what it describes must be there.
        return self.jax.device_put(host).block_until_ready()

    def view(self, theirs, layout):
        # What JAX gives is an array of its own, packed.
        if layout == "broadcast":
            return self.jax.numpy.broadcast_to(theirs[0, 0], (3, 4)).block_until_ready()
        return view(theirs, layout).block_until_ready()

    def numpy(self, theirs):
        return np.asarray(theirs)

    def copy(self, theirs):
        return theirs + 0

    def address(self, theirs):
        return theirs.unsafe_buffer_pointer()

    def settle(self):
        self.jax.block_until_ready(self.jax.numpy.zeros(1) + 1)


PEERS = {"torch": Torch, "cupy": CuPy, "numba": Numba, "jax": Jax}
