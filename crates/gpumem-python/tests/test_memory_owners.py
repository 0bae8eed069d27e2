"""Memory that NumPy has from other objects: they cannot take it away while the library uses it, and can afterwards."""

import array as arrays
import gc
import mmap
from multiprocessing import shared_memory

import pygpumem as gpumem
import numpy as np
import pytest

COUNT = 1 << 12
RECORD = [("a", "i4"), ("b", "i4")]


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


class OfSharedMemory:
    """Closing it unmaps the memory."""

    def __init__(self):
        self.memory = shared_memory.SharedMemory(create=True, size=8 * COUNT)
        # Named once: what is left of it after a failure goes with its last mapping.
        self.memory.unlink()
        self.buffer, self.take_away = self.memory.buf, self.memory.close


class OfMap:
    def __init__(self):
        self.buffer = mmap.mmap(-1, 8 * COUNT)
        self.take_away = self.buffer.close


class OfBytes:
    def __init__(self):
        self.buffer = bytearray(8 * COUNT)
        self.take_away = self.buffer.clear


class OfNumbers:
    def __init__(self):
        self.buffer = arrays.array("d", bytes(8 * COUNT))
        self.take_away = lambda: self.buffer.extend(bytes(64 * COUNT))


def by_constructor(owner, dtype):
    return np.ndarray(8 * COUNT // np.dtype(dtype).itemsize, dtype, buffer=owner.buffer)


def by_interface(owner, dtype):
    class Shows:
        __array_interface__ = {"data": owner.buffer, "shape": (8 * COUNT // np.dtype(dtype).itemsize,), "typestr": "<f8", "version": 3}

    return np.asarray(Shows()).view(dtype)


def by_view(owner, dtype):
    array = np.frombuffer(owner.buffer, dtype)
    # NumPy's own view of the buffer can be released, while it is not gone.
    return np.lib.stride_tricks.as_strided(array, array.shape)


OWNERS, WAYS = [OfSharedMemory, OfMap, OfBytes, OfNumbers], [by_constructor, by_interface]


def refused(owner):
    with pytest.raises(BufferError):
        owner.take_away()
    return True


@pytest.mark.parametrize("of", OWNERS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("part", [slice(None), slice(1000, None, 3)])
def test_owners_of_taken_tensors(of, way, part):
    owner = of()
    array = way(owner, "f8")[part]
    taken = gpumem.from_dlpack(array)
    del array
    gc.collect()
    assert refused(owner)
    taken[...] = 1.0
    assert (taken.copy_to_host() == 1).all()
    del taken
    gpumem.synchronize()
    owner.take_away()


@pytest.mark.parametrize("of", OWNERS)
@pytest.mark.parametrize("way", WAYS)
def test_owners_of_registered_arrays(of, way):
    owner = of()
    array = way(owner, "f8")
    gpumem.register(array)
    array[:] = 2
    assert (gpumem.to_device(array).copy_to_host() == 2).all()
    assert refused(owner) and (array == 2).all()
    gpumem.deregister(array)
    del array
    owner.take_away()


@pytest.mark.parametrize("of", OWNERS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lock", [gpumem.pinned, gpumem.mapped, gpumem.register])
def test_owners_of_arrays_in_a_context(of, way, lock):
    owner = of()
    array = way(owner, "f8")
    with lock(array):
        array[:] = 3
        assert (gpumem.to_device(array).copy_to_host() == 3).all()
        assert refused(owner) and (array == 3).all()
    owner.take_away()


@pytest.mark.parametrize("of", OWNERS)
def test_locked_arrays_hold_their_memory_until_the_end_of_the_lock(of):
    owner = of()
    array = by_constructor(owner, "f8")
    stream = gpumem.stream()
    with gpumem.pinned(array) as (locked,):
        copy = gpumem.to_device(locked, stream=stream)
    # The page-locked array itself is still there.
    owner.take_away()
    assert (copy.copy_to_host() == 0).all()
    with pytest.raises(ValueError, match="not page-locked any more"):
        np.asarray(locked)


@pytest.mark.parametrize("of", OWNERS)
def test_and_longer_where_numpy_knows_their_memory(of):
    owner = of()
    with gpumem.pinned(by_constructor(owner, "f8")) as (locked,):
        seen = np.asarray(locked)
    del locked
    assert refused(owner)
    seen[:] = 4
    del seen
    owner.take_away()


@pytest.mark.parametrize("of", OWNERS)
def test_and_where_views_of_the_device_are_there(of):
    owner = of()
    with gpumem.mapped(by_constructor(owner, "f8")) as view:
        pass
    assert refused(owner)
    view[:] = 4.0
    assert (view.copy_to_host() == 4).all()
    del view
    gpumem.synchronize()
    owner.take_away()


CALLS = {
    "to_device": lambda array, device: gpumem.to_device(array),
    "on a stream": lambda array, device: gpumem.to_device(array, stream=gpumem.stream()),
    "copy_to_device": lambda array, device: device.copy_to_device(array),
    "assignment": lambda array, device: device.__setitem__(slice(None), array),
    "copy_to_host": lambda array, device: device.copy_to_host(array),
    "device_array_like": lambda array, device: gpumem.device_array_like(array),
}


@pytest.mark.parametrize("of", OWNERS)
@pytest.mark.parametrize("way", [*WAYS, by_view])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_owners_are_held_during_a_call_and_no_longer(of, way, call, monkeypatch):
    from numpy._core import _internal

    owner = of()
    array, device = way(owner, RECORD), gpumem.to_device(np.zeros(COUNT, RECORD))
    described, tried = _internal._array_descr, []

    def takes_away(dtype):
        if way is by_view:
            array.base.base.base.release()
        tried.append(refused(owner))
        return described(dtype)

    monkeypatch.setattr(_internal, "_array_descr", takes_away)
    call(array, device)
    monkeypatch.undo()
    assert tried
    del array
    owner.take_away()


@pytest.mark.parametrize("of", OWNERS)
def test_owners_of_arguments_are_held_until_the_copy_back(of):
    owner, tried = of(), []
    array = by_constructor(owner, "f8")

    def body(x):
        tried.append(refused(owner))
        x[:] = 5

    kernel = gpumem.compile("GPUMEM_KERNEL fills(slice<double> x) { }", host=body)
    kernel[1, 1](array)
    assert tried and (array == 5).all()
    owner.take_away()


@pytest.mark.parametrize("of", OWNERS)
def test_owners_of_arrays_of_a_group_are_held_until_it_has_run(of):
    owner = of()
    array, other = by_constructor(owner, "f8"), np.ones(COUNT)
    array[:] = 1
    with gpumem.Communicator.group_all(gpumem.Communicator.all([gpumem.Device("host")] * 2)) as groups:
        groups[0].all_reduce(array)
        groups[1].all_reduce(other)
        assert refused(owner)
    assert (array == 2).all()
    del groups
    owner.take_away()


@pytest.mark.parametrize("of", [OfSharedMemory, OfMap])
def test_memory_that_is_gone_is_not_used(of):
    owner = of()
    array = by_constructor(owner, "f8")
    owner.take_away()
    for call in (gpumem.to_device, gpumem.from_dlpack, gpumem.register, gpumem.device_array(COUNT, "f8").copy_to_host):
        with pytest.raises(ValueError, match="closed"):
            call(array)


def test_memory_without_buffers_is_used_as_before():
    class Shows:
        def __init__(self, array):
            self.array, self.__array_interface__ = array, array.__array_interface__

    numbers = np.arange(4.0)
    dates = np.array([((1, 2), "2020-01-01")], [("x", "i4", (2,)), ("t", "M8[s]")])
    for array in (np.asarray(Shows(numbers)), np.from_dlpack(numbers), np.asarray(dates[0]), np.frombuffer(b"12345678", "u4")):
        assert (gpumem.to_device(array).copy_to_host() == array).all()


def nested(depth):
    """An array with so many objects between it and its owner."""
    array = np.arange(4.0)
    for _ in range(depth):

        class Shows:
            base, __array_interface__ = array, array.__array_interface__

        array = np.asarray(Shows())
    return array


def test_owners_that_are_too_far_away_are_refused():
    array = nested(400)
    assert gpumem.to_device(array).copy_to_host().tolist() == [0, 1, 2, 3]
    array = nested(600)
    for call in (gpumem.to_device, gpumem.from_dlpack, gpumem.register, gpumem.device_array(4, "f8").copy_to_host):
        with pytest.raises(ValueError, match="more than 1000 objects"):
            call(array)


def test_owners_in_a_ring_are_refused():
    class Ring:
        def __init__(self, owner):
            self.owner, self.__array_interface__ = owner, owner.__array_interface__

    first, second = Ring(np.zeros(4)), Ring(np.zeros(4))
    first.base, second.base = second, first
    with pytest.raises(ValueError, match="more than 1000 objects"):
        gpumem.to_device(np.asarray(first))
