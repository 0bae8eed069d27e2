"""Numbers of Python as elements of two bytes: rounded as NumPy rounds them, wherever they are given."""

import pygpumem as gpumem
import numpy as np
import pytest

NAMES = {"float16": "f16", "bfloat16": "bf16"}


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


@pytest.fixture(params=NAMES)
def dtype(request):
    if request.param == "bfloat16":
        pytest.importorskip("ml_dtypes")
    return np.dtype(request.param)


def edges(dtype, step):
    """Exact numbers a step apart and all around the limits, what lies in the middle of two, and what lies close to that."""
    is_half = dtype.name == "float16"
    # The bits of infinity, and of the least number that is normal.
    infinity, normal = (0x7C00, 0x400) if is_half else (0x7F80, 0x80)
    bits = {*range(0, infinity, step), 1, 2, normal - 1, normal, infinity - 2, infinity - 1}
    bits = np.array(sorted(bits), "u2")
    exact = bits.view(dtype).astype("f8")
    # As if there were one more exponent.
    greater = np.where(bits == infinity - 1, 2.0 ** (16 if is_half else 128), (bits + 1).view(dtype).astype("f8"))
    ties = exact / 2 + greater / 2
    close = [np.nextafter(ties, 0), np.nextafter(ties, np.inf), ties * (1 + 2.0**-40), ties * (1 - 2.0**-30)]
    values = np.concatenate([exact, ties, *close, [1 + 2.0**-11 + 2.0**-40, 65519.999, 1e300, 5e-324, np.inf]])
    return [float(value) for value in np.concatenate([values, -values, [np.nan, -np.nan]])]


def numpys(dtype, values):
    made = np.empty(len(values), dtype)
    with np.errstate(all="ignore"):
        for at, value in enumerate(values):
            made[at] = value
    return made


def check(found, values, dtype):
    expected = numpys(dtype, values)
    wrong = np.flatnonzero(np.asarray(found).view("u2") != expected.view("u2"))
    assert not len(wrong), [(values[at].hex(), found[at], expected[at]) for at in wrong[:5]]


def test_numpy_rounds_once():
    assert numpys(np.dtype("f2"), [1 + 2**-11 + 2**-40, 65519.999]).tolist() == [1 + 2**-10, 65504]


def test_elements(dtype):
    values = edges(dtype, 17)
    array = gpumem.device_array(len(values), dtype)
    for at, value in enumerate(values):
        array[at] = value
    check(array.copy_to_host(), values, dtype)


def test_all_elements(dtype):
    values, array, found = edges(dtype, 503), gpumem.device_array(3, dtype), []
    for value in values:
        array[:] = value
        elements = array.copy_to_host()
        assert (elements.view("u2") == elements.view("u2")[0]).all()
        found.append(elements[0])
    check(np.array(found, dtype), values, dtype)


def test_arguments_of_kernels(dtype):
    values, found = edges(dtype, 2039), []
    name = NAMES[dtype.name]
    kernel = gpumem.compile(f"GPUMEM_KERNEL takes(slice<{name}> x, {name} value) {{ }}", host=lambda x, value: found.append(value))
    array = gpumem.device_array(1, dtype)
    for value in values:
        kernel[1, 1](array, value)
    gpumem.synchronize()
    check(np.array(found, dtype), values, dtype)


def test_numbers_of_graphs(dtype):
    values = edges(dtype, 2039)
    array = gpumem.device_array(1, dtype)
    name = NAMES[dtype.name]

    def body(x, value):
        x[:] = value

    kernel = gpumem.compile(f"GPUMEM_KERNEL fills(slice<{name}> x, {name} value) {{ }}", host=body)
    graph = gpumem.record(lambda stream, x, value: kernel[1, 1, stream](x, value), array, np.zeros(1, dtype)[0])
    found = []
    for value in values:
        graph(array, value)
        found.append(array.copy_to_host()[0])
    check(np.array(found, dtype), values, dtype)
