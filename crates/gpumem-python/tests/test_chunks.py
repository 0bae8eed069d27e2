"""Arrays in pieces, against NumPy. On the device `GPUMEM_TEST_DEVICE`, or the host."""

import gc
import itertools
import os
import subprocess
import sys
import threading

import pygpumem as gpumem
import numpy as np
import pytest

DEVICE = os.environ.get("GPUMEM_TEST_DEVICE", "host")
RECORD = np.dtype([("x", "f4"), ("n", "u1")])


@pytest.fixture(autouse=True)
def device():
    gpumem.select_device(DEVICE)


def values(dtype="f4", shape=(10, 3)):
    return (np.arange(np.prod(shape, dtype=int)) % 100).astype(dtype).reshape(shape)


def records():
    array = np.zeros((7, 2), RECORD)
    array["x"], array["n"] = values("f4", (7, 2)), values("u1", (7, 2))
    return array


def packed():
    array = np.zeros(9, np.dtype([("n", "u1"), ("x", "f4")]))
    array["x"] = np.arange(9)
    return array["x"]


def doubles(x, y):
    np.multiply(x, 2, out=y)


DOUBLES = gpumem.compile(
    "using namespace gpumem; GPUMEM_KERNEL doubles(view<const float, 2> x, view<float, 2> y) {"
    " u64 i = global_id(0), j = global_id(1); if (i < y.extent(0) && j < y.extent(1)) y(i, j) = x(i, j) * 2; }",
    host=doubles,
)


def doubled(stream, rows, piece):
    made = gpumem.device_array_like(piece, stream=stream)
    DOUBLES[(4, 4), (8, 8), stream](piece, made)
    return made


# ---- pieces --------------------------------------------------------------------------------------------------------------

SOURCES = {
    **{char: lambda char=char: values(char) for char in "?bhilBHILefdFD"},
    "one axis": lambda: values(shape=(11,)),
    "three axes": lambda: values(shape=(5, 2, 3)),
    "of Fortran": lambda: np.asfortranarray(values()),
    "strided": lambda: values(shape=(20, 6))[::-2, 1::2],
    "broadcast": lambda: np.broadcast_to(values(shape=(3,)), (8, 3)),
    "records": records,
    "not aligned": packed,
    "texts": lambda: np.array(["a", "bc", "def", ""] * 3),
    "dates": lambda: np.arange("2026-01", "2026-12", dtype="M8[M]"),
    "records, broadcast": lambda: np.broadcast_to(records()[0], (5, 2)),
}


@pytest.mark.parametrize("halo", [0, 1, 100])
@pytest.mark.parametrize("name", SOURCES)
def test_pieces_have_the_rows(name, halo):
    array, at = SOURCES[name](), 0
    for rows, piece in gpumem.chunks(array, 4, halo=halo):
        assert rows == slice(at, min(at + 4, len(array)), 1)
        expected = array[max(rows.start - halo, 0) : rows.stop + halo]
        found = piece.copy_to_host()
        assert found.dtype == expected.dtype and isinstance(piece, gpumem.DeviceNDArray)
        np.testing.assert_array_equal(found, expected)
        at = rows.stop
    assert at == len(array)


def test_pieces_of_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = values("f4").astype(ml_dtypes.bfloat16)
    for rows, piece in gpumem.chunks(array, 4):
        np.testing.assert_array_equal(piece.copy_to_host(), array[rows])
    made = gpumem.map_chunks(lambda stream, rows, piece: piece, array, 4)
    assert made.dtype == array.dtype
    np.testing.assert_array_equal(made, array)


def test_sources(tmp_path):
    array = values()
    np.save(tmp_path / "x.npy", array)
    locked = gpumem.pinned_array(array.shape, array.dtype)
    locked[...] = array
    file = gpumem.open(tmp_path / "x.npy")
    for source in array.tolist(), locked, gpumem.to_device(array), file, file[::-1], gpumem.to_device(array, device="host:1"):
        found = list(gpumem.chunks(source, 3))
        assert [rows.stop for rows, _ in found] == [3, 6, 9, 10]
        expected = array[::-1] if source.__class__ is type(file) and source is not file else array
        for rows, piece in found:
            np.testing.assert_array_equal(piece.copy_to_host(), expected[rows])
    pieces = gpumem.chunks(file, 3)
    with file:
        pass
    assert sum(len(piece) for _, piece in pieces) == 10  # has a view of its own


def test_a_file_that_has_changed_ends_the_pieces(tmp_path):
    np.save(tmp_path / "x.npy", values())
    pieces = gpumem.chunks(gpumem.open(tmp_path / "x.npy"), 3)
    next(pieces)
    os.truncate(tmp_path / "x.npy", 200)
    with pytest.raises(OSError):
        list(pieces)
    assert list(pieces) == []


def test_how_an_array_is_cut():
    def lengths(array, *arguments, **options):
        return [len(piece) for _, piece in gpumem.chunks(array, *arguments, **options)]

    array = values()  # of 12 bytes a row
    assert lengths(array, nbytes=36) == lengths(array, nbytes=47) == lengths(array, 3) == [3, 3, 3, 1]
    assert lengths(array, nbytes=1) == lengths(array, nbytes=0) == lengths(array, rows=1) == [1] * 10
    assert lengths(array, nbytes=36, halo=1) == [2, *[3] * 8, 2]
    assert lengths(array, 1 << 62) == lengths(array, nbytes=1 << 62, halo=2) == lengths(array, 1, halo=1 << 62)[:1] == [10]
    assert lengths(array[:0], 3) == []
    assert lengths(np.zeros((10, 0)), 3) == lengths(np.zeros((10, 0)), nbytes=3) == [10]
    for wrong, error in [
        (lambda: gpumem.chunks(array), TypeError),
        (lambda: gpumem.chunks(array, 3, nbytes=4), TypeError),
        (lambda: gpumem.chunks(array, 0), ValueError),
        (lambda: gpumem.chunks(array, -1), OverflowError),
        (lambda: gpumem.chunks(np.float32(1), 1), ValueError),
        (lambda: gpumem.chunks(gpumem.to_device(1.0), 1), ValueError),
        (lambda: gpumem.chunks([object()], 1), TypeError),
        (lambda: gpumem.chunks(array, 1, device="nothing:7"), ValueError),
    ]:
        with pytest.raises(error):
            wrong()


def test_pieces_that_are_kept_stay_as_they_are():
    array = values("i8", (40, 2))
    kept = []
    for rows, piece in gpumem.chunks(array, 2):
        kept += [(rows, piece)]
        if rows.start % 3 == 0:
            piece[...] = -1
    gc.collect()
    for rows, piece in kept:
        expected = -1 if rows.start % 3 == 0 else array[rows]
        np.testing.assert_array_equal(piece.copy_to_host(), np.broadcast_to(expected, (2, 2)))


def test_work_on_other_streams_comes_before_the_next_piece_in_its_memory():
    array, streams, made = values("f4", (200, 5)), [gpumem.stream() for _ in range(3)], []
    for (rows, piece), stream in zip(gpumem.chunks(array, 5), itertools.cycle(streams)):
        made.append((rows, doubled(stream, rows, piece)))
    for rows, result in made:
        np.testing.assert_array_equal(result.copy_to_host(), array[rows] * 2)


def test_threads_share_the_pieces():
    array = values("i4", (3000, 2))
    pieces, found, lock = gpumem.chunks(array, 7), [], threading.Lock()

    def run():
        for rows, piece in pieces:
            same = (piece.copy_to_host() == array[rows]).all()
            with lock:
                found.append((rows.start, bool(same)))

    threads = [threading.Thread(target=run) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(found) == [(start, True) for start in range(0, 3000, 7)]


def test_the_memory_of_an_array_stays_while_there_are_pieces():
    array = values("f8", (1000,))
    pieces = gpumem.chunks(array, 100)
    with pytest.raises(ValueError):
        array.resize(10_000_000, refcheck=False)
    array.shape = (10, 100)  # that of the program's own object
    del array
    gc.collect()
    assert [len(piece) for _, piece in pieces] == [100] * 10


def test_arrays_that_say_anything_of_themselves():
    class Odd(np.ndarray):
        def __getitem__(self, key):
            raise AssertionError("it is not asked")

        shape = property(lambda self: (1 << 40,))

    for rows, piece in gpumem.chunks(values().view(Odd), 4):
        np.testing.assert_array_equal(piece.copy_to_host(), values()[rows])


def test_arrays_that_are_larger_than_the_device(tmp_path):
    program = """
import pygpumem as gpumem, numpy as np, sys
gpumem.select_device("host")
array = np.arange(8 << 20, dtype="i4").reshape(-1, 64)      # 32 MiB; three pieces of 2 MiB, three results and their copies fit
np.save(sys.argv[1], array)
double = gpumem.compile("GPUMEM_KERNEL double(view<const int, 2> x, view<int, 2> y) { }", host=lambda x, y: np.multiply(x, 2, out=y))

def body(stream, rows, piece):
    made = gpumem.device_array_like(piece, stream=stream)
    double[1, 1, stream](piece, made)
    return made

for source in array, gpumem.open(sys.argv[1]):
    total = 0
    for rows, piece in gpumem.chunks(source, nbytes=2 << 20):
        total += int(piece.copy_to_host().sum(dtype="i8"))
    assert total == array.sum(dtype="i8")
    made = gpumem.map_chunks(body, source, nbytes=2 << 20)
    assert (made == array * 2).all()
    out = np.zeros((array.shape[1], len(array)), "i4").T
    gpumem.map_chunks(body, source, nbytes=2 << 20, halo=0, out=out)
    assert (out == array * 2).all()
print("ends")
"""
    environment = {**os.environ, "GPUMEM_HOST_DEVICES": "1", "GPUMEM_HOST_MEMORY": str(24 << 20)}
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "x.npy"], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0 and done.stdout.endswith("ends\n"), (done.stdout, done.stderr)


# ---- maps ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 3, 10, 50])
def test_maps(rows, tmp_path):
    array, out = values(shape=(23, 5)), np.full((23, 5), -1, "f4")
    np.testing.assert_array_equal(gpumem.map_chunks(doubled, array, rows), array * 2)
    assert gpumem.map_chunks(doubled, array, rows, out=out) is out
    np.testing.assert_array_equal(out, array * 2)
    np.save(tmp_path / "x.npy", array)
    gpumem.map_chunks(doubled, gpumem.open(tmp_path / "x.npy"), rows, out=out[::-1])
    np.testing.assert_array_equal(out[::-1], array * 2)
    np.testing.assert_array_equal(gpumem.map_chunks(doubled, gpumem.to_device(array), rows), array * 2)


def test_a_stencil():
    array = values("f4", (30, 1))

    def neighbours(x, y):
        y[...] = x[2:] - x[:-2]

    kernel = gpumem.compile(
        "using namespace gpumem; GPUMEM_KERNEL neighbours(view<const float, 2> x, view<float, 2> y) {"
        " u64 i = global_id(0); if (i < y.extent(0)) y(i, 0) = x(i + 2, 0) - x(i, 0); }",
        host=neighbours,
    )

    def body(stream, rows, piece):
        made = gpumem.device_array((rows.stop - rows.start, 1), "f4", stream=stream)
        kernel[1, 32, stream](piece, made[int(rows.start == 0) : len(made) - int(rows.stop == 30)])
        return made

    made = gpumem.map_chunks(body, array, 7, halo=1)
    np.testing.assert_array_equal(made[1:-1], array[2:] - array[:-2])


@pytest.mark.parametrize("name", SOURCES)
def test_maps_of_every_type(name):
    array = SOURCES[name]()
    made = gpumem.map_chunks(lambda stream, rows, piece: piece, array, 4)
    assert made.dtype == array.dtype and made.flags.c_contiguous
    np.testing.assert_array_equal(made, array)


def test_results_of_another_type():
    array, out = values("f4", (10, 3)), np.zeros(10, "i8")

    def starts(stream, rows, piece):
        return gpumem.to_device(np.arange(rows.start, rows.stop), stream=stream)

    gpumem.map_chunks(starts, array, 4, out=out)
    np.testing.assert_array_equal(out, np.arange(10))


def test_results_that_are_none():
    array, out = values(), np.zeros((10, 3), "f4")
    zero = gpumem.to_device(np.float32(0))
    for function, error in [
        (lambda stream, rows, piece: None, TypeError),
        (lambda stream, rows, piece: piece.copy_to_host(), TypeError),
        (lambda stream, rows, piece: piece[1:], ValueError),
        (lambda stream, rows, piece: piece[:, 0], ValueError),
        (lambda stream, rows, piece: piece.view("i4"), TypeError),
        (lambda stream, rows, piece: zero, ValueError),
        (lambda: None, TypeError),
    ]:
        with pytest.raises(error):
            gpumem.map_chunks(function, array, 4, out=out)
    assert not out.any()
    with pytest.raises(ValueError):
        gpumem.map_chunks(lambda stream, rows, piece: zero, array, 4)
    with pytest.raises(ValueError, match="no results"):
        gpumem.map_chunks(doubled, array[:0], 4)
    assert gpumem.map_chunks(doubled, array[:0], 4, out=out[:0]).shape == (0, 3)


def test_destinations_that_are_none():
    array = values()
    both = np.zeros((11, 3), "f4")
    for out, error in [
        (np.zeros((9, 3), "f4"), ValueError),
        (np.float32(1), TypeError),
        (np.zeros((), "f4"), ValueError),
        ([[0.0] * 3] * 10, TypeError),
        (np.broadcast_to(np.float32(0), (10, 3)), ValueError),
        (array, ValueError),
        (array[::-1], ValueError),
    ]:
        with pytest.raises(error):
            gpumem.map_chunks(lambda *_: pytest.fail("nothing moves"), array, 4, out=out)
    with pytest.raises(ValueError, match="share"):
        gpumem.map_chunks(doubled, both[1:], 4, out=both[:-1])


def test_a_function_that_raises():
    array, out = values(shape=(20, 3)), np.full((20, 3), -1, "f4")

    def fails(stream, rows, piece):
        if rows.start == 12:
            raise KeyError("the fourth")
        return doubled(stream, rows, piece)

    with pytest.raises(KeyError, match="the fourth"):
        gpumem.map_chunks(fails, array, 4, out=out)
    np.testing.assert_array_equal(out[:12], array[:12] * 2)
    assert (out[12:] == -1).all()


@pytest.mark.skipif(DEVICE != "host", reason="a GPU is lost after a fault")
def test_a_kernel_that_fails():
    def fails(x, y):
        if x[0, 0] == 24:
            raise KeyError("in a kernel")
        np.multiply(x, 2, out=y)

    kernel = gpumem.compile("GPUMEM_KERNEL fails(view<const float, 2> x, view<float, 2> y) { }", host=fails)

    def body(stream, rows, piece):
        made = gpumem.device_array_like(piece, stream=stream)
        kernel[1, 1, stream](piece, made)
        return made

    array, out = values(shape=(20, 3)), np.full((20, 3), -1, "f4")
    with pytest.raises(gpumem.GpuMemError, match="in a kernel"):
        gpumem.map_chunks(body, array, 4, out=out)
    np.testing.assert_array_equal(out[:8], array[:8] * 2)
    assert (out[8:] == -1).all()
    with pytest.raises(gpumem.GpuMemError):
        gpumem.synchronize()
    gpumem.synchronize()


def test_functions_that_map_again():
    array = values(shape=(12, 2))

    def body(stream, rows, piece):
        inner = gpumem.map_chunks(doubled, array[rows], 2)
        return gpumem.to_device(inner, stream=stream)

    np.testing.assert_array_equal(gpumem.map_chunks(body, array, 5), array * 2)


def test_functions_that_change_the_destination():
    array, out = values(shape=(12, 2)), np.zeros((12, 2), "f4")

    def body(stream, rows, piece):
        for change in lambda: out.resize((1 << 20,), refcheck=False), lambda: setattr(out, "shape", (24,)):
            try:
                change()
            except (ValueError, AttributeError):
                pass
        return doubled(stream, rows, piece)

    assert gpumem.map_chunks(body, array, 5, out=out) is out
    np.testing.assert_array_equal(out.reshape(12, 2), array * 2)


def test_maps_where_no_wait_is_allowed(refused_in_a_callback):
    assert refused_in_a_callback(lambda: gpumem.map_chunks(doubled, values(), 4))

    def body(stream, x):
        with pytest.raises(gpumem.GpuMemError):
            gpumem.map_chunks(doubled, values(), 4)

    gpumem.record(body, gpumem.to_device(values()))


def test_iterators_are_dropped_anywhere():
    array = values(shape=(100, 2))
    before = sys.getrefcount(array)
    for count in range(6):
        pieces = gpumem.chunks(array, 10)
        kept = [piece for _, piece in itertools.islice(pieces, count)]
        assert "row" in repr(pieces)
        del pieces
        gc.collect()
        assert [piece[0, 0] for piece in kept] == [at * 20 for at in range(count)]
    assert sys.getrefcount(array) == before
