"""DLPack's table of C functions on the class, taken by ctypes as a library in C takes it, and that of another library."""

import ctypes
import gc
import os
import weakref

import numpy as np
import pygpumem as gpumem
import pytest
from test_waits import program

NAME = b"dlpack_exchange_api"
FLOAT32, CPU = (2, 32, 1), 1


class Tensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    """`DLManagedTensorVersioned`."""


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    ("version", ctypes.c_uint32 * 2),
    ("context", ctypes.c_void_p),
    ("deleter", DELETER),
    ("flags", ctypes.c_uint64),
    ("tensor", Tensor),
]
TELL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Tensor), ctypes.POINTER(ctypes.POINTER(Managed)), ctypes.c_void_p, TELL)
# With Python's lock, and with the exception that they set.
LEND = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Managed)))
TAKE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.py_object))
STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    """`DLPackExchangeAPI`."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("older", ctypes.c_void_p),
        ("allocate", ALLOCATE),
        ("lend", LEND),
        ("take", TAKE),
        ("borrow", ctypes.c_void_p),
        ("stream", STREAM),
    ]


def pointer_of(capsule, name):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


def capsule_of(table, name=NAME):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(table), name, None)


def own():
    return Table.from_address(pointer_of(gpumem.DeviceNDArray.__dlpack_c_exchange_api__, NAME))


def lent(array):
    found = ctypes.POINTER(Managed)()
    assert own().lend(array, ctypes.byref(found)) == 0
    return found


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


def test_the_table():
    table = own()
    assert list(table.version) == [1, 3] and not table.older and not table.borrow
    assert table.allocate and table.lend and table.take and table.stream
    number = ctypes.c_void_p(1)
    assert table.stream(CPU, 0, ctypes.byref(number)) == 0 and number.value is None
    with pytest.raises(BufferError, match="type 99"):
        table.stream(99, 0, ctypes.byref(number))


def test_a_tensor_is_that_of_the_array_and_keeps_the_memory():
    array = gpumem.to_device(np.arange(12, dtype="f4").reshape(3, 4))[:, 1:]
    address = array.__cuda_array_interface__["data"][0]
    managed = lent(array)
    tensor = managed.contents.tensor
    assert tensor.data + tensor.offset == address and (tensor.code, tensor.bits, tensor.lanes) == FLOAT32
    assert tensor.shape[:2] == [3, 3] and tensor.strides[:2] == [4, 1] and tensor.device[0] == CPU
    del array
    gc.collect()
    back = ctypes.py_object()
    assert own().take(managed, ctypes.byref(back)) == 0
    assert isinstance(back.value, gpumem.DeviceNDArray)
    np.testing.assert_array_equal(back.value.copy_to_host(), np.arange(12).reshape(3, 4)[:, 1:])


def test_what_dlpack_has_no_name_for_is_refused():
    records = gpumem.device_array(3, [("a", "i4"), ("b", "f8")])
    found = ctypes.POINTER(Managed)()
    with pytest.raises(BufferError, match="no name"):
        own().lend(records, ctypes.byref(found))
    with pytest.raises(TypeError):
        own().lend(np.zeros(3), ctypes.byref(found))
    with pytest.raises(BufferError):
        own().take(found, ctypes.byref(ctypes.py_object()))
    assert not found


def test_arrays_are_made_by_a_prototype():
    told, found = [], ctypes.POINTER(Managed)()
    tell = TELL(lambda context, kind, text: told.append((kind, text)))
    shape = (ctypes.c_int64 * 2)(2, 3)
    like = Tensor(device=(ctypes.c_int32 * 2)(CPU, 0), ndim=2, code=2, bits=32, lanes=1, shape=shape)
    assert own().allocate(ctypes.byref(like), ctypes.byref(found), None, tell) == 0 and not told
    assert found.contents.tensor.shape[:2] == [2, 3]
    back = ctypes.py_object()
    assert own().take(found, ctypes.byref(back)) == 0
    assert back.value.shape == (2, 3) and back.value.dtype == np.float32
    for wrong in {"code": 9}, {"device": (ctypes.c_int32 * 2)(99, 0)}, {"shape": (ctypes.c_int64 * 2)(-1, 3)}:
        like = Tensor(device=(ctypes.c_int32 * 2)(CPU, 0), ndim=2, code=2, bits=32, lanes=1, shape=shape)
        for name, value in wrong.items():
            setattr(like, name, value)
        assert own().allocate(ctypes.byref(like), ctypes.byref(found), None, tell) == -1
    assert [kind for kind, _ in told] == [b"MemoryError"] * 3 and all(text for _, text in told)


def test_an_allocation_that_waits_lets_other_threads_go_on():
    out = program(f"""
        import sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import ctypes, threading
        import numpy as np, pygpumem as gpumem
        from test_exchange import CPU, Managed, TELL, Tensor, own
        gpumem.select_device("host")
        begun, ends = threading.Event(), threading.Event()
        slow = gpumem.compile("GPUMEM_KERNEL k(slice<float> x) {{ }}", host=lambda x: (begun.set(), ends.wait()))
        slow[1, 1](gpumem.to_device(np.zeros(4, "f4")))
        begun.wait()
        # As a library calls it that keeps Python's lock.
        types = [ctypes.POINTER(Tensor), ctypes.POINTER(ctypes.POINTER(Managed)), ctypes.c_void_p, TELL]
        allocate = ctypes.PYFUNCTYPE(ctypes.c_int, *types)(ctypes.cast(own().allocate, ctypes.c_void_p).value)
        like = Tensor(device=(ctypes.c_int32 * 2)(CPU, 0), ndim=1, code=2, bits=32, lanes=1, shape=(ctypes.c_int64 * 1)(4))
        found = ctypes.POINTER(Managed)()
        threading.Timer(0.1, ends.set).start()
        print(allocate(ctypes.byref(like), ctypes.byref(found), None, TELL()))
        """)
    assert out == "0\n"


class Other:
    """An array of another library. Its `__dlpack__` counts its calls."""

    def __init__(self, array):
        self.array, self.calls = array, 0

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        self.calls += 1
        return self.array.__dlpack__(**options)


@LEND
def lend_of_other(other, place):
    if other.array is None:
        return -1
    place[0] = lent(other.array)
    return 0


@STREAM
def no_stream(device_type, device_id, place):
    place[0] = None
    return 0


def other(table, name=NAME):
    """A class with such an attribute."""
    return type("Other", (Other,), {"__dlpack_c_exchange_api__": capsule_of(table, name) if table else 7})


TABLE = Table(version=(ctypes.c_uint32 * 2)(1, 3), lend=lend_of_other, stream=no_stream)
NEWER = Table(version=(ctypes.c_uint32 * 2)(2, 0), older=ctypes.addressof(TABLE))


@pytest.mark.parametrize("table", [TABLE, NEWER])
def test_arrays_of_others_are_taken_by_the_table(table):
    array = gpumem.to_device(np.arange(5.0))
    theirs = other(table)(array)
    ours = gpumem.from_dlpack(theirs)
    assert theirs.calls == 0
    array[2] = 9
    gone = weakref.ref(theirs)
    del theirs, array
    gc.collect()
    assert gone() is None, "the tensor keeps what it is of, and not the object"
    np.testing.assert_array_equal(ours.copy_to_host(), [0, 1, 9, 3, 4])


def test_where_the_table_does_not_serve_the_method_does():
    array = gpumem.to_device(np.arange(5.0))
    newest = Table(version=(ctypes.c_uint32 * 2)(2, 0))
    without = Table(version=(ctypes.c_uint32 * 2)(1, 3), lend=lend_of_other)
    for made in other(None), other(TABLE, b"another_name"), other(newest), other(without):
        theirs = made(array)
        np.testing.assert_array_equal(gpumem.from_dlpack(theirs).copy_to_host(), np.arange(5.0))
        assert theirs.calls == 1
    refusing = other(TABLE)(array)
    refusing.array, kept = None, refusing.array
    refusing.__class__ = type("Refusing", (type(refusing),), {"__dlpack_device__": lambda self: (CPU, 0), "__dlpack__": lambda self, **options: kept.__dlpack__(**options)})
    np.testing.assert_array_equal(gpumem.from_dlpack(refusing).copy_to_host(), np.arange(5.0))
