"""Operations of several ranks: in one process, and under MPI's launcher."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import pygpumem as gpumem

HOST = gpumem.Device("host")


def ranks(count, **options):
    return gpumem.Communicator.all([HOST] * count, **options)


def uploaded(rank, values):
    return gpumem.to_device(np.array(values), stream=rank.stream)


def test_reductions_are_those_of_numpy():
    names = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
    for op, function in names.items():
        for dtype in ["i4", "u8", "f2", "f4", "f8"]:
            values = [np.arange(6, dtype=dtype).reshape(2, 3) + rank for rank in range(3)]
            arrays = []
            for rank, own in zip(ranks(3), values):
                source = uploaded(rank, own)
                into = gpumem.device_array_like(source, stream=rank.stream)
                rank.all_reduce(source, into, op)
                rank.all_reduce(source, op=op)
                arrays.append((source, into))
            for source, into in arrays:
                np.testing.assert_array_equal(into.copy_to_host(), function.reduce(values))
                np.testing.assert_array_equal(source.copy_to_host(), function.reduce(values))
    averages = []
    for rank in ranks(2):
        averages.append(uploaded(rank, [2.0 * rank.rank + 1j]))
        rank.all_reduce(averages[-1], op="avg")
    assert averages[1].copy_to_host()[0] == 1 + 1j


def test_reductions_refuse_what_is_no_number():
    record = np.dtype([("id", "u1"), ("mass", "f4")])
    dates = np.array(["NaT", "2026-01-01"], "M8[D]")
    for rank in ranks(2, timeout=2):
        records = uploaded(rank, np.ones(2, record))
        # The masses are not aligned.
        for array in (np.ones(2, record), records, records["mass"], np.array([b"ab", b"c"]), dates):
            for op in ("sum", "max"):
                with pytest.raises(TypeError, match="not defined"):
                    rank.all_reduce(array, op=op)
                with pytest.raises(TypeError, match="not defined"), rank.group() as group:
                    group.reduce(array, op=op, root=1 - rank.rank)
        np.testing.assert_array_equal(records.copy_to_host(), np.ones(2, record))


def test_operations_convert_no_elements():
    pairs = [("M8[s]", "M8[D]"), ("m8[s]", "i8"), ([("a", "i4"), ("b", "f4")], [("a", "f4"), ("b", "i4")])]
    for rank in ranks(2, timeout=2):
        for source, into in pairs:
            with pytest.raises(TypeError, match="is needed"):
                rank.all_gather(uploaded(rank, np.ones(2, source)), uploaded(rank, np.zeros(4, into)))
            with pytest.raises(TypeError, match="is needed"):
                rank.all_to_all(np.ones(2, source), np.zeros(2, into))


def test_ranks_agree_on_the_elements():
    record = [("a", "i4"), ("b", "f4")]
    pairs = [("M8[s]", "M8[D]"), ("m8[s]", "i8"), (record, [("a", "f4"), ("b", "i4")]), (record, "S8")]
    for pair in pairs:
        for first, second in (pair, pair[::-1]):
            one, other = ranks(2, timeout=20)
            arrays = [uploaded(rank, np.zeros(3, of)) for rank, of in ((one, first), (other, second))]
            one.broadcast(arrays[0])
            with pytest.raises(gpumem.GpuMemError, match="disagree"):
                other.broadcast(arrays[1])
                other.synchronize()
            with pytest.raises(gpumem.GpuMemError, match="disagree"):
                one.synchronize()
    one, other = ranks(2, timeout=20)
    arrays = [uploaded(one, np.array([(1, 2.5)], record)), uploaded(other, np.zeros(1, record))]
    one.broadcast(arrays[0])
    other.broadcast(arrays[1])
    assert arrays[1].copy_to_host()[0].item() == (1, 2.5)


def test_arrays_are_moved():
    kept = []
    record = np.dtype([("id", "i4"), ("mass", "f8")])
    for rank in ranks(2):
        own = uploaded(rank, np.array([(rank.rank, 0.5)], dtype=record))
        every = gpumem.to_device(np.zeros(2, dtype=record), stream=rank.stream)
        rank.all_gather(own, every)
        table = uploaded(rank, np.arange(8).reshape(4, 2) + 10 * rank.rank)
        turned = gpumem.device_array_like(table, stream=rank.stream)
        rank.all_to_all(table, turned)
        block = uploaded(rank, np.zeros((2, 2), dtype=int))
        rank.reduce_scatter(table, block)
        part = uploaded(rank, np.zeros((2, 2), dtype=int))
        rank.scatter(table if rank.rank == 1 else None, part, root=1)
        gathered = uploaded(rank, np.zeros((4, 2), dtype=int)) if rank.rank == 0 else None
        rank.gather(part, gathered)
        rank.broadcast(own, root=1)
        total = uploaded(rank, [0]) if rank.rank == 1 else None
        rank.reduce(uploaded(rank, [rank.rank + 1]), total, root=1)
        rank.barrier()
        kept.append((own, every, turned, block, part, gathered, total))
    first, second = [tuple(None if each is None else each.copy_to_host() for each in of) for of in kept]
    assert first[0]["id"] == [1] and list(first[1]["id"]) == [0, 1]
    np.testing.assert_array_equal(first[2], [[0, 1], [2, 3], [10, 11], [12, 13]])
    np.testing.assert_array_equal(second[3], [[18, 20], [22, 24]])
    np.testing.assert_array_equal(first[4], [[10, 11], [12, 13]])
    np.testing.assert_array_equal(first[5], [[10, 11], [12, 13], [14, 15], [16, 17]])
    assert second[6] == [3]


def on_threads(all, call):
    """Calls on every rank, each on a thread of its own. Returns what they return."""
    results = [None] * len(all)

    def run(rank):
        try:
            results[rank.rank] = call(rank)
        except Exception as error:
            results[rank.rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in all]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return results


def test_arrays_of_the_host_hold_the_result():
    def call(rank):
        values = np.array([1.0, rank.rank])
        rank.all_reduce(values)
        columns = np.zeros((2, 6))[:, ::2]
        columns[:] = rank.rank
        rank.broadcast(columns, root=1)
        (rank.send if rank.rank == 0 else rank.receive)(values if rank.rank == 0 else columns[0, :2], 1 - rank.rank)
        half = rank.split(rank.rank, 0)
        return values.tolist(), columns.tolist(), (half.rank, half.size)

    first, second = on_threads(ranks(2), call)
    assert first[0] == second[0] == [2.0, 1.0]
    assert first[1] == [[1.0] * 3] * 2 and second[1] == [[2.0, 1.0, 1.0], [1.0] * 3]
    assert first[2] == second[2] == (0, 1)


def test_ranks_join_by_bytes():
    identity = gpumem.Communicator.unique_id(HOST)
    assert isinstance(identity, bytes)
    all = [gpumem.Communicator.join(identity, rank, 2, HOST) for rank in range(2)]
    sums = [uploaded(rank, [rank.rank + 1]) for rank in all]
    for rank, array in zip(all, sums):
        rank.all_reduce(array)
    assert sums[0].copy_to_host() == [3]
    with pytest.raises(ValueError):
        gpumem.Communicator.join(identity[1:], 0, 2, HOST)
    with pytest.raises(ValueError):
        gpumem.Communicator.join(identity, 2, 2, HOST)


def test_wrong_arguments_are_refused():
    rank = ranks(2)[0]
    array = uploaded(rank, [1.0, 2.0])
    with pytest.raises(ValueError, match="'sum'"):
        rank.all_reduce(array, op="xor")
    with pytest.raises(TypeError, match="reduction"):
        rank.all_reduce(uploaded(rank, [1, 2]), op="avg")
    with pytest.raises(TypeError, match="reduction"):
        rank.all_reduce(uploaded(rank, [True]))
    with pytest.raises(TypeError, match="is needed"):
        rank.all_reduce(array, uploaded(rank, [1, 2]))
    with pytest.raises(ValueError, match="share memory"):
        rank.all_reduce(array, array)
    with pytest.raises(ValueError, match="share memory"):
        rank.all_reduce(array[:1], array[:1])
    with pytest.raises(ValueError):
        rank.broadcast(array, root=2)
    with pytest.raises(ValueError):
        rank.all_reduce(array, uploaded(rank, [1.0]))
    rank.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        rank.barrier()
    rank.destroy()


def test_a_late_rank_is_an_error_and_python_runs_meanwhile():
    rank, silent = ranks(2, timeout=0.3)
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(time.monotonic())

    ticking = threading.Thread(target=tick)
    ticking.start()
    with pytest.raises(gpumem.GpuMemError, match=r"ranks \[1\] did not take part"):
        rank.all_reduce(np.array([1.0]))
    stop.set()
    ticking.join()
    assert len(ticks) > 5 and silent.rank == 1
    # The stream has not told it yet.
    with pytest.raises(gpumem.GpuMemError, match="did not take part"):
        rank.synchronize()


def test_a_rank_that_only_sends_is_told_that_no_rank_received():
    sender, _silent = ranks(2, timeout=0.3)
    with pytest.raises(gpumem.GpuMemError, match="did not take part"):
        sender.send(np.array([1.0]), 1)
    with pytest.raises(gpumem.GpuMemError, match="did not take part"):
        sender.synchronize()


def test_a_failure_of_other_work_hides_none_of_its_own():
    sender, _silent = ranks(2, timeout=0.3)

    def fail(x):
        raise ZeroDivisionError("work of others")

    kernel = gpumem.compile("GPUMEM_KERNEL fails(slice<float> x) {}", host=fail)
    kernel[1, 1, sender.stream](gpumem.to_device(np.ones(1, "f4"), device="host"))
    event = gpumem.event(device="host")
    event.record(sender.stream)
    with pytest.raises(gpumem.GpuMemError, match="work of others"):
        event.synchronize()
    with pytest.raises(gpumem.GpuMemError, match="did not take part"):
        sender.send(np.array([1.0]), 1)
    # The stream tells both.
    with pytest.raises(gpumem.GpuMemError, match="work of others.*did not take part"):
        sender.synchronize()


def test_a_rank_is_not_told_of_the_failures_of_other_threads():
    [alone] = ranks(1)

    def fail(x):
        raise ZeroDivisionError("work of another thread")

    kernel = gpumem.compile("GPUMEM_KERNEL fails(slice<float> x) {}", host=fail)
    # A few for each operation: it waits for those before it.
    turns, stop = threading.Semaphore(0), threading.Event()

    def enqueue():
        while turns.acquire() and not stop.is_set():
            kernel[1, 1, alone.stream](gpumem.device_array(1, "f4", device="host"))

    other = threading.Thread(target=enqueue)
    other.start()
    try:
        for value in range(300):
            result = np.zeros(1)
            turns.release(2)
            alone.all_reduce(np.array([value + 1.0]), result)
            assert result[0] == value + 1
    finally:
        stop.set()
        turns.release()
        other.join()
    with pytest.raises(gpumem.GpuMemError, match="work of another thread"):
        alone.synchronize()


def test_a_graph_records_no_call_with_an_array_of_the_host():
    rank, _silent = ranks(2, timeout=60)

    def body(stream, array):
        with pytest.raises(gpumem.GpuMemError, match="cannot record"):
            rank.all_reduce(np.ones(3), stream=stream)

    stream, array = gpumem.stream(device="host"), gpumem.to_device(np.ones(3), device="host")
    gpumem.record(body, array)[stream](array)
    # It would wait for the other rank.
    stream.synchronize()


@pytest.mark.parametrize(
    "call",
    [
        lambda rank: rank.broadcast(np.ones(4), root=0),
        lambda rank: rank.all_reduce(np.ones(0)),
        lambda rank: rank.receive(np.ones(0), 1),
        lambda rank: rank.scatter(np.ones(0), np.ones(0), root=0),
    ],
    ids=["broadcast", "all_reduce of none", "receive of none", "scatter of none"],
)
def test_a_rank_without_an_answer_is_told_whatever_it_gives(call):
    for in_group in False, True:
        rank, _silent = ranks(2, timeout=0.3)
        with pytest.raises(gpumem.GpuMemError, match="did not take part"):
            if in_group:
                with rank.group() as group:
                    call(group)
            else:
                call(rank)
        # The stream has not told it yet.
        with pytest.raises(gpumem.GpuMemError, match="did not take part"):
            rank.synchronize()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_waiting_is_interrupted_by_the_keyboard():
    code = """
    import signal
    import pygpumem as gpumem, numpy as np
    # Shells let programs in the background ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rank, silent = gpumem.Communicator.all([gpumem.Device("host")] * 2, timeout=20)
    array = gpumem.to_device(np.array([1.0]), stream=rank.stream)
    rank.all_reduce(array)
    print("waiting", flush=True)
    try:
        rank.stream.synchronize()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    rank.abort()
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "waiting\n"
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert child.wait(20) == 0


class Tensor:
    """An array of the host of another library."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_tensors_of_the_host_are_read_and_written():
    arrays = [np.arange(12.0).reshape(3, 4) for _ in range(2)]
    with gpumem.Communicator.group_all(ranks(2)) as groups:
        groups[0].all_reduce(Tensor(arrays[0][:, ::2]))
        groups[1].all_reduce(Tensor(arrays[1][:, 1::2]))
    sums = np.arange(12.0).reshape(3, 4)[:, ::2] * 2 + 1
    np.testing.assert_array_equal(arrays[0][:, ::2], sums)
    np.testing.assert_array_equal(arrays[1][:, 1::2], sums)
    fixed = np.ones(2)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="only be read"):
        ranks(1)[0].all_reduce(Tensor(fixed))
    assert (fixed == 1).all()


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("make", [lambda array: array, Tensor])
def test_arrays_of_the_host_are_free_after_an_interrupted_wait(make):
    first, second = ranks(2, timeout=20)
    array, other = np.ones(4), np.ones(4)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.5, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            first.all_reduce(make(array))
    finally:
        signal.signal(signal.SIGINT, before)
    # The operation goes on without its array, whose memory may be another's by now.
    array.resize(100_000, refcheck=False)
    second.all_reduce(make(other))
    first.synchronize()
    assert (other == 2).all() and (array[:4] == 1).all()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupted_split_ends_the_communicator():
    first, _second = ranks(2, timeout=20)
    array = gpumem.to_device(np.ones(4), stream=first.stream)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.5, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            first.split(0)
    finally:
        signal.signal(signal.SIGINT, before)
    # The split would be under way between this and what follows.
    with pytest.raises(gpumem.GpuMemError, match="abort"):
        first.all_reduce(array)


def launcher():
    library = os.environ.get("GPUMEM_MPI")
    if not library:
        pytest.skip("GPUMEM_MPI names no MPI")
    found = pathlib.Path(library).parent.parent / "bin" / "mpiexec"
    if not found.is_file():
        pytest.skip("no mpiexec beside the MPI that GPUMEM_MPI names")
    return str(found)


def test_processes_of_mpi_are_ranks():
    code = """
    import pygpumem as gpumem, numpy as np
    device = gpumem.Device("host")
    comm = gpumem.Communicator.from_environment(device, timeout=60, check=True)
    assert gpumem.Communicator.process()[:2] == (comm.rank, comm.size) == (comm.rank, 4)
    values = np.array([1.0, comm.rank])
    comm.all_reduce(values)
    assert values.tolist() == [4.0, 6.0], values
    array = gpumem.to_device(np.full((2, 3), comm.rank, dtype="f4"), stream=comm.stream)
    every = gpumem.device_array((8, 3), dtype="f4", stream=comm.stream)
    comm.all_gather(array, every)
    assert every.copy_to_host()[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    try:
        import torch
    except ImportError:
        pass
    else:
        tensor = torch.full((4,), float(comm.rank))
        comm.broadcast(tensor, root=2)
        assert tensor.tolist() == [2.0] * 4
    received = np.zeros(2)
    with comm.group() as group:
        group.send(np.full(2, comm.rank, dtype=float), (comm.rank + 1) % 4)
        group.receive(received, (comm.rank + 3) % 4)
    assert received.tolist() == [(comm.rank + 3) % 4] * 2, received
    part = comm.split(0 if comm.rank < 2 else None)
    assert (part is None) == (comm.rank >= 2)
    comm.destroy()
    print("done", flush=True)
    """
    command = [launcher(), "-n", "4", sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.count("done") == 4, done.stdout + done.stderr


def test_without_a_launcher_it_says_what_it_looked_for():
    code = "import pygpumem as gpumem; gpumem.Communicator.from_environment(gpumem.Device('host'))"
    names = ("RANK", "WORLD_SIZE", "OMPI_", "PMI", "SLURM_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert "ValueError" in done.stderr and "PMI_RANK" in done.stderr and "WORLD_SIZE" in done.stderr, done.stderr
