"""Page-locking, cleanup and reports, with the words of Numba."""

import gc
import threading
import weakref

import pygpumem as gpumem
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


def test_pinned_locks_while_the_context_lasts():
    first, second = np.arange(6.0).reshape(2, 3), np.zeros((3, 2), order="F")
    stream = gpumem.stream()
    with gpumem.pinned(first, second) as (one, two):
        array = gpumem.to_device(one, stream=stream)
        assert array.T.copy_to_host(two, stream=stream) is two
        stream.synchronize()
        assert one.shape == (2, 3) and one.strides == first.strides and len(two) == 3
    np.testing.assert_array_equal(second, first.T)
    with pytest.raises(ValueError, match="page-locked"):
        gpumem.to_device(one, stream=stream)
    with gpumem.pinned(first), gpumem.pinned(first[:1]):
        pass


def test_copies_of_a_page_locked_array_itself_are_only_enqueued():
    source = "GPUMEM_KERNEL slow(slice<double> y) { }"
    for lock in gpumem.pinned, gpumem.register:
        begun, ends = threading.Event(), threading.Event()
        slow = gpumem.compile(source, host=lambda y: (begun.set(), ends.wait(60), y.fill(5)))
        stream, array, there = gpumem.stream(), np.zeros(4), gpumem.to_device(np.ones(4))
        with lock(array):
            slow[1, 1, stream](there)
            assert begun.wait(60)
            assert there.copy_to_host(array, stream=stream) is array  # returns, although the kernel waits
            there.copy_to_device(array, stream=stream)
            again = gpumem.to_device(array, stream=stream)
            assert not array.any()
            ends.set()
        # The end of the context has waited.
        assert (array == 5).all()
        np.testing.assert_array_equal(again.copy_to_host(), array)


def test_a_page_locked_array_is_an_ordinary_one_where_it_is_not_itself():
    """Parts and arrays that are unlocked again, also where another of their locks has ended."""
    stream, array = gpumem.stream(), np.arange(4.0)
    there = gpumem.to_device(np.full(2, 7.0))
    with gpumem.pinned(array):
        with gpumem.pinned(array):
            pass
        there.copy_to_host(array[1:3], stream=stream)
        assert array.tolist() == [0, 7, 7, 3]
        np.testing.assert_array_equal(gpumem.to_device(array, stream=stream).copy_to_host(), array)
    np.testing.assert_array_equal(gpumem.to_device(array, stream=stream).copy_to_host(), array)
    context = gpumem.pinned(array)
    context.__enter__()
    del context
    gc.collect()  # It has gone without its end.
    np.testing.assert_array_equal(gpumem.to_device(array, stream=stream).copy_to_host(), array)


def test_pinned_ends_on_every_way_out():
    array = np.zeros(5)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), gpumem.pinned(array):
            1 // 0
    with pytest.raises(TypeError), gpumem.pinned(array, [1, 2]):
        pass
    frozen = np.zeros(5)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"), gpumem.pinned(array, frozen):
        pass
    with pytest.raises(ValueError, match="share"), gpumem.mapped(np.lib.stride_tricks.as_strided(array, (2, 3), (0, 8))):
        pass
    with gpumem.pinned() as nothing:
        assert nothing == ()


@pytest.mark.parametrize("locking", [gpumem.pinned, gpumem.mapped])
def test_one_context_may_be_entered_again(locking):
    first = np.zeros(6)
    again = locking(first)
    with again as outer:
        outer = outer[0] if isinstance(outer, tuple) else outer
        with again:
            pass
        outer[...] = 3  # the inner end has left what the outer one has locked
        gpumem.synchronize()
    assert (first == 3).all()
    with gpumem.pinned(first) as (locked,):
        assert (np.asarray(locked.copy_to_host() if hasattr(locked, "copy_to_host") else locked) == 3).all()


def test_mapped_gives_device_arrays():
    one, two = np.arange(4, dtype="i4"), np.arange(6, dtype="f4").reshape(2, 3)[:, ::-1]
    with gpumem.mapped(one) as device:
        device[1:3] = 9
        gpumem.synchronize()
    assert one.tolist() == [0, 9, 9, 3]
    with gpumem.mapped(one, two) as arrays:
        assert isinstance(arrays, list) and arrays[1].strides == two.strides
        arrays[1][...] = 1
    assert (two == 1).all()
    # What is kept beyond the context keeps the memory.
    with gpumem.mapped(np.full(100, 7.0)) as kept:
        pass
    gc.collect()
    np.testing.assert_array_equal(kept.copy_to_host(), np.full(100, 7.0))


def test_register_until_deregister():
    src, dst = np.arange(1000), np.zeros(1000, "i8")
    gpumem.register(src, dst)
    gpumem.to_device(src).copy_to_host(dst)
    gpumem.deregister(src, dst)
    gpumem.deregister(src)  # as often as one likes
    np.testing.assert_array_equal(src, dst)
    with gpumem.register(src) as arrays:
        assert arrays[0] is src
    with pytest.raises(TypeError):
        gpumem.register(src, "text")
    with pytest.raises(TypeError):
        gpumem.deregister(3)


def test_a_refused_deregister_unlocks_nothing():
    array = np.zeros(1000)
    alive = weakref.ref(array)
    gpumem.register(array)
    with pytest.raises(TypeError):
        gpumem.deregister(array, 3)
    del array
    gc.collect()
    assert alive() is not None, "what is locked is kept"
    gpumem.deregister(alive())
    gc.collect()
    assert alive() is None


def test_page_locked_arrays_are_arrays():
    pinned = gpumem.pinned_array((2, 3), np.int32)
    pinned[0] = 5
    assert pinned[0, 1] == 5 and pinned.ndim == 2 and pinned.size == 6 and pinned.nbytes == 24
    stream = gpumem.stream()
    array = gpumem.device_array((2, 3), np.int32)
    array.copy_to_device(pinned, stream=stream)
    with pytest.raises(TypeError):
        gpumem.device_array((2, 3)).copy_to_device(pinned, stream=stream)
    with pytest.raises(ValueError):
        gpumem.device_array((3, 3), np.int32).copy_to_host(pinned, stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(array.copy_to_host(), [[5] * 3, [0] * 3])


def test_cleanup_is_deferred_inside():
    with gpumem.defer_cleanup() as nothing, gpumem.defer_cleanup():
        assert nothing is None and gpumem.memory_report().as_dict()["deferred"]
    assert not gpumem.memory_report().as_dict()["deferred"]
    with pytest.raises(ZeroDivisionError), gpumem.defer_cleanup():
        1 // 0
    assert not gpumem.memory_report().as_dict()["deferred"]


def test_reports_say_who_holds_memory():
    array = gpumem.device_array(1 << 20, "u1")
    report = gpumem.memory_report(gpumem.Device("host"))
    assert "memory of host:0" in str(report) and report.as_dict()["device"] == "host:0"
    lent = sum(kind["resources"][0]["statistics"]["allocated"] for kind in report.as_dict()["kinds"])
    assert lent >= array.nbytes and report.json().startswith("{")


def test_broadcast_views_are_for_reading():
    array = gpumem.to_device(np.arange(3.0))
    wide = array.broadcast_to((2, 3))
    assert wide.strides == (0, 8) and not wide.flags["WRITEABLE"]
    np.testing.assert_array_equal(wide.copy_to_host(), [[0, 1, 2]] * 2)
    with pytest.raises(ValueError, match="read"):
        wide[0] = 1
    with pytest.raises(ValueError):
        array.broadcast_to((3, 2))


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f8", "c8"])
def test_numbers_fill(dtype):
    array, host = gpumem.to_device(np.zeros((2, 3), dtype)), np.zeros((2, 3), dtype)
    for value in (1, True, 2.5, 3 + 0j if dtype == "c8" else np.float32(1)):
        array[:, 1:] = value
        host[:, 1:] = value
        np.testing.assert_array_equal(array.copy_to_host(), host)


def test_names_of_types():
    for dtype in ("f4", np.float32, np.dtype("f4"), "float32", "single"):
        for _ in range(2):
            assert gpumem.device_array(2, dtype).dtype == np.float32
    for dtype, same in ((float, "f8"), (int, np.int_), (bool, "?"), (complex, "c16"), (None, "f8"), ("f8", "f8")):
        assert gpumem.device_array(2, dtype).dtype == np.dtype(same)
    for dtype in ("O", ">f4", "V0", "g", ("f4", 3), ">M8[s]", [("a", ">i4")], object):
        with pytest.raises(TypeError):
            gpumem.device_array(2, dtype)
    assert gpumem.device_array([2, 3]).shape == (2, 3) and gpumem.device_array(np.int64(4)).shape == (4,)
    for shape in (2.5, "ab", (2, 1.5)):
        with pytest.raises(TypeError):
            gpumem.device_array(shape)
