"""Objects that refer to themselves through ones of the extension: Python's garbage collector finds them."""

import gc
import pathlib
import re
import weakref

import numpy as np
import pytest

import pygpumem as gpumem
from pygpumem import _native

SOURCE = "GPUMEM_KERNEL k(slice<float> x) {}"
SOURCES = pathlib.Path(__file__).parents[1] / "src"
HAS_GARBAGE_COLLECTION = 1 << 14


class Model:
    """An object with memory of the device."""

    def __init__(self):
        self.weights = gpumem.to_device(np.ones(4, "f4"), device="host")

    def step(self, x):
        pass


class Described(np.ndarray):
    """An array that can have attributes."""


def described(model):
    array = np.ones((4, 2), "f4").view(Described)
    array.model = model
    return array


def kernel(model):
    return gpumem.compile(SOURCE, host=model.step)


def loaded(model):
    own = kernel(model)
    own.load("host")
    gpumem.Device("host").flush()  # what the device has yet to unload
    return own


def recorded(model):
    own = kernel(model)
    gpumem.record(lambda stream, x: own[1, 1, stream](x), model.weights)
    gpumem.Device("host").flush()
    return own


def launched(model):
    stream = gpumem.stream("host")
    launch = kernel(model)[1, 1, stream]
    launch(model.weights)
    stream.synchronize()
    return launch


def group_of_operations(model):
    [alone] = gpumem.Communicator.all([gpumem.Device("host")])
    group = alone.group()
    group.__enter__()
    group.all_reduce(described(model))
    return group


def of_several_groups(model):
    groups = gpumem.Communicator.group_all(gpumem.Communicator.all([gpumem.Device("host")]))
    groups.__enter__()[0].all_reduce(described(model))
    return groups


@pytest.mark.parametrize(
    "make",
    [
        kernel,
        loaded,
        recorded,
        launched,
        gpumem.In,
        lambda model: gpumem.Out([model]),
        lambda model: gpumem.pinned(described(model), device="host"),
        lambda model: gpumem.mapped(described(model), device="host"),
        lambda model: gpumem.chunks(described(model), 1, device="host"),
        group_of_operations,
        of_several_groups,
    ],
)
def test_a_cycle_through_an_object_of_the_extension_is_found(make):
    model = Model()
    model.own = make(model)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_what_is_in_use_is_not_taken_for_garbage():
    """Only a launch that has yet to run refers to the object."""
    ran, stream = [], gpumem.stream("host")

    class Held(Model):
        def step(self, x):
            gc.collect()
            ran.append(x.shape)

    def launch():
        held = Held()
        held.own = kernel(held)
        held.own[1, 1, stream](held.weights)
        return weakref.ref(held)

    gone = launch()
    gc.collect()
    stream.synchronize()
    gc.collect()
    assert ran == [(4,)] and gone() is None


def test_each_class_that_keeps_an_object_tells_the_collector():
    """What a class keeps is `Kept`, and so are the arrays of the operations of a group."""
    sources = [path.read_text() for path in SOURCES.rglob("*.rs")]
    pattern = r"#\[pyclass\(([^)]*)\)\]\n(?:#[^\n]*\n)*(?:pub\(crate\) )?struct (\w+)(.*?)(?:;|\})\n"
    keeping, others = [], set()
    for options, name, fields in (found for text in sources for found in re.findall(pattern, text, re.S)):
        seen_as = re.search(r'name = "(\w+)"', options)
        if re.search("Kept|Operation|Py<", fields):
            keeping.append((name, seen_as.group(1) if seen_as else name))
        else:
            others.add(name)
    told = re.findall(r"impl (\w+) \{\n    fn __traverse__", "\n".join(sources))
    assert sorted(told) == sorted(name for name, _ in keeping)
    public = {name: value for name, value in vars(_native).items() if isinstance(value, type)}
    errors = {name for name, value in public.items() if issubclass(value, Exception)}
    assert {"Stream", "Graph"} <= others and public.keys() <= others | errors | {name for _, name in keeping}
    collected = {name for name in public.keys() - errors if public[name].__flags__ & HAS_GARBAGE_COLLECTION}
    assert collected == {name for _, name in keeping} & public.keys()
