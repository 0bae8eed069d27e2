"""Two devices of the host, so that something can belong to another device."""

import os

import pytest

os.environ.setdefault("GPUMEM_HOST_DEVICES", "2")


@pytest.fixture
def refused_in_a_callback():
    """Whether the library refuses a call in a callback, where no wait is allowed."""
    import pygpumem

    def refused(call):
        found, stream = [], pygpumem.stream()

        def callback(stream, status, arg):
            try:
                call()
            except pygpumem.GpuMemError as error:
                found.append(error)

        stream.add_callback(callback)
        stream.synchronize()
        return len(found) == 1

    return refused
