"""What other libraries may get wrong: descriptors with nonsense in them. Each is taken or refused by an exception of Python's,
a tensor is deleted exactly once, and nothing is read that is not there."""

import ctypes
import random
import subprocess
import sys
import textwrap

import pygpumem as gpumem
import numpy as np
import pytest

CPU, CUDA = 1, 2
LEN = 64


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


# ---- DLPack by hand ----------------------------------------------------------------------------------------------------


class Tensor(ctypes.Structure):
    """``DLTensor``."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Unversioned(ctypes.Structure):
    """``DLManagedTensor``."""

    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


class Versioned(ctypes.Structure):
    """``DLManagedTensorVersioned``."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def numbers(values):
    return None if values is None else (ctypes.c_int64 * max(len(values), 1))(*values)


class Producer:
    """An object whose tensor says what it is told, of memory that is there."""

    def __init__(self, versioned=True, name=None, version=(1, 0), flags=0, device=(CPU, 0), deletes=True, **says):
        self.memory = np.arange(LEN, dtype="f4")
        self.deleted = 0
        self.device = device
        shape, strides = says.get("shape", [LEN]), says.get("strides")
        self.kept = [numbers(shape), numbers(strides), Deleter(self.delete)]
        code, bits, lanes = says.get("dtype", (2, 32, 1))
        tensor = Tensor(
            data=says.get("data", self.memory.ctypes.data),
            device_type=device[0],
            device_id=device[1],
            ndim=says.get("ndim", 0 if shape is None else len(shape)),
            code=code,
            bits=bits,
            lanes=lanes,
            shape=ctypes.cast(self.kept[0], ctypes.POINTER(ctypes.c_int64)),
            strides=ctypes.cast(self.kept[1], ctypes.POINTER(ctypes.c_int64)),
            byte_offset=says.get("offset", 0),
        )
        deleter = self.kept[2] if deletes else Deleter()
        if versioned:
            self.managed = Versioned(version[0], version[1], None, deleter, flags, tensor)
        else:
            self.managed = Unversioned(tensor, None, deleter)
        self.name = name or (b"dltensor_versioned" if versioned else b"dltensor")
        self.capsule = new_capsule(ctypes.addressof(self.managed), self.name, None)

    def delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        return self.capsule


BOTH = pytest.mark.parametrize("versioned", [True, False])


@BOTH
def test_a_tensor_that_is_right(versioned):
    producer = Producer(versioned)
    array = gpumem.from_dlpack(producer)
    np.testing.assert_array_equal(array.copy_to_host(), producer.memory)
    assert producer.deleted == 0
    del array
    gpumem.get_current_device().flush()
    assert producer.deleted == 1
    with pytest.raises(BufferError):  # consumed already
        gpumem.from_dlpack(producer)
    assert producer.deleted == 1
    array = gpumem.from_dlpack(Producer(versioned, strides=[1], deletes=False))
    assert array.size == LEN


def is_asked(says):
    """Whether a producer is asked for its tensor: one of another device is refused before, and keeps it."""
    device_type, _ = says.get("device", (CPU, 0))
    return device_type in (CPU, 3, 11)


@BOTH
@pytest.mark.parametrize(
    "says, error",
    [
        ({"data": None}, ValueError),
        ({"data": None, "offset": 8}, ValueError),
        ({"data": 2}, ValueError),
        ({"offset": 3}, ValueError),
        ({"offset": 2**64 - 1}, ValueError),
        ({"ndim": -1}, ValueError),
        ({"ndim": 65}, ValueError),
        ({"ndim": 2**31 - 1}, ValueError),
        ({"shape": None, "ndim": 1}, TypeError),
        ({"shape": [-1]}, ValueError),
        ({"shape": [-(2**63)]}, ValueError),
        ({"shape": [2**62]}, ValueError),
        ({"shape": [2**40, 2**40]}, ValueError),
        ({"shape": [2**32, 2**32], "strides": [0, 0]}, ValueError),
        ({"shape": [2], "strides": [2**62]}, ValueError),
        ({"shape": [2], "strides": [-(2**63)]}, ValueError),
        ({"shape": [8, 8], "strides": [-(2**60), 1]}, ValueError),
        ({"dtype": (2, 32, 2)}, TypeError),
        ({"dtype": (2, 32, 0)}, TypeError),
        ({"dtype": (2, 7, 1)}, TypeError),
        ({"dtype": (2, 0, 1)}, TypeError),
        ({"dtype": (3, 64, 1)}, TypeError),
        ({"dtype": (255, 255, 65535)}, TypeError),
        ({"device": (-5, 0)}, ValueError),
        ({"device": (99, 0)}, ValueError),
    ],
)
def test_tensors_that_are_wrong(versioned, says, error):
    producer = Producer(versioned, **says)
    with pytest.raises(error):
        gpumem.from_dlpack(producer)
    assert producer.deleted == is_asked(says), "a tensor that is refused is deleted, once"


@pytest.mark.parametrize("version", [(0, 8), (2, 0), (2**32 - 1, 0)])
def test_unknown_versions(version):
    producer = Producer(version=version)
    with pytest.raises(ValueError, match="[Vv]ersion"):
        gpumem.from_dlpack(producer)
    assert producer.deleted == 1
    assert gpumem.from_dlpack(Producer(version=(1, 99))).size == LEN


def test_read_only_tensors():
    array = gpumem.from_dlpack(Producer(flags=1))
    assert not array.flags["WRITEABLE"]
    with pytest.raises(ValueError, match="read"):
        array[0] = 1


@pytest.mark.parametrize("name", [b"used_dltensor", b"used_dltensor_versioned", b"dltensor2", b"arrow_array", b""])
def test_capsules_of_other_names(name):
    producer = Producer(name=name or b"\xff")
    with pytest.raises(BufferError):
        gpumem.from_dlpack(producer)
    assert producer.deleted == 0, "what is not ours is left alone"


@pytest.mark.parametrize("capsule", [None, 3, "dltensor", b"dltensor", object(), {}, new_capsule])
def test_what_is_no_capsule(capsule):
    producer = Producer()
    producer.capsule = capsule
    with pytest.raises(TypeError):
        gpumem.from_dlpack(producer)


@pytest.mark.parametrize("device", [None, 3, (1,), ("cpu", 0), (2**40, 0)])
def test_places_that_are_none(device):
    producer = Producer()
    producer.device = device
    with pytest.raises((TypeError, ValueError, OverflowError)):
        gpumem.from_dlpack(producer)


def test_producers_that_fail():
    class Fails:
        def __dlpack_device__(self):
            return (CPU, 0)

        def __dlpack__(self, **options):
            raise RuntimeError("not today")

    with pytest.raises(RuntimeError, match="not today"):
        gpumem.from_dlpack(Fails())


@BOTH
def test_any_tensor(versioned):
    """Numbers at random, mostly from what hurts. What is taken and lies inside the memory is read."""
    pick = random.Random(8)
    hurts = [0, 0, 1, 2, 3, 8, LEN, LEN + 1, -1, -2, 2**31, 2**32, 2**61, 2**62, 2**63 - 1, -(2**63)]
    taken = 0
    for _ in range(1500):
        axes = pick.randrange(4)
        says = {"shape": [pick.choice(hurts) for _ in range(axes)]}
        if pick.random() < 0.6:
            says["strides"] = [pick.choice(hurts) for _ in range(axes)]
        if pick.random() < 0.2:
            says["offset"] = pick.choice([4, 8, 2, 2**63, 2**64 - 4])
        if pick.random() < 0.2:
            says["dtype"] = (pick.randrange(9), pick.choice([0, 1, 8, 16, 32, 64, 128, 255]), pick.choice([0, 1, 1, 4]))
        if pick.random() < 0.1:
            says["data"] = None
        if pick.random() < 0.1:
            says["device"] = (pick.randrange(-1, 18), pick.randrange(2))
        producer = Producer(versioned, **says)
        try:
            array = gpumem.from_dlpack(producer)
        except (TypeError, ValueError, BufferError, gpumem.GpuMemError):
            assert producer.deleted == is_asked(says), says
            continue
        first = array.__cuda_array_interface__["data"][0] if array.size else 0
        ends = [[0, stride * (length - 1)] for length, stride in zip(array.shape, array.strides)]
        low, high = first + sum(map(min, ends)), first + sum(map(max, ends)) + array.dtype.itemsize
        start = producer.memory.ctypes.data
        if array.size == 0 or (array.size <= 4096 and start <= low and high <= start + 4 * LEN):
            array.copy_to_host()
            taken += 1
        del array
        gpumem.get_current_device().flush()
        assert producer.deleted == 1, says
    assert taken > 50, "hardly anything was taken: the test tests nothing"


# ---- the CUDA Array Interface ------------------------------------------------------------------------------------------


class Said:
    """An object that says what it is told, and what it says it of."""

    def __init__(self, says, keeps=None):
        self.__cuda_array_interface__ = says
        self.keeps = keeps


@pytest.mark.parametrize("says", [None, 3, "dict", [], (), object(), {}, {"version": 3}])
def test_interfaces_that_are_none(says):
    with pytest.raises(TypeError):
        gpumem.as_cuda_array(Said(says))


def test_an_interface_that_fails():
    class Fails:
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("not today")

    with pytest.raises(RuntimeError, match="not today"):
        gpumem.as_cuda_array(Fails())


NONSENSE = [
    None, True, 0, 1, -1, 3, 2**31, 2**63, 2**64, 2**200, 1.5, float("nan"), "", "<f4", "nonsense", b"<f4", (), (1,),
    (-1,), (2**62, 2**62), (2**200,), ("a",), (None,), [1, 2], {}, {1}, object(), (0, False), (0, "no"), (2**200, False),
    (1.5, False), ((), ()),
]  # fmt: skip


def test_any_interface():
    """Every entry takes every value, alone and with others at random."""
    array = gpumem.to_device(np.arange(24, dtype="f4").reshape(2, 3, 4))
    right = array.__cuda_array_interface__
    pick = random.Random(9)
    changes = [{key: value} for key in [*right, "mask", "unknown"] for value in NONSENSE]
    changes += [{key: pick.choice(NONSENSE) for key in pick.sample([*right, "mask"], 3)} for _ in range(2000)]
    refused = 0
    for change in changes:
        says = {**right, **change}
        if says.get("stream") not in (None, 0, 1, -1) and isinstance(says["stream"], int):
            continue  # a handle is believed
        try:
            taken = gpumem.as_cuda_array(Said(says, array))
        except (TypeError, ValueError, BufferError, NotImplementedError):
            refused += 1
            continue
        if taken.nbytes <= array.nbytes:
            taken.copy_to_host()
    assert refused > 1000
    np.testing.assert_array_equal(array.copy_to_host(), np.arange(24).reshape(2, 3, 4))


def test_errors_name_the_entry():
    array = gpumem.to_device(np.arange(4.0))
    for entry, value, error in [
        ("shape", "abc", TypeError),
        ("shape", (2**200,), ValueError),
        ("data", 3, TypeError),
        ("version", "three", TypeError),
        ("stream", 1.5, TypeError),
        ("strides", 8, TypeError),
        ("typestr", 4, TypeError),
    ]:
        with pytest.raises(error, match=entry):
            gpumem.as_cuda_array(Said({**array.__cuda_array_interface__, entry: value}, array))


# ---- lists ---------------------------------------------------------------------------------------------------------------

LISTS = textwrap.dedent("""
    import inspect
    import pygpumem as gpumem, numpy as np

    class Long:
        def __len__(self):
            return 10**13

        def __getitem__(self, at):
            return 1

    class Described:
        def __init__(self, **says):
            self.__cuda_array_interface__ = dict(shape=(4,), typestr="<f4", data=(0, False), version=3) | says

    device = gpumem.select_device("host")
    array, host = gpumem.to_device(np.zeros(4, "f4")), gpumem.mapped_array(4)
    kernel = gpumem.compile("GPUMEM_KERNEL f(u64 a) {}", host=lambda a: None)
    rank = gpumem.Communicator.all([device])[0]
    calls = [lambda long: kernel[long, 1], lambda long: kernel[1, long], lambda long: array.reshape(long)]
    calls += [lambda long: array.transpose(long), lambda long: gpumem.as_cuda_array(Described(shape=long))]
    calls += [lambda long: gpumem.as_cuda_array(Described(strides=long)), lambda long: gpumem.Communicator.all(long)]
    fits = dict(source="GPUMEM_KERNEL f(u64 a) {}", shape=4, dtype="f4", handle=bytes(64), sent=[4], received=[4])
    for of in gpumem, array, host, rank, rank.group():
        for name, function in inspect.getmembers(of, callable):
            try:
                parameters = inspect.signature(function).parameters
            except (TypeError, ValueError):
                continue
            if name.startswith("__") or name in ("abort", "destroy"):
                continue
            for tried in parameters:
                needed = {of for of, its in parameters.items() if its.default is its.empty and its.kind != its.VAR_POSITIONAL}
                given = {of: fits.get(of, array) for of in needed}
                if parameters[tried].kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                    calls.append(lambda long, f=function, given=given, tried=tried: f(**given | {tried: long}))
    for call in calls:
        try:
            call(Long())
        except Exception:
            pass
    for long in Long(), range(10**13):
        try:
            gpumem.device_array(long)
        except ValueError as error:
            print(error)
    print(len(calls) > 100)
""")


def test_a_list_of_any_length_ends_no_process():
    done = subprocess.run([sys.executable, "-c", LISTS], capture_output=True, text=True, timeout=120)
    assert done.stdout == "a list has at most 65536 entries here\n" * 2 + "True\n", done.stdout + done.stderr
