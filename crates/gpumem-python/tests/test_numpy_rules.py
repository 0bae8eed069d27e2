"""Where a device array does what NumPy's would: the results are those of NumPy on the same values."""

import operator
import warnings

import pygpumem as gpumem
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


def cube(dtype="f8"):
    return np.arange(24).reshape(2, 3, 4).astype(dtype)


def outcome(call):
    """The result of a call, or the type of what it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:
            # NumPy's AxisError is both.
            return ValueError if isinstance(error, ValueError) else type(error)


def same(of, *arrays):
    """What `of` makes of device arrays is what it makes of NumPy's."""
    expected = outcome(lambda: of(*[array.copy() for array in arrays]))
    found = outcome(lambda: of(*[gpumem.to_device(array) for array in arrays]))
    if isinstance(found, gpumem.DeviceNDArray):
        found = found.copy_to_host()
    if isinstance(expected, type) or isinstance(found, type):
        assert found is expected
    else:
        assert found.shape == expected.shape and found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_numpys_functions_of_shape_give_device_arrays():
    array = gpumem.to_device(cube())
    for result in (np.transpose(array), np.transpose(array, (0, 2, 1)), np.squeeze(array[:1]), np.reshape(array, (4, 6))):
        assert isinstance(result, gpumem.DeviceNDArray)
    np.testing.assert_array_equal(np.transpose(array).copy_to_host(), cube().T)


AXES = [(), (None,), (0, 1, 2), (2, 0, 1), (-1, 0, 1), (-3, -1, -2), ((1, 2, 0),), ([1, -1, 0],), (0, 0, 1), (0, 1), (0, 1, 3)]


@pytest.mark.parametrize("axes", AXES)
def test_transpose(axes):
    same(lambda array: array.transpose(*axes), cube())


@pytest.mark.parametrize("axis", [None, 0, -3, (0, 2), (-1, 0), (0, 0), (0, -3), 1, 3, (0, 1), ()])
def test_squeeze(axis):
    same(lambda array: array.squeeze(axis), cube()[:1, :, 2:3])


@pytest.mark.parametrize("order", ["C", "F", "A", "K", "X"])
@pytest.mark.parametrize("layout", [lambda a: a, lambda a: a.T, lambda a: a[0, 0]])
def test_ravel_and_reshape_in_orders(order, layout):
    host = layout(cube())
    array = layout(gpumem.to_device(cube()))
    for of in (lambda a: a.ravel(order), lambda a: a.ravel(order=order), lambda a: a.reshape(-1, 2, order=order)):
        expected, found = outcome(lambda: of(host)), outcome(lambda: of(array))
        if found is NotImplementedError:
            assert not np.shares_memory(of(host), host), "NumPy has a view"
        elif isinstance(expected, type):
            assert found is expected
        else:
            np.testing.assert_array_equal(found.copy_to_host(), expected)


VALUES = [
    70000, -1, True, 2.7, float("nan"), 1 + 2j, np.int64(70000), np.int64(7), np.int8(-1), np.float64(1e9), np.float32(2.5),
    np.complex64(1 + 2j), np.bool_(True), np.array(70000), np.array([70000]), [1], [70000], [[1.5]], [1 + 2j], (3,), None,
    "3.5", "x", b"1", [1, 2, 3], [1, 2], [[1], [2, 3]], np.arange(3), np.arange(3.0), np.arange(3)[::-1], range(3), 10**400,
    1e300, object(), [], np.datetime64(5, "s"),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "u1", "u4", "i8", "f2", "f4", "f8", "c8"])
def test_assignment_converts_as_numpys(dtype, value):
    def assign(key):
        def run(array):
            array[key] = value
            return array

        return run

    for key in (0, slice(None), slice(0, 1), Ellipsis):
        same(assign(key), np.ones(3, dtype))


def test_assignment_of_what_does_not_fit():
    array = gpumem.to_device(np.zeros(3, "i2"))
    with pytest.raises(OverflowError):
        array[0] = np.int64(70000)
    numbers = gpumem.to_device(np.zeros(3, "f4"))
    with pytest.raises(TypeError):
        numbers[0] = 1 + 2j
    assert not array.copy_to_host().any() and not numbers.copy_to_host().any()


@pytest.mark.parametrize("host", [np.array(7), np.array(0.0), np.ones(1), np.zeros((1, 1)), np.zeros(0), np.ones(2)])
def test_truth(host):
    assert outcome(lambda: bool(gpumem.to_device(host))) == outcome(lambda: bool(host))


def test_iteration():
    with pytest.raises(TypeError, match="iteration"):
        iter(gpumem.to_device(np.array(7)))
    with pytest.raises(TypeError):
        list(gpumem.to_device(np.array(7)))
    for array, host in zip(gpumem.to_device(cube()), cube()):
        np.testing.assert_array_equal(array.copy_to_host(), host)
    assert list(gpumem.to_device(np.arange(3))) == [0, 1, 2] and list(gpumem.to_device(np.zeros((0, 2)))) == []


TWO = [
    operator.add, operator.sub, operator.mul, operator.matmul, operator.truediv, operator.floordiv, operator.mod, divmod, pow,
    operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor, operator.eq, operator.ne, operator.lt,
    operator.le, operator.gt, operator.ge, operator.iadd, operator.imul,
]


@pytest.mark.parametrize("operation", TWO)
def test_operators_say_what_to_do(operation):
    array, host = gpumem.to_device(np.arange(3)), np.arange(3)
    for left, right in ((array, 1), (1, array), (array, array), (host, array), (array, host), (np.int64(1), array)):
        with pytest.raises(TypeError, match=r"copy_to_host\(\)"):
            operation(left, right)
    for single in (operator.neg, operator.pos, abs, operator.invert):
        with pytest.raises(TypeError, match=r"compile\(\)"):
            single(array)


def test_functions_of_elements_say_what_to_do():
    array = gpumem.to_device(np.arange(3.0))
    for call in (lambda: np.add(array, 1), lambda: np.sqrt(array), lambda: np.add.reduce(array), lambda: np.sum(array)):
        with pytest.raises(TypeError, match=r"copy_to_host\(\)"):
            call()
    assert {array: 1}[array] == 1 and array in [array], "arrays are keys, and compare by identity there"


def test_streams_are_given_as_numba_gives_them():
    stream, host = gpumem.stream(), np.arange(6.0)
    for given in (0, None, stream):
        array = gpumem.to_device(host, stream=given)
        array.copy_to_device(host, stream=given)
        assert [part.shape for part in array.split(4, given)] == [(4,), (2,)]
        array.setitem(slice(0, 2), 9, given)
        assert array.getitem(1, given) == 9 and array.bind(given) is array
        np.testing.assert_array_equal(array.copy_to_host(stream=given), [9, 9, 2, 3, 4, 5])
        assert gpumem.device_array_like(host, given).shape == gpumem.device_array(6, stream=given).shape
        assert array.reshape(1, 6).squeeze(0, given).shape == (6,)
    for wrong in (1, "stream", 2.5):
        with pytest.raises(TypeError):
            gpumem.to_device(host, stream=wrong)
