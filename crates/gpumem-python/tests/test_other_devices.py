"""A stream of another device is an error in every call that takes one."""

import inspect
import tempfile

import pygpumem as gpumem
import numpy as np
import pytest

HERE, THERE = gpumem.Device("host:0"), gpumem.Device("host:1")


@pytest.fixture(autouse=True)
def here():
    gpumem.select_device("host:0")


def array(values=(1.0, 2.0, 3.0, 4.0), device=HERE):
    return gpumem.to_device(np.array(values, "f4"), device=device)


def pinned():
    return gpumem.pinned_array(4, "f4", device=HERE)


FOLDER = tempfile.TemporaryDirectory()


def saved(ending):
    path = f"{FOLDER.name}/x.{ending}"
    gpumem.save(path, array() if ending == "npy" else {"x": array()})
    return path


def makes(call):
    """With the device named, and beside an array."""
    return lambda stream: call(stream, HERE)


def ranks(call):
    def run(stream):
        both = gpumem.Communicator.all([HERE, THERE], timeout=20)
        call(*both, stream)
        for rank in both:
            rank.synchronize()

    return run


def each(call):
    """One operation on both ranks; the first one names the stream."""

    @ranks
    def run(first, second, stream):
        call(first, lambda *values: array(*values, device=HERE), {"stream": stream})
        call(second, lambda *values: array(*values, device=THERE), {})

    return run


# For every call: how it is made about something of the first device.
CALLS = {
    "device_array": makes(lambda stream, device: gpumem.device_array(4, stream=stream, device=device)),
    "device_array_like": makes(lambda stream, device: gpumem.device_array_like(array(), stream=stream, device=device)),
    "to_device": lambda stream: (
        gpumem.to_device(np.zeros(4, "f4"), stream=stream, to=array()),
        gpumem.to_device(np.zeros(4, "f4"), stream=stream, copy=False, to=array()),
        gpumem.to_device(np.zeros(4, "f4"), stream=stream, device=HERE),
        gpumem.to_device(array(), stream=stream, device=HERE),
        gpumem.to_device(array(), stream=stream, copy=False, device=HERE),
        gpumem.to_device(pinned(), stream=stream, device=HERE),
    ),
    "mapped_array": makes(lambda stream, device: gpumem.mapped_array(4, stream=stream, device=device)),
    "mapped_array_like": makes(lambda stream, device: gpumem.mapped_array_like(array(), stream=stream, device=device)),
    "managed_array": makes(lambda stream, device: gpumem.managed_array(4, stream=stream, device=device)),
    "managed_array_like": makes(lambda stream, device: gpumem.managed_array_like(array(), stream=stream, device=device)),
    "load": makes(lambda stream, device: [gpumem.load(saved(of), device, stream) for of in ("npy", "safetensors")]),
    "FileView.to_device": makes(lambda stream, device: gpumem.open(saved("npy")).to_device(stream, device)),
    "SpillManager.wake": lambda stream: gpumem.SpillManager(HERE).wake(stream),
    "Spillable.get": lambda stream: gpumem.SpillManager(HERE).add(array()).get(stream),
    "Spillable.prefetch": lambda stream: gpumem.SpillManager(HERE).add(array()).prefetch(stream),
    "DeviceNDArray.copy_to_host": lambda stream: array().copy_to_host(stream=stream),
    "DeviceNDArray.copy_to_device": lambda stream: array().copy_to_device(np.zeros(4, "f4"), stream),
    "DeviceNDArray.split": lambda stream: array().split(2, stream),
    "DeviceNDArray.squeeze": lambda stream: array().squeeze(stream=stream),
    "DeviceNDArray.bind": lambda stream: array().bind(stream),
    "DeviceNDArray.getitem": lambda stream: array().getitem(0, stream),
    "DeviceNDArray.setitem": lambda stream: array().setitem(0, 1, stream),
    "Event.record": lambda stream: gpumem.event(device=HERE).record(stream),
    "Communicator.all_reduce": each(lambda rank, own, on: rank.all_reduce(own(), **on)),
    "Communicator.reduce": each(lambda rank, own, on: rank.reduce(own(), own(), **on)),
    "Communicator.broadcast": each(lambda rank, own, on: rank.broadcast(own(), **on)),
    "Communicator.all_gather": each(lambda rank, own, on: rank.all_gather(own((1, 2)), own(), **on)),
    "Communicator.all_to_all": each(lambda rank, own, on: rank.all_to_all(own(), own(), **on)),
    "Communicator.all_to_all_v": each(lambda rank, own, on: rank.all_to_all_v(own(), [2, 2], own(), [2, 2], **on)),
    "Communicator.reduce_scatter": each(lambda rank, own, on: rank.reduce_scatter(own(), own((1, 2)), **on)),
    "Communicator.gather": each(lambda rank, own, on: rank.gather(own((1, 2)), own(), **on)),
    "Communicator.scatter": each(lambda rank, own, on: rank.scatter(own(), own((1, 2)), **on)),
    "Communicator.barrier": each(lambda rank, own, on: rank.barrier(**on)),
    "Communicator.send": ranks(lambda one, two, stream: (one.send(array(), 1, stream), two.receive(array(device=THERE), 0))),
    "Communicator.receive": ranks(lambda one, two, stream: (one.receive(array(), 1, stream), two.send(array(device=THERE), 0))),
    "Communicator.group": ranks(lambda one, two, stream: one.group(stream)),
    "Communicator.synchronize": ranks(lambda one, two, stream: one.synchronize(stream)),
}
# Calls whose stream may be of any device, and why.
FREE = {"Event.wait"}  # so work of one device waits for that of another
FREE |= {"serve_memory", "ServedMemory.free"}  # by the driver's handle, which is believed


def taking_streams():
    """The names of all calls with a parameter `stream`."""
    for name, found in vars(gpumem).items():
        members = {name: found}
        if isinstance(found, type) and not issubclass(found, Exception):
            members = {f"{name}.{each}": value for each, value in vars(found).items() if not each.startswith("_")}
        for each, value in members.items():
            if not each.startswith("_") and callable(value) and not isinstance(value, type):
                if "stream" in inspect.signature(value).parameters:
                    yield each


def test_all_calls_are_tried():
    assert set(CALLS) | FREE == set(taking_streams())


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_stream_of_another_device_is_refused(call):
    call(gpumem.stream(HERE))
    call(0)
    call(None)
    with pytest.raises(ValueError, match="the stream belongs to host:1, and host:0 was expected"):
        call(gpumem.stream(THERE))


def test_every_way_to_device_is_refused():
    for to in (lambda stream: gpumem.to_device(np.zeros(4, "f4"), stream, to=array()),
               lambda stream: gpumem.to_device(np.zeros(4, "f4"), stream, copy=False, to=array()),
               lambda stream: gpumem.to_device(np.zeros(4, "f4"), stream, copy=False, device=HERE),
               lambda stream: gpumem.to_device(np.zeros(4, "f4"), stream, device=HERE),
               lambda stream: gpumem.to_device(array(), stream, device=HERE),
               lambda stream: gpumem.to_device(pinned(), stream, device=HERE),
               lambda stream: array().copy_to_device(pinned(), stream),
               lambda stream: array().copy_to_device(array(), stream),
               lambda stream: array().copy_to_host(pinned(), stream),
               lambda stream: array().setitem(slice(None), array(), stream),
               lambda stream: array().setitem(slice(None), np.zeros(4), stream),
               lambda stream: array().setitem(slice(None), gpumem.to_device(np.zeros(4)), stream)):  # fmt: skip
        to(gpumem.stream(HERE))
        with pytest.raises(ValueError, match="the stream belongs to host:1"):
            to(gpumem.stream(THERE))


def test_without_a_device_the_stream_chooses_it():
    for made in (
        gpumem.device_array(4, stream=gpumem.stream(THERE)),
        gpumem.device_array_like(array(), stream=gpumem.stream(THERE)),
        gpumem.to_device(np.zeros(4), stream=gpumem.stream(THERE)),
        gpumem.to_device(array(), stream=gpumem.stream(THERE)),
        gpumem.load(saved("npy"), stream=gpumem.stream(THERE)),
        gpumem.load(saved("safetensors"), stream=gpumem.stream(THERE))["x"],
    ):
        assert made.device == THERE
    with pytest.raises(ValueError, match="another device"):
        gpumem.to_device(np.zeros(4, "f4"), to=array(), device=THERE)


def test_a_device_is_given_by_its_name_too():
    assert gpumem.to_device(np.zeros(4), device="host:1").device == THERE
    assert gpumem.stream("host:1").device == THERE
    assert [rank.device for rank in gpumem.Communicator.all(["host:0", THERE])] == [HERE, THERE]
    with pytest.raises(gpumem.GpuMemError, match="host:7"):
        gpumem.device_array(4, device="host:7")
    for wrong in 1, b"host", ["host:1"]:
        with pytest.raises(TypeError, match="a device is a pygpumem.Device, or its name"):
            gpumem.device_array(4, device=wrong)


def test_launches_on_a_stream_of_another_device_are_refused():
    kernel = gpumem.compile("GPUMEM_KERNEL k(slice<float> y) { }", host=lambda y: None)
    kernel[1, 1, gpumem.stream(THERE)](np.zeros(4, "f4"))
    with pytest.raises(ValueError, match="belongs to host:0, and host:1 was expected"):
        kernel[1, 1, gpumem.stream(THERE)](array())


def test_devices_wait_for_each_other_by_events():
    event = gpumem.event(device=HERE)
    event.record(gpumem.stream(HERE))
    there = gpumem.stream(THERE)
    event.wait(there)
    there.synchronize()
