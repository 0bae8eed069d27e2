"""What must hold between gpumem and a peer: every case is a function of the peer's words."""

import contextlib
import gc
import time

import pygpumem as gpumem
import numpy as np

from data import LAYOUTS, TYPES, cube, driver, view
from peers import Ends

LATE = 30.0  # milliseconds by which a stream is late: a thousand times what a copy takes
LONG = 1 << 16


class Refused(Exception):
    """What a library cannot represent: an error of its own or ours with a type, and nothing worse."""


def junk(shape, dtype):
    """Whatever has been freed by mistake is overwritten by these."""
    return [gpumem.to_device(np.zeros(shape, dtype)) for _ in range(4)]


def same(found, expected, what=""):
    assert found.shape == expected.shape, f"{what}: the shape is {found.shape}, not {expected.shape}"
    assert found.dtype == expected.dtype, f"{what}: the type is {found.dtype}, not {expected.dtype}"
    np.testing.assert_array_equal(found, expected, err_msg=what)


@contextlib.contextmanager
def refusal(peer, direction, route, dtype, layout):
    """What a library cannot represent may be refused, by an error with a type; nothing else may."""
    try:
        why = peer.refuses(direction, route, dtype, layout)
    except Ends as ends:
        raise Refused(str(ends)) from None
    if why is None:
        yield
        return
    try:
        yield
    except (TypeError, ValueError, BufferError, RuntimeError, NotImplementedError) as error:
        raise Refused(f"{why} ({type(error).__name__})") from error
    except Exception as error:
        raise AssertionError(f"refused, but by {type(error).__name__}: {error}") from error


def written_by_both(peer, ours, theirs, shape, dtype):
    """Each side writes, and the other reads that. Returns what is there at the end."""
    ours[...] = 0
    gpumem.synchronize()
    same(peer.numpy(theirs), np.zeros(shape, dtype), "they read what we wrote")
    peer.write(theirs, 1)
    peer.settle()
    expected = np.ones(shape, dtype)
    same(ours.copy_to_host(), expected, "we read what they wrote")
    return expected


# ---- round trips -------------------------------------------------------------------------------------------------------


def ours_to_them(peer, route, dtype, layout):
    expected = np.ascontiguousarray(view(cube(dtype), layout)) if layout != "0-d" else view(cube(dtype), layout)
    base = gpumem.to_device(cube(dtype))
    ours = view(base, layout)
    with refusal(peer, "ours", route, dtype, layout):
        theirs = peer.take(route, ours)
    same(peer.numpy(theirs), expected, "they read")
    peer.settle()
    if route != "argument" and expected.size:
        where = ours.__cuda_array_interface__["data"][0] if peer.routes != ("dlpack",) else None
        shared = where is None or peer.address(theirs) == where
        assert shared or peer.copies, "the memory is not the same"
    if expected.size and layout != "broadcast" and not peer.copies:
        expected = written_by_both(peer, ours, theirs, expected.shape, expected.dtype)
    del base, ours
    gc.collect()
    kept = junk((2, 3, 4), dtype)
    gpumem.synchronize()
    if route != "argument" or layout == "C":
        same(peer.numpy(theirs), expected, "our names dropped first")
    del theirs, kept
    gc.collect()


def theirs_to_us(peer, route, dtype, layout):
    base = peer.make(cube(dtype))
    expected = view(cube(dtype), layout)
    with refusal(peer, "theirs", route, dtype, layout):
        theirs = peer.view(base, layout)
        peer.settle()
        ours = peer.give(route, theirs)
    same(ours.copy_to_host(), expected, "we read")
    assert not expected.size or ours.__cuda_array_interface__["data"][0] == peer.address(theirs), "it is a copy"
    if expected.size and ours.flags["WRITEABLE"] and not peer.copies:
        expected = written_by_both(peer, ours, theirs, expected.shape, expected.dtype)
    del base, theirs
    gc.collect()
    kept = [peer.make(np.ones((2, 3, 4), cube(dtype).dtype)) for _ in range(4)]
    peer.settle()
    same(ours.copy_to_host(), expected, "their names dropped first")
    part = ours[:1] if ours.ndim else ours
    expected = expected[:1] if ours.ndim else expected
    del ours
    gc.collect()
    same(part.copy_to_host(), expected, "a view of gpumem keeps the peer's memory")
    del part, kept


# ---- read-only ---------------------------------------------------------------------------------------------------------


class ReadOnly:
    """Their array, under a descriptor that forbids writing."""

    def __init__(self, theirs):
        self.theirs = theirs
        says = dict(theirs.__cuda_array_interface__)
        says["data"] = (says["data"][0], True)
        self.__cuda_array_interface__ = says


def read_only_of_theirs(peer, route):
    if route != "cai" or not hasattr(peer.make(cube("f4")), "__cuda_array_interface__"):
        raise Refused(f"{type(peer).__name__} has no read-only arrays by {route}")
    theirs = ReadOnly(peer.make(cube("f4")))
    # The driver's copy of ordinary memory may return before the last of it is on the device, and no stream is named.
    peer.settle()
    ours = gpumem.as_cuda_array(theirs)
    assert not ours.flags["WRITEABLE"]
    for write in (lambda: ours.copy_to_device(cube("f4")), lambda: ours.__setitem__(0, 1)):
        try:
            write()
        except ValueError as error:
            assert "read" in str(error)
        else:
            raise AssertionError("read-only memory was written")
    assert ours[0].__cuda_array_interface__["data"][1], "a view forgets it"
    same(ours.copy_to_host(), cube("f4"))


def read_only_of_ours(peer, route):
    wide = gpumem.to_device(cube("f4"))[0, 0].broadcast_to((3, 4))
    assert not wide.flags["WRITEABLE"] and wide.__cuda_array_interface__["data"][1]
    try:
        wide.__dlpack__(stream=1)
    except BufferError:
        pass
    else:
        raise AssertionError("the older form of DLPack cannot say read-only")
    assert "versioned" in repr(wide.__dlpack__(stream=1, max_version=(1, 0)))


# ---- order: the work of one side is late ---------------------------------------------------------------------------------


class Without:
    """An array whose export leaves out the wait, on purpose."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, stream=None, **options):
        return self.array.__dlpack__(stream=-1, **options)


OLD, NEW = 1.0, 2.0


def pair():
    array, fresh = (gpumem.to_device(np.full(LONG, value, "f4")) for value in (OLD, NEW))
    gpumem.synchronize()
    return array, fresh


def only(found, value, what):
    values = sorted(set(np.unique(found).tolist()))
    assert values == [value], f"{what}: {values}, and not {value}"


def planted(case):
    """A missing wait must be seen with one of a few pairs of streams: two of them may share a queue of the device."""

    def run(peer):
        kept = []
        for _ in range(8):
            kept += [gpumem.stream(), peer.stream() if peer.streams else None]
            if OLD in case(peer, "dlpack", wait=False):
                return
        raise AssertionError("a missing wait is not seen: the delay makes nothing visible")

    return run


def our_late_work(peer, route, wait=True):
    """We write late; they read at once."""
    (array, fresh), late = pair(), gpumem.stream()
    stream = peer.stream() if peer.streams else None
    with peer.on(stream) if stream else contextlib.nullcontext():
        # Of another array: one that was lent once may make gpumem wait for the whole device.
        warm = peer.copy(peer.take(route, pair()[1]))
        peer.settle()
        driver().delay(late.handle, LATE)
        array.copy_to_device(fresh, stream=late)
        began = time.perf_counter()
        theirs = peer.take(route, array if wait else Without(array))
        copy = peer.copy(theirs)
        took = (time.perf_counter() - began) * 1e3
        found = peer.numpy(copy)
    peer.settle()
    gpumem.synchronize()
    del warm
    if not wait:
        return found
    only(found, NEW, "they read")
    if route == "dlpack" and peer.streams:
        assert took < LATE / 2, f"the host was blocked for {took:.1f} ms"


def their_late_work(peer, route, wait=True):
    """They write late; we read at once, on another stream."""
    theirs, stream, ours_on = peer.make(np.full(LONG, OLD, "f4")), peer.stream(), gpumem.stream()
    with peer.on(stream):
        peer.write(theirs, OLD)
        peer.settle()
        gpumem.to_device(peer.give(route, theirs), stream=ours_on).copy_to_host()
        driver().delay(peer.handle(stream), LATE)
        peer.write(theirs, NEW)
        began = time.perf_counter()
        given = theirs if wait else Without(theirs)
        if peer.__class__.__name__ == "Numba":
            given = theirs.bind(stream)
        copy = gpumem.to_device(peer.give(route, given), stream=ours_on)
        took = (time.perf_counter() - began) * 1e3
    found = copy.copy_to_host()
    peer.settle()
    if not wait:
        return found
    only(found, NEW, "we read")
    assert took < LATE / 2, f"the host was blocked for {took:.1f} ms"


def their_late_use(peer, ends):
    """They write late what we have lent; we read at once, while the loan lasts or after it has ended."""
    array, stream, ours_on = pair()[0], peer.stream(), gpumem.stream()
    with peer.on(stream):
        theirs = peer.take("dlpack", array)
        peer.write(theirs, OLD)
        peer.settle()
        driver().delay(peer.handle(stream), LATE)
        peer.write(theirs, NEW)
        if ends:
            del theirs
            gc.collect()
    copy = gpumem.to_device(array, stream=ours_on)
    only(copy.copy_to_host(), NEW, "we read")
    peer.settle()


def their_late_read(peer):
    """They read late what we have lent; both names go, and our pool lends the memory again at once."""
    stream = peer.stream()
    with peer.on(stream):
        theirs = peer.take("dlpack", gpumem.to_device(np.full(LONG, OLD, "f4")))
        out = peer.copy(theirs)
        peer.settle()
        driver().delay(peer.handle(stream), LATE)
        out = peer.copy(theirs)
        where = peer.address(theirs)
        del theirs
        gc.collect()
    again = [gpumem.device_array(LONG, "f4") for _ in range(4)]
    for array in again:
        array[...] = NEW
    gpumem.synchronize()
    reused = any(array.__cuda_array_interface__["data"][0] == where for array in again)
    peer.settle()
    only(peer.numpy(out), OLD, "they read" + (" (the memory was lent again)" if reused else ""))


def our_late_read(peer, route):
    """We read late what we have taken in; both names go, and their pool lends the memory again at once."""
    theirs = peer.make(np.full(LONG, OLD, "f4"))
    peer.settle()
    ours, late = peer.give(route, theirs), gpumem.stream()
    gpumem.to_device(ours, stream=late).copy_to_host()
    driver().delay(late.handle, LATE)
    copy = gpumem.to_device(ours, stream=late)
    del ours, theirs
    gc.collect()
    again = [peer.make(np.full(LONG, NEW, "f4")) for _ in range(4)]
    peer.settle()
    only(copy.copy_to_host(), OLD, "we read")
    del again


def both_streams(peer):
    """A chain over both sides, each on a stream of its own, with every link late."""
    array, ours_on, stream = pair()[0], gpumem.stream(), peer.stream()
    two = gpumem.to_device(np.full(LONG, NEW, "f4"))
    gpumem.synchronize()
    driver().delay(ours_on.handle, LATE)
    array.copy_to_device(two, stream=ours_on)
    with peer.on(stream):
        theirs = peer.take("dlpack", array)
        driver().delay(peer.handle(stream), LATE)
        copy = peer.copy(theirs)  # 2, if it has waited for us
        peer.write(theirs, 3.0)
        back = gpumem.from_dlpack(copy)
    third = gpumem.to_device(array, stream=ours_on)  # 3, if we have waited for them
    second = gpumem.to_device(back, stream=ours_on)
    only(third.copy_to_host(), 3.0, "what they wrote last")
    only(second.copy_to_host(), NEW, "what we wrote first")


# ---- all of them ---------------------------------------------------------------------------------------------------------


def cases(peer, device):
    """Pairs of a name and a function, for one peer."""
    on_gpu = device != "host"
    found = []

    def add(name, function, *arguments):
        found.append((name, lambda: function(peer, *arguments)))

    if on_gpu and peer.streams:
        dlpack = "dlpack" in peer.routes
        if dlpack:
            add("late: planted, ours without a wait", planted(our_late_work))
            add("late: planted, theirs without a wait", planted(their_late_work))
        for route in peer.routes:
            if (type(peer).__name__, route) != ("Torch", "cai"):  # it reads no stream, and names none
                add(f"late: our work, {route}", our_late_work, route)
                if route != "argument":
                    add(f"late: their work, {route}", their_late_work, route)
            if route != "argument":
                add(f"late: our read, {route}", our_late_read, route)
        if dlpack:
            add("late: their use while they hold it", their_late_use, False)
            add("late: their use, given back", their_late_use, True)
            add("late: their read, memory lent again", their_late_read)
            add("late: a chain over both sides", both_streams)
    elif on_gpu:
        add("late: planted, ours without a wait", planted(our_late_work))
        add("late: our work, dlpack", our_late_work, "dlpack")
        add("late: our read, dlpack", our_late_read, "dlpack")
    for route in peer.routes if on_gpu else ():
        if route != "argument":
            add(f"read-only: theirs, {route}", read_only_of_theirs, route)
    if on_gpu:
        add("read-only: ours", read_only_of_ours, "dlpack")
    for layout in LAYOUTS:
        for dtype in TYPES:
            for route in peer.routes:
                add(f"take ours: {route}, {layout}, {dtype}", ours_to_them, route, dtype, layout)
                if route != "argument":
                    add(f"give theirs: {route}, {layout}, {dtype}", theirs_to_us, route, dtype, layout)
    return found
