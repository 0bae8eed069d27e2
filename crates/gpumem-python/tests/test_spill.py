"""Arrays that leave the device and come back. On the device `GPUMEM_TEST_DEVICE`, or the host."""

import gc
import os
import subprocess
import sys
import threading

import pygpumem as gpumem
import numpy as np
import pytest

from test_chunks import SOURCES, values

DEVICE = os.environ.get("GPUMEM_TEST_DEVICE", "host")


@pytest.fixture(autouse=True)
def device():
    gpumem.select_device(DEVICE)


@pytest.fixture
def spilling():
    return gpumem.SpillManager()


def read(array):
    return array.get().copy_to_host()


@pytest.mark.parametrize("name", SOURCES)
def test_arrays_of_every_type_leave_and_come_back(spilling, name):
    array = SOURCES[name]()
    for source in array, gpumem.to_device(array):
        own = spilling.add(source)
        assert (own.shape, own.dtype, own.ndim, own.nbytes) == (array.shape, array.dtype, array.ndim, array.nbytes)
        assert own.is_resident() and own.device.name.startswith(DEVICE.split(":")[0])
        for _ in range(2):
            np.testing.assert_array_equal(read(own), array)
            assert own.evict() and not own.is_resident() and not own.evict()
        found = own.get()
        assert own.is_resident() and found.dtype == array.dtype and found.shape == array.shape
        np.testing.assert_array_equal(found.copy_to_host(), array)


def test_arrays_of_bfloat16(spilling):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    own = spilling.add(values().astype(ml_dtypes.bfloat16))
    assert own.evict()
    assert own.dtype == "bfloat16" and read(own).dtype == own.dtype


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)], ids=str)
def test_arrays_of_one_element_and_of_none(spilling, shape):
    own = spilling.add(np.ones(shape))
    assert own.evict() == (own.nbytes > 0)
    np.testing.assert_array_equal(read(own), np.ones(shape))


def test_what_add_takes_is_copied(spilling):
    array = gpumem.to_device(values())
    own = spilling.add(array)
    array[...] = 0
    np.testing.assert_array_equal(read(own), values())
    np.testing.assert_array_equal(read(spilling.add(gpumem.to_device(values(), device="host:1"))), values())
    np.testing.assert_array_equal(read(spilling.add([[1, 2], [3, 4]])), [[1, 2], [3, 4]])
    for wrong in object(), [object()], np.zeros(2, ">i4"):
        with pytest.raises(TypeError):
            spilling.add(wrong)
    with pytest.raises(ValueError):
        gpumem.SpillManager(order="first")
    with pytest.raises(OverflowError):
        gpumem.SpillManager(host_bytes=-1)


def test_arrays_stay_while_they_are_used(spilling):
    own = spilling.add(values())
    for use in own.get, lambda: own.get(write=True), lambda: own.get()[1:], lambda: own.get().T, lambda: own.get().view("i4"):
        kept = use()
        assert not own.evict() and own.is_resident()
        np.testing.assert_array_equal(kept.copy_to_host(), kept.copy_to_host())
        del kept
        assert own.evict()


@pytest.mark.skipif(DEVICE != "host", reason="NumPy takes memory of the host")
def test_arrays_stay_while_they_are_lent(spilling):
    own = spilling.add(values())
    lent = np.from_dlpack(own.get(write=True))
    gc.collect()
    assert not own.evict()
    lent[0, 0] = 7
    del lent
    gc.collect()
    assert own.evict()
    assert read(own)[0, 0] == 7


def test_only_what_is_said_to_be_written_can_be(spilling):
    own = spilling.add(values())
    with pytest.raises(ValueError):
        own.get()[0] = 1
    with pytest.raises(ValueError):
        own.get()[1:].T[...] = 1
    for count in range(3):
        own.get(write=True)[0] = count
        assert (read(own)[0] == count).all()
        own.evict()
        assert (read(own)[0] == count).all()
        own.evict()
    first, second = own.get(write=True), own.get(write=True)
    first[1], second[2] = -1, -2
    assert not own.evict()
    del first, second
    assert own.evict()
    assert (read(own)[1:3] == [[-1], [-2]]).all()


def test_what_was_only_read_leaves_without_a_copy(spilling):
    own = spilling.add(values())
    own.evict()
    before = spilling.report()
    assert (before.device_bytes, before.host_bytes, before.downloaded_bytes) == (0, 120, 120)
    read(own)
    own.evict()
    after = spilling.report()
    assert (after.downloaded_bytes, after.uploaded_bytes) == (120, 120)
    own.get(write=True)
    assert spilling.report().host_bytes == 0
    own.evict()
    assert spilling.report().downloaded_bytes == 240


def test_work_comes_before_an_array_leaves(spilling):
    def adds(x):
        x += 1

    kernel = gpumem.compile(
        "using namespace gpumem; GPUMEM_KERNEL adds(slice<float> x) { u64 i = global_id(0); if (i < x.size()) x[i] = x[i] + 1; }",
        host=adds,
    )
    own, streams = spilling.add(np.zeros(1000, "f4")), [gpumem.stream() for _ in range(3)]
    for count in range(30):
        stream = streams[count % 3]
        kernel[8, 128, stream](own.get(stream, write=True))
        own.evict()
    np.testing.assert_array_equal(read(own), np.full(1000, 30, "f4"))


def test_files_are_read_when_they_are_used_and_read_again(spilling, tmp_path):
    np.save(tmp_path / "x.npy", values())
    with gpumem.open(tmp_path / "x.npy") as file:
        own, part = spilling.add(file), spilling.add(file[::-2, 1:])
    assert not own.is_resident() and own.shape == (10, 3) and part.shape == (5, 2) and own.dtype == "f4"
    np.testing.assert_array_equal(read(own), values())
    np.testing.assert_array_equal(read(part), values()[::-2, 1:])
    assert own.evict() and part.evict()
    assert spilling.report().host_bytes == spilling.report().downloaded_bytes == 0
    own.get(write=True)[0] = -1
    assert own.evict() and spilling.report().host_bytes == 120
    (tmp_path / "x.npy").write_bytes(b"")
    assert (read(own)[0] == -1).all()
    for _ in range(2):
        with pytest.raises(OSError):
            part.get()
    with pytest.raises(ValueError, match="closed"):
        spilling.add(file)


def test_tensors_of_a_model(spilling, tmp_path):
    arrays = {"w": gpumem.to_device(values()), "b": gpumem.to_device(values("i8", (4,)))}
    gpumem.save(tmp_path / "m.safetensors", arrays)
    with gpumem.open(tmp_path / "m.safetensors") as model:
        layers = {name: spilling.add(model[name]) for name in model}
    for _ in range(2):
        for name, array in arrays.items():
            np.testing.assert_array_equal(read(layers[name]), array.copy_to_host())
            layers[name].evict()


def test_sleep_and_wake(spilling):
    arrays = [spilling.add(values()) for _ in range(4)]
    kept = arrays[0].get()
    assert arrays[3].evict()
    slept = spilling.sleep()
    assert (slept.evicted, slept.kept, slept.error) == (240, 120, None) and slept.returned >= 0
    assert [array.is_resident() for array in arrays] == [True, False, False, False]
    read(arrays[1])
    assert spilling.wake(gpumem.stream()) == 120 and spilling.wake() == 0
    assert [array.is_resident() for array in arrays] == [True, True, True, False]
    arrays[3].prefetch(gpumem.stream())
    assert arrays[3].is_resident()
    np.testing.assert_array_equal(kept.copy_to_host(), values())
    for array in arrays:
        np.testing.assert_array_equal(read(array), values())


def test_a_bound_on_the_host_memory():
    spilling = gpumem.SpillManager(host_bytes=150)
    first, second = spilling.add(values()), spilling.add(values())
    assert first.evict()
    with pytest.raises(MemoryError):
        second.evict()
    assert second.is_resident()
    slept = spilling.sleep()
    assert (slept.evicted, slept.kept) == (0, 120) and "memory" in slept.error
    np.testing.assert_array_equal(read(first), values())


def test_streams_of_another_device_are_refused(spilling):
    own, other = spilling.add(values()), gpumem.stream("host:1")
    for use in lambda: own.get(other), lambda: own.prefetch(other), lambda: spilling.wake(other):
        with pytest.raises(ValueError, match="host:1"):
            use()
    with pytest.raises(TypeError):
        own.get("x")


def test_a_manager_that_is_dropped():
    own = gpumem.SpillManager().add(values())
    gc.collect()
    assert own.evict()
    np.testing.assert_array_equal(read(own), values())
    assert "Spillable shape=(10, 3)" in repr(own)


@pytest.mark.skipif(DEVICE != "host", reason="a GPU is lost after a fault")
def test_an_array_whose_kernel_failed(spilling):
    def fails(x):
        raise KeyError("in a kernel")

    kernel = gpumem.compile("GPUMEM_KERNEL fails(slice<float> x) { }", host=fails)
    own = spilling.add(np.zeros(8, "f4"))
    kernel[1, 1, gpumem.stream()](own.get(write=True))
    with pytest.raises(gpumem.GpuMemError, match="in a kernel"):
        gpumem.synchronize()
    for use in own.evict, lambda: read(own):
        with pytest.raises(gpumem.GpuMemError, match="in a kernel"):
            use()
    own.get(write=True)[...] = 2
    own.evict()
    np.testing.assert_array_equal(read(own), np.full(8, 2, "f4"))
    try:
        gpumem.synchronize()
    except gpumem.GpuMemError:
        gpumem.synchronize()


def test_threads_move_one_array(spilling):
    own, failed = spilling.add(values("i8", (1000,))), []

    def reads():
        for _ in range(100):
            if (read(own) != values("i8", (1000,))).any():
                failed.append("read")

    def evicts():
        for _ in range(200):
            own.evict()

    def sleeps():
        for _ in range(20):
            spilling.sleep()
            spilling.wake()

    threads = [threading.Thread(target=run) for run in (reads, reads, evicts, evicts, sleeps)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failed


def test_a_deleter_that_uses_an_array_while_it_moves(spilling):
    """Memory of other objects is freed while an array moves, and so runs code of the program."""
    own, seen = spilling.add(values()), []

    class Keeps:
        def __init__(self, array):
            self.__cuda_array_interface__, self.array = array.__cuda_array_interface__, array

        def __del__(self):
            try:
                seen.append(read(own).shape)
            except gpumem.GpuMemError:
                seen.append(None)

    for _ in range(20):
        array = gpumem.as_cuda_array(Keeps(gpumem.to_device(values())))
        copy = array.copy_to_host
        del array
        own.evict()
        copy()
        del copy
        own.prefetch()
        spilling.sleep()
    assert len(seen) == 20


def test_arrays_in_callbacks_and_in_graphs(spilling):
    own, found = spilling.add(values()), []

    def callback(stream, status, arg):
        try:
            found.append(own.get().shape)
        except gpumem.GpuMemError as error:
            found.append(type(error))
        try:
            spilling.sleep()
        except gpumem.GpuMemError as error:
            found.append(type(error))

    stream = gpumem.stream()
    for _ in range(2):
        stream.add_callback(callback)
        stream.synchronize()
        own.evict()
    assert found == [(10, 3), gpumem.GpuMemError, gpumem.GpuMemError, gpumem.GpuMemError]

    def body(stream, x):
        with pytest.raises(gpumem.GpuMemError):
            own.get(stream)
        with pytest.raises(gpumem.GpuMemError):
            gpumem.SpillManager()

    gpumem.record(body, gpumem.to_device(values()))


def run(program, **variables):
    environment = {**os.environ, "GPUMEM_HOST_DEVICES": "1", **variables}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0 and done.stdout.endswith("ends\n"), (done.stdout, done.stderr)


def test_arrays_leave_when_an_allocation_finds_no_memory():
    run(
        """
import pygpumem as gpumem, numpy as np
gpumem.select_device("host")
for order in "least_recent", "most_recent":
    spilling = gpumem.SpillManager(order=order)
    layers = [spilling.add(np.full(1 << 20, number, "f4")) for number in range(12)]     # 48 MiB in all
    assert spilling.report().device_bytes <= 24 << 20
    for _ in range(2):
        for number, layer in enumerate(layers):
            assert (layer.get().copy_to_host() == number).all()
    array = gpumem.device_array(1 << 21, "f4")
    del array
    kept = []
    try:
        for layer in layers:
            kept.append(layer.get())
    except MemoryError as error:
        assert 2 < len(kept) < 7
    else:
        raise AssertionError("all of them are there")
    for number, array in enumerate(kept):
        assert (array.copy_to_host() == number).all()
    del kept, array, layer, layers, spilling
print("ends")
""",
        GPUMEM_HOST_MEMORY=str(24 << 20),
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_is_refused():
    run(
        """
import pygpumem as gpumem, numpy as np, os
gpumem.select_device("host")
spilling = gpumem.SpillManager()
own, pieces = spilling.add(np.zeros(4)), gpumem.chunks(np.zeros(40), 4)
next(pieces)
if (child := os.fork()) == 0:
    refused = 0
    for use in own.get, own.evict, own.is_resident, own.prefetch, spilling.sleep, spilling.wake, lambda: spilling.add(np.zeros(4)), \\
            lambda: next(pieces):
        try:
            use()
        except gpumem.GpuMemError:
            refused += 1
    os._exit(refused)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 8
assert own.evict() and sum(len(piece) for _, piece in pieces) == 36
print("ends")
"""
    )


def test_an_array_that_has_come_back_from_another_library_may_leave():
    array = gpumem.SpillManager().add(np.arange(6.0))
    ways = [gpumem.as_cuda_array, gpumem.from_dlpack]
    if DEVICE == "host":  # the only memory that NumPy takes
        ways.append(lambda own: gpumem.from_dlpack(np.from_dlpack(own)))
    for back in ways:
        again = back(array.get())
        assert not array.evict() and again.copy_to_host().sum() == 15
        del again
        assert array.evict()
    np.testing.assert_array_equal(array.get().copy_to_host(), np.arange(6))
