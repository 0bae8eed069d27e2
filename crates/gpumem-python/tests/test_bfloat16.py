"""Numbers of bfloat16, which NumPy has from the package ml_dtypes."""

import subprocess
import sys

import pygpumem as gpumem
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


@pytest.fixture
def bfloat16():
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)


def bits(values):
    return np.ascontiguousarray(values).view("u2")


def test_there_and_back(bfloat16):
    values = np.arange(24).astype(bfloat16).reshape(2, 3, 4)
    array = gpumem.to_device(values)
    assert array.dtype == bfloat16 and array.nbytes == 48
    for of in (lambda a: a, lambda a: a.T, lambda a: a[:, ::2, ::-2], lambda a: a[1:1]):
        found = of(array).copy_to_host()
        assert found.dtype == bfloat16
        np.testing.assert_array_equal(bits(found), bits(of(values)))
    assert array[1, 2, 3] == 23 and array.view("u2").dtype == np.dtype("u2")
    assert gpumem.device_array_like(array).dtype == bfloat16
    assert np.asarray(gpumem.pinned_array(4, "bfloat16")).dtype == bfloat16


def test_numbers_are_rounded_as_in_numpy(bfloat16):
    values = np.array([1 + 2**-8 + 2**-40, 1 + 2**-8 + 2**-20, 1 + 3 * 2**-8, -1 - 2**-8, 3e38 * 1.2, np.nan, -0.0])
    array = gpumem.device_array(len(values), "bfloat16")
    array[:] = gpumem.to_device(values)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(bits(array.copy_to_host()), bits(values.astype(bfloat16)))
    array[:3] = 2.5
    array[3] = 7
    assert array[:4].copy_to_host().astype("f8").tolist() == [2.5, 2.5, 2.5, 7]


def test_dlpack(bfloat16):
    jax = pytest.importorskip("jax")
    theirs = jax.numpy.arange(12, dtype="bfloat16").reshape(3, 4)
    ours = gpumem.from_dlpack(theirs)
    assert ours.dtype == bfloat16
    np.testing.assert_array_equal(bits(ours.copy_to_host()), bits(np.asarray(theirs)))
    array = gpumem.to_device(np.arange(6).astype(bfloat16))
    back = jax.dlpack.from_dlpack(array)
    assert back.dtype == bfloat16
    np.testing.assert_array_equal(bits(np.asarray(back)), bits(np.arange(6).astype(bfloat16)))


def test_kernels(bfloat16):
    source = """
    using namespace gpumem;
    GPUMEM_KERNEL axpy(slice<const bf16> x, slice<bf16> y, bf16 a) {
        u64 i = global_id(0);
        if (i < y.size()) y[i] = bf16((float)a * (float)x[i] + (float)y[i]);
    }"""
    seen = []

    def body(x, y, a):
        seen.append((x.dtype, y.dtype, a))
        y += a * x

    x, y = (gpumem.to_device(np.arange(10).astype(bfloat16)) for _ in range(2))
    gpumem.compile(source, host=body)[1, 16](x, y, 0.5)
    assert y.copy_to_host().astype("f4").tolist() == [1.5 * at for at in range(10)]
    assert [dtype == bfloat16 for dtype in seen[0][:2]] == [True, True] and seen[0][2] == 0.5
    with pytest.raises(TypeError):
        gpumem.compile(source, host=body)[1, 16](gpumem.to_device(np.zeros(10, "f2")), y, 0.5)


def test_ranks_reduce(bfloat16):
    arrays = []
    for rank in gpumem.Communicator.all([gpumem.Device("host")] * 2):
        arrays.append(gpumem.to_device((np.arange(3) + rank.rank).astype(bfloat16), stream=rank.stream))
        rank.all_reduce(arrays[-1], op="avg")
    for array in arrays:
        assert array.copy_to_host().astype("f4").tolist() == [0.5, 1.5, 2.5]


def test_without_the_package():
    code = """
import sys
sys.modules["ml_dtypes"] = None
import pygpumem as gpumem, numpy
gpumem.select_device("host")
array = gpumem.device_array(3, "bfloat16")
array[:] = 1.5
assert array.view("u2").copy_to_host().tolist() == [0x3fc0] * 3
try:
    array.copy_to_host()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "install the package ml_dtypes" in done.stdout, done.stderr
