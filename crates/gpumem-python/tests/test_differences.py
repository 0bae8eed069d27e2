"""The page on what differs from Numba and the module say the same."""

import pathlib
import re

import pygpumem as gpumem
import pygpumem.cuda
import pygpumem.roc
import numpy as np
import pytest

PAGE = (pathlib.Path(__file__).parents[3] / "docs/src/coming-from-numba.md").read_text().split("## From Python")[1]
SAME = PAGE.split("These names are what they are in Numba:")[1].split("This is all that differs:")[0]
ROWS = [line.strip("|").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")][1:]
MODULE = {name for name in vars(gpumem.cuda) if not name.startswith("_")}

# The public names of `numba.cuda` 0.61 that concern memory, devices, streams and the making of kernels on the host's side.
NUMBA = """
    In InOut Out as_cuda_array cg close config const current_context declare_device default_stream defer_cleanup detect device_array
    device_array_like event event_elapsed_time external_stream from_cuda_array_interface get_current_device gpus grid
    is_available is_cuda_array jit legacy_default_stream list_devices local managed_array mapped
    mapped_array mapped_array_like open_ipc_array per_thread_default_stream pinned pinned_array pinned_array_like
    profile_start profile_stop profiling reduce require_context select_device set_memory_manager shared stream synchronize
    to_device
""".split()
# Its errors, which it has in several modules.
ERRORS = {"CudaAPIError", "CudaDriverError", "CudaSupportError", "KernelRuntimeError", "TypingError"}
METHODS = {
    gpumem.DeviceNDArray: """copy_to_host copy_to_device reshape ravel squeeze view split transpose T bind getitem setitem
        is_c_contiguous is_f_contiguous get_ipc_handle shape strides dtype ndim size nbytes alloc_size stream
        device_ctypes_pointer gpu_data""",
    gpumem.Stream: "synchronize auto_synchronize add_callback async_done",
    gpumem.Event: "record wait query synchronize elapsed_time",
    gpumem.IpcArrayHandle: "open close",
}


def words(text):
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", text))))


def test_every_name_of_numbas_is_on_the_page():
    named = words(SAME) | {word for row in ROWS for word in words(row[0])}
    assert not set(NUMBA) - named


def test_what_the_page_calls_the_same_is_there():
    plain = words(SAME.split("; a stream")[0])
    assert plain and plain <= MODULE & set(NUMBA)
    for owner, names in METHODS.items():
        assert not {name for name in names.split() if not hasattr(owner, name)}, owner


def test_what_the_page_calls_absent_is_absent():
    absent = [row for row in ROWS if row[1].strip() == "absent"]
    assert len(absent) >= 4
    for row in absent:
        names = {name for name in re.findall(r"cuda\.(\w+)", row[0])}
        assert not names & MODULE, row
        for method in re.findall(r"open_\w+", row[0]):
            assert not hasattr(gpumem.IpcArrayHandle, method)


def test_every_name_of_the_module_is_on_the_page():
    assert not MODULE - words(PAGE)
    beyond = words(next(row for row in ROWS if row[0].strip() == "absent")[1])
    assert beyond == MODULE - set(NUMBA) - ERRORS - {"IpcArrayHandle"}


def test_the_names_are_those_of_an_installed_numba():
    numba = pytest.importorskip("numba.cuda")
    mine = {name for name in NUMBA if not hasattr(numba, name)}
    assert not mine, "names that Numba has not"
    # Functions that take the same, by name: those of Numba's parameters that are not there stand on the page. `fn` is what a decorator
    # is given, in place.
    import inspect

    for name in sorted(set(NUMBA) & MODULE):
        theirs, ours = getattr(numba, name), getattr(gpumem.cuda, name)
        if not inspect.isfunction(theirs) or any(each.kind is each.VAR_POSITIONAL for each in inspect.signature(theirs).parameters.values()):
            continue
        missing = set(inspect.signature(theirs).parameters) - set(inspect.signature(ours).parameters) if callable(ours) else set()
        assert missing <= {"ptr", "device_id", "stream", "kernel", "sync", "fn"}, (name, missing)


def test_the_differences_are_as_the_page_has_them():
    gpumem.select_device("host")
    array = gpumem.to_device(np.arange(6.0).reshape(2, 3))
    assert isinstance(array.split(1), list) and array.bind(gpumem.stream()) is array
    assert array.T.strides == (8, 24)
    assert not gpumem.to_device(np.ones(3), copy=False).copy_to_host().any()
    assert isinstance(gpumem.current_context(), gpumem.Device) and "host:0" in gpumem.list_devices()
