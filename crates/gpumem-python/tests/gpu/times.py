"""The cost of a call, compared with the same call of CuPy, in turns."""

import time

import pygpumem as gpumem
import numpy as np

ROUNDS, CALLS = 15, 2000


def cost(call):
    began = time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (time.perf_counter_ns() - began) / CALLS


def beside(ours, theirs):
    """Nanoseconds of a call, ours and theirs: medians of rounds in turns."""
    for call in (ours, theirs):
        cost(call)
    rounds = [(cost(ours), cost(theirs)) for _ in range(ROUNDS)]
    gpumem.synchronize()
    return tuple(float(np.median([each[side] for each in rounds])) for side in (0, 1))


def cases(device, say):
    import cupy

    class Holds:
        pass

    def row(name, ours, theirs, most=None):
        def run():
            mine, other = beside(ours, theirs)
            limit = "" if most is None else f", at most {most:.2f}"
            say("note", f"{name:<46}{mine:>9.0f} ns{other:>9.0f} ns{mine / other:>7.2f}{limit}")
            assert most is None or mine <= most * other, f"{mine:.0f} ns against {other:.0f} ns"

        return (f"time: {name}", run)

    f4, mine, other = np.float32, gpumem.to_device(np.zeros(1024, "f4")), cupy.zeros(1024, "f4")
    say("note", f"{'':<46}{'gpumem':>12}{'CuPy':>12}{'ratio':>7}")
    return [
        row("device_array(1024, float32) | empty", lambda: gpumem.device_array(1024, f4), lambda: cupy.empty(1024, f4), 1.0),
        row("device_array((32, 32), 'f4') | empty", lambda: gpumem.device_array((32, 32), "f4"), lambda: cupy.empty((32, 32), "f4"), 1.0),
        row("device_array(1 << 24) | empty", lambda: gpumem.device_array(1 << 24), lambda: cupy.empty(1 << 24), 1.0),
        row("device_array_like | empty_like", lambda: gpumem.device_array_like(mine), lambda: cupy.empty_like(other)),
        row("slice", lambda: mine[10:20], lambda: other[10:20]),
        row("fill", lambda: mine.__setitem__(Ellipsis, 1), lambda: other.fill(1)),
        row("__cuda_array_interface__", lambda: mine.__cuda_array_interface__, lambda: other.__cuda_array_interface__),
        row("DLPack out", lambda: mine.__dlpack__(stream=1, max_version=(1, 0)), lambda: other.__dlpack__()),
        row("DLPack in, from CuPy", lambda: gpumem.from_dlpack(other), lambda: cupy.from_dlpack(other)),
        row("interface in, from CuPy", lambda: gpumem.as_cuda_array(other), lambda: cupy.asarray(other)),
    ]
