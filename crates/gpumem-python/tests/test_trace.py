"""Recordings of the use of memory, and what fits into a limit. On the device `GPUMEM_TEST_DEVICE`, or the host."""

import json
import os
import threading

import pygpumem as gpumem
import numpy as np
import pytest

DEVICE = os.environ.get("GPUMEM_TEST_DEVICE", "host")
MIB = 1 << 20


@pytest.fixture(autouse=True)
def device():
    gpumem.select_device(DEVICE)


def work():
    """Four arrays of 4 MiB, of which two live at a time."""
    before = None
    for _ in range(4):
        before = gpumem.device_array(MIB, "f4")
    assert before.size == MIB


@pytest.fixture
def path(tmp_path):
    with gpumem.record_memory(tmp_path / "run.json"):
        work()
    return tmp_path / "run.json"


def test_what_fits_into_a_limit(path):
    for limit, fits in (4 * MIB, False), (16 * MIB, True), (1 << 45, True):
        verdict = gpumem.simulate_memory(path, limit)
        assert verdict.fits == bool(verdict) == fits and verdict.limit == limit
        assert (verdict.failures == 0) == fits and ("does not fit" in str(verdict)) != fits
        assert verdict.peak_reserved <= limit and str(verdict) in repr(verdict)
        if fits:
            assert verdict.peak_used == 8 * MIB
    assert not gpumem.simulate_memory(str(path), 0)


def test_the_device_goes_on_as_before(path):
    array = gpumem.to_device(np.arange(5))
    for _ in range(100):  # more than a device can ever have pools
        assert gpumem.simulate_memory(path, 16 * MIB)
    np.testing.assert_array_equal(array.copy_to_host(), np.arange(5))
    work()


def test_files_for_viewers(tmp_path):
    with gpumem.record_memory(tmp_path / "run.perfetto.json", device=DEVICE, limit_bytes=MIB):
        work()
    assert json.loads((tmp_path / "run.perfetto.json").read_text())
    with pytest.raises(ValueError):
        gpumem.simulate_memory(tmp_path / "run.perfetto.json", MIB)


def test_what_was_recorded_before_an_exception_is_written(tmp_path):
    with pytest.raises(KeyError):
        with gpumem.record_memory(tmp_path / "run.json"):
            work()
            raise KeyError("in the body")
    assert gpumem.simulate_memory(tmp_path / "run.json", 16 * MIB).peak_used == 8 * MIB


def test_recordings_in_each_other(tmp_path):
    recording = gpumem.record_memory(tmp_path / "run.json")
    with pytest.raises(RuntimeError, match="not running"):
        recording.__exit__()
    with recording:
        for other in recording, gpumem.record_memory(tmp_path / "other.json"):
            with pytest.raises(ValueError, match="recorded already"):
                other.__enter__()
        with gpumem.record_memory(tmp_path / "second.json", device="host:1"):
            pass
        work()
    assert gpumem.simulate_memory(tmp_path / "run.json", 16 * MIB)
    with recording:  # a file that is there is replaced
        pass
    assert gpumem.simulate_memory(tmp_path / "run.json", 16 * MIB).peak_used == 0
    assert not (tmp_path / "other.json").exists() and (tmp_path / "second.json").exists()


def test_a_recording_that_is_dropped_ends(tmp_path):
    recording = gpumem.record_memory(tmp_path / "run.json")
    recording.__enter__()
    del recording
    with gpumem.record_memory(tmp_path / "run.json"):
        pass


def test_threads_end_a_recording_once(tmp_path):
    recording, ends = gpumem.record_memory(tmp_path / "run.json"), []

    def end():
        try:
            recording.__exit__()
            ends.append(True)
        except RuntimeError:
            ends.append(False)

    recording.__enter__()
    threads = [threading.Thread(target=end) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(ends) == [False] * 3 + [True]


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError):
        gpumem.simulate_memory(tmp_path / "run.json", MIB)
    with pytest.raises(FileNotFoundError):
        with gpumem.record_memory(tmp_path / "no folder" / "run.json"):
            work()
    for text in b"", b"{}", b"[" * 100_000, b'{"format": 99}', b"\xff\xfe", b'{"format": 1}':
        (tmp_path / "run.json").write_bytes(text)
        with pytest.raises(ValueError):
            gpumem.simulate_memory(tmp_path / "run.json", MIB)
    for wrong in -1, None, "1G":
        with pytest.raises((OverflowError, TypeError)):
            gpumem.simulate_memory(tmp_path / "run.json", wrong)


def test_a_recording_that_was_changed(path):
    recorded = json.loads(path.read_text())
    for change in (
        lambda all: all["events"].reverse(),
        lambda all: all["events"].append(all["events"][-1]),
        lambda all: all["allocations"].clear(),
        lambda all: all.pop("events"),
    ):
        changed = json.loads(json.dumps(recorded))
        change(changed)
        path.write_text(json.dumps(changed))
        with pytest.raises(ValueError):
            gpumem.simulate_memory(path, 16 * MIB)


def test_no_simulation_where_no_wait_is_allowed(path, refused_in_a_callback):
    assert refused_in_a_callback(lambda: gpumem.simulate_memory(path, MIB))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_leaves_the_file_alone(tmp_path):
    recording, refused = gpumem.record_memory(tmp_path / "run.json"), 0
    with recording:
        if (child := os.fork()) == 0:
            for use in recording.__exit__, recording.__enter__, gpumem.record_memory(tmp_path / "child.json").__enter__:
                try:
                    use()
                except gpumem.GpuMemError:
                    refused += 1
            os._exit(refused + recording.__exit__(SystemExit, SystemExit(), None))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        assert not (tmp_path / "run.json").exists()
        work()
    assert gpumem.simulate_memory(tmp_path / "run.json", 16 * MIB)
