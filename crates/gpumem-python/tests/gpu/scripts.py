"""Scripts and kernels: the ports of Numba's examples beside numba-cuda, kernels of each side on arrays of the other."""

import pathlib
import subprocess
import sys

import beyond_copies
import collectives
import pygpumem as gpumem
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

SAXPY = """
using namespace gpumem;
GPUMEM_KERNEL saxpy(slice<const float> x, slice<float> y, float a) {
    u64 i = global_id(0);
    if (i < y.size()) y[i] = a * x[i] + y[i];
}
// Every kind of parameter.
GPUMEM_KERNEL kinds(view<const double, 3> x, gpumem::view<double, 2> y, slice<bool> seen, i64 n, u8 m, complex<float> z) {
    u64 i = global_id(0), j = global_id(1);
    if (i < y.extent(0) && j < y.extent(1)) y(i, j) = x(i, j, 0) * n + m + z.re - z.im;
    if (i < seen.size() && j == 0) seen[i] = true;
}
"""


def saxpy_on_host(x, y, a):
    y += a * x


def kinds_on_host(x, y, seen, n, m, z):
    y[:] = x[:, :, 0] * n + m + z.real - z.imag
    seen[:] = True


saxpy = gpumem.compile(SAXPY, "saxpy", host=saxpy_on_host)
kinds = gpumem.compile(SAXPY, name="kinds", host=kinds_on_host)


def refuses(error, call):
    try:
        call()
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


def our_kernel():
    x, y = np.arange(1000, dtype="f4"), np.ones(1000, "f4")
    d_x, d_y, stream = gpumem.to_device(x), gpumem.to_device(y), gpumem.stream()
    saxpy[4, 256, stream](d_x, d_y, 2.5)
    np.testing.assert_array_equal(d_y.copy_to_host(), 2.5 * x + y)
    # Arrays of the host go in, and come back where they may be written.
    saxpy[(4,), (256, 1, 1)](x, y, np.float32(2.5))
    np.testing.assert_array_equal(y, 2.5 * x + 1)
    refuses(TypeError, lambda: saxpy[4, 256](d_x, d_y))
    refuses(TypeError, lambda: saxpy[4, 256](d_x, gpumem.to_device(np.zeros(1000)), 1))
    refuses(TypeError, lambda: saxpy[4, 256](d_x, d_y, "1"))
    refuses(NotImplementedError, lambda: saxpy[4, 256](d_x[::2], d_y[::2], 1))
    refuses(ValueError, lambda: saxpy[4, 256](d_x, d_x[:1].broadcast_to(1000), 1))
    refuses(ValueError, lambda: saxpy[0, 256](d_x, d_y, 1))
    refuses(ValueError, lambda: gpumem.compile(SAXPY))


def kinds_of_parameters():
    x, stream = np.arange(24.0).reshape(2, 3, 4), gpumem.stream()
    y, seen = gpumem.to_device(np.zeros((3, 2))), gpumem.to_device(np.zeros(2, bool))
    kinds[(1, 1), (8, 8), stream](gpumem.to_device(x)[::-1], y.T, seen, -3, 200, 1.5 - 2j)
    np.testing.assert_array_equal(y.copy_to_host().T, x[::-1, :, 0] * -3 + 200 + 3.5)
    assert seen.copy_to_host().all()
    refuses(OverflowError, lambda: kinds[1, 1](gpumem.to_device(x), y.T, seen, -3, 256, 0))


def graphs(device):
    """Graphs of kernels, copies, fills and conversions, with other arrays and numbers each time, and one in another."""

    def body(stream, x, y, a):
        between = gpumem.device_array(1000, "f4")
        between.setitem(..., 1, stream=stream)
        saxpy[4, 256, stream](x, between, a)
        saxpy[4, 256, stream](gpumem.to_device(np.ones(1000, "f4"), stream=stream), between, 2)
        y.setitem(..., between[::-1], stream=stream)  # converted
        return gpumem.to_device(between, stream=stream), stream.copy_to_host(y)

    def run():
        like = gpumem.device_array(1000, "f4"), gpumem.device_array(1000, "f8")
        graph = gpumem.record(body, *like, np.float32)
        twice = gpumem.record(lambda s, x, y, a: (*graph[s](x, y, a), *graph[s](x, y, 3)), *like, np.float32)
        assert graph.report().launches == 3 and twice.report().launches == 6
        x, stream, made = np.arange(1000, dtype="f4"), gpumem.stream(), []
        d_x, ys = gpumem.to_device(x), [gpumem.to_device(np.zeros(1000)) for _ in range(3)]
        for round in range(30):
            made.append((round, graph[stream](d_x, ys[round % 3], round), twice(d_x, ys[round % 3], round)))
        assert graph.report().driver_graphs <= 16
        for round, (copy, host), (_, again, third, _) in made:
            np.testing.assert_array_equal(copy.copy_to_host(), round * x + 3)
            np.testing.assert_array_equal(host, (round * x + 3)[::-1])
            np.testing.assert_array_equal(again, (round * x + 3)[::-1])
            np.testing.assert_array_equal(third.copy_to_host(), 3 * x + 3)
        np.testing.assert_array_equal(ys[0].copy_to_host(), (3 * x + 3)[::-1])
        refuses(ValueError, lambda: graph(d_x, ys[0][::-1], 1))
        refuses(TypeError, lambda: graph(d_x, d_x, 1))

    return run


def what_the_compiler_says(device):
    def run():
        wrong = gpumem.compile("using namespace gpumem; GPUMEM_KERNEL wrong(slice<float> x) { x[0] = nonsense; }")
        if device == "host":
            refuses(NotImplementedError, lambda: wrong.load())
            return
        try:
            wrong.load()
        except Exception as error:
            assert "nonsense" in str(error), error
        else:
            raise AssertionError("it compiles")

    return run


def port_of_roc():
    import gpumem_roc

    found, expected = gpumem_roc.main()
    for name, value in found.items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)


def port_of_cuda():
    import gpumem_cuda

    from peers import Numba

    Numba("cuda:0")  # puts back what numba misses
    import original_numba as original

    mine, theirs = gpumem_cuda.main(), original.main()
    assert list(mine) == list(theirs)
    for name, value in mine.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)


def our_kernel_their_arrays(name):
    def run():
        from peers import PEERS

        peer = PEERS[name]("cuda:0")
        x, y = peer.make(np.arange(1000, dtype="f4")), peer.make(np.ones(1000, "f4"))
        peer.settle()
        saxpy[4, 256](x, y, 2.0)
        gpumem.synchronize()
        np.testing.assert_array_equal(peer.numpy(y), 2 * np.arange(1000, dtype="f4") + 1)

    return run


def their_kernel_our_arrays():
    from peers import Numba

    cuda = Numba("cuda:0").cuda

    @cuda.jit
    def saxpy_of_numba(x, y, a):
        i = cuda.grid(1)
        if i < y.size:
            y[i] = a * x[i] + y[i]

    x, y = gpumem.to_device(np.arange(1000, dtype="f4")), gpumem.to_device(np.ones(1000, "f4"))
    saxpy_of_numba[4, 256](x, y, 2.0)
    cuda.synchronize()
    np.testing.assert_array_equal(y.copy_to_host(), 2 * np.arange(1000, dtype="f4") + 1)
    # And an ufunc of CuPy, on a strided view.
    import cupy

    part = cupy.asarray(y[::2])
    part += 1
    cupy.cuda.Device().synchronize()
    np.testing.assert_array_equal(y.copy_to_host()[::2], 2 * np.arange(0, 1000, 2, dtype="f4") + 2)


NEGATIVE = """
import sys, numpy as np, torch, pygpumem as gpumem
gpumem.select_device("cuda:0")
if sys.argv[1] == "cupy":
    import cupy
    given = cupy.arange(8, dtype="u1")[::-1]  # bytes, whose strides CuPy divides right
else:
    given = np.arange(8)[::-1] if sys.argv[1] == "numpy" else gpumem.to_device(np.arange(8))[::-1]
try:
    torch.from_dlpack(given)
    print("taken")
except Exception as error:
    print("refused by", type(error).__name__)
"""


def negative_strides_in_torch(say):
    """PyTorch has no negative strides. It handles them in its own way, for every producer."""

    def run():
        ends = {}
        for giver in ("numpy", "cupy", "gpumem"):
            done = subprocess.run([sys.executable, "-c", NEGATIVE, giver], capture_output=True, text=True, timeout=40)
            ends[giver] = done.stdout.strip() or f"the process ends with {done.returncode}"
        say("note", f"PyTorch and negative strides in DLPack: {ends}")
        assert ends["gpumem"] in (ends["cupy"], ends["numpy"]), ends

    return run


def cases(device, say):
    found = [
        ("kernel: ours", our_kernel),
        ("kernel: every kind of parameter", kinds_of_parameters),
        ("kernel: graphs", graphs(device)),
        ("kernel: what the compiler says", what_the_compiler_says(device)),
        ("script: numba.roc", port_of_roc),
        *beyond_copies.cases(),
        *collectives.cases(device),
    ]
    if device != "host":
        found.append(("script: numba.cuda beside numba-cuda", port_of_cuda))
        found += [(f"kernel: ours on arrays of {name}", our_kernel_their_arrays(name)) for name in ("cupy", "numba", "torch")]
        found.append(("torch: negative strides", negative_strides_in_torch(say)))
        found.append(("kernel: numba's and CuPy's on our arrays", their_kernel_our_arrays))
    return found
