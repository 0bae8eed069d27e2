"""What arrays, streams and processes do beside copies, on a device of any kind."""

import pickle
import subprocess
import sys

import pygpumem as gpumem
import numpy as np

NUMBERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
RECORD = np.dtype([("a", "i1"), ("b", "f8"), ("c", "f4", (3,))])


def conversions():
    for source in NUMBERS:
        host = (np.arange(24).reshape(2, 3, 4) * 1.25).astype(source)
        device = gpumem.to_device(host)
        for to in NUMBERS:
            if np.dtype(source).kind == "c" and np.dtype(to).kind not in "c?":
                continue  # NumPy warns, and so does the library
            expected = np.zeros((2, 3, 4), to)
            with np.errstate(all="ignore"):
                expected[::-1, :, ::-2] = host[:, ::2, :2][:, :1]
            array = gpumem.to_device(np.zeros((2, 3, 4), to))
            array[::-1, :, ::-2] = device[:, ::2, :2][:, :1]
            np.testing.assert_array_equal(array.copy_to_host(), expected, err_msg=f"{source} to {to}")


def roundings_to_half():
    """Halfway cases, and what lies beside them: a second rounding would tell."""
    halves = np.arange(0, 2048, dtype="f8") + 0.5
    host = np.concatenate([halves * step for step in (1, 1 + 2.0**-40, 1 - 2.0**-40)] + [[65519.999, 65520, 1e300, np.nan, -np.inf, 1e-8]])
    array = gpumem.device_array(host.shape, "f2")
    array[:] = gpumem.to_device(host)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(array.copy_to_host(), host.astype("f2"))


def records_and_dates():
    host = np.zeros(1000, RECORD)
    host["a"], host["b"], host["c"] = np.arange(1000) % 100, np.arange(1000), np.arange(3000).reshape(1000, 3)
    array = gpumem.to_device(host)
    for name in RECORD.names:
        np.testing.assert_array_equal(array[::-3][name].copy_to_host(), host[::-3][name])
    array["c"][:, 1] = 7
    array[5] = (1, 2, (3, 4, 5))
    host["c"][:, 1] = 7
    host[5] = (1, 2, (3, 4, 5))
    assert array.copy_to_host().tobytes() == host.tobytes() and array[5]["b"] == 2
    days = np.arange("2024-01-01", "2024-02-01", dtype="M8[D]")
    np.testing.assert_array_equal(gpumem.to_device(days)[::-1].copy_to_host(), days[::-1])
    odd = np.zeros(31, [("a", "i1"), ("b", "i8")])
    gpumem.to_device(days).view("i8").copy_to_host(odd["b"])
    np.testing.assert_array_equal(odd["b"], days.view("i8"))


def managed_and_mapped():
    for make in (gpumem.managed_array, gpumem.mapped_array):
        try:
            array = make((100, 7), "f4")
        except NotImplementedError:
            continue
        array[:] = 1
        array.device_view[::2] = 5
        gpumem.synchronize()
        assert np.asarray(array)[::2].sum() == 5 * 50 * 7 and np.asarray(array)[1::2].sum() == 50 * 7


def events_and_callbacks():
    stream, calls = gpumem.stream(), []
    start, end, array = gpumem.event(), gpumem.event(), gpumem.device_array(1 << 22, "f4")
    start.record(stream)
    for at in range(10):
        array.setitem(slice(None), at, stream)
        stream.add_callback(lambda *given: calls.append(given[1:]), at)
    end.record(stream)
    end.synchronize()
    assert 0 <= start.elapsed_time(end) < 10_000
    stream.synchronize()
    assert calls == [(0, at) for at in range(10)]


CHILD = """
import pickle, sys, pygpumem as gpumem
gpumem.select_device(sys.argv[1])
with pickle.loads(sys.stdin.buffer.read()) as array:
    print(array.copy_to_host().sum())
    array[:2] = 9
    gpumem.synchronize()
"""


def another_process():
    array = gpumem.ipc_array((10, 100), "f4")
    array[:] = 1
    part = array[::2]
    try:
        handle = part.get_ipc_handle()
    except NotImplementedError:
        return  # the host, and drivers that share nothing
    device = gpumem.get_current_device().name
    done = subprocess.run([sys.executable, "-c", CHILD, device], input=pickle.dumps(handle), capture_output=True, timeout=120)
    assert done.returncode == 0 and float(done.stdout) == 500, done
    assert array.copy_to_host().sum() == 1000 + 2 * 800


def cases():
    return [
        ("arrays: conversion", conversions),
        ("arrays: rounding to half", roundings_to_half),
        ("arrays: records and dates", records_and_dates),
        ("arrays: managed and mapped", managed_and_mapped),
        ("streams: events and callbacks", events_and_callbacks),
        ("processes: an array of another", another_process),
    ]
