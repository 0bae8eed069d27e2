"""Assignment between device arrays of different numbers: NumPy's conversion, run where the arrays are."""

import ctypes
import os

import pygpumem as gpumem
import numpy as np
import pytest

try:
    import ml_dtypes  # noqa: F401 -- gives NumPy bfloat16
except ImportError:
    OF_OTHERS = []
else:
    OF_OTHERS = ["bfloat16"]

NUMBERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", *OF_OTHERS]


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


def numbers(dtype, shape=(2, 3, 4)):
    made = np.arange(np.prod(shape, dtype=int)).reshape(shape) * 5 - 3
    if np.dtype(dtype).kind in "u?":
        made = abs(made)
    return (made + (0.75j if np.dtype(dtype).kind == "c" else 0.5 if np.dtype(dtype).kind in "fV" else 0)).astype(dtype)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("to", NUMBERS)
@pytest.mark.parametrize("source", NUMBERS)
def test_every_pair_converts_as_numpys(source, to):
    expected, array = np.zeros((2, 3, 4), to), gpumem.to_device(np.zeros((2, 3, 4), to))
    host = numbers(source)
    with np.errstate(all="ignore"):
        expected[...] = host
    array[...] = gpumem.to_device(host)
    np.testing.assert_array_equal(array.copy_to_host(), expected)


SHAPES = [
    (lambda a: a, lambda b: b),
    (lambda a: a[:, ::-1], lambda b: b[::-1, :, :]),
    (lambda a: a.T, lambda b: b.T),
    (lambda a: a[:, ::2, 1::2], lambda b: b[:, :2, :2]),
    (lambda a: a[1], lambda b: b[0]),
    (lambda a: a, lambda b: b[0, 0]),
    (lambda a: a, lambda b: b[:, :1]),
    (lambda a: a[:, :, 2:3], lambda b: b[0, 0, 0:1]),
    (lambda a: a[1:1], lambda b: b[1:1]),
    (lambda a: a[0, 0, :1].reshape(()), lambda b: b[1, 2, 3:].reshape(())),
]


@pytest.mark.parametrize("of_to, of_source", SHAPES)
def test_layouts_and_broadcasting(of_to, of_source):
    expected, host = numbers("f4"), numbers("i2") * 7
    array, source = gpumem.to_device(expected), gpumem.to_device(host)
    of_to(expected)[...] = of_source(host)
    of_to(array)[...] = of_source(source)
    np.testing.assert_array_equal(array.copy_to_host(), expected)
    np.testing.assert_array_equal(source.copy_to_host(), host)


def test_conversions_are_ordered():
    stream, array = gpumem.stream(), gpumem.to_device(np.zeros(1000, "f4"))
    for number in range(50):
        source = gpumem.to_device(np.full(1000, number, "i8"), stream=gpumem.stream())
        array.setitem(slice(None), source, stream if number % 2 else 0)
    assert (array.copy_to_host() == 49).all()


def test_one_element_from_one_element():
    array, source = gpumem.to_device(np.zeros(3)), gpumem.to_device(np.arange(3, dtype="i2"))
    array[1:2] = source[1:2]
    array[2] = gpumem.to_device(np.int8(-5))
    assert array.copy_to_host().tolist() == [0, 1, -5]


def nvrtc():
    """NVIDIA's compiler, where it is installed: it needs no GPU."""
    for name in (os.environ.get("GPUMEM_NVRTC"), "libnvrtc.so.13", "libnvrtc.so.12"):
        try:
            return ctypes.CDLL(name) if name else None
        except OSError:
            continue
    return None


@pytest.mark.parametrize("to", NUMBERS)
def test_the_kernels_are_device_code(to):
    compiler = nvrtc() or pytest.skip("NVRTC is not installed")
    for source in NUMBERS:
        for rank in (1, 3):
            text = gpumem._conversion_kernel(source, to, rank).source().encode()
            program, size = ctypes.c_void_p(), ctypes.c_size_t()
            assert compiler.nvrtcCreateProgram(ctypes.byref(program), text, b"convert.cu", 0, None, None) == 0
            options = (ctypes.c_char_p * 2)(b"--gpu-architecture=compute_90", b"--std=c++17")
            failed = compiler.nvrtcCompileProgram(program, len(options), options)
            compiler.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            compiler.nvrtcGetProgramLog(program, log)
            compiler.nvrtcDestroyProgram(ctypes.byref(program))
            assert not failed, log.value.decode()


def test_what_is_lost_is_said():
    array, source = gpumem.to_device(np.zeros(3)), gpumem.to_device(np.array([1 + 2j, 3, 4j]))
    with pytest.warns(np.exceptions.ComplexWarning):
        array[:] = source
    assert array.copy_to_host().tolist() == [1, 3, 0]


def test_what_cannot_be_converted():
    array = gpumem.to_device(np.zeros(3))
    with pytest.raises(ValueError, match="broadcast"):
        array[:] = gpumem.to_device(np.zeros(2, "i4"))
    for wrong in (np.zeros(3, "M8[s]"), np.zeros(3, [("a", "f8")]), np.zeros(3, "S2")):
        with pytest.raises(TypeError, match="on a device"):
            array[:] = gpumem.to_device(wrong)
    with pytest.raises(TypeError, match="float64"):
        array.copy_to_device(gpumem.to_device(np.zeros(3, "i4")))
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read"):
        gpumem.from_dlpack(frozen)[:] = gpumem.to_device(np.zeros(3, "i4"))
