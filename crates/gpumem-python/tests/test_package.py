"""The package around the module: the names of Numba's two modules, and the report of `python -m`."""

import ctypes
import subprocess
import sys

import numpy as np
import pygpumem
import pytest
from pygpumem import cuda, roc

SCALE = cuda.compile(
    "GPUMEM_KERNEL scale(slice<const float> x, slice<float> y) { }",
    host=lambda x, y: np.add(y, 2 * x, out=y),
)


@pytest.fixture(autouse=True)
def host():
    cuda.select_device("host")


def test_what_is_copied_of_arrays_of_the_host():
    x = np.arange(4, dtype="f4")
    for direction, result in (cuda.In, np.ones(4)), (cuda.Out, 2 * x), (cuda.InOut, 1 + 2 * x):
        y = np.ones(4, "f4")
        SCALE[1, 4](cuda.In(x), direction(y))
        np.testing.assert_array_equal(y, result)
    frozen = np.ones(4, "f4")
    frozen.flags.writeable = False
    SCALE[1, 4](x, cuda.In(frozen))
    for wrong in cuda.Out, cuda.InOut:
        with pytest.raises(ValueError, match="read-only"):
            SCALE[1, 4](x, wrong(frozen))
    with pytest.raises(ValueError, match="only read"):
        SCALE[1, 4](cuda.Out(x), np.ones(4, "f4"))
    assert repr(cuda.Out(x)) == "<pygpumem.Out of ndarray>"


def test_arrays_of_a_device_are_used_in_place_whichever_way_they_are_given():
    x, y = cuda.to_device(np.ones(4, "f4")), cuda.to_device(np.ones(4, "f4"))
    for direction in cuda.In, cuda.Out, cuda.InOut:
        SCALE[1, 4](x, direction(y))
    np.testing.assert_array_equal(y.copy_to_host(), np.full(4, 7.0))


def test_strides_and_axes_of_what_is_copied_back():
    table = np.zeros((3, 4), "f4", order="F")[::-1, ::2]
    kernel = cuda.compile(
        "GPUMEM_KERNEL number(view<float, 2> y) { }", host=lambda y: np.copyto(y, np.arange(6).reshape(3, 2))
    )
    kernel[1, 1](cuda.Out(table))
    np.testing.assert_array_equal(table, np.arange(6).reshape(3, 2))


def test_a_description_of_memory_is_taken():
    array = cuda.to_device(np.arange(5, dtype="i4"))
    owner = object()
    same = cuda.from_cuda_array_interface(array.__cuda_array_interface__, owner=owner)
    np.testing.assert_array_equal(same.copy_to_host(), np.arange(5))
    with pytest.raises((TypeError, ValueError, AttributeError)):
        cuda.from_cuda_array_interface({"shape": (5,)})


def test_attributes_of_numbas_arrays():
    array = cuda.to_device(np.zeros((4, 6), "f4"))
    assert (array.alloc_size, array[:, ::2].alloc_size, array.stream) == (96, 92, 0)
    pointer = array.gpu_data.device_ctypes_pointer
    assert isinstance(pointer, ctypes.c_void_p)
    assert pointer.value == array.__cuda_array_interface__["data"][0]


def test_the_words_of_programs(capsys):
    assert cuda.detect() == cuda.is_available()
    assert "host:0" in capsys.readouterr().out
    array = cuda.to_device(np.ones(3))
    cuda.close()
    assert array.copy_to_host().sum() == 3
    assert cuda.require_context(test_the_words_of_programs) is test_the_words_of_programs
    with pytest.raises(cuda.CudaSupportError):
        cuda.select_device("host:77")
    assert cuda.device_array(3, pygpumem.float32).dtype == np.float32


def test_the_other_module():
    device = roc.Device("host")
    array = roc.to_device(np.arange(3), context=device)
    assert array.device == device and roc.to_device(np.arange(3), 0, "host:0").device == device
    stream = roc.stream()
    np.testing.assert_array_equal(roc.to_device(np.arange(3), stream).copy_to_host(stream=stream), np.arange(3))


def test_the_report_names_devices_and_what_is_missing():
    done = subprocess.run([sys.executable, "-m", "pygpumem"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"pygpumem {pygpumem.__version__}, NumPy {np.__version__}")
    assert "host:0: " in done.stdout
    listed = {line.split(":")[0] for line in done.stdout.splitlines()}
    assert set(pygpumem.unavailable()) <= listed and {"nccl", "rccl"} <= listed
