"""What is different on an AMD GPU, and beside one. On a simulated one: `cargo run -p rocsim -- python -m pytest tests/test_amd.py`."""

import pygpumem as gpumem
import numpy as np
import pytest



def missing():
    """Why there is no AMD GPU, if there is none."""
    try:
        gpumem.Device("roc:0")
    except gpumem.GpuMemError as error:
        return str(error)


WHY = missing()
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"there is no AMD GPU: {WHY}")

KERNEL = "GPUMEM_KERNEL add(slice<float> x, slice<float> y) { u64 i = global_id(0); if (i < x.size()) { x[i] += 1; y[i] += 10; } }"


@pytest.fixture(autouse=True)
def device():
    gpumem.select_device("roc:0")


def test_memory_that_is_locked_in_place_is_the_same_memory():
    a = np.arange(8, dtype="f4")
    kernel = gpumem.compile(f"using namespace gpumem;\n{KERNEL}")
    with gpumem.mapped(a) as d:
        for wrong in (
            lambda: d.copy_to_device(a[::-1]),
            lambda: d[1:].copy_to_device(a[:-1]),
            lambda: d.copy_to_host(a[::-1]),
            lambda: kernel[1, 64](d, a),
            lambda: kernel[1, 64](a, d),
        ):
            with pytest.raises((ValueError, gpumem.GpuMemError), match="share memory|name the same memory"):
                wrong()
        kernel[1, 64](d[:4], a[4:])
        gpumem.synchronize()
    np.testing.assert_array_equal(a, np.arange(8) + [1, 1, 1, 1, 10, 10, 10, 10])


def test_an_array_of_another_process_has_elements_of_one_size():
    records = np.dtype([("a", "f4"), ("b", "u1")])
    for array, others in (
        (gpumem.ipc_array(8, "u1"), ["V2000000", "V4", "V1", "S9"]),
        (gpumem.ipc_array(3, records), ["V4", "V6", "S1", [("a", "f4")]]),
    ):
        data, dtype = array.get_ipc_handle().__reduce__()[1]
        assert dtype == array.dtype
        for other in others:
            with pytest.raises(ValueError, match="another size"):
                gpumem.IpcArrayHandle(data, np.dtype(other)).open()


def test_an_array_of_the_gpu_is_refused_by_another_device():
    values = np.arange(4.0)
    array, asked = gpumem.to_device(values), []

    class Producer:
        def __dlpack_device__(self):
            return array.__dlpack_device__()

        def __dlpack__(self, **options):
            asked.append(options)
            return array.__dlpack__(**options)

    for source in array, Producer():
        with pytest.raises(ValueError, match="DLPack device"):
            gpumem.from_dlpack(source, device="host")
    gpumem.select_device("host")
    with pytest.raises(ValueError, match="DLPack device"):
        gpumem.from_dlpack(Producer())
    # No stream of the host's was named, and the GPU goes on.
    assert not asked
    np.testing.assert_array_equal(array.copy_to_host(), values)
    gpumem.select_device("roc:0")
    np.testing.assert_array_equal(gpumem.from_dlpack(Producer()).copy_to_host(), values)


def test_bytes_that_are_seen_as_booleans_are_those_of_numpy():
    values = np.array([1, 2, 5, 0, 255, 128], "u1")
    for dtype in "i4", "u1", "f4":
        array = gpumem.device_array(6, dtype)
        array[:] = gpumem.to_device(values).view("?")
        np.testing.assert_array_equal(array.copy_to_host(), values.astype("?").astype(dtype))
