"""Kernels from portable sources, with functions of NumPy as their bodies on the host."""

import pathlib
import sys

import pygpumem as gpumem
import numpy as np
import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "gpu"), str(HERE.parent / "examples")]


@pytest.fixture(autouse=True)
def host():
    gpumem.select_device("host")


def test_launches():
    import scripts

    for _, case in scripts.cases("host", print):
        case()


def test_ports_of_numbas_examples():
    import gpumem_cuda
    import gpumem_roc

    found = gpumem_cuda.main()
    for name in ("increment_by_one", "pinned", "mapped", "mapped_array", "reshape", "ravel"):
        np.testing.assert_array_equal(found[name].ravel(), np.arange(1000, dtype="f4") + 1)
    x, y = np.arange(115 * 30, dtype="f4").reshape(115, 30) % 7, np.ones((30, 175), "f4")
    np.testing.assert_array_equal(found["fast_matmul"], x @ y)
    found, expected = gpumem_roc.main()
    for name, value in found.items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)


def test_bodies_run_in_the_order_of_their_stream():
    double = gpumem.compile("GPUMEM_KERNEL double_it(slice<i64> x) { }", host=lambda x: np.multiply(x, 2, out=x))
    array, streams = gpumem.to_device(np.ones(1000, "i8")), [gpumem.stream() for _ in range(4)]
    for number in range(20):
        double[1, 1, streams[number % 4]](array)
    np.testing.assert_array_equal(array.copy_to_host(), np.full(1000, 1 << 20))
    assert "double_it(x)" in repr(double) and double.name == "double_it"


def test_what_a_body_raises_comes_with_the_next_wait():
    def fails(x):
        raise ZeroDivisionError("the body fails")

    kernel = gpumem.compile("GPUMEM_KERNEL fails(slice<float> x) { }", host=fails)
    device = gpumem.Device("host")
    kernel[1, 1](gpumem.to_device(np.zeros(3, "f4")))
    with pytest.raises(RuntimeError, match="the body fails"):
        device.synchronize()
        gpumem.default_stream().synchronize()


def test_a_body_that_does_not_run_fails():
    def generates(x):
        x[0] = 1
        yield

    async def waits(x):
        x[0] = 1

    for body, kind in [(generates, "Generator"), (waits, "Coroutine")]:
        kernel = gpumem.compile("GPUMEM_KERNEL fails(slice<float> x) { }", host=body)
        kernel[1, 1](gpumem.to_device(np.zeros(3, "f4")))
        with pytest.raises(RuntimeError, match=kind):
            gpumem.default_stream().synchronize()


def test_read_only_parameters():
    seen = []
    kernel = gpumem.compile(
        "GPUMEM_KERNEL looks(slice<const float> x, view<float, 1> y) { }",
        host=lambda x, y: seen.append((x.flags.writeable, y.flags.writeable, y.strides)),
    )
    array = gpumem.to_device(np.zeros(6, "f4"))
    kernel[1, 1](gpumem.to_device(np.zeros(2, "f4")), array[::-2])
    gpumem.synchronize()
    assert seen == [(False, True, (-8,))]


@pytest.mark.parametrize(
    "source, says",
    [
        ("", "no kernel"),
        ("// GPUMEM_KERNEL a(float x) {}", "no kernel"),
        ("/* GPUMEM_KERNEL a(float x) {} */ GPUMEM_KERNEL b(float) {}", "type and a name"),
        ("GPUMEM_KERNEL a(float x", "do not end"),
        ("GPUMEM_KERNEL a", "name and parameters"),
        ("GPUMEM_KERNEL (float x) {}", "no name"),
        ("GPUMEM_KERNEL a(slice<thing> x) {}", "thing"),
        ("GPUMEM_KERNEL a(view<float> x) {}", "rank"),
        ("GPUMEM_KERNEL a(view<float, many> x) {}", "rank"),
        ("GPUMEM_KERNEL a(view<float, 99> x) {}", "axes"),
        ("GPUMEM_KERNEL a(float x,) {}", "type and a name"),
        ("GPUMEM_KERNEL a(slice<float>→x) {}", "not known"),
        ("GPUMEM_KERNEL a() {} GPUMEM_KERNEL b() {}", "several"),
    ],
)
def test_sources_that_cannot_be_read(source, says):
    with pytest.raises(ValueError, match=says):
        gpumem.compile(source)


def test_spellings_of_parameters():
    kernel = gpumem.compile(
        """
        GPUMEM_KERNEL /* a comment, (with) marks < > */ many(
            gpumem::slice< const  float > a, // one
            view<unsigned   int , 2> b, const unsigned long long c,
            slice<complex< double >> d, bool e
        ) { }
        """
    )
    assert repr(kernel) == "<pygpumem.Kernel many(a, b, c, d, e)>"
    for space in "\u00a0\u2028\u3000":  # of several bytes
        assert repr(gpumem.compile(f"GPUMEM_KERNEL a(float{space}x) {{}}")) == "<pygpumem.Kernel a(x)>"
    types = "gpumem::slice<const float>, gpumem::view<gpumem::u32, 2>, gpumem::u64, gpumem::slice<gpumem::complex<double>>, bool"
    assert f"({types})" in kernel.source()
    with pytest.raises(ValueError):
        gpumem.compile("GPUMEM_KERNEL a() {}", "b")
    none = gpumem.compile("GPUMEM_KERNEL a() {}", host=lambda: None)
    none[1, 1]()
    with pytest.raises(ValueError):
        none[(1, 1, 1, 1), 1]
    with pytest.raises((TypeError, ValueError)):
        none[1]


def test_exceptions_that_have_no_text_are_faults_as_others():
    class Nameless(type):
        def __getattribute__(cls, name):
            raise KeyError(name)

    class Strange(Exception, metaclass=Nameless):
        pass

    class Silent(Exception):
        def __str__(self):
            raise ValueError("no text")

    for error in (Strange(), Silent()):

        def fails(y):
            raise error

        kernel = gpumem.compile("GPUMEM_KERNEL fails(slice<float> y) { }", host=fails)
        y = gpumem.to_device(np.zeros(4, "f4"))
        for launch in (gpumem.record(lambda stream, y: kernel[1, 1, stream](y), y), kernel[1, 1]):
            y = gpumem.to_device(np.zeros(4, "f4"))
            launch(y)
            with pytest.raises(gpumem.GpuMemError, match="fails"):
                gpumem.synchronize()
