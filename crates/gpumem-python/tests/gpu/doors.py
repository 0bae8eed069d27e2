"""``python3 tests/gpu/doors.py``: other libraries whose memory comes from gpumem's pool, each in a process of its own.

    python3 tests/gpu/doors.py [--only cupy,numba] [--timeout 120]

Ends with status 1 if anything failed. A library that is not there is named.
"""

import argparse
import gc
import os
import random
import subprocess
import sys
import threading
import time
import traceback

import numpy as np

MIB = 1 << 20


def served(library):
    import pygpumem

    gc.collect()
    pygpumem.get_current_device().flush()  # what waited for its last use
    return pygpumem.memory_report("cuda:0").as_dict()["served"].get(library, 0)


def most():
    """More than half of what is free: who asks twice has the same memory."""
    import pygpumem

    gc.collect()
    pygpumem.get_current_device().flush()
    return int(pygpumem.memory_report("cuda:0").as_dict()["free"] * 0.6) // MIB * MIB


# ---- CuPy -----------------------------------------------------------------------------------------------------------


class Cupy:
    def __init__(self):
        import cupy
        import pygpumem.cupy

        cupy.cuda.set_allocator(pygpumem.cupy.allocator)
        self.cupy, self.runtime = cupy, cupy.cuda.runtime

    def fill(self, array, value, stream):
        self.runtime.memsetAsync(array.data.ptr, value, array.nbytes, stream.ptr)

    def test_values(self):
        cupy = self.cupy
        for seed in range(300):
            choose = random.Random(seed)
            stream = cupy.cuda.Stream(non_blocking=choose.random() < 0.5) if choose.random() < 0.7 else cupy.cuda.Stream.null
            with stream:
                host = np.random.rand(choose.randrange(1, 300_000))
                array = cupy.asarray(host)
                np.testing.assert_allclose(cupy.asnumpy(array * 2 + array), 3 * host)
        del array
        assert served("cupy") == 0

    def test_its_stream_gets_memory_again_at_once(self):
        for stream in self.cupy.cuda.Stream.null, self.cupy.cuda.Stream(non_blocking=True):
            with stream:
                array = self.cupy.empty(3 * MIB, "u1")
                address = array.data.ptr
                del array
                assert self.cupy.empty(3 * MIB, "u1").data.ptr == address

    def test_other_streams_wait(self):
        cupy, nbytes = self.cupy, most()
        first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
        for ended in False, True:
            with first:
                array = cupy.empty(nbytes, "u1")
                address = array.data.ptr
                for _ in range(5):
                    self.fill(array, 5, first)
                del array
            if ended:
                first = None  # Its stream is destroyed while the work is under way.
            with second:
                again = cupy.empty(nbytes, "u1")
                assert again.data.ptr == address
                self.fill(again, 7, second)
                assert (cupy.asnumpy(again[:: nbytes // 1000]) == 7).all(), "written by the first stream later"
                del again
            self.runtime.deviceSynchronize()
            first = first or cupy.cuda.Stream(non_blocking=True)

    def test_external_streams(self):
        import warnings

        cupy, own, nbytes = self.cupy, self.cupy.cuda.Stream(non_blocking=True), most()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            external = cupy.cuda.ExternalStream(own.ptr)
        with external:
            array = cupy.empty(nbytes, "u1")
            for _ in range(5):
                self.fill(array, 5, own)
        del array
        del own  # before what it has left
        with cupy.cuda.Stream(non_blocking=True) as second:
            again = cupy.empty(nbytes, "u1")
            self.fill(again, 7, second)
            assert (cupy.asnumpy(again[:: nbytes // 1000]) == 7).all()

    def test_handles_that_come_again(self):
        cupy, handles = self.cupy, set()
        for count in range(3000):
            with cupy.cuda.Stream(non_blocking=True) as stream:
                array = cupy.empty(MIB, "u1")
                self.fill(array, count % 251, stream)
                handles.add(stream.ptr)
                if count % 10 == 0:
                    assert (cupy.asnumpy(array) == count % 251).all()
            del array, stream
        print(f"   {len(handles)} handles of 3000 streams")
        self.runtime.deviceSynchronize()

    def test_the_per_thread_stream(self):
        with self.cupy.cuda.Stream.ptds:
            assert (self.cupy.asnumpy(self.cupy.ones(1000)) == 1).all()

    def test_threads(self):
        failures = []

        def work(seed):
            try:
                with self.cupy.cuda.Stream(non_blocking=True) as stream:
                    for count in range(300):
                        array = self.cupy.empty(1 + (seed * 7919 + count * 104729) % (4 * MIB), "u1")
                        self.fill(array, seed, stream)
                        assert (self.cupy.asnumpy(array[:1000]) == seed).all()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert not failures, failures

    def test_exhaustion(self):
        for _ in range(2):
            try:
                self.cupy.empty(1 << 50, "u1")
            except self.cupy.cuda.memory.OutOfMemoryError as error:
                assert "Out of memory allocating" in str(error)
            else:
                raise AssertionError("there is no such memory")
            assert self.cupy.empty(10).data.ptr

    def test_a_capture(self):
        cupy, stream = self.cupy, self.cupy.cuda.Stream(non_blocking=True)
        with stream:
            array, other = cupy.zeros(MIB, "u1"), cupy.zeros(MIB, "u1")
            stream.synchronize()
            stream.begin_capture()
            self.fill(array, 3, stream)
            try:
                cupy.empty(MIB, "u1")
            except NotImplementedError as error:
                assert "captured" in str(error)
            else:
                raise AssertionError("a graph has memory that others get")
            del other  # An end while the stream is captured.
            graph = stream.end_capture()
            graph.launch()
            assert (cupy.asnumpy(array) == 3).all()

    def test_nothing(self):
        assert self.cupy.empty(0).size == 0 and self.cupy.empty((3, 0)).sum() == 0

    def test_use_by_gpumem(self):
        import pygpumem

        array = self.cupy.zeros(1000)
        pygpumem.as_cuda_array(array)[...] = 4
        pygpumem.synchronize()
        assert (self.cupy.asnumpy(array) == 4).all()

    def test_times(self):
        from cupy.cuda import memory

        pools = {"gpumem": memory.alloc, "CuPy": memory.MemoryPool().malloc}
        for stream in self.cupy.cuda.Stream.null, self.cupy.cuda.Stream(non_blocking=True):
            with stream:
                for name, allocate in pools.items():
                    for _ in range(2):
                        begin = time.perf_counter()
                        for _ in range(20_000):
                            allocate(4096)
                        each = (time.perf_counter() - begin) / 20_000
                    print(f"   {name}: {each * 1e9:.0f} ns for an allocation and its end, stream {stream.ptr:#x}")


# ---- Numba ----------------------------------------------------------------------------------------------------------


class Numba:
    def __init__(self):
        os.environ["NUMBA_CUDA_MEMORY_MANAGER"] = "pygpumem.numba"
        from numba import cuda

        self.cuda = cuda

        @cuda.jit
        def add(array, value):
            at = cuda.grid(1)
            if at < array.size:
                array[at] += value

        self.add = add

    def test_it_is_in_use(self):
        from pygpumem.numba import MemoryManager

        assert isinstance(self.cuda.current_context().memory_manager, MemoryManager)
        array = self.cuda.device_array(MIB, "u1")
        assert served("numba") == MIB
        part = array[10:]
        del array
        assert served("numba") == MIB
        del part
        assert served("numba") == 0

    def test_values(self):
        cuda = self.cuda
        streams = [0, cuda.stream(), cuda.stream(), cuda.default_stream()]
        kept = []
        for count in range(500):
            stream = random.Random(count).choice(streams)
            host = np.full(1 + count * 1009 % 200_000, count, "i4")
            array = cuda.to_device(host, stream=stream)
            self.add[(host.size + 255) // 256, 256, stream](array, 5)
            kept.append((array, stream, count))
            if len(kept) > 8:
                array, stream, value = kept.pop(0)
                result = array.copy_to_host(stream=stream)
                cuda.synchronize()
                assert (result == value + 5).all()
        kept.clear()
        del array
        assert served("numba") == 0

    def test_memory_that_is_in_use_is_not_given_out(self):
        cuda, nbytes = self.cuda, most()
        first, second = cuda.stream(), cuda.stream()
        array = cuda.device_array(nbytes, "u1")
        for _ in range(5):
            array.gpu_data.memset(5, stream=first)
        del array
        again = cuda.device_array(nbytes, "u1")
        again.gpu_data.memset(7, stream=second)
        cuda.synchronize()
        for at in range(0, nbytes - 1000, nbytes // 100):
            assert (again[at : at + 1000].copy_to_host() == 7).all()

    def test_exhaustion(self):
        for _ in range(2):
            try:
                self.cuda.device_array(1 << 50, "u1")
            except MemoryError:
                pass
            else:
                raise AssertionError("there is no such memory")
            self.cuda.device_array(10)

    def test_information_and_cleanup(self):
        info = self.cuda.current_context().get_memory_info()
        assert 0 < info.free <= info.total
        with self.cuda.defer_cleanup():
            self.cuda.device_array(1000)
        self.cuda.pinned_array(1000)
        self.cuda.mapped_array(1000)
        self.cuda.managed_array(1000)

    def test_other_processes(self):
        import multiprocessing

        array = self.cuda.to_device(np.arange(1000))
        context = multiprocessing.get_context("spawn")
        found = context.Queue()
        other = context.Process(target=open_in_another_process, args=(array.get_ipc_handle(), found))
        other.start()
        assert found.get(timeout=60) == 999 * 500
        other.join()

    def test_use_by_gpumem(self):
        import pygpumem

        array = self.cuda.to_device(np.zeros(1000))
        self.cuda.synchronize()
        pygpumem.as_cuda_array(array)[...] = 4
        pygpumem.synchronize()
        assert (array.copy_to_host() == 4).all()

    def test_cupy_beside_it(self):
        cupy = Cupy().cupy
        for count in range(500):
            array = cupy.full(1 + count * 1009 % 100_000, count, "i4")
            theirs = self.cuda.as_cuda_array(array)
            self.add[(array.size + 255) // 256, 256](theirs, 1)
            own = self.cuda.to_device(np.full(array.size, 2, "i4"))
            assert int((cupy.asarray(own) + array).sum()) == array.size * (count + 3)
        assert served("numba") > 0 and served("cupy") > 0


def open_in_another_process(handle, found):
    with handle as array:
        found.put(int(array.copy_to_host().sum()))


# ---- cuda.core ------------------------------------------------------------------------------------------------------


class CudaCore:
    def __init__(self):
        from cuda.core import Device
        from pygpumem.cuda_core import MemoryResource

        self.device = Device(0)
        self.device.set_current()
        self.resource = MemoryResource(self.device)

    def test_buffers(self):
        stream = self.device.create_stream()
        for end in (lambda buffer: buffer.close(), lambda buffer: buffer.close(stream), lambda buffer: None):
            buffer = self.resource.allocate(MIB, stream=stream)
            assert served("cuda.core") == MIB and buffer.size == MIB and buffer.memory_resource is self.resource
            assert buffer.is_device_accessible and not buffer.is_host_accessible and buffer.device_id == 0
            buffer.fill(7, stream=stream)
            end(buffer)
            del buffer
            assert served("cuda.core") == 0
        self.resource.allocate(0, stream=stream).close()
        buffer = self.resource.allocate(MIB, stream=self.device.default_stream)
        buffer.close()
        assert served("cuda.core") == 0

    def test_a_device_that_allocates_with_it(self):
        stream, before = self.device.create_stream(), self.device.memory_resource
        self.device.memory_resource = self.resource
        try:
            buffer = self.device.allocate(1000, stream=stream)
            assert served("cuda.core") == 1000
            buffer.close()
        finally:
            self.device.memory_resource = before

    def test_other_streams_wait(self):
        import pygpumem

        first, second, nbytes = self.device.create_stream(), self.device.create_stream(), most()
        buffer = self.resource.allocate(nbytes, stream=first)
        for _ in range(5):
            buffer.fill(5, stream=first)
        buffer.close()
        again = self.resource.allocate(nbytes, stream=second)
        again.fill(7, stream=second)
        second.sync()
        first.sync()
        bytes_there = pygpumem.from_dlpack(again, device="cuda:0")
        assert (bytes_there[:: nbytes // 1000].copy_to_host() == 7).all()

    def test_exhaustion_and_wrong_frees(self):
        stream = self.device.create_stream()
        for _ in range(2):
            try:
                self.resource.allocate(1 << 50, stream=stream)
            except MemoryError:
                pass
            else:
                raise AssertionError("there is no such memory")
            self.resource.allocate(10, stream=stream).close()
        try:
            self.resource.deallocate(12345, 10, stream=stream)
        except ValueError:
            pass
        else:
            raise AssertionError("there was no such memory")


# ---- RMM ------------------------------------------------------------------------------------------------------------


class Rmm:
    def __init__(self):
        import pygpumem.rmm
        import rmm

        self.rmm = rmm
        rmm.mr.set_current_device_resource(pygpumem.rmm.resource())

    def test_buffers(self):
        from rmm.pylibrmm.stream import Stream

        for stream in Stream(), Stream(), self.rmm.pylibrmm.stream.DEFAULT_STREAM:
            buffer = self.rmm.DeviceBuffer(size=MIB, stream=stream)
            assert served("rmm") == MIB
            del buffer
            assert served("rmm") == 0
            back = self.rmm.DeviceBuffer.to_device(b"x" * 1000, stream=stream)
            assert back.copy_to_host(stream=stream).tobytes() == b"x" * 1000
            buffer = self.rmm.DeviceBuffer(size=0, stream=stream)
            buffer.resize(1000)

    def test_exhaustion(self):
        for _ in range(2):
            try:
                self.rmm.DeviceBuffer(size=1 << 50)
            except MemoryError:
                pass
            else:
                raise AssertionError("there is no such memory")
            self.rmm.DeviceBuffer(size=10)


LIBRARIES = {"cupy": Cupy, "numba": Numba, "cuda.core": CudaCore, "rmm": Rmm}


def child(name):
    import pygpumem

    pygpumem.select_device("cuda:0")
    try:
        library = LIBRARIES[name]()
    except ImportError as error:
        print(f"{name}: absent: {error}")
        return 0
    failed = 0
    for test in [each for each in dir(library) if each.startswith("test_")]:
        try:
            getattr(library, test)()
            print(f"{name}: {test}: passed", flush=True)
        except BaseException:
            failed += 1
            print(f"{name}: {test}: FAILED\n{traceback.format_exc()}", flush=True)
    return min(failed, 1)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--only", default=",".join(LIBRARIES))
    options.add_argument("--timeout", type=float, default=120)
    options.add_argument("--child")
    options = options.parse_args()
    if options.child:
        return child(options.child)
    failed = []
    for name in options.only.split(","):
        try:
            done = subprocess.run([sys.executable, __file__, "--child", name], timeout=options.timeout)
            failed += [name] if done.returncode else []
        except subprocess.TimeoutExpired:
            failed.append(f"{name} (not done after {options.timeout} s)")
    print("failed: " + ", ".join(failed) if failed else "all passed")
    return min(len(failed), 1)


if __name__ == "__main__":
    sys.exit(main())
