"""Interrupts, as by Ctrl-C, in bodies of kernels that the main thread runs while it waits for them."""

import contextlib
import os
import signal
import threading

import pygpumem as gpumem
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")
    # Shells let programs in the background ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
    # The fault may not be told yet.
    with contextlib.suppress(gpumem.GpuMemError):
        gpumem.synchronize()


class Interrupted:
    """A body: on the main thread it gets the signal, which ends it."""

    def __init__(self):
        self.begun, self.ended = 0, 0

    def __call__(self, *arguments):
        if threading.current_thread() is not threading.main_thread():
            return
        self.begun += 1
        signal.raise_signal(signal.SIGINT)
        self.ended += 1


def is_interrupted(enqueue, wait):
    """Whether the main thread is interrupted in a wait, or as soon as it is over."""
    try:
        try:
            enqueue()
            wait()
        except gpumem.GpuMemError:
            pass
        for _ in range(1000):
            pass
    except KeyboardInterrupt:
        return True
    return False


def launch(code, array):
    kernel = gpumem.compile("GPUMEM_KERNEL k(slice<float> x) { }", host=code)
    return lambda: kernel[1, 1](array)


def graph(code, array):
    kernel = gpumem.compile("GPUMEM_KERNEL k(slice<float> x) { }", host=code)
    recorded = gpumem.record(lambda stream, x: kernel[1, 1, stream](x), array)
    return lambda: recorded(array)


@pytest.mark.parametrize("of", [launch, graph])
@pytest.mark.parametrize("waits", ["for the device", "for the array"])
def test_an_interrupt_in_the_body_of_a_kernel_reaches_the_program(of, waits):
    code, array = Interrupted(), gpumem.to_device(np.zeros(4, "f4"))
    enqueue, wait = of(code, array), gpumem.synchronize if waits == "for the device" else array.copy_to_host
    # Mostly the main thread runs it, and sometimes one of the library's is faster.
    for _ in range(1000):
        found = is_interrupted(enqueue, wait)
        assert found == (code.begun > 0)
        if found:
            break
    assert (code.begun, code.ended) == (1, 0)


def test_other_exceptions_are_no_interrupts():
    def fails(x):
        raise ValueError("of the body")

    array = gpumem.to_device(np.zeros(4, "f4"))
    for _ in range(20):
        assert not is_interrupted(launch(fails, array), gpumem.synchronize)
