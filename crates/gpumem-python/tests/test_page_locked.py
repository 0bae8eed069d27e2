"""Page-locked memory by NumPy's own arrays: what uses it waits for the copies that streams have enqueued."""

import collections
import contextlib
import enum
import gc
import os
import threading
import weakref

import pygpumem as gpumem
from pygpumem import cuda
import numpy as np
import pytest
from test_waits import program


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


@contextlib.contextmanager
def pinned(array):
    with gpumem.pinned(array):
        yield array


@contextlib.contextmanager
def registered(array):
    with gpumem.register(array):
        yield array


@contextlib.contextmanager
def made(array):
    own = cuda.pinned_array_like(array)
    own[...] = array
    yield own


@contextlib.contextmanager
def made_and_seen(array):
    own = gpumem.pinned_array_like(array)
    own[...] = array
    yield Both(own)


class Both(np.ndarray):
    """An ordinary array over the memory of a page-locked one, which is copied on streams."""

    def __new__(cls, own):
        array = np.asarray(own).view(cls)
        array.own = own
        return array


LOCKS = [pinned, registered, made, made_and_seen]


class Slow:
    """A kernel on a stream that waits until it may end, and writes fives."""

    def __init__(self, there=None):
        self.begun, self.ends, self.stream = threading.Event(), threading.Event(), gpumem.stream()
        self.there = gpumem.to_device(np.ones(4)) if there is None else there
        run = lambda y: (self.begun.set(), self.ends.wait(60), y.fill(5))
        gpumem.compile("GPUMEM_KERNEL slow(slice<double> y) { }", host=run)[1, 1, self.stream](self.there)
        assert self.begun.wait(60)

    def soon(self):
        """Lets it end while the test waits; one that does not wait is most likely there before."""
        threading.Timer(0.1, self.ends.set).start()

    def to_host(self, array):
        self.there.copy_to_host(getattr(array, "own", array), stream=self.stream)
        assert not self.ends.is_set() and not array.any()

    def to_device(self, array):
        self.there.copy_to_device(getattr(array, "own", array), stream=self.stream)
        assert not self.ends.is_set()


def ordinary(array):
    return np.asarray(array)[:]


def filled(count, dtype="f8"):
    return gpumem.to_device(np.full(count, 7, dtype))


def into(array, source, stream=None):
    array.copy_to_device(source, stream=stream)
    return array


def assigned(array, key, value):
    array[key] = value
    return array


def by_kernel(source, argument, host, *others):
    gpumem.compile(f"GPUMEM_KERNEL k({source}) {{ }}", host=host)[1, 1, gpumem.stream()](argument, *others)


def read_by_kernel(array):
    there = filled(4)
    by_kernel("slice<const double> x, slice<double> y", array, lambda x, y: y.__setitem__(slice(None), x), there)
    return there


def updated_by_kernel(array):
    by_kernel("slice<double> x", array, lambda x: x.__isub__(1))
    return np.asarray(array) + 1


class Says:
    """No array and no sequence, but an array to NumPy."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype)


class SaysToo(list, Says):
    """A list, but an array to NumPy."""

    __init__ = Says.__init__


def objects(array):
    made = np.empty(4, object)
    for at in range(4):
        made[at] = array[at:at + 1].reshape(())
    return made


def swapped(array):
    return np.asarray(array).astype(">f8").view("f8")


def number_by_kernel(number):
    there = filled(4)
    by_kernel("double x, slice<double> y", number, lambda x, y: y.fill(x), there)
    return there


READERS = {
    "a new array": lambda a: gpumem.to_device(ordinary(a)),
    "a new array of the array itself": lambda a: gpumem.to_device(a),
    "a new array of a part": lambda a: gpumem.to_device(a[1:3]),
    "a new array of a part on a stream": lambda a: gpumem.to_device(a[1:3], stream=gpumem.stream()),
    "a new array of a buffer": lambda a: gpumem.to_device(memoryview(a)),
    "a new array of a list of parts": lambda a: gpumem.to_device([a[:2], (a[2], a[3]), a[2:]][::2]),
    "a new array of parts that repeat": lambda a: gpumem.to_device(np.broadcast_to(a.view("V8"), (2, 4))).view("f8"),
    "a new array of an odd part": lambda a: gpumem.to_device(a.view("u1")[4:28].view([("x", "f4"), ("y", "f8"), ("z", "f4"), ("w", "f8")])["y"]),
    "a copy": lambda a: into(filled(4), a),
    "a copy of a part": lambda a: into(filled(2), a[::2]),
    "a copy of a part on a stream": lambda a: into(filled(2), a[::2], gpumem.stream()),
    "an assignment": lambda a: assigned(filled(4), slice(None), a),
    "an assignment of a list": lambda a: assigned(filled((2, 2)), slice(None), [a[:2], a[2:]]),
    "an assignment of another type": lambda a: assigned(filled(4, "f4"), slice(None), a),
    "an assignment to an element": lambda a: assigned(filled(4), 2, a[2:3].reshape(()))[2:3],
    "an argument that is read": read_by_kernel,
    "an argument that is updated": updated_by_kernel,
    "pieces": lambda a: gpumem.map_chunks(lambda stream, rows, piece: piece, a[:3], 2),
    "a new array of a sequence": lambda a: gpumem.to_device(collections.deque([a[:2], a[2:]])),
    "a new array of a sequence in a list": lambda a: gpumem.to_device([collections.UserList([a[:2], a[2:]])]),
    "a new array of what says that it is one": lambda a: gpumem.to_device(Says(a)),
    "a new array of a list of what says that it is one": lambda a: gpumem.to_device([Says(a), SaysToo(a)]),
    "a new array of a list of buffers": lambda a: gpumem.to_device([memoryview(a)]),
    "an assignment of parts of another byte order": lambda a: swapped(assigned(filled((1, 4)), slice(None), [a.view(">f8")])),
    "an assignment of objects in a list": lambda a: assigned(filled((1, 4)), slice(None), [objects(a)]),
    "a number of a kernel": lambda a: number_by_kernel(a[2:3].reshape(())),
}


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("reads", READERS.values(), ids=READERS)
def test_readers_wait_for_what_is_enqueued(lock, reads):
    with lock(np.zeros(4)) as array:
        slow = Slow()
        slow.to_host(array)
        slow.soon()
        found = np.asarray(reads(array))
        assert found.size and (found == 5).all()


def written_by_kernel(array):
    by_kernel("slice<double> x", cuda.Out(array), lambda x: x.fill(7))


WRITERS = {
    "a copy": lambda a: filled(4).copy_to_host(ordinary(a)),
    "a copy to the array itself": lambda a: filled(4).copy_to_host(a),
    "a copy to a part": lambda a: filled(2).copy_to_host(a[1:3]),
    "a copy to a part on a stream": lambda a: filled(2).copy_to_host(a[1:3], stream=gpumem.stream()),
    "a copy to a record": lambda a: gpumem.to_device(np.full(1, 7.0).view([("x", "f8")]))[0].copy_to_host(a.view([("x", "f8")])[0]),
    "an argument": written_by_kernel,
    "pieces": lambda a: gpumem.map_chunks(lambda stream, rows, piece: piece, np.full(4, 7.0), 2, out=a),
}


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("writes", WRITERS.values(), ids=WRITERS)
def test_writers_wait_for_what_is_enqueued(lock, writes):
    with lock(np.full(4, 3.0)) as array:
        slow = Slow()
        slow.to_device(array)
        slow.soon()
        writes(array)
        slow.stream.synchronize()
        assert 7 in array
        np.testing.assert_array_equal(slow.there.copy_to_host(), np.full(4, 3.0))


def test_locks_of_the_same_memory_wait_for_each_other():
    for inside in (lambda a: a), (lambda a: a[1:3]):
        array = np.zeros(4)
        with gpumem.pinned(array) as (outer,), gpumem.pinned(inside(array)) as (inner,):
            slow = Slow()
            slow.there.copy_to_host(outer, stream=slow.stream)
            slow.soon()
            assert (gpumem.to_device(inner, stream=gpumem.stream()).copy_to_host() == 5).all()
            slow = Slow()
            slow.there.copy_to_device(outer, stream=slow.stream)
            slow.soon()
            stream = gpumem.stream()
            filled(len(inner)).copy_to_host(inner, stream=stream)
            stream.synchronize()
            assert 7 in array and (slow.there.copy_to_host() == 5).all()
            slow = Slow()
            array[...] = 0
            slow.there.copy_to_host(outer, stream=slow.stream)
            slow.soon()
            assert (np.asarray(inner) == 5).all()


def test_kernels_on_mapped_memory_are_waited_for():
    array = np.zeros(4)
    with gpumem.mapped(array) as there:
        slow = Slow(there)
        slow.soon()
        assert (gpumem.to_device(array[1:]).copy_to_host() == 5).all()
    array = cuda.mapped_array(4)
    slow = Slow(array.device_view)
    slow.soon()
    assert (gpumem.to_device(array[1:]).copy_to_host() == 5).all()


def test_other_memory_is_not_waited_for():
    array = np.zeros((2, 4))
    with gpumem.pinned(array[0]) as (locked,):
        slow = Slow()
        slow.there.copy_to_host(locked, stream=slow.stream)
        other = gpumem.pinned_array(4)
        for source in (array[1], [1.0, 2], [array[1], other], 3j, np.zeros(0), np.float64(2), "text", b"text", [True]):
            gpumem.to_device(source)
        filled(4).copy_to_host(array[1])
        assert not slow.ends.is_set() and not array[0].any()
        slow.ends.set()


def test_no_callback_waits(refused_in_a_callback):
    array, stream = np.zeros(4), gpumem.stream()
    uses = [
        lambda: gpumem.to_device(array[1:], stream=stream),
        lambda: filled(2).copy_to_device(array[:2], stream=stream),
        lambda: gpumem.to_device([array, array], stream=stream),
        lambda: gpumem.to_device(collections.deque([1.0]), stream=stream),
        lambda: by_kernel("slice<const double> x", array, lambda x: None),
    ]
    for use in uses:
        with gpumem.pinned(array):
            assert refused_in_a_callback(use)


class Unlocked(np.ndarray):
    """An array that is unlocked when a copy looks at its shape."""

    @property
    def shape(self):
        gpumem.deregister(self)
        return np.asarray(self).shape


def test_a_lock_that_ends_meanwhile_makes_an_ordinary_array():
    stream, array = gpumem.stream(), np.arange(4.0).view(Unlocked)
    copies = [
        lambda: gpumem.to_device(array, stream=stream),
        lambda: into(filled(4), array, stream),
        lambda: read_by_kernel(array),
    ]
    for copy in copies:
        gpumem.register(array)
        assert copy().copy_to_host().tolist() == [0, 1, 2, 3]
    gpumem.register(array)
    filled(4).copy_to_host(array, stream=stream)
    assert array.tolist() == [7] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_waits_for_no_copy_of_its_parent():
    out = program("""
        import os, signal, threading, time
        import pygpumem as gpumem, numpy as np
        gpumem.select_device("host")
        begun, ends, array, stream = threading.Event(), threading.Event(), np.zeros(4), gpumem.stream()
        there = gpumem.to_device(array)
        slow = gpumem.compile("GPUMEM_KERNEL k(slice<double> x) { }", host=lambda x: (begun.set(), ends.wait()))
        with gpumem.pinned(array):
            slow[1, 1, stream](there)
            there.copy_to_host(array, stream=stream)
            waits = threading.Thread(target=gpumem.to_device, args=[array])
            waits.start()
            begun.wait()
            time.sleep(0.2)  # until the thread waits for the array, and has it
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                for use in (
                    lambda: gpumem.to_device(array, stream=stream), lambda: gpumem.to_device(array[1:], stream=stream),
                    lambda: there.copy_to_host(array, stream=stream), lambda: there.copy_to_device(array, stream=stream),
                    lambda: gpumem.to_device(array), lambda: there.copy_to_host(array), lambda: slow[1, 1, stream](array),
                    lambda: gpumem.to_device([array, array]),
                ):
                    try:
                        use()
                    except gpumem.GpuMemError as error:
                        assert "was forked" in str(error), error
                os._exit(0)
            print(os.waitpid(child, 0)[1], flush=True)
            ends.set()
            waits.join()
        """)
    assert out == "0\n"


def test_work_outlives_the_page_locked_array():
    array, slow = np.zeros(4), Slow()
    own, = gpumem.pinned(array).__enter__()
    slow.to_host(array)
    slow.soon()
    del own
    assert (gpumem.to_device(array).copy_to_host() == 5).all()


def test_views_outlive_the_end_of_a_lock():
    array = np.zeros(4)
    with gpumem.mapped(array) as there:
        pass
    slow = Slow(there)
    slow.soon()
    assert (gpumem.to_device(array).copy_to_host() == 5).all()


def test_a_refused_end_takes_nothing_out(refused_in_a_callback):
    for lock, end in (
        (gpumem.register, lambda array, context: gpumem.deregister(array)),
        (gpumem.register, lambda array, context: context.__exit__()),
        (gpumem.pinned, lambda array, context: context.__exit__()),
    ):
        array, slow = np.zeros(4), Slow()
        context = lock(array)
        context.__enter__()
        slow.to_host(array)
        assert refused_in_a_callback(lambda: end(array, context))
        assert refused_in_a_callback(lambda: gpumem.to_device(array[1:]))
        slow.soon()
        assert (gpumem.to_device(array).copy_to_host() == 5).all()
        slow = Slow()
        array[...] = 0
        slow.to_host(array)
        slow.soon()
        end(array, context)
        assert (array == 5).all()


def test_memory_that_nothing_uses_is_let_go():
    def seen():
        array = np.zeros(4)
        with gpumem.mapped(array) as there:
            pass
        slow = Slow(there)
        slow.ends.set()
        slow.stream.synchronize()
        return weakref.ref(array)

    def dropped():
        array = np.zeros(4)
        gpumem.pinned(array).__enter__()
        return weakref.ref(array)

    for use in seen, dropped:
        gone = use()
        gc.collect()
        gpumem.get_current_device().flush()
        assert gone() is None


class Failing(Slow):
    """As `Slow`, with a kernel that fails."""

    def __init__(self):
        self.begun, self.ends, self.stream = threading.Event(), threading.Event(), gpumem.stream()
        self.there = gpumem.to_device(np.ones(4))

        def run(y):
            self.begun.set()
            self.ends.wait(60)
            raise ValueError("on purpose")

        gpumem.compile("GPUMEM_KERNEL failing(slice<double> y) { }", host=run)[1, 1, self.stream](self.there)
        assert self.begun.wait(60)


@pytest.mark.parametrize("late", [False, True])
def test_failed_work_is_told_when_its_page_locked_array_is_gone(late):
    array, failing = np.zeros(4), Failing()
    own, = gpumem.pinned(array).__enter__()
    failing.to_host(array)
    if not late:
        del own
    failing.ends.set()
    with pytest.raises(gpumem.GpuMemError):
        failing.stream.synchronize()
    if late:
        del own
    with pytest.raises(gpumem.GpuMemError):
        gpumem.to_device(array)
    # Once: nothing else will write the elements.
    assert gpumem.to_device(array).copy_to_host().tolist() == [0] * 4


def test_memory_of_failed_work_goes_with_a_flush():
    array, failing = np.zeros(4), Failing()
    own, = gpumem.pinned(array).__enter__()
    failing.to_host(array)
    failing.ends.set()
    with pytest.raises(gpumem.GpuMemError):
        failing.stream.synchronize()
    gone = weakref.ref(array)
    del own, array
    gpumem.get_current_device().flush()
    gc.collect()
    assert gone() is None


def test_threads_lock_and_unlock_at_once():
    """In a child: threads that wait for each other's locks would never end."""
    out = program("""
        import threading, numpy as np, pygpumem as gpumem
        gpumem.select_device("host")
        array = np.zeros(4)
        with gpumem.mapped(array) as there:
            pass
        def run(own):
            for _ in range(500):
                gpumem.register(own)
                gpumem.deregister(own)
        threads = [threading.Thread(target=run, args=(np.zeros(4),)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("ended")
        """)
    assert out == "ended\n"


def test_numbers_wait_for_no_other_memory(refused_in_a_callback):
    class Mode(enum.IntEnum):
        A = 3

    array, slow, results = np.zeros(4), Slow(), gpumem.to_device(np.zeros(1))
    own, = gpumem.pinned(array).__enter__()
    slow.to_host(array)
    keep = gpumem.compile("GPUMEM_KERNEL keep(i32 x, slice<double> y) { }", host=lambda x, y: y.fill(x))
    launch = lambda: keep[1, 1, gpumem.stream()](Mode.A, results)
    launch()
    assert not refused_in_a_callback(launch)
    assert results.copy_to_host().tolist() == [3] and not slow.ends.is_set()
    slow.ends.set()
    slow.stream.synchronize()
    del own
