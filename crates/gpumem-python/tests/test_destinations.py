"""What cannot be a destination is refused by the call that gets it: nothing was launched, and no other rank is waited for."""

import inspect

import pygpumem as gpumem
import numpy as np
import pytest

HOST = gpumem.Device("host")
RECORD = np.dtype([("id", "i4"), ("mass", "f8")])


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


def read_only(array):
    array.flags.writeable = False
    return array


# Of four elements, with what the error says.
NO_DESTINATIONS = {
    "a list": (lambda: [1.0, 2.0, 3.0, 4.0], TypeError, "NumPy array"),
    "a number": (lambda: 3.0, TypeError, "NumPy array"),
    "bytes": (lambda: b"1234", TypeError, "NumPy array"),
    "read-only": (lambda: read_only(np.zeros(4, "f4")), ValueError, "read"),
    "read-only records": (lambda: read_only(np.zeros(4, RECORD)), ValueError, "read"),
    "read-only dates": (lambda: read_only(np.zeros(4, "M8[s]")), ValueError, "read"),
    "broadcast": (lambda: np.broadcast_to(np.float32(1), 4), ValueError, "read"),
    "overlapping": (lambda: np.lib.stride_tricks.as_strided(np.zeros(4, "f4"), (4,), (0,)), ValueError, "read|share"),
    "overlapping records": (lambda: np.lib.stride_tricks.as_strided(np.zeros(4, RECORD), (4,), (0,)), ValueError, "share"),
    "a broadcast view": (lambda: gpumem.to_device(np.zeros(1, "f4")).broadcast_to((4,)), ValueError, "read"),
    "own memory that came back": (lambda: gpumem.from_dlpack(gpumem.to_device(np.zeros(4, "f4"))), ValueError, "read"),
}  # fmt: skip
wrong = pytest.mark.parametrize("wrong", NO_DESTINATIONS.values(), ids=NO_DESTINATIONS)


def source(destination, length=4):
    """Of the same type, so that only the destination is wrong."""
    dtype = getattr(destination, "dtype", np.dtype("f4"))
    return gpumem.to_device(np.zeros(length, dtype)) if length else None


# Operations of one rank of two, by the arrays of that rank; `on` is a communicator or a group.
OPERATIONS = {
    "all_reduce": lambda on, array: (on.all_reduce(array), on.all_reduce(source(array), array)),
    "reduce": lambda on, array: on.reduce(source(array), array),
    "broadcast": lambda on, array: on.broadcast(array, root=1),
    "all_gather": lambda on, array: on.all_gather(source(array, 2), array),
    "all_to_all": lambda on, array: on.all_to_all(source(array), array),
    "all_to_all_v": lambda on, array: on.all_to_all_v(source(array), [2, 2], array, [2, 2]),
    "reduce_scatter": lambda on, array: on.reduce_scatter(source(array, 8), array),
    "gather": lambda on, array: on.gather(source(array, 2), array),
    "scatter": lambda on, array: on.scatter(source(array, 8), array),
    "receive": lambda on, array: on.receive(array, 1),
}


def writes(kind):
    """The operations that write an array."""
    methods = {name: method for name, method in vars(kind).items() if not name.startswith("_") and callable(method)}
    takes = {name: inspect.signature(method).parameters for name, method in methods.items()}
    return {name for name, parameters in takes.items() if {"destination", "array"} & set(parameters)} - {"send"}


@pytest.mark.parametrize("kind", [gpumem.Communicator, gpumem.Group])
def test_all_operations_are_tried(kind):
    assert set(OPERATIONS) == writes(kind)


@wrong
def test_operations_refuse_it_before_others_take_part(wrong):
    make, error, says = wrong
    ranks = gpumem.Communicator.all([HOST] * 2, timeout=20)
    for name, operation in OPERATIONS.items():
        with pytest.raises(error, match=says):
            operation(ranks[0], make())
        with pytest.raises(error, match=says), ranks[0].group() as group:
            operation(group, make())
    # The other rank has called nothing, and the next operation of both is the first one.
    arrays = [gpumem.to_device(np.full(4, 1.0 + rank.rank), stream=rank.stream) for rank in ranks]
    for rank, array in zip(ranks, arrays):
        rank.all_reduce(array)
    for rank, array in zip(ranks, arrays):
        rank.synchronize()
        assert array.copy_to_host().tolist() == [3.0] * 4


@wrong
def test_launches_refuse_it_before_the_kernel_runs(wrong):
    ran = []
    kernel = gpumem.compile("GPUMEM_KERNEL writes(slice<float> y) { }", host=ran.append)
    make, error, says = wrong
    with pytest.raises(error, match=says):
        kernel[1, 1](make())
    gpumem.synchronize()
    assert not ran


@wrong
def test_copies_refuse_it(wrong):
    make, error, says = wrong
    array = make()
    if isinstance(array, gpumem.DeviceNDArray):
        with pytest.raises(error, match=says):
            array.copy_to_device(source(array))
        return
    with pytest.raises(error, match="read|share|NumPy"):
        source(array).copy_to_host(array)


def test_the_source_of_an_operation_can_be_anything_that_is_read():
    (rank,) = gpumem.Communicator.all([HOST])
    into = np.zeros(4)
    for array in ([1.0, 2.0, 3.0, 4.0], read_only(np.arange(1.0, 5.0))):
        rank.all_gather(array, into)
        assert into.tolist() == [1, 2, 3, 4]
        into[:] = 0


@pytest.mark.parametrize("size", [1, 2])
def test_a_rank_sends_nothing_to_itself_alone(size):
    ranks = gpumem.Communicator.all([HOST] * size, timeout=20)
    mine, theirs = [gpumem.to_device(np.full(4, value), stream=ranks[0].stream) for value in (1.0, 0.0)]
    for call in (lambda: ranks[0].send(mine, 0), lambda: ranks[0].receive(theirs, 0)):
        with pytest.raises(ValueError, match="itself only in the same group"):
            call()
    with ranks[0].group() as group:
        group.send(mine, 0)
        group.receive(theirs, 0)
    ranks[0].synchronize()
    assert theirs.copy_to_host().tolist() == [1] * 4


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -float("inf"), -1.0, -1e-9, 1e300])
def test_a_timeout_is_a_number_of_seconds(seconds):
    identity = gpumem.Communicator.unique_id(HOST)
    for make in (
        lambda: gpumem.Communicator.all([HOST], timeout=seconds),
        lambda: gpumem.Communicator.join(identity, 0, 1, HOST, timeout=seconds),
        lambda: gpumem.Communicator.from_environment(HOST, timeout=seconds),
    ):
        with pytest.raises(ValueError, match="no number of seconds"):
            make()
