"""Events, callbacks, the kinds of streams, and devices as Numba names them."""

import asyncio
import gc
import pickle
import subprocess
import sys
import threading
import time

import pygpumem as gpumem
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


def slow(seconds=0.05):
    """A kernel that takes a while, and an array for it."""
    kernel = gpumem.compile("GPUMEM_KERNEL slow(slice<float> x) { }", host=lambda x: (time.sleep(seconds), np.add(x, 1, out=x)))
    return kernel, gpumem.to_device(np.zeros(8, "f4"))


def drain():
    """Takes what earlier work has done wrong, so that no other test meets it."""
    for _ in range(3):
        try:
            gpumem.synchronize()
        except gpumem.GpuMemError:
            continue


def test_events_measure_time():
    stream, (kernel, array) = gpumem.stream(), slow()
    start, end = gpumem.event(), gpumem.event(timing=True)
    assert "not recorded" in repr(start) and start.query()
    start.synchronize()
    start.record(stream)
    kernel[1, 1, stream](array)
    end.record(stream=stream)
    assert not end.query()
    end.synchronize()
    assert end.query() and start.query()
    elapsed = start.elapsed_time(end)
    assert 45 < elapsed < 5000 and elapsed == pytest.approx(gpumem.event_elapsed_time(start, end))
    with pytest.raises(ValueError, match="never recorded"):
        start.elapsed_time(gpumem.event())
    without = gpumem.event(timing=False)
    without.record()
    without.synchronize()
    with pytest.raises(ValueError, match="time"):
        start.elapsed_time(without)


def test_events_order_streams():
    first, second, (kernel, array) = gpumem.stream(), gpumem.stream(), slow()
    event, seen = gpumem.event(), []
    look = gpumem.compile("GPUMEM_KERNEL look(slice<float> y) { }", host=lambda y: seen.append(event.query()))
    for stream in (second, 0):
        kernel[1, 1, first](array)
        event.record(first)
        event.wait(stream)
        look[1, 1, stream](gpumem.to_device(np.zeros(1, "f4")))
        gpumem.synchronize()
    assert seen == [True, True]
    gpumem.event().wait(second)


def test_callbacks_run_in_order_with_their_arguments():
    stream, (kernel, array) = gpumem.stream(), slow()
    calls, here = [], threading.get_ident()
    kernel[1, 1, stream](array)
    for at in range(5):
        stream.add_callback(lambda *given: calls.append((*given, threading.get_ident())), at)
    stream.add_callback(callback=lambda *given: calls.append((*given, 0)))
    assert not calls
    stream.synchronize()
    assert [call[2] for call in calls] == [0, 1, 2, 3, 4, None]
    assert all(type(call[0]) is gpumem.Stream and call[1] == 0 and call[3] != here for call in calls)
    assert calls[0][0].handle == stream.handle


def test_what_callbacks_raise_is_told(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(repr(unraisable.exc_value)))
    stream = gpumem.stream()
    stream.add_callback(lambda *_: 1 // 0)
    stream.add_callback(lambda *_: stream.synchronize())
    stream.synchronize()
    assert "ZeroDivisionError" in told[0] and "callback" in told[1]


def test_a_callback_that_recurses_for_ever_is_an_error_of_python():
    # By way of NumPy each level takes more of the stack than by way of Python alone.
    program = """
import sys
import pygpumem as gpumem, numpy as np
gpumem.select_device("host")
def recurse(n):
    return np.frompyfunc(recurse, 1, 1)(n)
sys.unraisablehook = lambda unraisable: print(unraisable.exc_type.__name__)
stream = gpumem.stream()
stream.add_callback(lambda *_: recurse(0))
stream.synchronize()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "RecursionError" in done.stdout, (done.returncode, done.stdout, done.stderr)


def test_callbacks_learn_what_went_wrong():
    (kernel, array), stream, statuses = slow(0.2), gpumem.stream(), []
    kernel[1, 1, stream](array)
    fails = gpumem.compile("GPUMEM_KERNEL fails(slice<float> x) { }", host=lambda x: 1 // 0)
    fails[1, 1, stream](gpumem.to_device(np.zeros(3, "f4")))
    stream.add_callback(lambda stream, status, arg: statuses.append(status))
    with pytest.raises(RuntimeError, match="division"):
        stream.synchronize()
    for _ in range(200):
        if statuses:
            break
        time.sleep(0.01)
    drain()
    assert isinstance(statuses[0], gpumem.GpuMemError) and "division" in str(statuses[0])


def test_streams_can_be_awaited():
    async def work():
        streams, (kernel, array) = [gpumem.stream() for _ in range(3)], slow(0.01)
        for stream in streams:
            kernel[1, 1, stream](array)
        done = await asyncio.gather(*[stream.async_done() for stream in streams])
        assert [each.handle for each in done] == [stream.handle for stream in streams]
        assert (array.copy_to_host() == 3).all()
        given_up = streams[0].async_done()
        given_up.cancel()
        fails = gpumem.compile("GPUMEM_KERNEL fails(slice<float> x) { }", host=lambda x: 1 // 0)
        slow(0.05)[0][1, 1, streams[1]](array)
        fails[1, 1, streams[1]](gpumem.to_device(np.zeros(3, "f4")))
        with pytest.raises(gpumem.GpuMemError, match="division"):
            await streams[1].async_done()

    asyncio.run(work())
    drain()
    with pytest.raises(RuntimeError, match="loop"):
        gpumem.stream().async_done()


@pytest.mark.parametrize("make", [gpumem.default_stream, gpumem.legacy_default_stream, gpumem.per_thread_default_stream])
def test_the_kinds_of_streams(make):
    stream, device = make(), gpumem.Device("host")
    assert make(device=device).device == device
    array = gpumem.to_device(np.arange(1000), stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(array.copy_to_host(stream=stream), np.arange(1000))


def test_the_per_thread_stream_is_of_its_thread():
    stream, told = gpumem.per_thread_default_stream(), []

    def elsewhere():
        try:
            gpumem.to_device(np.arange(3), stream=stream)
        except Exception as error:
            told.append(type(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert told and issubclass(told[0], (RuntimeError, ValueError))


def test_devices_as_contexts():
    first, second = gpumem.Device("host:0"), None
    for name in gpumem.list_devices():
        if name.startswith("host") and name != "host:0":
            second = gpumem.Device(name)
    assert first.id == 0 and gpumem.current_context() == first and gpumem.gpus.current == first
    info = first.get_memory_info()
    assert info == first.memory_info() or info.total == first.memory_info().total
    free, total = info
    assert 0 < free <= total == info.total
    seen = []
    with first as entered:
        assert entered == first
        with second or first:
            assert gpumem.get_current_device() == (second or first)
            thread = threading.Thread(target=lambda: seen.append(gpumem.get_current_device()))
            thread.start()
            thread.join()
        assert gpumem.get_current_device() == first
    with pytest.raises(ZeroDivisionError), first:
        1 // 0
    assert seen == [first] and gpumem.get_current_device() == first


def test_gpus():
    names = [name for name in gpumem.list_devices() if not name.startswith("host")]
    assert gpumem.is_available() == bool(names) and len(gpumem.gpus) == len(names)
    assert [device.name for device in gpumem.gpus] == [device.name for device in gpumem.gpus.lst] == names
    for number in (len(names), -len(names) - 1):
        for wrong in (lambda: gpumem.gpus[number], lambda: gpumem.select_device(number), lambda: gpumem.current_context(number)):
            with pytest.raises(IndexError, match="no GPU"):
                wrong()
    with pytest.raises(TypeError):
        gpumem.select_device(2.5)


def test_handles_for_other_processes():
    array = gpumem.ipc_array((3, 4), "f4", order="F")
    assert not array.copy_to_host().any() and array.is_f_contiguous()
    records = gpumem.ipc_array(3, [("a", "i1"), ("b", "f8")])
    assert records.dtype.names == ("a", "b")
    for exported in (array, array[1:, ::2], records):
        with pytest.raises(NotImplementedError):
            exported.get_ipc_handle()
    with pytest.raises(ValueError, match="ipc_array"):
        gpumem.to_device(np.zeros(3)).get_ipc_handle()
    handle = gpumem.open_ipc_array(bytes(64), (3, 4), "f4", offset=256)
    again = pickle.loads(pickle.dumps(handle))
    for each in (handle, again):
        assert "float32" in repr(each)
        with pytest.raises(ValueError, match="not open"):
            each.close()
        with pytest.raises((NotImplementedError, RuntimeError, ValueError)), each:
            pass
    with pytest.raises(ValueError, match="64"):
        gpumem.open_ipc_array(bytes(63), 3, "f4")
    with pytest.raises((ValueError, NotImplementedError)):
        gpumem.IpcArrayHandle(bytes(10), "f4").open()


def test_nothing_is_kept_by_what_has_run():
    class Token:
        pass

    import weakref

    token, stream = Token(), gpumem.stream()
    alive = weakref.ref(token)
    stream.add_callback(lambda *_: None, token)
    stream.synchronize()
    del token
    gpumem.synchronize()
    gc.collect()
    assert alive() is None


def ones():
    return np.ones(4, "f4")


def add_one(x, y, *_):
    y[:] = x + 1


PAIR = "(slice<const float> x, slice<float> y) { }"
# What waits by itself, on a stream with failed work of others: the result in an array of NumPy.
WAITING = {
    "launch": lambda c, s, array, out: gpumem.compile("GPUMEM_KERNEL adds" + PAIR, host=add_one)[1, 1, s](ones() * 2, out),
    "copy_to_host": lambda c, s, array, out: array.copy_to_host(out, stream=s),
    "getitem": lambda c, s, array, out: out.fill(array.getitem(0, stream=s)),
    "all_reduce": lambda c, s, array, out: c.all_reduce(ones() * 3, out),
    "all_reduce in place": lambda c, s, array, out: (out.fill(3), c.all_reduce(out)),
    "group": lambda c, s, array, out: in_group(c, lambda group: group.all_reduce(ones() * 3, out)),
    "send to itself": lambda c, s, array, out: in_group(c, lambda group: (group.send(ones() * 3, 0), group.receive(out, 0))),
}


def in_group(communicator, call):
    with communicator.group() as group:
        call(group)


@pytest.mark.parametrize("waits", WAITING.values(), ids=WAITING)
def test_calls_that_wait_tell_no_failures_of_other_work(waits):
    def fail(x, y):
        raise ZeroDivisionError("work of others")

    (rank,) = gpumem.Communicator.all([gpumem.Device("host")])
    stream, array, out = rank.stream, gpumem.to_device(ones() * 3), np.zeros(4, "f4")
    gpumem.compile("GPUMEM_KERNEL fails" + PAIR, host=fail)[1, 1, stream](gpumem.to_device(ones()), gpumem.to_device(ones()))
    event = gpumem.event()
    event.record(stream)
    with pytest.raises(gpumem.GpuMemError, match="work of others"):
        event.synchronize()
    waits(rank, stream, array, out)
    np.testing.assert_array_equal(out, 3 * ones())
    # It was for the stream to tell.
    with pytest.raises(gpumem.GpuMemError, match="work of others"):
        stream.synchronize()
    stream.synchronize()


def test_a_launch_that_waits_tells_its_own_failure():
    def fail(x, y):
        y[:] = 9
        raise ZeroDivisionError("its own")

    stream, out = gpumem.stream(), np.zeros(4, "f4")
    fails = gpumem.compile("GPUMEM_KERNEL fails" + PAIR, host=fail)
    with pytest.raises(gpumem.GpuMemError, match="its own"):
        fails[1, 1, stream](ones(), out)
    assert not out.any()
    with pytest.raises(gpumem.GpuMemError, match="its own"):
        stream.synchronize()


@pytest.mark.parametrize("dtype", ["S3", "U2", [("a", "f4"), ("b", "u1")]])
def test_a_broadcast_of_records_is_copied_whole(dtype):
    values = np.array([1, 2], dtype="u1").astype(dtype) if isinstance(dtype, str) else np.array([(1, 2), (3, 4)], dtype)
    stream, array = gpumem.stream(), gpumem.to_device(values)
    repeated = gpumem.to_device(np.broadcast_to(values, (3, 2)))
    np.testing.assert_array_equal(repeated[1:].copy_to_host(), np.broadcast_to(values, (2, 2)))
    np.testing.assert_array_equal(gpumem.to_device(np.broadcast_to(values, (3, 2)), stream=stream)[:, 1].copy_to_host(), values[[1, 1, 1]])
    for shape, axes in (((3, 2), None), ((2, 3), True)):
        expected = np.broadcast_to(values[:, None] if axes else values, shape)
        view = (array.reshape(2, 1) if axes else array).broadcast_to(shape)
        copies = [stream.copy_to_host(view), view.copy_to_host(), gpumem.to_device(view, stream=stream).copy_to_host()]
        graph = gpumem.record(lambda stream, view: stream.copy_to_host(view.broadcast_to((2, *shape))), view)
        stream.synchronize()
        for copy in copies:
            np.testing.assert_array_equal(np.asarray(copy), expected)
        np.testing.assert_array_equal(np.asarray(graph(view)), np.broadcast_to(expected, (2, *shape)))


def test_a_broadcast_of_a_packed_field_is_copied_whole():
    records = np.array([(1, 2.5), (3, 4.5)], np.dtype([("a", "u1"), ("b", "f4")]))
    stream, field = gpumem.stream(), gpumem.to_device(records)["b"]
    expected = np.broadcast_to(records["b"], (3, 2))
    copy = stream.copy_to_host(field.broadcast_to((3, 2)))
    stream.synchronize()
    np.testing.assert_array_equal(np.asarray(copy), expected)
    repeated = gpumem.to_device(np.broadcast_to(records, (3, 2))["b"])
    np.testing.assert_array_equal(repeated[1:].copy_to_host(), expected[1:])
    np.testing.assert_array_equal(gpumem.to_device(field.broadcast_to((3, 2))).copy_to_host(), expected)


def test_streams_are_equal_if_they_are_one_queue():
    stream, other = gpumem.stream(), gpumem.stream()
    with stream.auto_synchronize() as same:
        assert same == stream and hash(same) == hash(stream)
    assert stream != other and len({stream, same, other}) == 2
    assert gpumem.default_stream() == gpumem.default_stream()
    assert gpumem.default_stream() != gpumem.default_stream(device="host:1")
