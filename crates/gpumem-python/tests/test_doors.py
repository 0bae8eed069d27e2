"""Memory for the allocators of other libraries. Their work is enqueued where gpumem does not see it: here by bodies of kernels that
write to addresses."""

import ctypes
import gc
import os
import random
import subprocess
import sys
import textwrap
import threading
import types

import pygpumem as gpumem
import pytest

# Work on a stream that writes bytes, once it may begin.
WORK = """
import ctypes, threading, time
import pygpumem as gpumem

SOURCE = "GPUMEM_KERNEL work(slice<double> y) { }"
ENDED = threading.Event()
ENDED.set()

def write(stream, address, value, nbytes, may_begin=ENDED):
    work = gpumem.compile(SOURCE, host=lambda y: (may_begin.wait(60), ctypes.memset(address, value, nbytes)))
    work[1, 1, stream](gpumem.device_array(1))

def serve(nbytes, stream):
    return gpumem.serve_memory(nbytes, "test", *((stream.handle, stream) if stream else ()))

gpumem.select_device("host")
MOST = 40 << 20  # More than half of the device: the second allocation has memory of the first.
one, two, ends = gpumem.stream(), gpumem.stream(), threading.Event()
"""


def run(program, **variables):
    environment = {**os.environ, "GPUMEM_HOST_DEVICES": "1", "GPUMEM_HOST_MEMORY": str(64 << 20), **variables}
    text = WORK + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


def served(device=None):
    return gpumem.memory_report(device).as_dict()["served"]


def test_reports_have_the_bytes_of_each_library():
    assert served() == {}
    one, two = gpumem.serve_memory(1000, "cupy"), gpumem.serve_memory(500, "rmm")
    more = gpumem.serve_memory(24, "cupy")
    assert served() == {"cupy": 1024, "rmm": 500} and "for cupy: 1.0 KiB in 2" in str(gpumem.memory_report())
    assert '"served": {' in gpumem.memory_report().json()
    other = gpumem.serve_memory(8, "rmm", device="host:1")
    assert served() == {"cupy": 1024, "rmm": 500} and served("host:1") == {"rmm": 8}
    one.free()
    one.free()
    del two, other
    assert served() == {"cupy": 24} and served("host:1") == {}
    del more
    assert served() == {}


def test_addresses():
    stream = gpumem.stream()
    with_stream = gpumem.serve_memory(1, "test", stream.handle), gpumem.serve_memory(1, "test", 0)
    for memory in (*with_stream, gpumem.serve_memory(1, "test", 2), gpumem.serve_memory(1, "test")):
        assert memory.address % 256 == 0 and memory.nbytes == 1
    for options in {}, {"stream": stream.handle}:
        empty = gpumem.serve_memory(0, "test", **options)
        assert empty.address == 0 and empty.nbytes == 0
        empty.free()
        for most in (1 << 63, (1 << 64) - 1):
            with pytest.raises(MemoryError):
                gpumem.serve_memory(most, "test", **options)
    for wrong in (-1, 1 << 64):
        with pytest.raises(OverflowError):
            gpumem.serve_memory(wrong, "test")
        with pytest.raises(OverflowError):
            gpumem.serve_memory(1, "test", wrong)


def test_a_stream_that_has_ended_is_refused_where_the_backend_looks():
    stream = gpumem.stream()
    handle = stream.handle
    memory = gpumem.serve_memory(8, "test", handle)
    kept = gpumem.serve_memory(8, "test", handle, stream)
    del stream
    gc.collect()
    assert gpumem.serve_memory(8, "test", handle), "the owner is kept"
    del kept
    gc.collect()
    gpumem.synchronize()
    gpumem.get_current_device().flush()
    with pytest.raises(ValueError, match="no live stream"):
        gpumem.serve_memory(8, "test", handle)
    memory.free(handle)  # in the order of all streams
    assert served() == {}


def test_no_address_is_given_twice_at_once():
    taken, lock, wrong, left = {}, threading.Lock(), [], []

    def pairs(seed):
        choose, stream = random.Random(seed), gpumem.stream()
        mine = []
        left.append(mine)
        for _ in range(3000):
            if mine and choose.random() < 0.5:
                memory = mine.pop(choose.randrange(len(mine)))
                with lock:
                    del taken[memory.address]
                memory.free(choose.choice((None, stream.handle)))
                continue
            names = choose.choice(((), (stream.handle,), (stream.handle, stream), (0,)))
            memory = gpumem.serve_memory(choose.randrange(1, 5000), "test", *names)
            with lock:
                if memory.address in taken:
                    wrong.append(memory.address)
                taken[memory.address] = memory.nbytes
            mine.append(memory)

    threads = [threading.Thread(target=pairs, args=(seed,)) for seed in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong and len(taken) == sum(map(len, left))
    ranges = sorted(taken.items())
    assert all(address + nbytes <= after for (address, nbytes), (after, _) in zip(ranges, ranges[1:]))
    left.clear()
    assert served() == {}


def test_a_stream_gets_its_own_memory_again_without_a_wait():
    run("""
        first = serve(MOST, one)
        write(one, first.address, 5, MOST, ends)
        address = first.address
        first.free()
        again = serve(MOST, one)
        assert again.address == address
        write(one, again.address, 7, MOST)
        ends.set()
        one.synchronize()
        assert ctypes.string_at(again.address, MOST) == b"\\7" * MOST
    """)


@pytest.mark.parametrize("end", ["first.free()", "del first", "first.free(one.handle)", "first.free(handle)"])
def test_another_stream_waits_for_work_that_uses_the_memory(end):
    """The device waits: the allocation returns while the work is under way. Later work of the first stream is not waited for."""
    run(f"""
        handle = one.handle
        first = serve(MOST, one)
        write(one, first.address, 5, MOST, ends)
        {end}
        never = threading.Event()
        write(one, (ctypes.c_char * 8)(), 0, 1, never)
        second = serve(MOST, two)
        write(two, second.address, 7, MOST)
        assert not two.query()
        ends.set()
        two.synchronize()
        assert ctypes.string_at(second.address, MOST) == b"\\7" * MOST
        never.set()
    """)


@pytest.mark.parametrize("first, second", [("one", None), (None, None), (None, "two"), ("one", "one")])
def test_memory_of_unknown_streams_waits_for_all_and_is_waited_for_by_all(first, second):
    run(f"""
        first = gpumem.serve_memory(MOST, "test", *([{first}.handle] if {first} else []))
        write(one, first.address, 5, MOST, ends)
        found, on = [], {second} or two
        def allocate():
            found.append(serve(MOST, {second}))
            write(on, found[0].address, 7, MOST)
        del first
        thread = threading.Thread(target=allocate)
        thread.start()
        time.sleep(0.3)
        if {second} is None:
            assert not found  # The host waits, without Python's lock.
        assert not on.query() or not found
        ends.set()
        thread.join()
        on.synchronize()
        assert ctypes.string_at(found[0].address, MOST) == b"\\7" * MOST
    """)


def test_exhaustion_is_an_error_and_the_next_call_works():
    run("""
        first = serve(MOST, one)
        for stream in one, two, None:
            try:
                serve(MOST, stream)
            except MemoryError as error:
                assert "for test" in str(error)
            else:
                assert False
        del first
        assert serve(MOST, two).address
    """)


def test_work_of_the_library_on_the_memory_is_ordered_too():
    """What is imported is used on gpumem's streams, and given back when that is over."""
    run("""
        class Theirs:
            def __init__(self):
                self.memory = serve(MOST, one)
                data = (self.memory.address, False)
                self.__cuda_array_interface__ = {"shape": (MOST,), "typestr": "|u1", "data": data, "version": 3, "stream": one.handle}

        theirs = Theirs()
        array = gpumem.as_cuda_array(theirs)
        assert array.flags["WRITEABLE"]
        work = gpumem.compile("GPUMEM_KERNEL work(slice<u8> y) { }", host=lambda y: (ends.wait(60), y.fill(5)))
        work[1, 1, two](array)
        del array, theirs
        found = []
        thread = threading.Thread(target=lambda: found.append(serve(MOST, one)))
        thread.start()
        time.sleep(0.3)
        assert not found
        ends.set()
        thread.join()
        assert found[0].address
    """)


def test_recordings_have_the_memory_under_its_name(tmp_path):
    file = tmp_path / "record.perfetto.json"
    with gpumem.record_memory(file):
        gpumem.serve_memory(1 << 20, "numba").free()
    assert "for numba" in file.read_text()


def test_forked_children_and_the_end_of_python():
    text = run("""
        import os
        memory, kept = serve(1000, one), serve(1000, None)
        if (child := os.fork()) == 0:
            try:
                serve(8, one)
            except gpumem.GpuMemError as error:
                assert "fork" in str(error)
            else:
                os._exit(3)
            memory.free()
            del kept
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        memory.free()
        assert gpumem.memory_report().as_dict()["served"] == {"test": 1000}

        class AtTheEnd:
            def __init__(self, memory):
                self.memory = memory

            def __del__(self):
                self.memory.free()
                print("ended", flush=True)

        import sys
        kept_to_the_end = [AtTheEnd(kept), serve(8, one), serve(8, None)]
    """)
    assert text == "ended\n"


def test_a_stream_in_a_cycle_ends_after_its_memory():
    """The collector calls what ends a stream before it drops anything."""
    left = []

    class Owner:
        stream = gpumem.stream()

        def __del__(self):
            left.append(served())

    class Model:
        def __init__(self):
            self.owner = Owner()
            self.memory = gpumem.serve_memory(8, "test", self.owner.stream.handle, self.owner)
            self.step = lambda: self

    Model()
    assert served() == {"test": 8}
    gc.collect()
    gc.collect()
    assert served() == {} and left == [{}]


def test_what_lies_in_cycles_is_collected_before_memory_is_refused():
    class Cycle:
        def __init__(self):
            self.memory, self.own = gpumem.serve_memory(8, "test"), self

    gc.disable()
    try:
        Cycle()
        with pytest.raises(MemoryError):
            gpumem.serve_memory(1 << 62, "test")
        assert served() == {}
    finally:
        gc.enable()


# ---- the modules ----------------------------------------------------------------------------------------------------


def module(name, needs):
    """A module for a library, which may be absent, or not work without a driver."""
    try:
        __import__(needs)
    except Exception as error:
        pytest.skip(f"{needs}: {error}".splitlines()[0])
    return __import__(f"pygpumem.{name}", fromlist=["x"])


@pytest.fixture
def on_host(monkeypatch):
    """The host in place of each GPU."""
    from pygpumem import _serve

    monkeypatch.setattr(_serve, "device", lambda given: gpumem.Device("host"))


@pytest.fixture
def busy():
    """Gives a stream work that does not end before the test: only the same stream gets again what ends on it."""
    ends, stream = threading.Event(), gpumem.stream()
    work = gpumem.compile("GPUMEM_KERNEL work(slice<double> y) { }", host=lambda y: ends.wait(60))

    def begin():
        work[1, 1, stream](gpumem.device_array(1))
        return stream

    yield begin
    ends.set()
    stream.synchronize()


@pytest.mark.parametrize("name", ["numba", "cupy", "cuda_core", "rmm"])
def test_a_library_that_is_absent_is_named(name):
    program = f"""
        import sys
        for absent in "numba.cuda", "cupy.cuda", "cuda.core", "rmm.mr":
            sys.modules[absent] = None
        try:
            import pygpumem.{name}
        except ImportError as error:
            assert "pygpumem.{name} needs" in str(error), error
        else:
            assert False
    """
    run(program)


def test_numba(on_host):
    door = module("numba", "numba.cuda")
    assert door._numba_memory_manager(context=None).interface_version == 1
    context = types.SimpleNamespace(device=types.SimpleNamespace(id=0))

    class Context(types.SimpleNamespace):
        pass

    context = Context(device=types.SimpleNamespace(id=0))
    manager = door.MemoryManager(context=context)
    manager.initialize()
    info = manager.get_memory_info()
    assert manager.deallocations.memory_capacity == info.total >= info.free > 0
    pointer = manager.memalloc(1000)
    assert served() == {"numba": 1000} and pointer.device_pointer_value % 256 == 0 and pointer.size == 1000
    part = pointer.view(100, 200)
    assert part.device_pointer_value == pointer.device_pointer_value + 100
    manager.reset()
    del pointer
    gc.collect()
    assert served() == {"numba": 1000}, "a view keeps the memory"
    del part
    gc.collect()
    assert served() == {}
    pointer = manager.memalloc(8)
    pointer.free()
    assert served() == {}
    with pytest.raises(MemoryError):
        manager.memalloc(1 << 62)
    with manager.defer_cleanup():
        assert gpumem.memory_report().as_dict()["deferred"]
    assert not gpumem.memory_report().as_dict()["deferred"]


def test_cupy(on_host, monkeypatch, busy):
    door = module("cupy", "cupy")
    import cupy.cuda

    class Stream(cupy.cuda.Stream):
        def __init__(self, stream):
            self.stream, self.ptr = stream, stream.handle

        def __del__(self):
            pass

    own = Stream(gpumem.stream())
    external = cupy.cuda.ExternalStream(own.ptr, 0)
    monkeypatch.setattr(cupy.cuda.device, "get_device_id", lambda: 0)
    theirs = cupy.cuda.Stream.from_external(FakeStream()) if hasattr(cupy.cuda.Stream, "from_external") else external
    for current in own, external, theirs, cupy.cuda.Stream.null:
        monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: current)
        before = sys.getrefcount(current)
        pointer = door.allocator(1000)
        assert sys.getrefcount(current) - before == (current is not external and current is not theirs)
        assert pointer.ptr % 256 == 0 and pointer.mem.size == 1000 and served() == {"cupy": 1000}
        more = pointer + 8
        del pointer
        assert served() == {"cupy": 1000}
        with pytest.raises(cupy.cuda.memory.OutOfMemoryError, match="allocated so far: 1,000"):
            door.allocator(1 << 62)
        del more
        assert served() == {} and sys.getrefcount(current) == before
        assert door.allocator(0).ptr == 0
    current = Stream(busy())
    address = door.allocator(1000).ptr
    assert door.allocator(1000).ptr == address


class FakeStream:
    """By CUDA's stream protocol."""

    def __init__(self, stream=None):
        self.stream = stream or gpumem.stream()

    def __cuda_stream__(self):
        return 0, self.stream.handle


def test_cuda_core(on_host, monkeypatch, busy):
    door = module("cuda_core", "cuda.core")
    # Without a driver, cuda.core has no buffers.
    given = []
    fake = types.SimpleNamespace(from_handle=lambda ptr, size, mr, stream: given.append((ptr, size, mr, stream)) or given[-1])
    monkeypatch.setattr(door, "Buffer", fake)
    resource, stream = door.MemoryResource(0), FakeStream()
    assert resource.is_device_accessible and not resource.is_host_accessible and resource.device_id == 0
    with pytest.raises(TypeError, match="stream"):
        resource.allocate(1000, stream=None)
    for named in stream, None:
        address, size, mr, on = resource.allocate(1000, stream=stream)
        assert address % 256 == 0 and size == 1000 and mr is resource and on is stream and served() == {"cuda.core": 1000}
        resource.deallocate(address, 1000, stream=named)
        assert served() == {}
        for wrong in address, address + 1, -5:
            with pytest.raises(ValueError, match="no memory of this resource"):
                resource.deallocate(wrong, 1000, stream=named)
        assert resource.allocate(0, stream=stream)[0] == 0
        resource.deallocate(0, 0, stream=named)
        with pytest.raises(MemoryError):
            resource.allocate(1 << 62, stream=stream)
    monkeypatch.setattr(fake, "from_handle", lambda ptr, size, mr, stream: int("not a stream of cuda.core"))
    with pytest.raises(ValueError, match="not a stream"):
        resource.allocate(1000, stream=stream)
    assert served() == {}, "there is no buffer that would give it back"
    monkeypatch.setattr(fake, "from_handle", lambda ptr, size, mr, stream: (ptr,))
    busy = FakeStream(busy())
    address = resource.allocate(1000, stream=busy)[0]
    resource.deallocate(address, 1000, stream=busy)
    assert resource.allocate(1000, stream=busy)[0] == address


def test_rmm(on_host, busy):
    door = module("rmm", "rmm.mr")
    resource = door.resource(0)
    address = resource.allocate(1000)
    assert address % 256 == 0 and served() == {"rmm": 1000}
    resource.deallocate(address, 1000)
    assert served() == {}
    with pytest.raises(MemoryError):
        resource.allocate(1 << 62)
    assert served() == {}
    from rmm.pylibrmm.stream import Stream

    busy = Stream(FakeStream(busy()))
    address = resource.allocate(1000, busy)
    resource.deallocate(address, 1000, busy)
    assert resource.allocate(1000, busy) == address
