"""Operations of several ranks: groups, uneven blocks, and arrays of other libraries."""

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
from test_communicator import HOST, launcher, on_threads, ranks, uploaded


def test_a_group_exchanges_columns_with_neighbours():
    """Views of one array that share no element may be sent and received in one group."""
    size, plates = 3, []
    for rank in ranks(size):
        plate = uploaded(rank, np.full((4, 5), rank.rank, dtype="f4"))
        with rank.group() as group:
            group.send(plate[:, 1], (rank.rank - 1) % size)
            group.receive(plate[:, 4], (rank.rank + 1) % size)
            group.send(plate[:, 3], (rank.rank + 1) % size)
            group.receive(plate[:, 0], (rank.rank - 1) % size)
        plates.append(plate)
    for rank, plate in enumerate(plates):
        left, right = (rank - 1) % size, (rank + 1) % size
        np.testing.assert_array_equal(plate.copy_to_host(), [[left, rank, rank, rank, right]] * 4)


def test_a_group_has_every_operation():
    kept = []
    for rank in ranks(2):
        own = uploaded(rank, [rank.rank + 1.0, 5.0])
        other = {name: uploaded(rank, np.zeros(shape)) for name, shape in [
            ("all", 2), ("every", 4), ("turned", 2), ("block", 1), ("gathered", 4), ("part", 1), ("total", 2)]}
        row = uploaded(rank, [10.0 + rank.rank])
        with rank.group(rank.stream) as group:
            group.all_reduce(own, other["all"], "max")
            group.all_gather(own, other["every"])
            group.all_to_all(own, other["turned"])
            group.reduce_scatter(own, other["block"])
            group.gather(own, other["gathered"] if rank.rank == 0 else None)
            group.scatter(own if rank.rank == 1 else None, other["part"], root=1)
            group.reduce(own, other["total"], "prod", root=0)
            group.broadcast(row, root=1)
            group.barrier()
        kept.append((own, row, other))
    for rank, (own, row, other) in enumerate(kept):
        found = {name: array.copy_to_host().tolist() for name, array in other.items()}
        assert found == {
            "all": [2.0, 5.0],
            "every": [1.0, 5.0, 2.0, 5.0],
            "turned": [[1.0, 2.0], [5.0, 5.0]][rank],
            "block": [[3.0], [10.0]][rank],
            "gathered": [[1.0, 5.0, 2.0, 5.0], [0.0] * 4][rank],
            "part": [[2.0], [5.0]][rank],
            "total": [[2.0, 25.0], [0.0, 0.0]][rank],
        }, rank
        assert row.copy_to_host().tolist() == [11.0]


def test_arrays_of_the_host_hold_the_result_after_the_group():
    def call(rank):
        other = 1 - rank.rank
        sent, received, values = np.full(3, rank.rank), np.zeros(3, dtype=int), np.array([1.0, rank.rank])
        with rank.group() as group:
            group.send(sent, other)
            group.receive(received, other)
            group.all_reduce(values)
            before = values.tolist()
        return before, received.tolist(), values.tolist()

    first, second = on_threads(ranks(2), call)
    assert first == ([1.0, 0.0], [1] * 3, [2.0, 1.0]) and second == ([1.0, 1.0], [0] * 3, [2.0, 1.0])


def test_nothing_of_a_group_takes_place_after_an_exception():
    rank = ranks(1)[0]
    array = uploaded(rank, [1.0, 2.0])
    into = uploaded(rank, [0.0, 0.0])
    with pytest.raises(KeyError, match="planted"):
        with rank.group() as group:
            group.all_reduce(array, into)
            raise KeyError("planted")
    assert into.copy_to_host().tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="group"):
        group.all_reduce(array)
    with pytest.raises(RuntimeError, match="group"):
        rank.group().barrier()
    with rank.group() as group:
        with pytest.raises(RuntimeError, match="begun"):
            group.__enter__()
        group.all_reduce(array, into)
        with pytest.raises(ValueError, match="share memory"):
            group.all_reduce(into)
        with pytest.raises(ValueError, match="share memory"):
            group.send(into[1:], 0)
        with pytest.raises(TypeError, match="reduction"):
            group.all_reduce(uploaded(rank, [True]))
    assert into.copy_to_host().tolist() == [1.0, 2.0]
    # An operation that does not fit ends the group, and none of the others takes place.
    with pytest.raises(ValueError):
        with rank.group() as group:
            group.broadcast(array, root=0)
            group.all_gather(array, uploaded(rank, [0.0]))
    rank.barrier()
    rank.synchronize()


def test_blocks_may_have_different_numbers_of_rows():
    # Rank `i` sends rank `j` so many rows.
    counts = [[0, 1, 2], [2, 0, 1], [1, 1, 1]]
    kept = []
    for rank in ranks(3):
        sent, received = counts[rank.rank], [row[rank.rank] for row in counts]
        source = uploaded(rank, np.arange(3)[:, None] * [1, 10] + 100 * rank.rank)
        destination = uploaded(rank, np.zeros((sum(received), 2), dtype=int))
        rank.all_to_all_v(source, sent, destination, np.array(received))
        with pytest.raises(ValueError):
            rank.all_to_all_v(source, [1, 1], destination, received)
        kept.append((source, destination))
    firsts = [destination.copy_to_host()[:, 0].tolist() for _, destination in kept]
    assert firsts == [[100, 101, 200], [0, 201], [1, 2, 102, 202]]


class LikeCuPy:
    """An array with the CUDA Array Interface alone."""

    def __init__(self, array, interface):
        self.array, self.__cuda_array_interface__ = array, interface


def test_arrays_with_the_cuda_array_interface_are_read_in_place():
    kept = []
    for rank in ranks(2):
        own = gpumem.to_device(np.array([1.0 + rank.rank, 2.0]), stream=rank.stream)
        own, into = LikeCuPy(own, own.__cuda_array_interface__), gpumem.device_array(4, stream=rank.stream)
        rank.all_gather(own, into)
        kept.append((rank, own, into))
    for rank, own, into in kept:
        rank.synchronize()
        assert into.copy_to_host().tolist() == [1.0, 2.0, 2.0, 2.0]
        # What comes back is read only, and memory that the host sees too is NumPy's.
        with pytest.raises(ValueError, match="read"):
            rank.all_reduce(own)
        host = np.zeros(4)
        gpumem.register(host, device=rank.device)
        with pytest.raises(ValueError, match="registered"):
            rank.all_reduce(LikeCuPy(host, {**host.__array_interface__, "version": 3}))
        gpumem.deregister(host)


def test_tensors_of_pytorch_are_read_and_written():
    torch = pytest.importorskip("torch")

    def call(rank):
        tensor = torch.arange(6.0).reshape(2, 3) + rank.rank
        rank.all_reduce(tensor)
        columns = torch.zeros(2, 6)[:, ::2]
        with rank.group() as group:
            group.broadcast(columns if rank.rank == 0 else tensor, root=1)
        turned = torch.zeros(2, 3, dtype=torch.float32)
        rank.all_to_all(tensor, turned)
        return tensor.tolist(), columns.tolist(), turned.tolist()

    first, second = on_threads(ranks(2), call)
    total = [[1.0, 3.0, 5.0], [7.0, 9.0, 11.0]]
    assert first == (total, total, [total[0]] * 2) and second == (total, [[0.0] * 3] * 2, [total[1]] * 2)


def maps(name):
    """The files of that name that this process has loaded."""
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    return {line.split()[-1] for line in lines if name in line}


@pytest.mark.skipif(sys.platform != "linux", reason="the list of loaded files is that of Linux")
@pytest.mark.parametrize("how", ["loaded", "package", "torch"])
def test_one_nccl_serves_the_process(how, tmp_path):
    """The copy that another library has loaded is used; without one, that of NVIDIA's package beside it."""
    named = os.environ.get("GPUMEM_NCCL")
    if how == "torch":
        torch = pytest.importorskip("torch")
        if not torch.version.cuda:
            pytest.skip("this PyTorch has no NCCL")
    elif not named:
        pytest.skip("GPUMEM_NCCL names no NCCL")
    code = """
    import ctypes, sys, pygpumem as gpumem
    from test_communicator_group import maps
    how, path = sys.argv[1:]
    if how == "torch":
        import torch
    elif how == "loaded":
        kept = ctypes.CDLL(path)
    else:
        sys.path.append(path)
    before = maps("libnccl.so")
    found, version = gpumem.Communicator.library()
    found = str(found.resolve())  # as the list names it
    assert maps("libnccl.so") == {found} and before == (set() if how == "package" else {found})
    assert version.startswith("2.")
    """
    path = named
    if how == "package":
        folder = tmp_path / "nvidia" / "nccl" / "lib"
        folder.mkdir(parents=True)
        os.symlink(named, folder / "libnccl.so.2")
        path = str(tmp_path)
    environment = {name: value for name, value in os.environ.items() if name not in ("GPUMEM_NCCL", "LD_LIBRARY_PATH")}
    environment["PYTHONPATH"] = os.pathsep.join([str(pathlib.Path(__file__).parent), environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", textwrap.dedent(code), how, path or ""]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_variables_of_torchrun_are_known():
    code = """
    import pygpumem as gpumem
    print(gpumem.Communicator.process())
    try:
        gpumem.Communicator.from_environment(gpumem.Device("host"))
    except NotImplementedError as error:
        print("mpiexec" in str(error))
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_", "PMI", "MPI_", "SLURM_")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    own = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, env=plain | own)
    assert done.stdout.split("\n")[:2] == ["(3, 4, 1)", "True"], done.stdout + done.stderr
    done = subprocess.run(command, capture_output=True, text=True, env=plain | own | {"RANK": "0", "WORLD_SIZE": "1"})
    assert done.returncode == 0 and done.stdout == "(0, 1, 1)\n", done.stdout + done.stderr


def test_a_thread_aborts_what_another_one_waits_for():
    rank, silent = ranks(2)
    array = uploaded(rank, [1.0])
    rank.all_reduce(array)
    threading.Timer(0.2, silent.abort).start()
    with pytest.raises(gpumem.GpuMemError, match="abort"):
        rank.synchronize()
    rank, silent = ranks(2)
    threading.Timer(0.2, rank.abort).start()
    with pytest.raises(gpumem.GpuMemError, match="abort"):
        rank.split(0)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_joining_is_interrupted_by_the_keyboard():
    """The other rank of MPI never joins."""
    code = """
    import os, signal, threading, time
    import pygpumem as gpumem
    if os.environ["PMI_RANK"] == "1":
        time.sleep(3)
        os._exit(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let programs in the background ignore it
    threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        gpumem.Communicator.from_environment(gpumem.Device("host"))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    """
    command = [launcher(), "-n", "2", sys.executable, "-c", textwrap.dedent(code)]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "interrupted" in done.stdout and time.monotonic() - began < 20, done.stdout + done.stderr


def test_one_thread_calls_the_operations_of_several_ranks_together():
    """Each rank sends before any of them receives."""
    all_ranks = ranks(3)
    own = [uploaded(rank, [float(rank.rank), 1.0]) for rank in all_ranks]
    left = [uploaded(rank, [-1.0, -1.0]) for rank in all_ranks]
    with gpumem.Communicator.group_all(all_ranks) as groups:
        assert len(groups) == 3
        for rank, group in enumerate(groups):
            group.send(own[rank], (rank + 1) % 3)
            group.receive(left[rank], (rank + 2) % 3)
    assert [array.copy_to_host()[0] for array in left] == [2.0, 0.0, 1.0]
    totals = [np.array([rank + 1.0]) for rank in range(3)]
    with gpumem.Communicator.group_all(all_ranks) as groups:
        for group, total in zip(groups, totals):
            group.all_reduce(total)
    assert [total.tolist() for total in totals] == [[6.0]] * 3


def test_a_good_result_reaches_its_array_beside_one_that_fails():
    waiting, _silent = ranks(2, timeout=0.3)
    [alone] = ranks(1)
    own, result, missing = np.ones(2), np.zeros(2), np.full(2, 7.0)
    with pytest.raises(gpumem.GpuMemError, match="did not take part"):
        with gpumem.Communicator.group_all([waiting, alone]) as groups:
            groups[0].receive(missing, 1)
            groups[1].all_reduce(own, result)
    assert (result.tolist(), missing.tolist()) == ([1.0, 1.0], [7.0, 7.0])
    with pytest.raises(gpumem.GpuMemError, match="did not take part"):
        waiting.synchronize()


def test_ranks_of_one_thread_do_not_write_each_others_arrays():
    first, second = ranks(2)
    array = uploaded(first, [1.0, 2.0])
    with pytest.raises(ValueError):
        with gpumem.Communicator.group_all([first, second]) as groups:
            for group in groups:
                group.all_reduce(array)
    assert array.copy_to_host().tolist() == [1.0, 2.0]
    groups = gpumem.Communicator.group_all([first, first])
    with pytest.raises(KeyError, match="planted"):
        with groups as (one, other):
            one.all_reduce(array)
            raise KeyError("planted")
    with groups:  # nothing of it is left
        pass
    with pytest.raises(RuntimeError, match="before the others"):
        with groups as (one, other):
            one.__exit__(None, None, None)
