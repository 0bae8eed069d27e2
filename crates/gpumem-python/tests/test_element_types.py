"""Records, dates, texts, and the same bytes as other types."""

import gc

import pygpumem as gpumem
import numpy as np
import pytest

PARTICLE = np.dtype([("position", "f4", (3,)), ("mass", "f8"), ("charge", "i1"), ("inner", [("a", "i2"), ("b", "u1")])])
ALIGNED = np.dtype([("a", "i1"), ("b", "f8")], align=True)
TYPES = [PARTICLE, ALIGNED, "M8[s]", "M8[ns]", "m8[ms]", "m8", "V5", "S3", "U4"]


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


def values(dtype, count=24):
    dtype = np.dtype(dtype)
    made = np.zeros(count, dtype)
    made.view("u1")[:] = np.random.default_rng(7).integers(1, 100, count * dtype.itemsize)
    if dtype.kind == "U":
        made[:] = [chr(ord("a") + at) * 3 for at in range(count)]
    return made


def equal(found, expected):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    if found.dtype.kind == "V" and found.dtype.names:
        # NumPy copies no padding.
        for name in found.dtype.names:
            equal(found[name], expected[name])
        return
    assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(expected).tobytes()


LAYOUTS = {
    "c": lambda a: a.reshape(2, 3, 4),
    "f": lambda a: a.reshape(2, 3, 4).T,
    "strided": lambda a: a.reshape(2, 3, 4)[:, ::2, ::-2],
    "0-d": lambda a: a[5:6].reshape(()),
    "zero-size": lambda a: a[3:3],
}


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_there_and_back(dtype, layout):
    expected = LAYOUTS[layout](values(dtype))
    for array in (gpumem.to_device(expected), LAYOUTS[layout](gpumem.to_device(values(dtype)))):
        assert (array.ndim, array.size, array.nbytes) == (expected.ndim, expected.size, expected.nbytes)
        equal(array.copy_to_host(), expected)
        into = np.zeros_like(expected)
        equal(array.copy_to_host(into), expected)
        stream = gpumem.stream()
        equal(gpumem.to_device(array, stream=stream).copy_to_host(stream=stream), expected)
        other = gpumem.device_array_like(array)
        assert other.dtype == expected.dtype
        if other.size:
            assert other.strides == np.empty_like(array.copy_to_host()).strides
        other.copy_to_device(array)
        equal(other.copy_to_host(), expected)
    assert gpumem.to_device(expected).flags == gpumem.to_device(expected.copy("K")).flags


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_strides_are_those_of_numpy(dtype):
    host, array = values(dtype), gpumem.to_device(values(dtype))
    for of in (lambda a: a.reshape(4, 6)[::2].T, lambda a: a.reshape(2, 12, order="F"), lambda a: a[None, ::-3], lambda a: a[2:9]):
        assert of(array).strides == of(host).strides and of(array).shape == of(host).shape
        equal(of(array).copy_to_host(), of(host))
    fortran = gpumem.device_array((3, 4), dtype, order="F")
    assert fortran.strides == np.empty((3, 4), dtype, order="F").strides and fortran.is_f_contiguous()
    assert not fortran.is_c_contiguous() and gpumem.device_array((3, 4), dtype).is_c_contiguous()


def test_fields_are_views():
    host, array = values(PARTICLE), gpumem.to_device(values(PARTICLE))
    for name in PARTICLE.names:
        found = array[name]
        assert found.dtype == host[name].dtype and found.strides == host[name].strides
    for name in ("position", "charge", "inner"):
        equal(array[name].copy_to_host(), host[name])
    array["charge"] = 5
    host["charge"] = 5
    array["position"][:, 1] = np.arange(24)
    host["position"][:, 1] = np.arange(24)
    array["inner"]["a"][::2] = -7
    host["inner"]["a"][::2] = -7
    equal(array.copy_to_host(), host)
    aligned = gpumem.to_device(values(ALIGNED))
    equal(aligned["b"][::-1].copy_to_host(), values(ALIGNED)["b"][::-1])
    for wrong in ("nothing", "mass "):
        with pytest.raises(KeyError):
            array[wrong]
    with pytest.raises(IndexError):
        gpumem.to_device(np.zeros(3))["mass"]


def test_fields_that_are_not_aligned_are_read_and_written():
    packed = np.dtype([("a", "i1"), ("b", "f8")])
    host, array = values(packed), gpumem.to_device(values(packed))
    np.testing.assert_array_equal(array["b"].copy_to_host(), host["b"])
    array["b"][3:5] = [1.5, 2.5]
    assert array[4]["b"] == 2.5 and array["b"][3] == 1.5
    host["b"][3:5] = [1.5, 2.5]
    equal(array.copy_to_host(), host)


def test_records_one_by_one():
    array = gpumem.to_device(values(PARTICLE))
    one = array[3]
    assert one.shape == () and one.dtype == PARTICLE
    assert one["mass"] == values(PARTICLE)[3]["mass"] or np.isnan(one["mass"])
    one["charge"] = 9
    one["position"][:] = [1, 2, 3]
    one["inner"]["b"] = 200
    back = array.copy_to_host()[3]
    assert back["charge"] == 9 and back["position"].tolist() == [1, 2, 3] and back["inner"]["b"] == 200
    record = np.zeros((), ALIGNED)
    record["b"] = 2.5
    alone = gpumem.to_device(record[()])
    assert alone.shape == () and alone["b"] == 2.5
    many = gpumem.to_device(values(ALIGNED))
    many[0] = (7, 1.25)
    many[1:3] = [(1, 2.0), (3, 4.0)]
    many[5] = many[0]
    many[6:] = record
    expected = values(ALIGNED)
    expected[0] = expected[5] = (7, 1.25)
    expected[1:3] = [(1, 2.0), (3, 4.0)]
    expected[6:] = record
    assert many.copy_to_host().tolist() == expected.tolist()


def test_dates_are_elements():
    days = np.arange("2024-01-01", "2024-01-11", dtype="M8[D]")
    array = gpumem.to_device(days)
    assert array[3] == np.datetime64("2024-01-04") and array[-1].dtype == days.dtype
    array[0] = np.datetime64("2000-01-01")
    array[1] = "2001-01-01"
    array[2:4] = np.array(["2002-01-01", "NaT"], "M8[s]")
    days[0], days[1] = np.datetime64("2000-01-01"), "2001-01-01"
    days[2:4] = np.array(["2002-01-01", "NaT"], "M8[s]")
    np.testing.assert_array_equal(array.copy_to_host(), days)
    np.testing.assert_array_equal(array.view("i8").copy_to_host(), days.view("i8"))
    for wrong in (lambda: array.copy_to_device(days.astype("M8[s]")), lambda: array.copy_to_host(np.zeros(10, "i8"))):
        with pytest.raises(TypeError, match="datetime64"):
            wrong()
    with pytest.raises(TypeError, match="on a device"):
        array[:] = gpumem.to_device(days.astype("M8[s]"))


VIEWS = [("f4", "u4"), ("f8", "f4"), ("u1", "f8"), ("i4", "V8"), (ALIGNED, "u1"), ("u1", ALIGNED), ("c16", "f8"), ("f8", "M8[s]"), ("f4", None)]


@pytest.mark.parametrize("dtype, other", VIEWS, ids=str)
def test_the_same_bytes_as_another_type(dtype, other):
    host = values(dtype, 32).reshape(2, 16)
    array = gpumem.to_device(host)
    for of in (lambda a: a, lambda a: a[1], lambda a: a[::-1]):
        expected = of(host).view(other) if other else of(host).view()
        found = of(array).view(other)
        equal(found.copy_to_host(), expected)
        assert found.strides == expected.strides
    array.view("u1")[1, 3] = 77
    assert array.copy_to_host().view("u1")[1, 3] == 77, "a view shares memory"


def test_views_that_numpy_has_not():
    array = gpumem.to_device(np.zeros((2, 3), "f4"))
    for wrong in (lambda: array.view("f8"), lambda: array.T.view("u1"), lambda: array.view("V5"), lambda: gpumem.to_device(np.float32(1)).view("i8")):
        with pytest.raises((ValueError, NotImplementedError)):
            wrong()
    bytes_of = np.arange(17, dtype="u1")
    equal(gpumem.to_device(bytes_of)[1:].view("f8").copy_to_host(), bytes_of[1:].view("f8"))
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    assert not gpumem.from_dlpack(frozen).view("u1").flags["WRITEABLE"]


@pytest.mark.parametrize("dtype", ["i2", "f4", "f8", "c16", "M8[s]", "?"])
def test_downloads_into_arrays_that_are_not_aligned(dtype):
    expected = np.arange(12).reshape(3, 4).astype("i8").astype(dtype)
    array = gpumem.to_device(expected)
    size = expected.dtype.itemsize
    room = np.full(3 * 4 * (size + 1) + 1, 99, "u1")
    odd = np.ndarray((3, 4), dtype, room, 1, (4 * (size + 1), size + 1))
    assert array.copy_to_host(odd) is odd
    np.testing.assert_array_equal(odd, expected)
    gaps = np.delete(room, [1 + at * (size + 1) + byte for at in range(12) for byte in range(size)])
    assert (gaps == 99).all(), "bytes between the elements are not touched"
    other = gpumem.device_array_like(array)
    other.copy_to_device(odd)
    np.testing.assert_array_equal(other.copy_to_host(), expected)
    records = np.zeros((3, 4), [("a", "i1"), ("b", dtype)])
    array.copy_to_host(records["b"])
    np.testing.assert_array_equal(records["b"], expected)


@pytest.mark.parametrize("dtype", ["f4", *TYPES], ids=str)
@pytest.mark.parametrize("make", [gpumem.pinned_array, gpumem.mapped_array, gpumem.managed_array])
def test_memory_that_the_host_sees(dtype, make):
    expected = values(dtype).reshape(4, 6)
    for order in "CF":
        array = make((4, 6), dtype, order=order)
        assert array.strides == np.zeros((4, 6), dtype, order).strides and array.dtype == expected.dtype
        equal(np.asarray(array), np.zeros((4, 6), dtype))
        array[...] = expected
        equal(np.asarray(array), expected)
        stream = gpumem.stream()
        device = gpumem.to_device(array, stream=stream)
        equal(device.copy_to_host(), expected)
        array[...] = np.zeros((), dtype)
        device.copy_to_host(array, stream=stream)
        equal(np.asarray(array), expected)
        if make is not gpumem.pinned_array:
            equal(array.device_view[1:, ::2].copy_to_host(), expected[1:, ::2])


@pytest.mark.parametrize(
    "like", [gpumem.device_array_like, gpumem.pinned_array_like, gpumem.mapped_array_like, gpumem.managed_array_like]
)
@pytest.mark.parametrize("dtype", ["i2", PARTICLE, "M8[s]"], ids=str)
def test_arrays_like_others(like, dtype):
    for of in (lambda a: a, np.asfortranarray, lambda a: a.transpose(1, 0, 2), lambda a: a[::-1, ::2], lambda a: a[0, 0, 0]):
        host = of(values(dtype).reshape(2, 3, 4))
        for source in (host, gpumem.to_device(host), gpumem.pinned_array_like(host)):
            made = like(source)
            expected = np.empty_like(host)
            assert (made.shape, made.dtype, made.strides) == (expected.shape, expected.dtype, expected.strides)
    zeros = like(np.ones(5, "i2"))
    assert not np.asarray(zeros).any()
    assert like(np.ones(5, "i2"), device=gpumem.Device("host")).shape == (5,)


def test_managed_arrays_are_used_by_both_sides():
    add = gpumem.compile("GPUMEM_KERNEL add(slice<i32> x) { }", host=lambda x: np.add(x, 1, out=x))
    managed = gpumem.managed_array(1000, "i4", attach_global=False)
    managed[:] = np.arange(1000)
    add[4, 256](managed.device_view)
    np.testing.assert_array_equal(np.asarray(managed), np.arange(1000) + 1)
    view = managed.device_view
    del managed
    gc.collect()
    assert view[5] == 6


def test_interfaces_of_records_and_dates():
    records, dates = gpumem.to_device(values(PARTICLE)), gpumem.to_device(values("M8[s]"))
    says = records[::2].__cuda_array_interface__
    assert says["typestr"] == f"|V{PARTICLE.itemsize}" and says["shape"] == (12,) and says["descr"] == PARTICLE.descr
    assert says["strides"] == (2 * PARTICLE.itemsize,) and dates.__cuda_array_interface__["typestr"] == "<M8[s]"
    for array in (records, records[::-2], dates, dates[::3]):
        taken = gpumem.as_cuda_array(array)
        assert taken.dtype == array.dtype and taken.strides == array.strides
        equal(taken.copy_to_host(), array.copy_to_host())
        with pytest.raises(BufferError):
            array.__dlpack__()
    taken = gpumem.as_cuda_array(records)
    records["charge"] = 3
    assert (taken.copy_to_host()["charge"] == 3).all() and not taken["charge"].flags["WRITEABLE"]


def test_kernels_take_fields_and_views():
    add = gpumem.compile("GPUMEM_KERNEL add(view<double, 1> x) { }", host=lambda x: np.add(x, 1, out=x))
    host = values(ALIGNED)
    host["b"] = np.arange(24)
    array = gpumem.to_device(host)
    add[1, 256](array["b"])
    np.testing.assert_array_equal(array.copy_to_host()["b"], np.arange(24) + 1)
    with pytest.raises(TypeError, match="array of"):
        add[1, 256](array)
    with pytest.raises(TypeError, match="array of"):
        add[1, 256](gpumem.to_device(values("M8[s]")))


def test_records_are_locked_in_place():
    host = values(PARTICLE)[::2]
    with gpumem.pinned(host) as (locked,), gpumem.mapped(values(ALIGNED)) as device:
        assert locked.dtype == PARTICLE and locked.strides == host.strides
        equal(gpumem.to_device(locked, stream=gpumem.stream()).copy_to_host(), host)
        equal(device["b"].copy_to_host(), values(ALIGNED)["b"])


@pytest.mark.parametrize("state", [{"bytes": 1008}, {"object": True}], ids=["longer", "objects"])
def test_a_type_that_was_changed_in_place_describes_no_memory(state):
    dtype = np.dtype([("a", "f8")])
    pinned, array = gpumem.pinned_array(3, dtype), gpumem.device_array(3, dtype)
    assert np.asarray(pinned).nbytes == 24
    # As `pickle` calls it.
    fields = {"b": (np.dtype("O" if "object" in state else "f8"), 0)}
    flags = np.dtype([("b", "O")]).flags if "object" in state else 0
    dtype.__setstate__((3, "|", None, ("b",), fields, state.get("bytes", 8), 1, flags))
    for use in [
        lambda: np.asarray(pinned),
        lambda: pinned[0],
        lambda: array.copy_to_host(),
        lambda: array.__cuda_array_interface__,
        lambda: gpumem.device_array_like(array).dtype,
    ]:
        with pytest.raises(TypeError, match="changed in place|objects"):
            use()


def test_a_name_that_says_it_equals_all_others_is_no_name_of_theirs():
    class Name(str):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return hash("<f8")

    assert gpumem.device_array(2, Name("f4")).dtype == "f4"
    assert gpumem.device_array(2, "<f8").dtype == "f8"
