"""Device arrays against NumPy, on the host device."""

import gc

import pygpumem as gpumem
import numpy as np
import pytest

TYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


def cube(dtype="f8"):
    return np.arange(24).reshape(2, 3, 4).astype(dtype)


LAYOUTS = {
    "c": lambda a: a,
    "f": np.asfortranarray,
    "transposed": lambda a: a.T,
    "strided": lambda a: a[:, ::2, 1::2],
    "reversed": lambda a: a[::-1, :, ::-2],
    "broadcast": lambda a: np.broadcast_to(a[0, 0], (3, 4)),
    "zero-size": lambda a: a[1:1],
    "0-d": lambda a: a[1, 2, 3].reshape(()),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_there_and_back(dtype, layout):
    host = LAYOUTS[layout](cube(dtype))
    array = gpumem.to_device(host)
    assert (array.shape, array.dtype, array.ndim, array.size) == (host.shape, host.dtype, host.ndim, host.size)
    np.testing.assert_array_equal(array.copy_to_host(), host)
    stream = gpumem.stream()
    late = gpumem.to_device(host, stream=stream)
    np.testing.assert_array_equal(late.copy_to_host(stream=stream), host)
    if host.size:
        assert array.strides == np.empty_like(host).strides


def test_numba_defaults():
    array = gpumem.device_array(3)
    assert array.dtype == np.float64 and array.shape == (3,)
    assert gpumem.device_array((2, 3), order="F").strides == (8, 16)
    assert gpumem.device_array((2, 3), np.int16, strides=(16, 4)).strides == (16, 4)
    like = gpumem.device_array_like(cube("i4").T)
    assert like.strides == np.empty_like(cube("i4").T).strides and not like.copy_to_host().any()
    to = gpumem.device_array(4, "i4")
    assert gpumem.to_device(np.arange(4, dtype="i4"), to=to) is to
    assert list(to.copy_to_host()) == [0, 1, 2, 3]
    assert gpumem.to_device(np.arange(4), copy=False).copy_to_host().sum() == 0
    assert gpumem.to_device([1.5, 2.5]).dtype == np.float64 and gpumem.to_device(7).shape == ()


def test_copies_into_what_is_given():
    array = gpumem.to_device(cube("i4"))
    host = np.full((2, 6, 4), -1, "i4")
    part = host[:, ::2]
    assert array.copy_to_host(part) is part
    np.testing.assert_array_equal(part, cube("i4"))
    assert (host[:, 1::2] == -1).all()
    array.copy_to_device(cube("i4")[::-1])
    np.testing.assert_array_equal(array.copy_to_host(), cube("i4")[::-1])
    other = gpumem.to_device(np.zeros((2, 3, 4), "i4"))
    other.copy_to_device(array)
    np.testing.assert_array_equal(other.copy_to_host(), cube("i4")[::-1])


def test_destinations_whose_elements_share_memory():
    array = gpumem.to_device(np.arange(6.0).reshape(2, 3))
    wide = np.lib.stride_tricks.as_strided(np.zeros(3), (2, 3), (0, 8))
    with pytest.raises(ValueError, match="share"):
        array.copy_to_host(wide)


@pytest.mark.parametrize("shape", [(0,), (8, 0), (0, 8), (8, 0, 3), (1, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_without_elements(shape, order):
    host = np.zeros(shape, order=order)
    array = gpumem.to_device(host)
    assert array.copy_to_host().shape == shape
    assert array.copy_to_host(host) is host
    array.copy_to_device(host)
    assert gpumem.device_array(shape, "f4", order=order).copy_to_host().shape == shape


def test_views_share_memory():
    host = cube()
    array = gpumem.to_device(host)
    for key in [0, -1, (slice(None), 1), (Ellipsis, slice(None, None, -2)), (None, 1, slice(5, 0, -1)), slice(7, 9)]:
        np.testing.assert_array_equal(array[key].copy_to_host(), host[key])
    assert array[1, 2, 3] == host[1, 2, 3]
    array[0, :, 1:3] = 5
    array[1] = np.arange(4, dtype="i2")
    array[:, 0] = array[:, 2]
    host[0, :, 1:3] = 5
    host[1] = np.arange(4)
    host[:, 0] = host[:, 2]
    np.testing.assert_array_equal(array.copy_to_host(), host)
    np.testing.assert_array_equal(array.reshape(4, -1).copy_to_host(), host.reshape(4, -1))
    np.testing.assert_array_equal(array.ravel().copy_to_host(), host.ravel())
    np.testing.assert_array_equal(array.T.copy_to_host(), host.T)
    np.testing.assert_array_equal(array.transpose(1, 0, 2).copy_to_host(), host.transpose(1, 0, 2))
    parts = gpumem.to_device(np.arange(7)).split(3)
    assert [part.copy_to_host().tolist() for part in parts] == [[0, 1, 2], [3, 4, 5], [6]]
    assert array.is_c_contiguous() and array.T.is_f_contiguous() and not array[:, ::2].is_c_contiguous()
    np.testing.assert_array_equal(np.asarray(array), host)
    del array
    gc.collect()
    np.testing.assert_array_equal(parts[2].copy_to_host(), [6])


def test_errors_are_pythons():
    array = gpumem.to_device(cube("i4"))
    with pytest.raises(ValueError, match="shape"):
        array.copy_to_device(np.zeros((2, 3), "i4"))
    with pytest.raises(TypeError):
        array.copy_to_device(cube("f4"))
    with pytest.raises(TypeError):
        array.copy_to_host(np.zeros((2, 3, 4)))
    with pytest.raises(ValueError, match="read-only"):
        frozen = np.zeros((2, 3, 4), "i4")
        frozen.flags.writeable = False
        array.copy_to_host(frozen)
    with pytest.raises(IndexError):
        array[2]
    with pytest.raises(IndexError):
        array[0, 0, 0, 0]
    with pytest.raises(ValueError):
        array.reshape(5, 5)
    with pytest.raises(NotImplementedError):
        array.T.ravel()
    with pytest.raises(ValueError):
        array.split(0)
    with pytest.raises(TypeError):
        gpumem.device_array(3, "O")
    with pytest.raises(ValueError):
        gpumem.device_array(-3)
    with pytest.raises(ValueError):
        gpumem.device_array(2**62)
    with pytest.raises(ValueError, match="backend|device"):
        gpumem.Device("nonsense:0")


def test_streams():
    stream = gpumem.stream()
    with stream.auto_synchronize() as inside:
        array = gpumem.to_device(np.arange(1000), stream=inside)
        copy = gpumem.to_device(array, stream=gpumem.stream())
    assert stream.query()
    np.testing.assert_array_equal(copy.copy_to_host(), np.arange(1000))
    with pytest.raises(ZeroDivisionError), stream.auto_synchronize():
        1 // 0
    with pytest.raises(ValueError):
        gpumem.external_stream(0)
    assert gpumem.external_stream(stream.handle, owner=stream).query()


def test_page_locked_arrays():
    pinned = gpumem.pinned_array((3, 4), np.float32)
    host = np.asarray(pinned)
    host[:] = np.arange(12).reshape(3, 4)
    array = gpumem.to_device(pinned)
    np.testing.assert_array_equal(array.copy_to_host(), host)
    del pinned
    gc.collect()
    assert host.sum() == 66
    mapped = gpumem.mapped_array(5, np.int32)
    seen = mapped.device_view
    seen[:] = 9
    assert np.asarray(mapped).tolist() == [9] * 5
    with pytest.raises(ValueError):
        gpumem.pinned_array(2).device_view


def test_devices():
    device = gpumem.Device("host")
    assert "host:0" in gpumem.list_devices() and device.name == "host:0" and device == gpumem.get_current_device()
    free, total = device.memory_info()
    assert 0 < free <= total
    device.flush()
    device.synchronize()
    gpumem.synchronize()


def test_squeeze():
    host = cube()[:1, :, 1:2]
    array = gpumem.to_device(cube())[:1, :, 1:2]
    for axis in (None, 0, 2, -1, (0, 2), (-1, 0), ()):
        expected = np.squeeze(host, axis)
        assert array.squeeze(axis).shape == expected.shape
        np.testing.assert_array_equal(array.squeeze(axis).copy_to_host(), expected)
    array.squeeze()[0] = 7
    assert array.copy_to_host()[0, 0, 0] == 7, "a view shares memory"
    for axis in (1, 3, -4, (0, 1)):
        with pytest.raises(ValueError, match="axis"):
            array.squeeze(axis)


@pytest.mark.parametrize("key", ["a", 1.5, [0, 1], np.array([0, 1]), True, (0, [1]), (..., ...), (0, 0, 0, 0), {}])
def test_keys_that_make_no_view(key):
    array = gpumem.to_device(cube())
    with pytest.raises(IndexError):
        array[key]
    with pytest.raises(IndexError):
        array[key] = 1


def test_elements_one_by_one():
    array = gpumem.to_device(np.arange(3.0))
    assert [float(each) for each in array] == [0, 1, 2] and len(array) == 3
    assert array[-1] == 2 and array[np.int64(1)] == 1
    with pytest.raises(IndexError):
        array[3]
    for section in (0, -1):
        with pytest.raises(ValueError):
            array.split(section)
    assert [part.shape for part in array.split(2**62)] == [(3,)]
    endless = gpumem.to_device(np.zeros(1, "u1")).broadcast_to((2**62,))
    with pytest.raises(ValueError, match="at most 65536 parts"):
        endless.split(1)
    assert len(endless.split(2**46)) == 65536


def test_what_things_say_of_themselves():
    array = gpumem.to_device(cube("f4"))
    assert repr(array) == "<pygpumem.DeviceNDArray shape=(2, 3, 4) dtype=float32 on host:0>"
    assert repr(gpumem.pinned_array(3, "i2")) == "<pygpumem.HostNDArray shape=(3,) dtype=int16>"
    assert repr(gpumem.stream()) == "<pygpumem.Stream on host:0>"
    device = gpumem.get_current_device()
    assert device.name in repr(device)
    assert {device: 1}[gpumem.Device("host")] == 1, "equal devices are one key"
