"""Memory that two arrays name: one rule for all operations, whatever was lent or imported before."""

import gc

import pygpumem as gpumem
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


class Describes:
    """An object that only describes the memory of an array."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__


# How an array's memory comes back as another array.
BACK = {
    "interface": gpumem.as_cuda_array,
    "interface of another object": lambda array: gpumem.as_cuda_array(Describes(array)),
    "dlpack": gpumem.from_dlpack,
    "dlpack by NumPy": lambda array: gpumem.from_dlpack(np.from_dlpack(array)),
    "a view by the interface": lambda array: gpumem.as_cuda_array(array[1:]),
}
back = pytest.mark.parametrize("back", BACK.values(), ids=BACK)


def fresh(length=8):
    return gpumem.to_device(np.arange(length, dtype="f4"))


def kernels():
    both = gpumem.compile("GPUMEM_KERNEL copies(view<const float, 1> x, view<float, 1> y) { }", host=lambda x, y: np.copyto(y, x))
    one = gpumem.compile("GPUMEM_KERNEL adds(slice<float> y) { }", host=lambda y: np.add(y, 1, out=y))
    reads = gpumem.compile("GPUMEM_KERNEL reads(slice<const float> x, slice<const float> y) { }", host=lambda x, y: None)
    return both, one, reads


@back
def test_own_memory_that_comes_back_is_only_read(back):
    array = fresh()
    (both, one, reads), (rank,) = kernels(), gpumem.Communicator.all([gpumem.Device("host")])
    second = back(array)
    assert not second.flags["WRITEABLE"] and not second[1:].flags["WRITEABLE"] and not second.view("i4").flags["WRITEABLE"]
    for write in (
        lambda: second.__setitem__(0, 1),
        lambda: second.__setitem__(slice(None), fresh(second.size)),
        lambda: second.copy_to_device(np.zeros(second.size, "f4")),
        lambda: gpumem.to_device(np.zeros(second.size, "f4"), to=second),
        lambda: one[1, 1](second),
        lambda: rank.all_reduce(second),
        lambda: rank.all_reduce(fresh(second.size), second),
    ):
        with pytest.raises(ValueError, match="read"):
            write()
    reads[1, 1](second, array)
    both[1, 1](second, fresh(second.size))
    assert array.copy_to_host().tolist() == list(range(8))


@back
def test_it_is_ordered_with_the_array(back):
    array, stream = fresh(1 << 20), gpumem.stream()
    second, (_, one, _) = back(array), kernels()
    for _ in range(5):
        one[1, 1, stream](array)
    assert second.copy_to_host()[-1] == (1 << 20) + 4
    del array
    gc.collect()
    assert second.copy_to_host()[-1] == (1 << 20) + 4 and not second.flags["WRITEABLE"]


@pytest.mark.parametrize("import_it", [lambda array: None, *BACK.values()], ids=["nothing", *BACK])
def test_an_array_twice_has_one_answer(import_it):
    array, rank = fresh(), gpumem.Communicator.all([gpumem.Device("host")])[0]
    (both, _, reads), second = kernels(), import_it(array)
    others = [array] if second is None else [array, second]
    for other in others:
        same = array if other is array else array[8 - other.size :]
        for call in (
            lambda: both[1, 1](other, same),
            lambda: both[1, 1](other[1:], same[:-1]),
            lambda: rank.all_reduce(other, same),
            lambda: rank.all_gather(other, same),
            lambda: same.copy_to_device(other),
        ):
            with pytest.raises(ValueError, match="the same memory|share memory|overlap"):
                call()
        reads[1, 1](other, same)
    both[1, 1](array[:4], array[4:])
    rank.all_reduce(array)
    rank.all_reduce(array[:4], array[4:])
    rank.synchronize()
    assert array.copy_to_host().tolist() == [0, 1, 2, 3] * 2


def test_parts_that_share_no_element_are_apart():
    array, (both, _, _) = gpumem.to_device(np.arange(8, dtype="f4").reshape(4, 2)), kernels()
    both[1, 1](array[:, 0], array[:, 1])
    assert array.copy_to_host().tolist() == [[0, 0], [2, 2], [4, 4], [6, 6]]


def test_numpys_arrays_twice_have_the_same_answer():
    """Two copies would be made, and the later one would win."""
    host, (both, _, reads) = np.arange(8, dtype="f4"), kernels()
    for first, second in [(host, host), (host[1:], host[:-1]), (host, host[::-1])]:
        with pytest.raises(ValueError, match="the same memory"):
            both[1, 1](first, second)
    reads[1, 1](host, host)
    both[1, 1](host[:4], host[4:])
    assert host.tolist() == [0, 1, 2, 3] * 2


def test_numpys_records_twice_in_an_operation():
    """Of records copies are made, whose memory is apart."""
    rank, host = gpumem.Communicator.all([gpumem.Device("host")])[0], np.zeros(3, [("a", "i4"), ("b", "f8")])
    with pytest.raises(ValueError, match="share memory"):
        rank.all_gather(host, host)


def test_an_array_is_converted_to_itself_as_by_numpy():
    host = np.arange(1, 9, dtype="f4")
    array = gpumem.to_device(host)
    array.view("i4")[1:] = array[:-1]
    host.view("i4")[1:] = host[:-1].copy()
    np.testing.assert_array_equal(array.copy_to_host().view("i4"), host.view("i4"))


def odd(length):
    """Numbers that NumPy has to copy before they are read as numbers: a field of packed records."""
    field = np.zeros(length, dtype=[("flag", "u1"), ("value", "f4")])["value"]
    field[:] = np.arange(length)
    return field


# Small and large copies come from different places of the allocator.
@pytest.mark.parametrize("length", [8, 100_000])
def test_arrays_that_numpy_copies_share_what_they_are_copied_from(length):
    both, _, _ = kernels()
    (rank,) = gpumem.Communicator.all([gpumem.Device("host")])
    source, target = odd(length), odd(length)
    for _ in range(4):
        target[:] = -1
        both[1, 1](source, target)
        np.testing.assert_array_equal(target, source)
        rank.all_reduce(source, target)
    all_of_it = odd(length)
    for first, second in ((all_of_it, all_of_it), (all_of_it[:-1], all_of_it[1:]), (all_of_it[::2], all_of_it[: length // 2])):
        with pytest.raises(ValueError, match="same memory"):
            both[1, 1](first, second)
        with pytest.raises(ValueError, match="share memory"):
            rank.all_reduce(first, second)
    with pytest.raises(ValueError, match="share memory"), rank.group() as group:
        group.broadcast(all_of_it)
        group.broadcast(all_of_it[length // 4 : length // 2])
    # Bytes of the same records, but of no element.
    records = np.zeros(length, dtype=[("x", "u1"), ("y", "f4"), ("z", "f4")])
    records["y"] = np.arange(length)
    both[1, 1](records["y"], records["z"])
    np.testing.assert_array_equal(records["z"], np.arange(length))


# Memory of the library's that NumPy sees.
SEEN = {
    "pinned": lambda: gpumem.pinned_array(8, "f4"),
    "mapped": lambda: gpumem.mapped_array(8, "f4"),
    "managed": lambda: gpumem.managed_array(8, "f4"),
    "copied": lambda: gpumem.stream().copy_to_host(fresh()),
    "returned by a graph": lambda: gpumem.record(lambda stream, x: stream.copy_to_host(x), fresh())(fresh()),
}


@pytest.mark.parametrize("make", SEEN.values(), ids=SEEN)
def test_memory_of_page_locked_arrays_gets_no_second_owner(make):
    class Describes:
        def __init__(self, array):
            self.__cuda_array_interface__ = dict(array.__array_interface__, version=3)

    array = make()
    view = np.asarray(array)
    view[:] = 3
    for back in (lambda: gpumem.from_dlpack(view), lambda: gpumem.from_dlpack(view[2:5]), lambda: gpumem.as_cuda_array(Describes(array))):
        with pytest.raises(ValueError, match="use the array that it belongs to"):
            back()
    # It is used as before, and is freed with its last user.
    stream = gpumem.stream()
    stream.synchronize()
    fresh().copy_to_host(array, stream=stream)
    np.testing.assert_array_equal(np.asarray(array), np.arange(8))
    del array
    gc.collect()
    np.testing.assert_array_equal(view, np.arange(8))
    with pytest.raises(ValueError, match="use the array that it belongs to"):
        gpumem.from_dlpack(view)


def test_memory_that_was_locked_in_place_is_given_back_while_numpy_sees_it():
    own = np.zeros(8, "f4")
    for lock in (gpumem.pinned, gpumem.mapped):
        with lock(own) as locked:
            if lock is gpumem.pinned:
                view = np.asarray(locked[0])
                with pytest.raises(ValueError, match="use the array that it belongs to"):
                    gpumem.from_dlpack(view)
        # With a view of the device's it would have another owner still.
        del locked
        gpumem.from_dlpack(own)[:] = 5
    assert (own == 5).all() and (view == 5).all()


def test_memory_that_a_body_has_kept_gets_no_second_owner():
    kept = []
    kernel = gpumem.compile("GPUMEM_KERNEL keeps(slice<float> y) { }", host=kept.append)
    array, mapped = fresh(), gpumem.mapped_array(8, "f4")
    kernel[1, 1](array)
    kernel[1, 1](mapped.device_view)
    gpumem.synchronize()
    second = gpumem.from_dlpack(kept[0])
    assert not second.flags["WRITEABLE"]
    both, one, _ = kernels()
    for write in (lambda: one[1, 1](second), lambda: both[1, 1](array, second), lambda: second.__setitem__(0, 1)):
        with pytest.raises((ValueError, gpumem.GpuMemError)):
            write()
    one[1, 1](array)
    np.testing.assert_array_equal(second.copy_to_host(), np.arange(1, 9))
    with pytest.raises(ValueError, match="use the array that it belongs to"):
        gpumem.from_dlpack(kept[1])


class Interface:
    """Memory of NumPy's, described as a device's."""

    def __init__(self, array):
        self.array, self.__cuda_array_interface__ = array, dict(array.__array_interface__)


@pytest.mark.parametrize("lock", [gpumem.mapped, gpumem.pinned])
def test_memory_that_is_locked_in_place_gets_no_second_owner(lock):
    a = np.zeros(4096, "f4")
    with lock(a):
        for second in (
            lambda: gpumem.from_dlpack(a),
            lambda: gpumem.from_dlpack(a[100:200]),
            lambda: gpumem.as_cuda_array(Interface(a)),
        ):
            with pytest.raises(ValueError, match="registered"):
                second()
    # Neighbours of the same page are other memory.
    with lock(a[:100]), gpumem.mapped(a[100:200]) as other:
        gpumem.from_dlpack(a[200:])
        other[:] = 1
    gpumem.synchronize()
    assert a[:100].sum() == 0 and a[100:200].sum() == 100
    # It is NumPy's again, when no view of the device's is left.
    del other
    gpumem.from_dlpack(a)


def test_memory_of_the_library_is_not_locked_in_place():
    d, m = gpumem.to_device(np.zeros(4096, "f4")), gpumem.mapped_array(4096, "f4")
    kept = []
    kernel = gpumem.compile("GPUMEM_KERNEL keeps(slice<float> x) { }", host=kept.append)
    kernel[1, 1](gpumem.to_device(np.zeros(4096, "f4")))
    gpumem.synchronize()
    for lock in gpumem.mapped, gpumem.pinned, gpumem.register:
        for memory in np.from_dlpack(d), np.asarray(m), kept[0]:
            with pytest.raises((ValueError, gpumem.GpuMemError)):
                context = lock(memory)
                if lock is not gpumem.register:
                    context.__enter__()
