"""Memory from and for other libraries, by their own protocols."""

import gc
import weakref

import pygpumem as gpumem
import numpy as np
import pytest

NUMBERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


def cube(dtype="f8"):
    return np.arange(24).reshape(2, 3, 4).astype(dtype)


VIEWS = {
    "c": lambda a: a,
    "f": lambda a: a.T,
    "strided": lambda a: a[:, ::2, 1::2],
    "reversed": lambda a: a[::-1, :, ::-2],
    "zero-size": lambda a: a[1:1],
    "0-d": lambda a: a[1:2, 2:3, 3:4].reshape(()),
}


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("view", VIEWS)
def test_numpy_takes_ours(dtype, view):
    expected = VIEWS[view](cube(dtype))
    array = VIEWS[view](gpumem.to_device(cube(dtype)))
    host = np.from_dlpack(array)
    assert host.shape == expected.shape and host.dtype == expected.dtype
    np.testing.assert_array_equal(host, expected)
    if host.size:
        array[...] = 1
        assert (host == np.ones_like(host)).all(), "the memory is the same"
    del array
    gc.collect()
    np.testing.assert_array_equal(host, np.ones_like(host) if host.size else expected)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("view", VIEWS)
def test_ours_takes_numpys(dtype, view):
    host = VIEWS[view](cube(dtype))
    array = gpumem.from_dlpack(host)
    np.testing.assert_array_equal(array.copy_to_host(), host)
    if host.size:
        array[...] = 0
        gpumem.synchronize()
        assert not host.any(), "the memory is the same"


def test_read_only_is_respected_both_ways():
    host = cube()
    host.flags.writeable = False
    array = gpumem.from_dlpack(host)
    assert not array.flags["WRITEABLE"]
    with pytest.raises(ValueError, match="read"):
        array[0] = 1
    back = np.from_dlpack(array)
    assert not back.flags.writeable
    with pytest.raises(BufferError):
        array.__dlpack__()
    wide = gpumem.from_dlpack(np.broadcast_to(np.arange(3.0), (2, 3)))
    assert not wide.flags["WRITEABLE"]
    np.testing.assert_array_equal(wide.copy_to_host(), [[0, 1, 2]] * 2)


class Owner:
    """An object whose end can be seen."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_owners_live_as_long_as_their_memory():
    host = cube()
    alive = weakref.ref(host) if hasattr(host, "__weakref__") else None
    array = gpumem.from_dlpack(host)
    part = array[1]
    del host, array
    gc.collect()
    np.testing.assert_array_equal(part.copy_to_host(), cube()[1])
    assert alive is None or alive() is not None
    capsule = gpumem.to_device(cube()).__dlpack__(max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)
    del capsule  # never consumed: the capsule itself deletes the tensor
    old = gpumem.to_device(cube()).__dlpack__()
    assert '"dltensor"' in repr(old)


def test_the_older_protocol():
    class Old(Owner):
        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

    np.testing.assert_array_equal(gpumem.from_dlpack(Old(cube())).copy_to_host(), cube())
    np.testing.assert_array_equal(np.from_dlpack(Old(gpumem.to_device(cube()))), cube())


def test_what_dlpack_refuses():
    array = gpumem.to_device(cube())
    assert array.__dlpack_device__() == (1, 0)
    with pytest.raises(ValueError):
        array.__dlpack__(stream=7)
    with pytest.raises(BufferError):
        array.__dlpack__(dl_device=(2, 0))
    copy = np.from_dlpack(Owner(array), copy=True) if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else None
    if copy is not None:
        copy[...] = 0
        assert array.copy_to_host().any()

    class Spent:
        def __init__(self):
            self.capsule = cube().__dlpack__()

        def __dlpack__(self, **options):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    spent = Spent()
    gpumem.from_dlpack(spent)
    with pytest.raises(BufferError):
        gpumem.from_dlpack(spent)
    with pytest.raises(AttributeError):
        gpumem.from_dlpack(3)


class Said:
    """An object that says what it is told."""

    def __init__(self, **says):
        self.__cuda_array_interface__ = says


def says(array, **changes):
    interface = dict(array.__cuda_array_interface__)
    interface.update(changes)
    said = Said(**{key: value for key, value in interface.items() if value != "missing"})
    said.keeps = array
    return said


def test_the_cuda_array_interface():
    array = gpumem.to_device(cube("f4"))
    interface = array.__cuda_array_interface__
    assert interface["shape"] == (2, 3, 4) and interface["strides"] is None
    assert interface["typestr"] == "<f4" and interface["version"] == 3 and interface["stream"] != 0
    assert array.T.__cuda_array_interface__["strides"] == (4, 16, 48)
    assert array[1:1].__cuda_array_interface__["data"][0] == 0
    assert gpumem.is_cuda_array(array) and not gpumem.is_cuda_array(cube())
    for key in VIEWS.values():
        view = key(array)
        taken = gpumem.as_cuda_array(says(view))
        np.testing.assert_array_equal(taken.copy_to_host(), view.copy_to_host())
    taken = gpumem.as_cuda_array(array)
    array[0] = 7
    assert (taken.copy_to_host()[0] == 7).all() and taken.owner is array
    np.testing.assert_array_equal(gpumem.to_device(says(array)).copy_to_host(), array.copy_to_host())
    array.copy_to_device(says(gpumem.to_device(cube("f4"))))
    np.testing.assert_array_equal(array.copy_to_host(), cube("f4"))


@pytest.mark.parametrize(
    "changes, error",
    [
        ({"version": 4}, ValueError),
        ({"version": "missing"}, TypeError),
        ({"mask": object()}, NotImplementedError),
        ({"typestr": ">f4"}, TypeError),
        ({"typestr": "<f3"}, TypeError),
        ({"typestr": "|V0"}, TypeError),
        ({"typestr": "|O8"}, TypeError),
        ({"typestr": ">M8[s]"}, TypeError),
        ({"shape": (-1,)}, ValueError),
        ({"shape": (2**40, 2**40)}, ValueError),
        ({"strides": (4,)}, ValueError),
        ({"strides": (2**62, 4, 4)}, ValueError),
        ({"strides": (48, 16, 2)}, ValueError),
        ({"data": (0, False)}, ValueError),
        ({"data": (8, False)}, ValueError),
        ({"data": (-8, False)}, ValueError),
        ({"data": (2**64 - 8, False)}, ValueError),
        ({"data": "missing"}, TypeError),
        ({"stream": 0}, ValueError),
        ({"stream": -3}, ValueError),
        ({"shape": "abc"}, TypeError),
    ],
)
def test_wrong_interfaces(changes, error):
    with pytest.raises(error):
        gpumem.as_cuda_array(says(gpumem.to_device(cube("f4")), **changes))


def test_the_interface_is_only_looked_for():
    assert gpumem.is_cuda_array(Said())
    with pytest.raises(TypeError):
        gpumem.as_cuda_array(Said())
    with pytest.raises(TypeError):
        gpumem.as_cuda_array(cube())


@pytest.mark.parametrize("view", VIEWS)
def test_pytorch(view):
    torch = pytest.importorskip("torch")
    array = VIEWS[view](gpumem.to_device(cube("f4")))
    if any(stride < 0 for stride in array.strides):
        pytest.skip("PyTorch has no negative strides")
    tensor = torch.from_dlpack(array)
    np.testing.assert_array_equal(tensor.numpy(), VIEWS[view](cube("f4")))
    tensor += 1
    np.testing.assert_array_equal(array.copy_to_host(), VIEWS[view](cube("f4")) + 1)
    back = gpumem.from_dlpack(torch.arange(6).reshape(2, 3).t())
    np.testing.assert_array_equal(back.copy_to_host(), np.arange(6).reshape(2, 3).T)


def test_jax():
    jax = pytest.importorskip("jax")
    array = gpumem.to_device(cube("f4"))
    np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(array)), cube("f4"))
    theirs = jax.numpy.arange(12, dtype="float32").reshape(3, 4)
    ours = gpumem.from_dlpack(theirs)
    np.testing.assert_array_equal(ours.copy_to_host(), np.asarray(theirs))
