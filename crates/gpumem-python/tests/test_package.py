"""The package around the module: the names of Numba's two modules, and the report of `python -m`."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pygpumem
import pytest
from pygpumem import cuda, roc

SCALE = cuda.compile(
    "GPUMEM_KERNEL scale(slice<const float> x, slice<float> y) { }",
    host=lambda x, y: np.add(y, 2 * x, out=y),
)


@pytest.fixture(autouse=True)
def host():
    cuda.select_device("host")


def test_what_is_copied_of_arrays_of_the_host():
    x = np.arange(4, dtype="f4")
    for direction, result in (cuda.In, np.ones(4)), (cuda.Out, 2 * x), (cuda.InOut, 1 + 2 * x):
        y = np.ones(4, "f4")
        SCALE[1, 4](cuda.In(x), direction(y))
        np.testing.assert_array_equal(y, result)
    frozen = np.ones(4, "f4")
    frozen.flags.writeable = False
    SCALE[1, 4](x, cuda.In(frozen))
    for wrong in cuda.Out, cuda.InOut:
        with pytest.raises(ValueError, match="read-only"):
            SCALE[1, 4](x, wrong(frozen))
    with pytest.raises(ValueError, match="only read"):
        SCALE[1, 4](cuda.Out(x), np.ones(4, "f4"))
    assert repr(cuda.Out(x)) == "<pygpumem.Out of ndarray>"


def test_arrays_of_a_device_are_used_in_place_whichever_way_they_are_given():
    x, y = cuda.to_device(np.ones(4, "f4")), cuda.to_device(np.ones(4, "f4"))
    for direction in cuda.In, cuda.Out, cuda.InOut:
        SCALE[1, 4](x, direction(y))
    np.testing.assert_array_equal(y.copy_to_host(), np.full(4, 7.0))


def test_strides_and_axes_of_what_is_copied_back():
    table = np.zeros((3, 4), "f4", order="F")[::-1, ::2]
    kernel = cuda.compile(
        "GPUMEM_KERNEL number(view<float, 2> y) { }", host=lambda y: np.copyto(y, np.arange(6).reshape(3, 2))
    )
    kernel[1, 1](cuda.Out(table))
    np.testing.assert_array_equal(table, np.arange(6).reshape(3, 2))


def test_a_description_of_memory_is_taken():
    array = cuda.to_device(np.arange(5, dtype="i4"))
    owner = object()
    same = cuda.from_cuda_array_interface(array.__cuda_array_interface__, owner=owner)
    np.testing.assert_array_equal(same.copy_to_host(), np.arange(5))
    with pytest.raises((TypeError, ValueError, AttributeError)):
        cuda.from_cuda_array_interface({"shape": (5,)})


def test_attributes_of_numbas_arrays():
    array = cuda.to_device(np.zeros((4, 6), "f4"))
    assert (array.alloc_size, array[:, ::2].alloc_size, array.stream) == (96, 92, 0)
    pointer = array.gpu_data.device_ctypes_pointer
    assert isinstance(pointer, ctypes.c_void_p)
    assert pointer.value == array.__cuda_array_interface__["data"][0]


def test_the_words_of_programs(capsys):
    assert cuda.detect() == cuda.is_available()
    assert "host:0" in capsys.readouterr().out
    array = cuda.to_device(np.ones(3))
    cuda.close()
    assert array.copy_to_host().sum() == 3
    assert cuda.require_context(test_the_words_of_programs) is test_the_words_of_programs
    with pytest.raises(cuda.CudaSupportError):
        cuda.select_device("host:77")
    assert cuda.device_array(3, pygpumem.float32).dtype == np.float32


def test_what_numba_asks_of_devices_and_contexts():
    context, array = cuda.current_context(), cuda.to_device(np.ones(3))
    context.reset()
    assert array.copy_to_host().sum() == 3
    assert context.can_access_peer(context) == context.can_access_peer("host:0")
    with pytest.raises(IndexError):
        context.can_access_peer(len(cuda.gpus))
    assert cuda.list_devices() == list(cuda.gpus)
    assert not hasattr(context, "compute_capability")


def test_a_profiler_is_told_of_nothing_on_the_host():
    with pytest.raises(ZeroDivisionError), cuda.profiling():
        1 / 0


def test_numbas_variables():
    """Each in a process of its own: the package reads them when it is imported."""

    def says(expression, **variables):
        code = f"from pygpumem import cuda; print({expression})"
        names = ("NUMBA_", "GPUMEM_MAX", "GPUMEM_DEVICE")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(names)} | variables
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    limits = "cuda.config.CUDA_DEALLOCS_COUNT, cuda.config.CUDA_DEALLOCS_RATIO"
    assert says(limits) == "10 0.2" == says(limits, NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT="none")
    given = {"NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT": "3", "NUMBA_CUDA_MAX_PENDING_DEALLOCS_RATIO": "0.5"}
    assert says(limits, **given) == "3 0.5"
    own = "cuda._os.environ['GPUMEM_MAX_PENDING_DEALLOCS_COUNT'], cuda._os.environ['GPUMEM_MAX_PENDING_DEALLOCS_RATIO']"
    assert says(own, **given) == "3 0.5" and says(own, **given, GPUMEM_MAX_PENDING_DEALLOCS_COUNT="7") == "7 0.5"
    assert says("cuda.get_current_device().name", NUMBA_ENABLE_CUDASIM="1") == "host:0"
    assert says("cuda.is_available(), cuda.config.DISABLE_CUDA", NUMBA_DISABLE_CUDA="1") == "False 1"


def test_the_other_module():
    device = roc.Device("host")
    array = roc.to_device(np.arange(3), context=device)
    assert array.device == device and roc.to_device(np.arange(3), 0, "host:0").device == device
    stream = roc.stream()
    np.testing.assert_array_equal(roc.to_device(np.arange(3), stream).copy_to_host(stream=stream), np.arange(3))
    assert not {name for name in vars(cuda) if not name.startswith("_")} - set(vars(roc))


def test_the_report_names_devices_and_what_is_missing():
    done = subprocess.run([sys.executable, "-m", "pygpumem"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"pygpumem {pygpumem.__version__}, NumPy {np.__version__}")
    assert "host:0: " in done.stdout
    listed = {line.split(":")[0] for line in done.stdout.splitlines()}
    assert set(pygpumem.unavailable()) <= listed and {"nccl", "rccl"} <= listed


def test_the_kernel_of_the_report_names_types_as_a_compiler_finds_them():
    from pygpumem.__main__ import KERNEL

    assert "gpumem::slice<" in KERNEL and "using" not in KERNEL
    cuda.compile(KERNEL)


def test_page_locked_arrays_are_numpys():
    stream = cuda.stream()
    for make in cuda.pinned_array, cuda.mapped_array, cuda.managed_array:
        array = make((3, 4), np.float32, order="F")
        assert isinstance(array, np.ndarray) and array.flags.f_contiguous and array.dtype == np.float32
        array[:] = np.arange(12).reshape(3, 4)
        there = cuda.to_device(array, stream=stream)
        twice = cuda.device_array_like(there, stream=stream)
        twice.copy_to_device(array, stream=stream)
        array[:] = 0
        assert there.copy_to_host(array, stream=stream) is array
        stream.synchronize()
        np.testing.assert_array_equal(array, np.arange(12).reshape(3, 4))
        # A part has its own elements, and copies of it are done on return.
        part = array[1:, ::2]
        np.testing.assert_array_equal(cuda.to_device(part, stream=stream).copy_to_host(), part)
        twice[1:, ::2].copy_to_host(array[1:, ::2], stream=stream)
        assert type(array.sum()) is np.float32 and type(array + 1) is np.ndarray and array[1:]._page_locked is None
    like = cuda.pinned_array_like(np.zeros(3, [("a", "i4"), ("b", "f8")]))
    assert like.dtype.names == ("a", "b") and like.shape == (3,)


def test_copies_to_page_locked_arrays_are_only_enqueued():
    slow = cuda.compile("GPUMEM_KERNEL slow(slice<float> y) { }", host=lambda y: (begun.set(), ends.wait(60), y.fill(5)))
    begun, ends = threading.Event(), threading.Event()
    stream, array, there = cuda.stream(), cuda.pinned_array(4, np.float32), cuda.to_device(np.zeros(4, "f4"))
    slow[1, 1, stream](there)
    assert begun.wait(60)
    there.copy_to_host(array, stream=stream)  # returns, although the kernel waits
    ends.set()
    stream.synchronize()
    np.testing.assert_array_equal(array, np.full(4, 5))


def test_mapped_arrays_describe_themselves_as_arrays_of_a_device():
    for make in cuda.mapped_array, cuda.managed_array:
        array = make(4, np.float32)
        array[:] = 3
        assert cuda.is_cuda_array(array)
        assert array.__cuda_array_interface__ == array.device_view.__cuda_array_interface__
        np.testing.assert_array_equal(cuda.as_cuda_array(array).copy_to_host(), array)
        # Copies read it where it is, as any array of the host.
        there = cuda.device_array_like(array)
        there[:] = array
        np.testing.assert_array_equal(there.copy_to_host(), array)
        assert not cuda.is_cuda_array(array[1:])
    assert not cuda.is_cuda_array(cuda.pinned_array(4))


def test_a_record_of_numpy_is_a_destination():
    own = np.dtype([("a", "i4"), ("b", "f8", (2,)), ("c", [("d", "u1")])])
    records = np.array([(1, (2, 3), (4,)), (5, (6, 7), (8,))], own)
    there, record = cuda.to_device(records), records[0].copy()
    assert there[1].copy_to_host(record) is record and record == records[1]
    there[0].copy_to_host(record, stream=cuda.stream())
    assert record == records[0]
    with pytest.raises(ValueError, match="without axes"):
        there.copy_to_host(record)
    with pytest.raises(TypeError):
        there[0].copy_to_host(np.zeros(1, [("a", "i4")])[0])
    with pytest.raises(TypeError):
        there[0].copy_to_host(np.void(b"12345678"))


def test_refusals_have_the_words_of_numpy():
    host = np.arange(12, dtype="i2").reshape(4, 3)
    for wrong in (
        lambda a: a.view("i4"),
        lambda a: a.T.view("i4"),
        lambda a: a.transpose(0, 0),
        lambda a: a.transpose(0, 2),
        lambda a: a.__setitem__(slice(None), np.ones(2, "i2")),
        lambda a: a.__setitem__(slice(None), np.ones((1, 5, 3), "i2")),
    ):
        with pytest.raises(ValueError) as of_numpy:
            wrong(host)
        with pytest.raises(ValueError) as found:
            wrong(cuda.to_device(host))
        assert str(found.value) == str(of_numpy.value).removesuffix(" ")


def test_kernels_use_mapped_arrays_in_place():
    x = np.arange(4, dtype="f4")
    for make in cuda.mapped_array, cuda.managed_array, pygpumem.mapped_array:
        y = make(4, np.float32)
        np.asarray(y)[:] = 1
        SCALE[1, 4](x, y)
        cuda.synchronize()
        np.testing.assert_array_equal(np.asarray(y), 1 + 2 * x)
    with pytest.raises(AttributeError, match="part"):
        cuda.mapped_array(4)[1:].device_view
    with pytest.raises(ValueError, match="mapped"):
        cuda.pinned_array(4).device_view
    # A pinned one is copied, there and back.
    y = cuda.pinned_array(4, np.float32)
    y[:] = 1
    SCALE[1, 4](x, y)
    np.testing.assert_array_equal(y, 1 + 2 * x)


def test_an_array_that_lies_about_its_memory_changes_only_what_it_names():
    class Lies(np.ndarray):
        _page_locked = None

    other = pygpumem.pinned_array(2, np.float32)
    np.asarray(other)[:] = 7
    stream = cuda.stream()
    for elements, found in (np.zeros(2, "f4"), [7, 7]), (np.zeros(4, "f4"), np.zeros(4)), (np.zeros(2, "i4"), [0, 0]):
        lies = elements.view(Lies)
        for names in other, 3, np.zeros(4), pygpumem.stream():
            lies._page_locked = names
            expected = found if names is other else elements
            np.testing.assert_array_equal(cuda.to_device(lies, stream=stream).copy_to_host(), expected)


@pytest.mark.filterwarnings("ignore:Setting the")
def test_a_page_locked_array_with_another_shape_is_an_ordinary_one():
    stream = cuda.stream()
    array = cuda.pinned_array((2, 3), "f4")
    array[:] = np.arange(6).reshape(2, 3)
    array.shape = 3, 2
    there = cuda.to_device(array, stream=stream)
    np.testing.assert_array_equal(there.copy_to_host(), np.arange(6).reshape(3, 2))
    array[:] = 0
    there.copy_to_host(array, stream=stream)
    np.testing.assert_array_equal(array, np.arange(6).reshape(3, 2))


def test_results_that_are_written_to_a_page_locked_array_are_that_array():
    for make in cuda.pinned_array, cuda.mapped_array, cuda.managed_array:
        for shape in (4,), ():
            array = kept = make(shape, np.float32)
            array[...] = 1
            array += 1
            assert array is kept and np.add(array, 1, out=array) is array and array.clip(0, 9, out=array) is array
            assert type(array * 2) is not cuda.HostArray
            np.testing.assert_array_equal(array, np.full(shape, 3))


def test_a_page_locked_array_that_is_not_writable_is_not_written():
    stream, there = cuda.stream(), cuda.to_device(np.full(4, 7, "f4"))
    for make in cuda.pinned_array, cuda.mapped_array:
        array = make(4, np.float32)
        array[:] = 1
        array.flags.writeable = False
        for write in lambda: there.copy_to_host(array, stream=stream), lambda: SCALE[1, 4](there, array):
            with pytest.raises(ValueError, match="read-only"):
                write()
        SCALE[1, 4](array, there)
        np.testing.assert_array_equal(cuda.to_device(array, stream=stream).copy_to_host(), np.ones(4))


def test_a_launch_takes_the_device_of_its_arrays_however_they_are_given():
    other = cuda.Device("host:1")
    x, y = (cuda.to_device(np.ones(4, "f4"), device=other) for _ in range(2))
    mapped = cuda.mapped_array(4, np.float32, device=other)
    mapped[:] = 1
    for given in cuda.In(y), cuda.InOut(y), cuda.Out(y), mapped, cuda.InOut(mapped):
        SCALE[1, 4](cuda.In(x), given)
    other.synchronize()
    np.testing.assert_array_equal(y.copy_to_host(), np.full(4, 7))
    np.testing.assert_array_equal(mapped, np.full(4, 5))


def test_what_is_only_copied_in_may_be_given_twice():
    x = np.ones(4, "f4")
    SCALE[1, 4](cuda.In(x), cuda.In(x))
    np.testing.assert_array_equal(x, np.ones(4))
    with pytest.raises(ValueError, match="same memory"):
        SCALE[1, 4](cuda.In(x), cuda.Out(x))
