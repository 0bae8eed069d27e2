"""Memory that Python programs can reach: never memory lent to others, never memory that NumPy has moved."""

import gc
import pathlib
import re
import subprocess
import sys
import weakref

import pygpumem as gpumem
import numpy as np
import pytest

MANY = 1 << 20


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


def kept_by_a_body(parameter="slice<float> x", of=lambda array: array):
    """The array that a host function has kept, and the device array that it was launched with."""
    kept = []
    kernel = gpumem.compile(f"GPUMEM_KERNEL keeps({parameter}) {{ }}", host=kept.append)
    array = gpumem.to_device(np.full(MANY, 7, "f4"))
    kernel[1, 1](of(array))
    gpumem.synchronize()
    return kept[0], array


def test_arrays_that_a_body_keeps_keep_their_memory():
    kept, array = kept_by_a_body()
    part = kept[5:]
    del array, kept
    gc.collect()
    gpumem.get_current_device().flush()
    others = [gpumem.to_device(np.full(MANY, 666, "f4")) for _ in range(4)]
    assert (part == 7).all(), "the memory was lent to another array"
    part[:] = 1
    for other in others:
        assert (other.copy_to_host() == 666).all(), "another array was written"


def test_memory_that_a_body_keeps_goes_back_with_its_last_array():
    def lent():
        kinds = gpumem.memory_report().as_dict()["kinds"]
        return sum(resource["statistics"]["allocated"] for kind in kinds for resource in kind["resources"])

    gc.collect()
    gpumem.synchronize()
    before = lent()
    kept, array = kept_by_a_body()
    del array
    gc.collect()
    assert lent() >= before + kept.nbytes
    del kept
    gc.collect()
    gpumem.synchronize()
    assert lent() <= before


def test_bodies_see_the_same_memory_as_the_device():
    kept, array = kept_by_a_body("view<float, 1> x", lambda array: array[::-2])
    kept[0] = 3
    assert array[-1] == 3 and kept.strides == (-8,)
    kept, array = kept_by_a_body("slice<const float> x")
    assert not kept.flags.writeable
    kept, _ = kept_by_a_body("slice<float> x", lambda array: array[:0])
    assert kept.shape == (0,)


def test_each_launch_has_its_own_arrays():
    kept, array = [], gpumem.to_device(np.arange(6.0))
    kernel = gpumem.compile("GPUMEM_KERNEL keeps(slice<double> x, double y) { }", host=lambda x, y: kept.append((x, y)))
    for at in range(3):
        kernel[1, 1](array[2 * at : 2 * at + 2], at)
    del array, kernel
    gpumem.synchronize()
    assert [(x.tolist(), y) for x, y in kept] == [([0, 1], 0), ([2, 3], 1), ([4, 5], 2)]


class LiesByInterface(np.ndarray):
    __array_interface__ = property(lambda self: {"data": (4096, False), "shape": (9,), "typestr": "<f4", "version": 3})


class LiesByShape(np.ndarray):
    shape = property(lambda self: (10**8,))
    strides = property(lambda self: (4,))


class LiesByType(np.ndarray):
    dtype = property(lambda self: np.dtype("f8"))


class LiesByBase(np.ndarray):
    base = property(lambda self: None)


@pytest.mark.parametrize("kind", [LiesByInterface, LiesByShape, LiesByType, LiesByBase])
def test_subclasses_are_what_they_are_and_not_what_they_say(kind):
    host = np.zeros(9, "f4")
    lying = host.view(kind)
    array = gpumem.to_device(np.arange(9, dtype="f4"))
    assert array.copy_to_host(lying) is lying
    assert host.tolist() == list(range(9))
    assert gpumem.to_device(lying).shape == (9,) and gpumem.to_device(lying).dtype == np.float32
    with gpumem.pinned(lying) as (locked,):
        assert locked.shape == (9,) and locked.dtype == np.float32
    with pytest.raises(ValueError, match="shape"):
        gpumem.device_array(10**8, "f4").copy_to_host(lying)


def test_what_only_calls_itself_an_array_is_none():
    class Lies:
        __class__ = np.ndarray

        def __array__(self, dtype=None, copy=None):
            return np.zeros(3)

    with pytest.raises(TypeError, match="NumPy array"):
        gpumem.to_device(np.zeros(3)).copy_to_host(Lies())


@pytest.mark.parametrize("lock", [gpumem.pinned, gpumem.mapped, gpumem.register])
@pytest.mark.parametrize("size", [4, 1 << 21])
def test_page_locked_arrays_cannot_be_resized(lock, size):
    array = np.arange(1 << 20, dtype="f4")
    with lock(array):
        with pytest.raises(ValueError, match="resize"):
            array.resize(size, refcheck=False)
        gpumem.to_device(array)
    assert array.size == 1 << 20
    array.resize(size, refcheck=False)
    assert array.size == size


def test_views_of_a_locked_array_keep_its_memory():
    array = np.full(MANY, 7.0)
    alive = weakref.ref(array)
    with gpumem.pinned(array) as (locked,):
        view, part = np.asarray(locked), locked[10:20]
    del locked
    gc.collect()
    with pytest.raises(ValueError, match="resize"):
        array.resize(4, refcheck=False)
    del array
    gc.collect()
    others = [np.full(MANY, 666.0) for _ in range(4)]
    assert alive() is not None and (view == 7).all() and (part == 7).all() and others[0][0] == 666
    del view, part
    gc.collect()
    assert alive() is None


def test_tensors_over_arrays_keep_them_from_being_resized():
    owner = np.full(MANY, 7.0)
    for array in (owner, owner.view(LiesByBase)[1000:]):
        imported = gpumem.from_dlpack(array, device=gpumem.Device("host"))
        with pytest.raises(ValueError, match="resize"):
            owner.resize(4, refcheck=False)
        assert (imported.copy_to_host() == 7).all()
        del array, imported
        gc.collect()
    gpumem.synchronize()
    owner.resize(4, refcheck=False)
    assert owner.size == 4


@pytest.mark.parametrize(
    "part_of",
    [
        lambda owner: owner.view(LiesByBase)[1000:2000],
        lambda owner: np.frombuffer(memoryview(owner)[1000:], "f4"),
        lambda owner: np.asarray(memoryview(owner).cast("B")).view("f4"),
        lambda owner: np.lib.stride_tricks.as_strided(owner, (1000,)),
    ],
)
def test_nor_can_what_they_are_views_of(part_of):
    owner = np.arange(1 << 20, dtype="f4")
    part = part_of(owner)
    with gpumem.mapped(part):
        with pytest.raises(ValueError, match="resize"):
            owner.resize(4, refcheck=False)
    del part
    gc.collect()
    owner.resize(4, refcheck=False)
    assert owner.size == 4


def test_owners_without_end_are_looked_for_in_vain():
    class Endless:
        def __init__(self, owner):
            self.owner, self.base, self.__array_interface__ = owner, self, owner.__array_interface__

    array = np.asarray(Endless(np.full(4, 7.0)))
    assert gpumem.to_device(array).copy_to_host().tolist() == [7] * 4


def test_what_is_mapped_stays_while_its_views_live():
    array = np.full(1000, 7.0)
    with gpumem.mapped(array) as view:
        pass
    with pytest.raises(ValueError, match="resize"):
        array.resize(4, refcheck=False)
    assert view.copy_to_host()[0] == 7
    del view
    gc.collect()
    gpumem.synchronize()
    alive = weakref.ref(array)
    del array
    gc.collect()
    assert alive() is None


def test_memory_is_fixed_before_it_is_described(monkeypatch):
    from numpy._core import _internal

    array = np.full(MANY, 7, [("a", "i8"), ("b", "i8")])
    described, refused = _internal._array_descr, []

    def moves(dtype):
        for size in (1, MANY):
            try:
                array.resize(size, refcheck=False)
            except ValueError as error:
                refused.append(error)
        return described(dtype)

    monkeypatch.setattr(_internal, "_array_descr", moves)
    copy = gpumem.to_device(array)
    monkeypatch.undo()
    assert refused and (copy.copy_to_host() == array).all()


# A device array and NumPy's array over the same memory.
def mapped():
    memory = gpumem.mapped_array(8, "i8")
    return memory.device_view, np.asarray(memory)


def managed():
    memory = gpumem.managed_array(8, "i8")
    return memory.device_view, np.asarray(memory)


def numpys():
    memory = np.zeros(8, "i8")
    return gpumem.from_dlpack(memory), memory


def lent():
    array = gpumem.to_device(np.zeros(8, "i8"))
    return array, np.from_dlpack(array)


@pytest.mark.parametrize("both", [mapped, managed, numpys, lent])
@pytest.mark.parametrize("streams", [False, True])
def test_a_copy_within_one_memory_is_refused(both, streams):
    device, host = both()
    host[:] = np.arange(8)
    stream = gpumem.stream() if streams else None
    for copy in [
        lambda: device.setitem(slice(None), host[::-1], stream),
        lambda: device[1:].copy_to_device(host[:-1], stream),
        lambda: device[1:].copy_to_host(host[:-1], stream),
        lambda: device[::-1].copy_to_host(host, stream),
        lambda: gpumem.to_device(host[::-1], stream, to=device),
    ]:
        with pytest.raises(ValueError, match="share memory"):
            copy()
    assert (host == np.arange(8)).all()


def test_no_array_of_numpy_is_over_the_memory_of_a_graph(monkeypatch):
    """Code that sees every call of NumPy finds only arrays that own their memory, or whose base does."""
    seen, watches = [], True

    def sees(value):
        if isinstance(value, np.ndarray):
            seen.append(value)
        return value

    def spied(function):
        def spy(*arguments, **options):
            for argument in (*arguments, *options.values()):
                sees(argument)
            return sees(function(*arguments, **options))

        return spy

    def profile(frame, event, argument):
        if not watches:
            return sys.setprofile(None)
        for value in (*frame.f_locals.values(), argument):
            sees(value)

    def add(x, y):
        sys.setprofile(profile if watches else None)
        y[...] = x + 1

    kernel = gpumem.compile("GPUMEM_KERNEL adds(view<const float, 2> x, view<float, 2> y) { }", host=add)

    def body(stream, x):
        y = gpumem.device_array((100, 7), "f4")
        kernel[1, 1, stream](x, y.T[::-1])
        kernel[1, 1, stream](y.T[::-1], x)

    numbers = np.arange(700, dtype="f4").reshape(7, 100)
    x = gpumem.to_device(numbers)
    graph = gpumem.record(body, x)
    for name in ("array", "asarray", "copyto", "empty"):
        monkeypatch.setattr(np, name, spied(getattr(np, name)))
    try:
        graph(x)
        gpumem.synchronize()
    finally:
        watches = False
        monkeypatch.undo()
        graph(x)
        gpumem.synchronize()
    np.testing.assert_array_equal(x.copy_to_host(), numbers + 4)
    assert seen
    for array in seen:
        while isinstance(array.base, np.ndarray):
            array = array.base
        assert array.base is None and array.flags.owndata


def test_a_function_that_changes_its_copy_is_told():
    def reshapes(y):
        y.base.shape = (2, 2)

    kernel = gpumem.compile("GPUMEM_KERNEL k(slice<float> y) { }", host=reshapes)
    y = gpumem.to_device(np.zeros(4, "f4"))
    graph = gpumem.record(lambda stream, y: kernel[1, 1, stream](y), y)
    graph(y)
    with pytest.raises(gpumem.GpuMemError, match="has the shape"):
        gpumem.synchronize()


# Each line makes `z`, which keeps all earlier ones.
CHAINS = {
    "memory of an object": "z = gpumem.as_cuda_array(Keeps(z))",
    "memory of an array": "z = gpumem.as_cuda_array(z)",
    "functions of kernels": "z = gpumem.compile(SOURCE, host=z)",
    "launches": "z = gpumem.compile(SOURCE, host=z)[1, 1]",
    "contexts": "z = gpumem.pinned(z)",
    "types of elements": "z = gpumem.device_array(1, np.dtype([('x', 'f4')], metadata={'z': z}))",
}


@pytest.mark.parametrize("line", CHAINS.values(), ids=CHAINS)
def test_chains_of_objects_that_keep_each_other_end(line):
    program = f"""
import pygpumem as gpumem, numpy as np
device = gpumem.select_device("host")
SOURCE = "GPUMEM_KERNEL k(slice<float> x) {{ }}"
class Keeps:
    def __init__(self, z):
        self.__cuda_array_interface__, self.z = z.__cuda_array_interface__, z
z = gpumem.to_device(np.arange(4.0))
for _ in range(30_000):
    {line}
del z
print("ends")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "ends" in done.stdout, done.stderr


def test_what_a_destructor_drops_is_freed_before_it_ends():
    grown = []

    def allocated():
        kinds = gpumem.memory_report().as_dict()["kinds"]
        return sum(one["statistics"]["allocated"] for kind in kinds for one in kind["resources"])

    class Keeps:
        def __init__(self, array):
            self.__cuda_array_interface__, self.array = array.__cuda_array_interface__, array

    class Service(Keeps):
        def __del__(self):
            before = allocated()
            for _ in range(50):
                gpumem.as_cuda_array(Keeps(gpumem.to_device(np.zeros(1 << 20, "u1"))))
            gpumem.synchronize()
            grown.append(allocated() - before)

    gpumem.as_cuda_array(Service(gpumem.to_device(np.zeros(4, "f4"))))
    gc.collect()
    # What the last of them used may still be in the pool's own bookkeeping, and is no more than that of a few.
    assert len(grown) == 1 and grown[0] < 8 << 20


def test_what_is_kept_is_dropped_in_one_way():
    """No class holds an object of Python but by the type whose drop cannot use up the stack."""
    source = pathlib.Path(__file__).parents[1] / "src"
    fields = re.compile(r"struct (\w+)[^;{(]*(?:\{.*?\n\}|\([^;]*\);)", re.DOTALL)
    found = {name for path in source.rglob("*.rs") for name in (m[1] for m in fields.finditer(path.read_text()) if "Py<" in m[0])}
    # `Known` is a static.
    assert found == {"Kept", "Known"}


def test_another_interpreter_is_refused_and_the_main_one_goes_on():
    interpreters = pytest.importorskip("_xxsubinterpreters")
    program = """
import pygpumem as gpumem, numpy as np, _xxsubinterpreters as interpreters
gpumem.select_device("host")
other = interpreters.create()
try:
    interpreters.run_string(other, "import pygpumem as gpumem")
except interpreters.RunFailedError as error:
    print("refused:", error)
interpreters.destroy(other)
array = gpumem.to_device(np.zeros(4, "f4"))
gpumem.compile("GPUMEM_KERNEL fills(slice<float> x) { }", host=lambda x: x.fill(1))[1, 1, gpumem.stream()](array)
print(array.copy_to_host().sum())
"""
    assert interpreters.list_all()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert "refused:" in done.stdout and "4.0" in done.stdout, (done.stdout, done.stderr)
