"""Arrays in npy, npz and safetensors files, against NumPy and a reader of a few lines. On the device `GPUMEM_TEST_DEVICE`, or the host."""

import gc
import json
import os
import pathlib
import struct
import subprocess
import sys
import zipfile

import pygpumem as gpumem
import numpy as np
import pytest

DEVICE = os.environ.get("GPUMEM_TEST_DEVICE", "host")
TYPES = "?bhilBHILefdFD"
# NumPy's name of an element, and the format's.
NAMES = {"?": "BOOL", "b": "I8", "h": "I16", "i": "I32", "q": "I64", "B": "U8", "H": "U16", "I": "U32", "Q": "U64",
         "e": "F16", "f": "F32", "d": "F64", "F": "C64"}  # fmt: skip
OF_NAME = {name: np.dtype(char) for char, name in NAMES.items()}


@pytest.fixture(autouse=True)
def device():
    gpumem.select_device(DEVICE)


def values(char, shape=(3, 4, 5)):
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 100).astype(char)


def equal(found, expected):
    found = found.copy_to_host() if isinstance(found, gpumem.DeviceNDArray) else found
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def read(path):
    """A safetensors file as arrays of NumPy, and its metadata."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, found = json.loads(data[8 : 8 + length]), {}
    metadata = header.pop("__metadata__", {})
    for name, entry in header.items():
        start, end = (8 + length + at for at in entry["data_offsets"])
        found[name] = np.frombuffer(data[start:end], OF_NAME[entry["dtype"]]).reshape(entry["shape"])
    return found, metadata


def write(path, tensors, metadata=None):
    """Writes bytes with a type and a shape by name as a safetensors file."""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, shape, own) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(own)]}
        data += own
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


# ---- npy -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(), (0,), (7,), (2, 3), (3, 0, 2), (3, 4, 5), (2, 3, 1, 2), (1, 2, 3, 2, 1), (2, 1, 2, 1, 2, 3)], ids=str)
@pytest.mark.parametrize("char", TYPES)
def test_npy_there_and_back(tmp_path, char, shape, order):
    path, array = tmp_path / "x.npy", np.asarray(values(char, shape), order=order)
    for version in (1, 0), (2, 0), (3, 0):
        with open(path, "wb") as file:
            np.lib.format.write_array(file, array, version)
        loaded = gpumem.load(path)
        equal(loaded, array)
    gpumem.save(tmp_path / "y.npy", loaded)
    equal(np.load(tmp_path / "y.npy"), array)
    assert np.load(tmp_path / "y.npy").flags["F_CONTIGUOUS"] == array.flags["F_CONTIGUOUS"]


def test_bfloat16_in_npy(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    np.save(tmp_path / "x.npy", array)
    equal(gpumem.load(tmp_path / "x.npy"), array)
    gpumem.save(tmp_path / "y.npy", gpumem.to_device(array))
    equal(np.load(tmp_path / "y.npy").view(ml_dtypes.bfloat16), array)


KEYS = [
    np.s_[1], np.s_[-1], np.s_[1:], np.s_[::2], np.s_[::-1], np.s_[:, 1::2, ::-2], np.s_[..., 0], np.s_[2, ..., ::3], np.s_[None, 1],
    np.s_[1:1], np.s_[2, 3, 4], np.s_[-1:-9:-2, :, 1], np.s_[:, :128], np.s_[...], (),
]  # fmt: skip


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_parts(tmp_path, key, order):
    array = np.asarray(values("i"), order=order)
    np.save(tmp_path / "x.npy", array)
    with gpumem.open(tmp_path / "x.npy") as view:
        part = view[key]
        assert part.shape == array[key].shape and part.dtype == array.dtype and part.nbytes == array[key].nbytes
        equal(part.to_device(), array[key])
        equal(part.to_device(stream=gpumem.stream()), array[key])
        if part.ndim:
            equal(part[::-1].to_device(), array[key][::-1])


def test_views_are_sources(tmp_path):
    np.save(tmp_path / "x.npy", values("f"))
    view = gpumem.open(tmp_path / "x.npy")
    equal(gpumem.to_device(view[:, ::2]), values("f")[:, ::2])
    equal(gpumem.to_device(view[0], stream=gpumem.stream(), device=DEVICE), values("f")[0])
    array = gpumem.to_device(values("f"))
    for use in (
        lambda: np.asarray(view),
        lambda: gpumem.to_device(view, copy=False),
        lambda: array.copy_to_device(view),
        lambda: gpumem.device_array_like(view),
        lambda: gpumem.save(tmp_path / "y.npy", view),
    ):
        with pytest.raises(TypeError, match="to_device"):
            use()


def test_keys_that_are_none(tmp_path):
    np.save(tmp_path / "x.npy", values("f"))
    view = gpumem.open(tmp_path / "x.npy")
    for key in 3, -4, (0, 0, 0, 0), "x", 1.5, True, [0, 1], (..., ...), np.array([0]), slice("a"):
        with pytest.raises((IndexError, TypeError)):
            view[key]
    with pytest.raises(ValueError):
        view[::0]
    assert len(view) == 3 and [part.shape for part in view] == [(4, 5)] * 3
    with pytest.raises(TypeError):
        len(view[0, 0, 0])


# ---- safetensors ---------------------------------------------------------------------------------------------------------


def model(path):
    """A file with every type that NumPy has, and what it holds."""
    arrays = {f"layer.{NAMES[char]}": values(char, (4, 6)) for char in NAMES}
    arrays |= {"scalar": np.array(2.5), "empty": np.zeros((2, 0, 3), "f4"), "odd name \u00e4\U0001f600": values("B", (3,))}
    write(path, {name: (NAMES[of.dtype.char], of.shape, of.tobytes()) for name, of in arrays.items()}, {"format": "pt"})
    return arrays


def test_models_are_loaded(tmp_path):
    path = tmp_path / "model.safetensors"
    arrays = model(path)
    for found in gpumem.load(path), gpumem.load(str(path), device=DEVICE, stream=gpumem.stream()):
        assert list(found) == list(arrays)
        for name, expected in arrays.items():
            equal(found[name], expected)
    names = ["layer.F32", "scalar"]
    assert list(gpumem.load(path, only=names)) == list(gpumem.load(path, only=lambda name: name in names)) == names
    assert gpumem.load(path, only=[]) == gpumem.load(path, only=lambda name: 0) == {}
    with pytest.raises(KeyError, match="nothing"):
        gpumem.load(path, only=["nothing"])


def test_models_are_opened(tmp_path):
    arrays = model(tmp_path / "model.safetensors")
    with gpumem.open(tmp_path / "model.safetensors") as file:
        assert file.keys() == list(file) == list(arrays) and len(file) == len(arrays)
        assert file.metadata() == {"format": "pt"}
        assert "scalar" in file and "nothing" not in file and 3 not in file
        for name, expected in arrays.items():
            view = file[name]
            assert (view.shape, view.dtype, view.file_dtype) == (expected.shape, expected.dtype, NAMES[expected.dtype.char])
            equal(view.to_device(), expected)
        view = file["layer.I64"][1:, ::-2]
        for wrong in "nothing", "":
            with pytest.raises(KeyError):
                file[wrong]
        with pytest.raises(TypeError):
            file[0]
    equal(view.to_device(), arrays["layer.I64"][1:, ::-2])  # keeps the file
    for use in file.keys, file.metadata, lambda: file["scalar"], lambda: len(file), lambda: "scalar" in file, lambda: repr(file):
        with pytest.raises(ValueError, match="closed"):
            use()
    with view:
        pass
    for use in lambda: view.shape, lambda: view[0], view.to_device, lambda: len(view):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_types_that_numpy_has_not(tmp_path):
    path = tmp_path / "m.safetensors"
    write(path, {"fp8": ("F8_E4M3", [2, 3], bytes(range(6))), "fp4": ("F4", [2, 4], bytes(range(4)))})
    with gpumem.open(path) as file:
        assert [file[name].file_dtype for name in file] == ["F8_E4M3", "F4"]
        assert (file["fp8"].shape, file["fp4"].shape) == ((2, 3), (4,))
        equal(file["fp8"][:, 1].to_device(), np.array([1, 4], "u1"))
    found = gpumem.load(path)
    equal(found["fp8"], np.arange(6, dtype="u1").reshape(2, 3))
    equal(found["fp4"], np.arange(4, dtype="u1"))

    saved, array = tmp_path / "saved.safetensors", found["fp8"]
    gpumem.save(saved, {"fp8": array}, dtypes={"fp8": "F8_E4M3"})
    with gpumem.open(saved) as file:
        assert file["fp8"].file_dtype == "F8_E4M3"
    for dtypes, error in [({"fp8": "F8"}, ValueError), ({"fp9": "U8"}, KeyError), ({"fp8": "F16"}, Exception), ([], TypeError)]:
        with pytest.raises(error):
            gpumem.save(saved, {"fp8": array}, dtypes=dtypes)
    equal(gpumem.load(saved)["fp8"], np.arange(6, dtype="u1").reshape(2, 3))


def test_bfloat16_in_models(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    path, array = tmp_path / "m.safetensors", np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    gpumem.save(path, {"x": gpumem.to_device(array)})
    with gpumem.open(path) as file:
        assert file["x"].file_dtype == "BF16" and file["x"].dtype == array.dtype
    equal(gpumem.load(path)["x"], array)


def test_an_index_of_files(tmp_path):
    write(tmp_path / "a.safetensors", {"x": ("F32", [2], np.array([1, 2], "f4").tobytes()), "left out": ("U8", [1], b"1")})
    write(tmp_path / "b.safetensors", {"y": ("U8", [3], b"abc")}, {"from": "b"})
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}))
    found = gpumem.load(path)
    assert sorted(found) == ["x", "y"]
    equal(found["x"], np.array([1, 2], "f4"))
    with gpumem.open(path) as file:
        assert file.metadata() == {"from": "b"}
        equal(file["y"][1:].to_device(), np.frombuffer(b"bc", "u1"))
    with pytest.raises(ValueError, match="index is not written"):
        gpumem.save(path, {})


def test_models_are_saved(tmp_path):
    path = tmp_path / "m.safetensors"
    arrays = {f"layer.{char}": values(char, (4, 6)) for char in NAMES} | {"scalar": np.array(2.5), "": np.zeros((0, 2), "u1")}
    gpumem.save(path, {name: gpumem.to_device(of) for name, of in arrays.items()}, metadata={"format": "pt", "\u00e4": ""})
    found, metadata = read(path)
    assert metadata == {"format": "pt", "\u00e4": ""} and set(found) == set(arrays)
    for name, expected in arrays.items():
        equal(found[name], expected)
    gpumem.save(path, {})
    assert read(path) == ({}, {})


def test_saved_by_one_and_read_by_the_other(tmp_path):
    theirs = pytest.importorskip("safetensors.numpy")
    arrays = {"w": values("f", (4, 6)), "ids": values("q", (3,))}
    gpumem.save(tmp_path / "ours.safetensors", {name: gpumem.to_device(of) for name, of in arrays.items()})
    theirs.save_file(arrays, tmp_path / "theirs.safetensors")
    found, loaded = theirs.load_file(tmp_path / "ours.safetensors"), gpumem.load(tmp_path / "theirs.safetensors")
    for name, expected in arrays.items():
        equal(found[name], expected)
        equal(loaded[name], expected)


PACKED = np.dtype([("tag", "u1"), ("x", "<f4")])
VIEWS = {
    "every second column": lambda a: a[:, ::2],
    "turned": lambda a: a.T,
    "backwards": lambda a: a[::-1, ::-1],
    "one number": lambda a: a[1:2, 2:3],
    "a part of F order": lambda a: a.T[1:, 1:],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_of_several_devices_are_saved(tmp_path, view):
    array = values("f", (4, 6))
    arrays = {name: view(gpumem.to_device(array, device=name)) for name in (DEVICE, "host:1")}
    gpumem.save(tmp_path / "m.safetensors", arrays)
    found, _ = read(tmp_path / "m.safetensors")
    for name in arrays:
        equal(found[name], view(array))
        gpumem.save(tmp_path / "x.npy", arrays[name])
        equal(np.load(tmp_path / "x.npy"), view(array))


def test_numbers_that_are_not_aligned_are_saved(tmp_path):
    records = np.zeros(5, PACKED)
    records["x"] = range(5)
    array = gpumem.to_device(records)["x"]
    gpumem.save(tmp_path / "x.npy", array[::2])
    equal(np.load(tmp_path / "x.npy"), np.array([0, 2, 4], "f4"))
    gpumem.save(tmp_path / "m.safetensors", {"x": array})
    equal(read(tmp_path / "m.safetensors")[0]["x"], records["x"])


def test_arrays_of_others_are_saved(tmp_path):
    class Describes:
        def __init__(self, array):
            self.array, self.__cuda_array_interface__ = array, array.__cuda_array_interface__

    gpumem.save(tmp_path / "x.npy", Describes(gpumem.to_device(values("f"))))
    equal(np.load(tmp_path / "x.npy"), values("f"))


# ---- streams, and Python's lock ------------------------------------------------------------------------------------------


def test_files_are_in_the_order_of_streams(tmp_path):
    source = """GPUMEM_KERNEL add(gpumem::slice<float> y) {
        for (gpumem::u64 i = 0; i < y.size(); i++) y[i] += 1;
    }"""
    add = gpumem.compile(source, host=lambda y: np.add(y, sum(range(10**5)) * 0 + 1, out=y))
    first, second, array = gpumem.stream(), gpumem.stream(), values("f", (1000,))
    np.save(tmp_path / "x.npy", array)
    loaded = gpumem.load(tmp_path / "x.npy", stream=first)
    for stream in first, second, first:
        add[1, 1, stream](loaded)
    gpumem.save(tmp_path / "y.npy", loaded)
    equal(np.load(tmp_path / "y.npy"), array + 3)
    gpumem.save(tmp_path / "m.safetensors", {"y": loaded})
    again = gpumem.load(tmp_path / "m.safetensors", stream=second)["y"]
    add[1, 1, first](again)
    equal(again, array + 4)


def test_graphs_record_what_was_read(tmp_path):
    array = values("f", (8,))
    np.save(tmp_path / "x.npy", array)
    gpumem.save(tmp_path / "m.safetensors", {"x": gpumem.to_device(array)})
    for load in (
        lambda stream: gpumem.load(tmp_path / "x.npy", stream=stream),
        lambda stream: gpumem.load(tmp_path / "m.safetensors", stream=stream)["x"],
        lambda stream: gpumem.open(tmp_path / "x.npy").to_device(stream=stream),
    ):
        graph = gpumem.record(lambda stream, load=load: stream.copy_to_host(load(stream)))
        assert np.asarray(graph()).tolist() == np.asarray(graph()).tolist() == array.tolist()


LOCKED = """
import os, sys, time
import pygpumem as gpumem, numpy as np
gpumem.select_device("host")
path, kind = sys.argv[1:]
ran = []
slow = gpumem.compile("GPUMEM_KERNEL slow(slice<float> y) { }", host=lambda y: (time.sleep(0.1), ran.append(1)))
stream, array = gpumem.stream(), gpumem.to_device(np.zeros(4, "f4"))
with open(path + "/large.npy", "wb") as file:
    np.lib.format.write_array_header_1_0(file, dict(descr="|u1", fortran_order=False, shape=(2**28,)))
    file.truncate(file.tell() + 2**28)
with open(path + "/large.safetensors", "wb") as file:
    header = b'{"x":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (2**28, 2**28)
    file.write(len(header).to_bytes(8, "little") + header)
    file.truncate(file.tell() + 2**28)
slow[1, 1, stream](array)  # its body needs the lock, and what is called waits for it
eval(kind)
print(len(ran))
"""
WAITS = [
    "gpumem.save(path + '/x.npy', array)",
    "gpumem.save(path + '/x.safetensors', {'x': array})",
    "gpumem.load(path + '/large.npy', stream=stream)",
    "gpumem.open(path + '/large.npy')[::2].to_device(stream=stream)",
    "gpumem.load(path + '/large.safetensors', stream=stream)",
]


@pytest.mark.parametrize("kind", WAITS)
def test_the_lock_is_free_meanwhile(tmp_path, kind):
    # In a process of its own, which is ended if it waits for ever. Files of holes are larger than the memory that they are read into.
    done = subprocess.run([sys.executable, "-c", LOCKED, tmp_path, kind], capture_output=True, text=True, timeout=120)
    assert done.stdout == "1\n", done.stderr


# ---- what is wrong -------------------------------------------------------------------------------------------------------


def test_what_the_system_refuses(tmp_path):
    for name in "x.npy", "x.npz", "m.safetensors", "m.safetensors.index.json":
        path = tmp_path / name
        for call in gpumem.load, gpumem.open:
            with pytest.raises(FileNotFoundError) as found:
                call(path)
            assert found.value.filename == str(path) and found.value.errno == 2
    array = gpumem.to_device(values("f"))
    for path, what in (tmp_path / "none" / "x.npy", array), (tmp_path / "none" / "x.safetensors", {"x": array}):
        with pytest.raises(FileNotFoundError):
            gpumem.save(path, what)
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(ValueError, match="no regular file"):
        gpumem.load(tmp_path / "folder.npy")
    for path in "x.zip", "x", "", "x.npy.gz", "npy", "m.index.json":
        for call in gpumem.load, gpumem.open, lambda path: gpumem.save(path, array):
            with pytest.raises(ValueError, match="the name of the file ends in"):
                call(path)
    for path in b"x.npy", None, 3, array, ["x.npy"]:
        for call in gpumem.load, gpumem.open, lambda path: gpumem.save(path, array):
            with pytest.raises(TypeError):
                call(path)
    for path in "x\0.npy", "x\ud800.npy":
        for call in gpumem.load, gpumem.open:
            with pytest.raises((OSError, ValueError)):
                call(path)


def held():
    gc.collect()
    gpumem.get_current_device().flush()
    return gpumem.memory_report().as_dict()["unnamed_bytes"]


@pytest.mark.parametrize("ending", ["npy", "safetensors"])
def test_broken_files_leave_nothing(tmp_path, ending):
    whole, path = tmp_path / f"whole.{ending}", tmp_path / f"x.{ending}"
    array = values("f", (16,))
    gpumem.save(whole, gpumem.to_device(array) if ending == "npy" else {"x": gpumem.to_device(array)})
    data = whole.read_bytes()
    before = held()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises((ValueError, OSError)):
            gpumem.load(path)
        with pytest.raises((ValueError, OSError)):
            gpumem.open(path)
    for at in range(len(data) - 64):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        try:
            gpumem.load(path)
        except (ValueError, OSError, TypeError):
            pass
    assert held() == before
    kept = gpumem.load(whole)
    assert held() > before
    del kept


def test_elements_that_files_have_not(tmp_path):
    for array in np.zeros(3, "M8[s]"), np.zeros(3, PACKED), np.zeros(3, "S4"), np.zeros(3, "V8"):
        for path, what in ("x.npy", gpumem.to_device(array)), ("x.safetensors", {"x": gpumem.to_device(array)}):
            with pytest.raises(TypeError, match="files of arrays have numbers"):
                gpumem.save(tmp_path / path, what)
        np.save(tmp_path / "theirs.npy", array)
        with pytest.raises((TypeError, ValueError)):
            gpumem.load(tmp_path / "theirs.npy")
    for array in np.zeros(3, ">f4"), np.array([None]):
        np.save(tmp_path / "theirs.npy", array)
        with pytest.raises(ValueError):
            gpumem.load(tmp_path / "theirs.npy")
    assert os.listdir(tmp_path) == ["theirs.npy"]


def test_a_file_that_is_there_stays_after_an_error(tmp_path):
    path, array = tmp_path / "m.safetensors", gpumem.to_device(values("f"))
    gpumem.save(path, {"x": array})
    before = path.read_bytes()
    for arrays, metadata, error in (
        ({"x": array, "y": gpumem.to_device(values("D"))}, None, TypeError),  # complex128
        ({"__metadata__": array}, None, ValueError),
        ({"x": np.zeros(3)}, None, TypeError),
        ({"x": None}, None, TypeError),
        ({1: array}, None, TypeError),
        ({"\ud800": array}, None, UnicodeEncodeError),
        ([("x", array)], None, TypeError),
        (array, None, TypeError),
        ({"x": array}, {"a": 1}, TypeError),
        ({"x": array}, {1: "a"}, TypeError),
        ({"x": array}, "text", TypeError),
    ):
        with pytest.raises(error):
            gpumem.save(path, arrays, metadata)
    for what in {"x": array}, None, np.zeros(3), [array]:
        with pytest.raises(TypeError):
            gpumem.save(tmp_path / "x.npy", what)
    with pytest.raises(ValueError, match="metadata"):
        gpumem.save(tmp_path / "x.npy", array, metadata={})
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["m.safetensors"]
    with pytest.raises(ValueError, match="only"):
        np.save(tmp_path / "x.npy", values("f"))
        gpumem.load(tmp_path / "x.npy", only=["x"])


# ---- objects that do what they like --------------------------------------------------------------------------------------


def test_dictionaries_that_change_while_they_are_read(tmp_path):
    path, array = tmp_path / "m.safetensors", gpumem.to_device(values("f"))

    class Changes:
        """An array that empties the dictionary when it is asked what it is."""

        @property
        def __cuda_array_interface__(self):
            changing.clear()
            changing.update({str(at): None for at in range(1000)})
            return array.__cuda_array_interface__

    class Lies(dict):
        def items(self):
            raise RuntimeError("not asked")

        keys = values = __iter__ = __len__ = __getitem__ = items

    class Name(str):
        def __str__(self):
            return "another"

        __hash__ = str.__hash__
        __eq__ = lambda self, other: changing.clear() or str.__eq__(self, other)

    changing = Lies({"a": array, Name("b"): Changes(), Name("c"): array})
    gpumem.save(path, changing, Lies({Name("d"): Name("e")}))
    found, metadata = read(path)
    assert set(found) == {"a", "b", "c"} and metadata == {"d": "e"}
    for name in found:
        equal(found[name], values("f"))


def test_paths_and_choices_that_run_code(tmp_path):
    path, array = tmp_path / "m.safetensors", gpumem.to_device(values("f"))
    named = {"x": array}

    class Path:
        def __fspath__(self):
            named.clear()
            return str(path)

    gpumem.save(Path(), named)
    assert read(path) == ({}, {})
    gpumem.save(path, {"x": array, "y": array})

    class Wrong:
        def __fspath__(self):
            return 3

    class Fails:
        def __fspath__(self):
            raise RuntimeError("not today")

    with pytest.raises(TypeError):
        gpumem.load(Wrong())
    with pytest.raises(RuntimeError, match="not today"):
        gpumem.load(Fails())

    def only(name):
        path.unlink(missing_ok=True)
        gpumem.save(path, {"another": array})
        return name == "y"

    assert list(gpumem.load(path, only=only)) == ["y"]  # the file that was opened

    def fails(name):
        raise RuntimeError(name)

    with pytest.raises(RuntimeError, match="another"):
        gpumem.load(path, only=fails)

    class Endless:
        def __getitem__(self, at):
            return "another"

    with pytest.raises(ValueError, match="at most"):
        gpumem.load(path, only=Endless())
    for wrong in "another", 3, [3]:
        with pytest.raises(TypeError):
            gpumem.load(path, only=wrong)


def test_a_key_that_closes_the_view(tmp_path):
    np.save(tmp_path / "x.npy", values("f"))
    view = gpumem.open(tmp_path / "x.npy")

    class Closes:
        def __index__(self):
            with view:
                return 1

    equal(view[Closes(), Closes() :].to_device(), values("f")[1, 1:])
    with pytest.raises(ValueError, match="closed"):
        view[0]


@pytest.mark.parametrize("ending", ["npy", "npz", "safetensors"])
@pytest.mark.parametrize("on_stream", [False, True])
def test_progress_rises_and_an_exception_ends_the_load(tmp_path, ending, on_stream):
    path, arrays = tmp_path / f"x.{ending}", {name: values("i", (1000, 500)) + at for at, name in enumerate("ab")}
    gpumem.save(path, {name: gpumem.to_device(array) for name, array in arrays.items()} if ending != "npy" else gpumem.to_device(arrays["a"]))
    total = sum(array.nbytes for array in arrays.values()) if ending != "npy" else arrays["a"].nbytes
    if ending == "npz":
        # The headers, too: the archive says what each member has.
        total = sum(member.file_size for member in zipfile.ZipFile(path).infolist())
    stream, seen = gpumem.stream() if on_stream else None, []
    loaded = gpumem.load(path, stream=stream, progress=lambda done, of: seen.append((done, of)))
    assert seen == sorted(set(seen)) and seen[-1] == (total, total) and {of for _, of in seen} == {total}
    for name, array in loaded.items() if ending != "npy" else [("a", loaded)]:
        equal(array, arrays[name])

    class Stop(Exception):
        pass

    def stop(done, of):
        raise Stop(done)

    for _ in range(3):
        with pytest.raises(Stop) as raised:
            gpumem.load(path, stream=stream, progress=stop)
        assert 0 < raised.value.args[0] <= total
    with pytest.raises(TypeError):
        gpumem.load(path, progress=3)
    equal(gpumem.load(path) if ending == "npy" else gpumem.load(path)["b"], arrays["a" if ending == "npy" else "b"])


FORKS = """
import os, sys
import pygpumem as gpumem
children = []

def forks(done, of):
    if not children and not os.environ.get("CHILD"):
        child = os.fork()
        if child:
            children.append(child)
        else:
            os.environ["CHILD"] = "1"

try:
    gpumem.load(sys.argv[1], device="host", progress=forks)
except gpumem.GpuMemError as error:
    os._exit(7 if os.environ.get("CHILD") and "forked" in str(error) else 1)
if os.environ.get("CHILD"):
    os._exit(2)
_, status = os.waitpid(children[0], 0)
print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_that_is_forked_while_a_file_is_loaded_ends(tmp_path):
    # So long that other threads help, which the child does not have.
    np.save(tmp_path / "x.npy", np.zeros(32 << 20, "u1"))
    done = subprocess.run([sys.executable, "-c", FORKS, tmp_path / "x.npy"], capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.returncode) == ("7", 0), done


@pytest.mark.parametrize("write_file", [np.savez, np.savez_compressed])
def test_npz_files_of_numpy_are_loaded_and_opened(tmp_path, write_file):
    arrays = {char: values(char) for char in TYPES} | {"f order": np.asfortranarray(values("f")), "none": np.zeros((0, 3)), "0d": np.float32(3)}
    path = tmp_path / "x.npz"
    write_file(path, **arrays)
    loaded = gpumem.load(path)
    assert list(loaded) == list(arrays)
    for name, expected in arrays.items():
        equal(loaded[name], np.asarray(expected))
    assert list(gpumem.load(path, only=["i", "f order"])) == ["i", "f order"]
    assert list(gpumem.load(path, only=lambda name: name == "d", stream=gpumem.stream())) == ["d"]
    with gpumem.open(path) as file:
        assert file.keys() == list(file) == list(arrays) and len(file) == len(arrays) and file.metadata() == {}
        assert "f order" in file and "g" not in file and 3 not in file
        view = file["f order"]
        for wrong in "g", "f order.npy", "":
            with pytest.raises(KeyError):
                file[wrong]
            with pytest.raises(KeyError):
                gpumem.load(path, only=[wrong])
    equal(gpumem.to_device(view[1:, ::-2]), arrays["f order"][1:, ::-2])
    with pytest.raises(ValueError, match="closed"):
        file["f order"]


def test_npz_files_are_written_as_numpy_reads_them(tmp_path):
    path = tmp_path / "x.npz"
    arrays = {char: values(char) for char in TYPES} | {"größe/ü": values("d")[:, ::-2], "none": np.zeros((0, 3)), "0d": np.float32(3)}
    gpumem.save(path, {name: gpumem.to_device(array) for name, array in arrays.items()})
    with np.load(path) as found:
        assert found.files == list(arrays)
        for name, expected in arrays.items():
            equal(found[name], np.asarray(expected))
    for name, array in gpumem.load(path).items():
        equal(array, np.asarray(arrays[name]))
    before = path.read_bytes()
    array = gpumem.to_device(values("f"))
    for wrong, error in (
        (lambda: gpumem.save(path, {"x": array}, metadata={"a": "b"}), ValueError),
        (lambda: gpumem.save(path, {"x": array}, dtypes={"x": "F32"}), ValueError),
        (lambda: gpumem.save(path, array), TypeError),
        (lambda: gpumem.save(path, {"x": 3}), TypeError),
        (lambda: gpumem.save(path, {3: array}), TypeError),
        (lambda: gpumem.save(path, {"x" * 70_000: array}), ValueError),
    ):
        with pytest.raises(error):
            wrong()
        assert path.read_bytes() == before and os.listdir(tmp_path) == ["x.npz"]
    gpumem.save(path, {})
    assert np.load(path).files == [] and gpumem.load(path) == {}


def test_a_changed_byte_of_an_npz_file_is_an_error(tmp_path):
    path = tmp_path / "x.npz"
    gpumem.save(path, {"x": gpumem.to_device(values("f"))})
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="checksum"):
        gpumem.load(path)
