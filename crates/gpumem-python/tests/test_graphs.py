"""Graphs: work that is recorded once and launched often."""

import gc
import subprocess
import sys
import threading

import pygpumem as gpumem
import numpy as np
import pytest

LEN = 1000
SAXPY = """
using namespace gpumem;
GPUMEM_KERNEL saxpy(slice<const float> x, slice<float> y, float a) {
    u64 i = global_id(0);
    if (i < y.size()) y[i] = a * x[i] + y[i];
}"""
saxpy = gpumem.compile(SAXPY, host=lambda x, y, a: np.add(y, a * x, out=y))


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


def floats(factor=1):
    return factor * (np.arange(LEN) % 100).astype("f4")


def arrays(*all):
    return [gpumem.to_device(array) for array in all]


def step_body(stream, x, y, a):
    saxpy[4, 256, stream](x, y, a)
    return stream.copy_to_host(y)


# ---- what a launch does -------------------------------------------------------------------------------------------------


def test_a_launch_does_what_the_body_does():
    x, y = arrays(floats(), floats(2))
    step = gpumem.record(step_body, x, y, np.float32)
    np.testing.assert_array_equal(y.copy_to_host(), floats(2))  # nothing has run
    stream = gpumem.stream()
    host = step[stream](x, y, 2.5)
    assert isinstance(host, gpumem.HostNDArray) and host.dtype == np.float32
    np.testing.assert_array_equal(host, floats(4.5))
    np.testing.assert_array_equal(y.copy_to_host(), floats(4.5))
    np.testing.assert_array_equal(step(x, y, np.float64(1)), floats(5.5))
    other_x, other_y = arrays(floats(10), floats(0))
    np.testing.assert_array_equal(step[0](other_x, other_y, True), floats(10))
    np.testing.assert_array_equal(host, floats(4.5))


def every_kind_of_call(stream, x, y):
    """Strided copies, a conversion, a fill, elements of the host, a temporary."""
    between = gpumem.device_array_like(x, stream=stream)
    between.copy_to_device(x.T[::-1].T, stream=stream)
    y.setitem((slice(None), slice(0, 2)), between[:, 1:3], stream=stream)
    y.setitem((slice(None), 3), 7, stream=stream)
    constant = gpumem.to_device(np.array([5, 6, 7], "i2"), stream=stream)
    y.setitem((slice(None), 2), constant, stream=stream)
    return between, y.shape


@pytest.mark.parametrize("dtype", ["f4", "i8", "u1", "f2", "c16", "bfloat16"])
def test_copies_and_conversions_are_as_without_a_graph(dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x, y, expected = (gpumem.device_array((3, 4), dtype) for _ in range(3))
    x[:], y[:], expected[:] = np.arange(12.0).reshape(3, 4), 0, 0
    graph = gpumem.record(lambda stream, x, y: every_kind_of_call(stream, x, y)[0], x, y)
    stream = gpumem.stream()
    plain, _ = every_kind_of_call(stream, x, expected)
    made = graph[stream](x, y)
    np.testing.assert_array_equal(made.copy_to_host(), plain.copy_to_host())
    np.testing.assert_array_equal(y.copy_to_host(), expected.copy_to_host())
    assert made.dtype == x.dtype


def test_a_body_may_leave_out_the_stream():
    x, y = arrays(floats(), floats(0))

    def body(stream, x, y):
        assert gpumem.get_current_device() == stream.device == y.device
        between = gpumem.device_array(LEN, "f4")
        between.setitem(..., 1, stream=gpumem.default_stream())
        saxpy[4, 256](x, between, 2)
        saxpy[4, 256, gpumem.stream()](between, y, 1)
        y[0] = 7
        gpumem.Device().__enter__()  # ends with the body

    graph = gpumem.record(body, x, y)
    assert graph.report()[:3] == (2, 0, 2)
    between = gpumem.device_array(4)
    between[:] = 3  # not of the recording
    assert between.copy_to_host().tolist() == [3] * 4
    graph(x, y)
    np.testing.assert_array_equal(y.copy_to_host()[1:], floats(2)[1:] + 1)
    assert y[0] == 7


NUMBERS = [
    ("bool", "?", True), ("i8", "i1", -5), ("u8", "u1", 255), ("i16", "i2", -300), ("u16", "u2", 65535), ("i32", "i4", -70000),
    ("u32", "u4", 2**32 - 1), ("i64", "i8", -(2**40)), ("u64", "u8", 2**64 - 1), ("f16", "f2", 0.5), ("bf16", "bfloat16", 1.5),
    ("float", "f4", 0.1), ("double", "f8", 0.1), ("complex<float>", "c8", 1 - 2j), ("complex<double>", "c16", 0.1 - 2j),
]  # fmt: skip


@pytest.mark.parametrize("name, dtype, value", NUMBERS)
def test_numbers_are_those_of_their_launch(name, dtype, value):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")

    def put(y, before, n, after):
        assert isinstance(n, np.generic)
        y[:] = before, n, after

    source = f"GPUMEM_KERNEL put(slice<{name}> y, {name} before, {name} n, {name} after)"
    source = f"using namespace gpumem; {source} {{ y[0] = before; y[1] = n; y[2] = after; }}"
    kernel, y = gpumem.compile(source, host=put), gpumem.device_array(3, dtype)

    def body(stream, y, n):
        assert n.dtype == y.dtype
        kernel[1, 1, stream](y, 0, n, 1)
        kernel[1, 1, stream](y, n, 0, n)
        kernel[1, 1, stream](y, 0, n, 1)

    graph = gpumem.record(body, y, y.dtype)
    for number in (value, 0, value):
        graph(y, number)
        assert y.copy_to_host().tolist() == np.array([0, number, 1], y.dtype).tolist()
    with pytest.raises((TypeError, ValueError, AttributeError)):
        graph(y, [] if dtype != "?" else gpumem.device_array(2))


def test_types_of_numbers():
    found = []
    for number in (np.float32, "f4", np.dtype("f4"), np.float32(3), float, 1.5, int, 7, np.int64(3), bool, True, 1j, np.bool_):
        gpumem.record(lambda stream, n: found.append(n.dtype.str), number)
    assert found == ["<f4"] * 4 + ["<f8"] * 2 + ["<i8"] * 3 + ["|b1"] * 2 + ["<c16"] + ["|b1"]
    records = np.dtype([("a", "i4")])
    for wrong in (None, np.zeros(3), {}, object(), object, "nonsense", records, "U3", "M8[s]", ">f4", gpumem.pinned_array(3), {1}):
        with pytest.raises(TypeError):
            gpumem.record(lambda stream, n: None, wrong)


def test_a_number_has_no_value_in_the_body():
    uses = "bool(v); v + 1; 1 + v; -v; v == v; v < 1; float(v); int(v); complex(v); [0][v]; len(v); list(v); v[0]; v(); np.asarray(v);"
    uses += "np.float32(1) * v; np.ones(3) + v; np.sqrt(v); x.setitem(0, v, stream=s); x.copy_to_device(v, stream=s); gpumem.to_device(v);"
    uses += "gpumem.device_array(v); other(v, x); kernel[1, 1, s](x, v); saxpy[v, 1, s](x, x, 1); gpumem.Varying(); abs(v); v += 1;"
    uses += "gpumem.record(print, v)"
    other = gpumem.record(lambda stream, n, x: None, "i4", *arrays(floats()))
    kernel = gpumem.compile("GPUMEM_KERNEL k(slice<float> x, float a) { }", host=lambda x, a: None)
    taken = []

    def body(s, x, v):
        for use in uses.split(";"):
            try:
                exec(use.strip(), globals() | {"s": s, "x": x, "v": v, "kernel": kernel, "other": other})
                taken.append(use)
            except TypeError:
                pass
        assert "float64" in repr(v)

    graph = gpumem.record(body, *arrays(floats()), np.float64)
    assert not taken and sum(graph.report()[:3]) == 0


def test_lists_and_tuples():
    layers, y = arrays(floats(), floats(2), floats(3)), arrays(floats(0))[0]

    def body(stream, all, y):
        layers, (factors,) = all
        assert type(all) is tuple and type(layers) is list and type(factors) is list
        for x, factor in zip(layers, factors):
            saxpy[4, 256, stream](x, y, factor)
        return []

    graph = gpumem.record(body, (layers, ([np.float32] * 3,)), y)
    assert graph([layers, [(1, 10, 100)]], y) == []
    np.testing.assert_array_equal(y.copy_to_host(), floats(321))
    for wrong, error in [
        (([layers[:2], [[1, 2, 3]]], y), ValueError),
        (([layers, [[1, 2]]], y), ValueError),
        (([layers, [1, 2, 3]], y), ValueError),
        (([layers, 1], y), TypeError),
        ((layers, y), ValueError),
        ((y, y), TypeError),
        ((y,), TypeError),
        ((([layers, [[1, 2, 3]]]), [y]), TypeError),
    ]:
        with pytest.raises(error):
            graph(*wrong)
    endless = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        gpumem.record(lambda stream, all: None, endless)
    with pytest.raises(RecursionError):
        gpumem.record(lambda stream: endless)
    with pytest.raises((RecursionError, TypeError)):
        graph(endless, y)


def test_lists_that_are_members_of_each_other_many_times_are_refused():
    def nested(leaf, depth):
        for _ in range(depth):
            leaf = [leaf, leaf]
        return leaf

    few = gpumem.record(lambda s, x: nested(None, 10), nested("f4", 10))
    assert few(nested(1.0, 10)) == nested(None, 10)
    one, array = gpumem.record(lambda s, x: None, "f4"), gpumem.to_device(floats())
    for leaf in ("f4", (), array):
        with pytest.raises(ValueError, match="members in all"):
            gpumem.record(lambda s, x: None, nested(leaf, 60))
        # Several arguments have the bound together.
        with pytest.raises(ValueError, match="members in all"):
            gpumem.record(lambda s, *x: None, *[nested(leaf, 14)] * 3)
    for leaf in (None, ()):
        with pytest.raises(ValueError, match="members in all"):
            gpumem.record(lambda s: nested(leaf, 60))
    for graph in (one, few, one[gpumem.stream()], few[gpumem.stream()]):
        with pytest.raises((TypeError, ValueError)):
            graph(nested(1.0, 60))
    # As deep for the launch as for the recording.
    deep = 1.0
    for _ in range(64):
        deep = [deep]
    assert gpumem.record(lambda s, x: None, deep)(deep) is None



# ---- results ------------------------------------------------------------------------------------------------------------


def test_results_are_made_anew_and_outlive_the_graph():
    x, y = arrays(floats(), floats(0))

    def body(stream, x, y, a):
        saxpy[4, 256](x, y, a)
        copy = gpumem.to_device(y, stream=stream)
        host = stream.copy_to_host(copy)
        return copy, [host, None, copy, (copy[::2], copy.broadcast_to((2, LEN)))], host

    graph = gpumem.record(body, x, y, "f4")
    stream, made = gpumem.stream(), []
    for _ in range(10):
        made.append(graph[stream](x, y, 1))
    del graph, x, y, stream
    gc.collect()
    for factor, (copy, (host, none, same, (part, wide)), same_host) in enumerate(made, 1):
        assert same is copy and same_host is host and none is None
        np.testing.assert_array_equal(copy.copy_to_host(), floats(factor))
        np.testing.assert_array_equal(host, floats(factor))
        copy[:] = 0  # the part shares its memory
        assert not part.copy_to_host().any() and part.shape == (LEN // 2,)
        assert wide.flags["WRITEABLE"] is False and wide.shape == (2, LEN)
        assert host[1] == factor


def test_what_a_body_may_not_return():
    x, host = arrays(floats())[0], gpumem.pinned_array(4)
    mapped = gpumem.mapped_array(4)
    for wrong in (lambda s, x: 1, lambda s, x: {}, lambda s, x: np.ones(3), lambda s, x: s, lambda s, x: mapped):
        with pytest.raises(TypeError, match="returns"):
            gpumem.record(wrong, x)
    with pytest.raises(TypeError, match="Varying"):
        gpumem.record(lambda s, n: n, "f4")
    for wrong in (lambda s, y: y, lambda s, y: y[::2], lambda s, y: x, lambda s, y: host):
        with pytest.raises(gpumem.GpuMemError, match="a result that the body has not made"):
            gpumem.record(wrong, x)
    with pytest.raises(gpumem.GpuMemError, match="does not return"):
        gpumem.record(lambda s, x: s.copy_to_host(x) and None, x)


def test_a_copy_of_a_stream_to_the_host_needs_no_graph():
    records = np.zeros((3, 2), np.dtype([("a", "i4"), ("b", "f8")]))
    records["a"] = np.arange(6).reshape(3, 2)
    stream = gpumem.stream()
    parts = gpumem.to_device(np.array([(1, 2.5), (3, 4.5)], "u1, f8"))["f1"]  # not aligned
    found = stream.copy_to_host(parts)
    np.testing.assert_array_equal(np.asarray(found), [2.5, 4.5])
    np.testing.assert_array_equal(gpumem.to_device(found, stream=stream).copy_to_host(), [2.5, 4.5])
    for array in (floats(), records, np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.zeros((0, 3)), np.array(4, "u1")):
        found = stream.copy_to_host(gpumem.to_device(array))
        assert found.shape == array.shape and found.dtype == array.dtype
        np.testing.assert_array_equal(np.asarray(found), array)
    with pytest.raises(ValueError, match="host:1"):
        stream.copy_to_host(gpumem.to_device(floats(), device=gpumem.Device("host:1")))


# ---- what is refused ----------------------------------------------------------------------------------------------------


def test_shapes_types_and_places_are_those_that_were_recorded():
    array = np.zeros((4, 6), "f4")
    x, y = arrays(array, array)
    step = gpumem.record(lambda stream, x, y: y.copy_to_device(x, stream=stream), x, y)
    wrong = {
        ValueError: [x[:3], x.T, x[:, ::2], x.ravel(), x[:, None], gpumem.to_device(array, device=gpumem.Device("host:1"))],
        TypeError: [x.view("i4"), x.view("u4"), gpumem.to_device(array.astype("f8")), array, [x], None, 3, gpumem.pinned_array((4, 6), "f4")],
    }  # fmt: skip
    for error, all in wrong.items():
        for one in all:
            with pytest.raises(error):
                step(one, y)
            with pytest.raises(error):
                step(x, one)
    with pytest.raises(ValueError, match=r"argument #2.*\[3, 6\].*\[4, 6\]"):
        step(x, y[:3])
    shifted = gpumem.to_device(np.zeros(25, "f4"))[1:].reshape(4, 6)
    with pytest.raises(ValueError, match="alignment 16"):
        step(shifted, y)
    with pytest.raises(TypeError, match="takes 2 arguments, not 1"):
        step(x)
    with pytest.raises(ValueError, match="host:1"):
        step[gpumem.stream(gpumem.Device("host:1"))](x, y)
    with pytest.raises(TypeError):
        step["s"](x, y)
    step(x, y)


def test_arrays_that_are_written_share_no_memory():
    x, y = arrays(floats(), floats())
    step = gpumem.record(step_body, x, y, "f4")
    with pytest.raises(ValueError, match="written"):
        step(y, y, 1)
    with pytest.raises(ValueError, match="written"):
        step(y.view("i4").view("f4"), y, 1)
    whole = gpumem.to_device(np.zeros(2 * LEN, "f4"))
    with pytest.raises(ValueError, match="written"):
        step(whole[500:1500], whole[:LEN], 1)
    step(whole[LEN:], whole[:LEN], 1)
    only = gpumem.to_device(floats()).broadcast_to(LEN)
    both = gpumem.record(lambda stream, x, y: [gpumem.to_device(x, stream=stream), gpumem.to_device(y, stream=stream)], only, only)
    assert [made.size for made in both(y, y)] == [LEN] * 2  # only read


def test_an_array_that_is_read_only_is_not_written():
    x, y = arrays(floats(), floats(0))
    frozen = x.broadcast_to(LEN)
    refused = []

    def body(stream, x, y):
        assert x.flags["WRITEABLE"] is False and y.flags["WRITEABLE"] is True
        try:
            saxpy[4, 256, stream](y, x, 1)
        except ValueError as error:
            refused.append(error)
        saxpy[4, 256, stream](x, y, 1)

    graph = gpumem.record(body, frozen, y)
    graph(frozen, y)
    graph(x, y)
    assert len(refused) == 1 and graph.report().launches == 1
    np.testing.assert_array_equal(y.copy_to_host(), floats(2))
    with pytest.raises(ValueError):
        graph(x, frozen)
    np.testing.assert_array_equal(x.copy_to_host(), floats())


REFUSED = [
    "s.synchronize()", "s.query()", "gpumem.synchronize()", "s.add_callback(print)", "s.handle", "x.copy_to_host()",
    "x.copy_to_host(stream=s)", "x[0]", "x.getitem(0, stream=s)", "x.__setitem__(slice(1), x[1:2])", "x.__cuda_array_interface__",
    "x.__dlpack__()", "np.asarray(x)", "np.asarray(gpumem.pinned_array(4))", "gpumem.mapped_array(4)",
    "gpumem.managed_array(4)", "gpumem.ipc_array(4)", "gpumem.event().record(s)", "recorded.wait(s)", "gpumem.to_device(np.ones(3))",
    "saxpy[1, 1, s](x, np.zeros(3, 'f4'), 1)", "saxpy[1, 1, s](outside, x, 1)", "gpumem.to_device(outside, stream=s)",
    "gpumem.record(print)", "gpumem.record(print, x)", "gpumem.legacy_default_stream()", "c.all_reduce(x)",
    "c.all_reduce(outside, stream=s)", "graph[real](x)", "graph[s](outside)",
]  # fmt: skip


def test_what_cannot_be_recorded_is_refused_and_the_rest_recorded():
    outside, recorded, real = arrays(floats())[0], gpumem.event(), gpumem.stream()
    recorded.record()
    graph = gpumem.record(lambda stream, x: gpumem.to_device(x, stream=stream), outside)
    (c,) = gpumem.Communicator.all([gpumem.Device("host")])
    taken = []

    def body(s, x):
        for call in REFUSED:
            try:
                eval(call, globals() | {"s": s, "x": x, "c": c, **names})
                taken.append(call)
            except gpumem.GpuMemError:
                pass
        x.setitem(..., 5, stream=s)

    names = {"outside": outside, "recorded": recorded, "graph": graph, "real": real}
    x = arrays(floats())[0]
    graph = gpumem.record(body, x)
    assert not taken
    graph(x)
    assert (x.copy_to_host() == 5).all()
    np.testing.assert_array_equal(outside.copy_to_host(), floats())
    c.destroy()


def test_what_escapes_cannot_be_used():
    kept = {}

    def body(stream, x, a):
        kept.update(stream=stream, x=x, a=a, device=stream.device, second=gpumem.stream())
        kept.update(made=gpumem.device_array(LEN, "f4"), host=stream.copy_to_host(x))
        return kept["host"]

    y = arrays(floats())[0]
    graph = gpumem.record(body, y, "f4")
    later = gpumem.stream()
    uses = """x.copy_to_host(); made.copy_to_host(); x[0]; made[1:].__setitem__(0, 1); x.__setitem__(slice(1), x[1:2]); x.setitem(0, 1, stream=later); x.__dlpack__();
        saxpy[1, 1, later](x, y, 1); saxpy[1, 1, later](y, made, 1); saxpy[1, 1, later](y, made, a); saxpy[1, 1, stream](made, x, 1);
        saxpy[1, 1](x, made, 1); y.setitem(0, 1, stream=stream); y.setitem(0, 1, stream=second); second.synchronize();
        stream.synchronize(); stream.query(); gpumem.device_array(3, device=device); gpumem.stream(device).synchronize(); host[0];
        np.asarray(host); gpumem.to_device(host, stream=later); y.copy_to_host(host, stream=later); graph(x, 1); graph(made, 1);
        graph(y, a); graph[stream](y, 1); gpumem.record(print, device=device); x.__cuda_array_interface__; gpumem.to_device(x);
        gpumem.record(lambda s: s.copy_to_host(x)); gpumem.record(lambda s, n: graph[s](made, n), "f4"); stream.add_callback(print);
        gpumem.record(lambda s, n: graph[s](gpumem.device_array(LEN, "f4"), a), "f4"); gpumem.to_device(x, stream=later);
        later.copy_to_host(x); stream.copy_to_host(y)"""
    names, taken = globals() | kept | {"later": later, "y": y, "graph": graph}, []
    for use in uses.split(";"):
        try:
            eval(use.strip(), names)
            taken.append(use.strip())
        except gpumem.GpuMemError:
            pass
    assert not taken
    np.testing.assert_array_equal(graph(y, 1), floats())


def test_an_exception_of_the_body_comes_out_unchanged():
    class Own(BaseException):
        pass

    error, y, ran = Own("of mine"), arrays(floats())[0], []
    kernel = gpumem.compile("GPUMEM_KERNEL k(slice<float> y) { }", host=lambda y: ran.append(y))

    def body(stream, y):
        kernel[1, 1, stream](y)
        body.kept = stream, y
        raise error

    with pytest.raises(Own) as caught:
        gpumem.record(body, y)
    assert caught.value is error and caught.value.__cause__ is None
    assert any(frame.name == "body" for frame in caught.traceback)
    gpumem.synchronize()
    assert not ran and gpumem.get_current_device() == gpumem.Device("host")
    with pytest.raises(gpumem.GpuMemError):
        kernel[1, 1, body.kept[0]](body.kept[1])
    with pytest.raises(TypeError):
        gpumem.record(3)
    with pytest.raises(TypeError):
        gpumem.record(lambda: None)
    with pytest.raises(TypeError):
        gpumem.record()


# ---- functions of Python as kernels -------------------------------------------------------------------------------------


def test_a_function_of_the_host_gets_copies_that_it_may_keep():
    kept = []

    def host(x, y, n):
        assert not x.flags.writeable
        y[:] = y + n * x
        kept.append((x, y))
        y.shape = (2, 3)  # its own affair

    kernel = gpumem.compile("GPUMEM_KERNEL k(view<const double, 2> x, view<double, 2> y, i64 n) { }", host=host)
    x, y = arrays(np.arange(6.0).reshape(2, 3), np.zeros((6, 2)))
    graph = gpumem.record(lambda stream, x, y, n: kernel[1, 1, stream](x.T, y[::2], n), x, y, "i8")
    assert not kept
    graph(x, y, 1)
    graph(x, y, 10)
    expected = np.zeros((6, 2))
    expected[::2] = 11 * np.arange(6.0).reshape(2, 3).T
    np.testing.assert_array_equal(y.copy_to_host(), expected)
    x[:], y[:] = -1, -1
    del x, y, graph
    gc.collect()
    gpumem.get_current_device().flush()
    assert [first.ravel("K").tolist() for first, _ in kept] == [list(range(6))] * 2
    assert [each[1].ravel().tolist() for each in kept] == [(n * np.arange(6.0).reshape(2, 3).T).ravel().tolist() for n in (1, 11)]
    kept[0][1][:] = 5


def test_what_a_function_raises_is_a_fault_of_the_launch():
    def host(y):
        y[:] = 9
        raise ZeroDivisionError("the function fails")

    fails = gpumem.compile("GPUMEM_KERNEL fails(slice<float> y) { }", host=host)
    x, y = arrays(floats(), floats())
    stream = gpumem.stream()

    def body(stream, x, y):
        fails[1, 1](y)
        saxpy[4, 256](y, x, 1)

    graph = gpumem.record(body, x, y)
    graph[stream](x, y)
    with pytest.raises(RuntimeError, match="the function fails"):
        stream.synchronize()
    for poisoned in (x, y):
        with pytest.raises(RuntimeError, match="fail"):
            poisoned.copy_to_host()
    x, y = arrays(floats(), floats())
    saxpy[4, 256](x, y, 1)
    np.testing.assert_array_equal(y.copy_to_host(), floats(2))


def test_a_kernel_that_was_recorded_first_runs_without_a_graph_too():
    kept = []

    def host(y):
        y += 1
        kept.append(y)

    kernel, y = gpumem.compile("GPUMEM_KERNEL k(slice<float> y) { }", host=host), arrays(np.zeros(4, "f4"))[0]
    graph = gpumem.record(lambda stream, y: kernel[1, 1, stream](y), y)
    kernel[1, 1](y)
    graph(y)
    kernel[1, 1](y)
    assert y.copy_to_host().tolist() == [3] * 4
    # Only those of the launches without a graph have the array's own memory.
    assert [array.tolist() for array in kept] == [[3] * 4, [2] * 4, [3] * 4]
    bare = gpumem.compile("GPUMEM_KERNEL bare(slice<float> y) { }")
    with pytest.raises(NotImplementedError):
        gpumem.record(lambda stream, y: bare[1, 1, stream](y), y)


def test_elements_of_numpy_are_recorded_as_they_are():
    x, y = floats(), arrays(floats(0))[0]
    graph = gpumem.record(lambda stream, y: saxpy[4, 256, stream](x, y, 2), y)
    x[:] = 0
    graph(y)
    np.testing.assert_array_equal(y.copy_to_host(), floats(2))
    assert graph.report().constant_bytes >= 4 * LEN


# ---- types of elements --------------------------------------------------------------------------------------------------


def test_records_and_what_is_not_aligned():
    packed = np.dtype([("flag", "u1"), ("value", "f8"), ("name", "S3")])
    records = np.zeros(5, packed)
    records["value"], records["name"] = np.arange(5), b"abc"
    source, target, halves = gpumem.to_device(records), gpumem.to_device(np.zeros(5, packed)), gpumem.to_device(records)["value"]

    def body(stream, source, target, halves):
        assert source.dtype == packed and source["value"].dtype == np.float64
        target.copy_to_device(source, stream=stream)
        halves.copy_to_device(source["value"][::-1], stream=stream)
        return gpumem.to_device(source, stream=stream), stream.copy_to_host(target), stream.copy_to_host(halves)

    graph = gpumem.record(body, source, target, halves)
    copy, host, numbers = graph(source, target, halves)
    np.testing.assert_array_equal(np.asarray(numbers), np.arange(5.0)[::-1])
    np.testing.assert_array_equal(copy.copy_to_host(), records)
    np.testing.assert_array_equal(np.asarray(host), records)
    np.testing.assert_array_equal(target.copy_to_host(), records)
    np.testing.assert_array_equal(halves.copy_to_host(), np.arange(5.0)[::-1])
    with pytest.raises(ValueError):
        graph(source, target, gpumem.to_device(np.zeros(5)))
    with pytest.raises(TypeError):
        graph(source, gpumem.to_device(np.zeros(5, "V12")), halves)
    with pytest.raises(TypeError):
        gpumem.record(lambda stream, x: saxpy[1, 1, stream](x, x, 1), halves)


@pytest.mark.parametrize("array", [np.array(2.5), np.zeros((3, 0, 2), "i4"), np.array(["a", "bcd"]), np.array([1, 2], "M8[s]"), np.ones((2, 1, 3), "?")])
def test_arrays_of_any_shape_and_type(array):
    x, y = gpumem.to_device(array), gpumem.to_device(np.zeros_like(array))

    says = x.shape, x.strides, x.dtype

    def body(stream, x, y):
        assert (x.shape, x.strides, x.dtype) == says
        y.copy_to_device(x, stream=stream)
        return gpumem.to_device(x, stream=stream), stream.copy_to_host(y)

    copy, host = gpumem.record(body, x, y)(x, y)
    for found in (copy.copy_to_host(), np.asarray(host), y.copy_to_host()):
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype


def test_arrays_of_other_libraries_are_arguments():
    class Other:
        def __init__(self, array):
            self.array = array

        @property
        def __cuda_array_interface__(self):
            return self.array.__cuda_array_interface__

    x, y = arrays(floats(), floats(0))
    step = gpumem.record(step_body, Other(x), y, "f4")  # its memory is gpumem's, so it can only be read
    np.testing.assert_array_equal(step(Other(x), y, 3), floats(3))
    with pytest.raises(ValueError):
        step(x, Other(y), 1)
    with pytest.raises(ValueError, match="memory of the device"):
        step(gpumem.from_dlpack(floats()), y, 1)


# ---- graphs in graphs ---------------------------------------------------------------------------------------------------


def test_a_graph_is_recorded_in_another():
    x, y = arrays(floats(), floats(0))

    def inner_body(stream, x, y, factors):
        saxpy[4, 256](x, y, factors[0])
        saxpy[4, 256](x, y, factors[1])
        return gpumem.to_device(y, stream=stream)

    inner = gpumem.record(inner_body, x, y, ["f4", "f4"])

    def outer_body(stream, x, y, a):
        first = inner[stream](x, y, [a, 10])
        second = inner(x, first, [5, a])
        assert isinstance(second, gpumem.DeviceNDArray)
        return stream.copy_to_host(first), second

    outer = gpumem.record(outer_body, x, y, "f4")
    assert outer.report().launches == 4
    del inner
    gc.collect()
    for a in (1, -2, 3):
        y[:] = 0
        first, second = outer(x, y, a)
        np.testing.assert_array_equal(y.copy_to_host(), floats(a + 10))
        np.testing.assert_array_equal(first, floats(2 * a + 15))
        np.testing.assert_array_equal(second.copy_to_host(), floats(2 * a + 15))


# ---- devices ------------------------------------------------------------------------------------------------------------


def test_the_device_of_a_graph():
    second = gpumem.Device("host:1")
    x = gpumem.to_device(floats(), device=second)
    graph = gpumem.record(lambda stream, x: stream.copy_to_host(x[0]), [x])
    assert graph.device == second and repr(graph) == "<pygpumem.Graph of 1 calls on host:1>"
    np.testing.assert_array_equal(graph([x]), floats())
    np.testing.assert_array_equal(graph[gpumem.stream(second)]([x]), floats())

    def makes(stream):
        made = gpumem.device_array(3)
        made.setitem(..., 4, stream=stream)
        return made

    for options in ({}, {"device": second}):
        graph = gpumem.record(makes, **options)
        made = graph()
        assert made.device == graph.device == options.get("device", gpumem.Device("host"))
        assert made.copy_to_host().tolist() == [4] * 3
    # An array that is like those of the launches may be of another device.
    graph = gpumem.record(lambda stream, x: stream.copy_to_host(x), x, device=gpumem.Device("host"))
    np.testing.assert_array_equal(graph(gpumem.to_device(floats(2))), floats(2))
    with pytest.raises(ValueError):
        graph(x)


def test_reports():
    x, y = arrays(floats(), floats(0))

    def body(stream, x, y):
        first, second = gpumem.device_array(LEN, "f4"), gpumem.device_array(LEN, "f4")
        first.copy_to_device(x, stream=stream)
        saxpy[4, 256](x, first, 1)
        second.setitem(..., 1, stream=stream)
        saxpy[4, 256](first, second, 1)
        saxpy[4, 256](second, y, 1)

    graph = gpumem.record(body, x, y)
    report = graph.report()
    assert report._fields == (
        "launches", "copies", "fills", "nodes", "edges", "arena_bytes", "temporary_bytes", "constant_bytes", "driver_graphs",
        "replayed",
    )
    assert report[:5] == (3, 1, 1, 5, 4) and report.temporary_bytes == 8 * LEN and report[7:] == (0, 0, None)
    assert "saxpy" in graph.dot() and "s0 -> s1" in graph.dot()
    assert gpumem.record(lambda stream: None).report() == (0,) * 9 + (None,)


# ---- threads and memory -------------------------------------------------------------------------------------------------


def run(threads):
    failed = []

    def guarded(thread, *arguments):
        try:
            thread(*arguments)
        except BaseException as error:
            failed.append(error)

    all = [threading.Thread(target=guarded, args=each) for each in threads]
    [thread.start() for thread in all]
    [thread.join() for thread in all]
    assert not failed, failed


def test_threads_launch_one_graph():
    x = arrays(floats())[0]

    def body(stream, x, y, a):
        between = gpumem.device_array(LEN, "f4")
        between.setitem(..., 0, stream=stream)
        saxpy[4, 256, stream](x, between, a)
        y.copy_to_device(between, stream=stream)
        return stream.copy_to_host(between)

    graph = gpumem.record(body, x, x, "f4")

    def launches(number):
        y, stream, made = gpumem.to_device(floats(0)), gpumem.stream(), []
        for round in range(20):
            made.append((100 * number + round, graph[stream](x, y, 100 * number + round)))
        for factor, host in made:
            np.testing.assert_array_equal(host, floats(factor))
        np.testing.assert_array_equal(y.copy_to_host(), floats(factor))

    run([(launches, number) for number in range(8)])


def test_threads_record_at_the_same_time():
    def records(number):
        for round in range(10):
            x, y = arrays(floats(), floats(0))
            graph = gpumem.record(step_body, x, y, "f4")
            np.testing.assert_array_equal(graph(x, y, number + round), floats(number + round))

    run([(records, number) for number in range(4)])


def test_a_stream_of_a_body_may_be_used_by_other_threads():
    x, y = arrays(floats(), floats(0))

    def body(stream, x, y):
        run([(lambda: saxpy[4, 256, stream](x, y, 1),)] * 4)

    graph = gpumem.record(body, x, y)
    graph(x, y)
    np.testing.assert_array_equal(y.copy_to_host(), floats(4))


def test_the_collector_takes_a_graph_that_runs():
    started, goes_on = threading.Event(), threading.Event()

    def waits(y):
        started.set()
        goes_on.wait(30)
        y += 1

    kernel, y = gpumem.compile("GPUMEM_KERNEL k(slice<float> y) { }", host=waits), arrays(np.zeros(4, "f4"))[0]

    def body(stream, y):
        kernel[1, 1, stream](y)
        kernel[1, 1, stream](y)
        return stream.copy_to_host(y)

    graph = gpumem.record(body, y)
    made = graph(y)
    started.wait(30)
    del graph, kernel, body
    gc.collect()
    goes_on.set()
    assert np.asarray(made).tolist() == [2] * 4


def test_a_recording_waits_without_pythons_lock():
    y = arrays(floats())[0]
    slow = gpumem.compile("GPUMEM_KERNEL slow(slice<float> y) { }", host=lambda y: sum(range(10**5)))
    for _ in range(5):
        slow[1, 1](y)  # needs the lock, before the elements of the host are uploaded on the same stream
        graph = gpumem.record(lambda stream, y: saxpy[4, 256](gpumem.to_device(floats(), stream=stream), y, 1), y)
        graph(y)
    np.testing.assert_array_equal(y.copy_to_host(), floats(6))


def test_the_end_of_python_while_a_graph_runs():
    program = """if True:
        import pygpumem as gpumem, numpy as np, time
        gpumem.select_device("host")
        kernel = gpumem.compile("GPUMEM_KERNEL k(slice<float> y) { }", host=lambda y: time.sleep(0.1))
        y = gpumem.to_device(np.zeros(4, "f4"))
        graph = gpumem.record(lambda s, y: [kernel[1, 1](y) for _ in range(3)] and None, y)
        [graph(y) for _ in range(3)]"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_graphs_leave_no_memory():
    device, stream = gpumem.Device("host"), gpumem.stream()
    x, y = arrays(floats(), floats(0))

    def body(stream, x, y, a):
        between = gpumem.to_device(floats(), stream=stream)
        saxpy[4, 256, stream](x, between, a)
        saxpy[4, 256, stream](between, y, a)
        return stream.copy_to_host(y), gpumem.to_device(between, stream=stream)

    def cycle():
        graph = gpumem.record(body, x, y, "f4")
        [graph[stream](x, y, 1) for _ in range(3)]
        with pytest.raises(ZeroDivisionError):
            gpumem.record(lambda stream, x: 1 / 0, x)

    def held():
        gc.collect()
        device.synchronize()
        device.flush()
        report = gpumem.memory_report(device).as_dict()
        used = [each["statistics"]["reserved"] for kind in report["kinds"] for each in kind["resources"]]
        return used, report["unnamed_bytes"], report["holders"], sys.getrefcount(body), sys.getrefcount(saxpy)

    cycle()
    before = held()
    for _ in range(100):
        cycle()
    assert held() == before


def test_bodies_of_kernels_are_outside_of_the_contexts_of_the_thread_that_runs_them():
    """A thread that waits runs bodies of work that is pending: those of others, while it records."""
    seen, fills = [], gpumem.compile("GPUMEM_KERNEL fills(slice<float> x) { }", host=lambda x: x.fill(1))

    def body(x):
        own = gpumem.device_array(4, "f4")
        fills[1, 1, gpumem.stream()](own)
        seen.append((repr(gpumem.get_current_device()), own))

    kernel = gpumem.compile("GPUMEM_KERNEL looks(slice<float> x) { }", host=body)
    stream, array = gpumem.stream(), gpumem.to_device(np.zeros(4, "f4"))
    other = gpumem.Device("host:1")

    def records(stream_of_graph, y):
        array.copy_to_host()
        with other:
            array.copy_to_host()

    for _ in range(20):
        kernel[1, 1, stream](array)
    graph = gpumem.record(records, gpumem.to_device(np.zeros(4, "f4")))
    stream.synchronize()
    gpumem.synchronize()
    assert len(seen) == 20 and len({device for device, _ in seen}) == 1
    assert all((own.copy_to_host() == 1).all() for _, own in seen)
    assert graph.report().launches == 0
