"""A stand-in for the modules `numba.*` that numba-cuda's tests import, over `pygpumem.cuda`.

Whatever has no counterpart is an `Absent`, which raises when a test calls it."""

import contextlib
import ctypes
import importlib.abc
import importlib.util
import io
import os
import pathlib
import platform
import sys
import types
import unittest

import numpy as np

import pygpumem
from pygpumem import cuda

TESTS = "numba.cuda.tests"


class NotThere(Exception):
    """A test has used what the package does not have."""


class Absent:
    """A name of Numba's without a counterpart."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}")

    def __getitem__(self, key):
        return Absent(f"{self._name}[..]")

    def __call__(self, *arguments, **options):
        raise NotThere(self._name)


class StandIn(types.ModuleType):
    """A module with the given names. It has all others, too, as absent ones."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}")


def kernel(*_arguments, **_options):
    """`cuda.jit` and its like, as decorators with and without arguments: what they make cannot be launched."""
    return Kernel()


class Kernel(Absent):
    def __init__(self):
        super().__init__("a kernel in Python")

    def __getitem__(self, key):
        raise NotThere(self._name)

    def __call__(self, *arguments, **options):
        # `jit(signature)(function)`, at the latest where the result is launched.
        if len(arguments) == 1 and callable(arguments[0]):
            return self
        raise NotThere(self._name)


INTERNALS = {"get_ipc_handle", "handle", "memalloc", "memallocmanaged", "memhostalloc", "mempin", "memory_manager"}


class Context:
    """A device with what the tests ask Numba's contexts for besides."""

    def __init__(self, device):
        self.device = device

    def __getattr__(self, name):
        if name in INTERNALS:
            raise NotThere(f"{name} of a context")
        return getattr(self.device, name)

    @property
    def deallocations(self):
        return types.SimpleNamespace(clear=self.device.flush)

    def can_access_peer(self, number):
        return self.device.can_access_peer(sys.modules["numba.cuda"].gpus[number])

    def create_stream(self):
        return cuda.stream(device=self.device)

    def create_event(self):
        return cuda.event(device=self.device)


def current_context(devnum=None):
    return Context(cuda.current_context(devnum))


class Gpus:
    """The devices of the host in the place of GPUs, where the tests run without one."""

    lst = property(list)
    current = property(lambda self: cuda.get_current_device())

    def __len__(self):
        return sum(name.startswith("host:") for name in pygpumem.list_devices())

    def __getitem__(self, number):
        if number >= len(self):
            raise IndexError(number)
        return cuda.Device(f"host:{number}")


def bytes_of(memory):
    """All bytes of an array of a device, or of one that a device sees."""
    return getattr(memory, "device_view", memory).view("u1")


def device_memset(memory, value, size):
    bytes_of(memory)[:size] = value
    cuda.synchronize()


def verify_cuda_ndarray_interface(array):
    for name, kind in ("shape", tuple), ("strides", tuple), ("dtype", np.dtype), ("size", int):
        assert isinstance(getattr(array, name), kind), name


def array_core(array):
    if not array.strides or not array.size:
        return array
    return array[tuple(0 if stride == 0 else slice(None) for stride in array.strides)]


def is_contiguous(array):
    expected = array.dtype.itemsize
    for length, stride in zip(reversed(array.shape), reversed(array.strides)):
        if length > 1 and stride != 0:
            if stride != expected:
                return False
            expected *= length
    return True


def auto_device(obj):
    return (obj, False) if cuda.is_cuda_array(obj) else (cuda.to_device(obj), True)


def importorskip(name):
    raise unittest.SkipTest(f"it compares with {name}")


class ForeignArray:
    """An array of another library: only its description can be seen."""

    def __init__(self, array):
        self._arr = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


class CudaTestCase(unittest.TestCase):
    def assertPreciseEqual(self, first, second):
        self.assertEqual(first.dtype, second.dtype)
        np.testing.assert_array_equal(first, second)


def skip_if(condition):
    return lambda reason: unittest.skipIf(condition, reason)


@contextlib.contextmanager
def captured(name):
    before = getattr(sys, name)
    setattr(sys, name, io.StringIO())
    try:
        yield getattr(sys, name)
    finally:
        setattr(sys, name, before)


@contextlib.contextmanager
def override_config(name, value):
    before = getattr(config(), name)
    setattr(config(), name, value)
    try:
        yield
    finally:
        setattr(config(), name, before)


def config():
    return sys.modules["numba.cuda.config"]


# The tests of `cudadrv/test_streams.py` are skipped for a fault of Numba's own (its issue 317).
UNITTEST = types.SimpleNamespace(**vars(unittest) | {"skip": lambda reason: lambda test: test})

KERNELS = {"jit": kernel, "vectorize": kernel, "guvectorize": kernel}
DEVICE = os.environ.get("GPUMEM_TEST_DEVICE", "host")
ON_HOST = {"gpus": Gpus(), "list_devices": lambda: Gpus().lst, "select_device": lambda number: pygpumem.select_device(f"host:{number}")}

PROVIDED = {
    "numba": {},
    "numba.cuda": vars(cuda) | KERNELS | {"current_context": current_context} | (ON_HOST if DEVICE == "host" else {}),
    "numba.cuda.config": {
        "ENABLE_CUDASIM": False,
        "CUDA_MEMORY_MANAGER": "default",
        "CUDA_ARRAY_INTERFACE_SYNC": True,
        "CUDA_ENABLE_NRT": False,
    },
    "numba.cuda.cudadrv": {},
    "numba.cuda.cudadrv.devicearray": {
        "DeviceNDArray": lambda shape, strides, dtype: cuda.device_array(shape, dtype, strides=strides),
        "DeviceRecord": lambda dtype: cuda.device_array((), dtype),
        "from_record_like": cuda.device_array_like,
        "from_array_like": cuda.device_array_like,
        "auto_device": auto_device,
        "verify_cuda_ndarray_interface": verify_cuda_ndarray_interface,
        "array_core": array_core,
        "is_contiguous": is_contiguous,
    },
    "numba.cuda.cudadrv.driver": {
        "Stream": cuda.Stream,
        "device_memset": device_memset,
        "device_memory_size": lambda memory: bytes_of(memory).nbytes,
        "get_device_count": lambda: len(sys.modules["numba.cuda"].gpus),
    },
    "numba.cuda.cudadrv.devices": {"get_context": current_context},
    "numba.cuda.testing": {
        "unittest": UNITTEST,
        "CUDATestCase": CudaTestCase,
        "ForeignArray": ForeignArray,
        "skip_on_cudasim": skip_if(False),
        "skip_unless_cudasim": skip_if(True),
        "skip_if_external_memmgr": skip_if(False),
        "skip_under_cuda_memcheck": skip_if(False),
        "skip_on_wsl2": skip_if(False),
        "skip_on_arm": skip_if(platform.machine() == "aarch64"),
    },
    TESTS: {},
    "pytest": {"importorskip": importorskip, "raises": lambda error, match="": unittest.TestCase().assertRaisesRegex(error, match)},
    TESTS + ".support": {
        "IS_NUMPY_2": np.lib.NumpyVersion(np.__version__) >= "2.0.0",
        "linux_only": unittest.skipUnless(sys.platform == "linux", "only on Linux"),
        "windows_only": unittest.skipUnless(sys.platform == "win32", "only on Windows"),
        "captured_stderr": lambda: captured("stderr"),
        "captured_stdout": lambda: captured("stdout"),
        "override_config": override_config,
    },
}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the tests in the unpacked package, and stand-ins for all other modules of Numba, of NVIDIA's `cuda` and of pytest."""

    def __init__(self, tests):
        self.tests = tests

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in ("numba", "cuda", "pytest"):
            return None
        if name.startswith(TESTS + ".") and name not in PROVIDED:
            place = self.tests.joinpath(*name[len(TESTS) + 1 :].split("."))
            file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
            below = [str(place)] if place.is_dir() else None
            return importlib.util.spec_from_file_location(name, file, submodule_search_locations=below)
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        module = StandIn(spec.name)
        vars(module).update({name: value for name, value in PROVIDED.get(spec.name, {}).items() if name[:2] != "__"})
        return module

    def exec_module(self, module):
        """The module is complete when it is made."""


def install(package):
    """Puts the stand-ins in place, for the tests in an unpacked package of numba-cuda."""
    sys.meta_path.insert(0, Finder(pathlib.Path(package) / "numba_cuda/numba/cuda/tests"))
    for name in PROVIDED:
        importlib.import_module(name)
    # As in Numba: `cuda.devices` and `cuda.driver` are those of `cudadrv`.
    for name in "devicearray", "devices", "driver":
        setattr(sys.modules["numba.cuda"], name, sys.modules["numba.cuda.cudadrv." + name])
    sys.modules["numba.cuda.cudadrv.driver"].driver = sys.modules["numba.cuda.cudadrv.driver"]
    pygpumem.select_device(DEVICE)
