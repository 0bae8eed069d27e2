"""gpumem: Numba's GPU memory model over CUDA, ROCm and the host."""

from asyncio import Future
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_void_p
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal, NamedTuple, NoReturn, Protocol, SupportsIndex, final

import numpy as np
import numpy.typing as npt

__version__: str

_Shape = SupportsIndex | Sequence[int]
_Key = Any
_StreamOrNone = Stream | Literal[0] | None
_Device = Device | str

class _HasInterface(Protocol):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

class _HasDlpack(Protocol):
    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

_Source = npt.ArrayLike | DeviceNDArray | HostNDArray | _HasInterface

class GpuMemError(RuntimeError):
    """An error that a driver or a device reports."""

class _MemoryInfo(NamedTuple):
    free: int
    total: int

@final
class Device:
    """A device, opened by name: ``host``, ``cuda:1``, ``roc:0``; without a name the current device."""

    def __new__(cls, name: str | None = None) -> Device: ...
    @property
    def name(self) -> str: ...
    @property
    def product(self) -> str: ...
    @property
    def id(self) -> int: ...
    @property
    def architecture(self) -> str: ...
    @property
    def compute_capability(self) -> tuple[int, int]:
        """Of NVIDIA's GPUs."""
    def can_access_peer(self, peer: _Device | int) -> bool:
        """Whether it can reach the memory of another directly. Copies work without."""
    def memory_info(self) -> _MemoryInfo:
        """Free and total bytes."""
    def get_memory_info(self) -> _MemoryInfo: ...
    def __enter__(self) -> Device:
        """Makes it the current device of this thread while the context lasts."""
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> bool: ...
    def synchronize(self) -> None: ...
    def flush(self) -> None:
        """Gives memory that was dropped back to the driver."""
    def reset(self) -> None:
        """Waits, and does the same. Arrays stay valid."""

class _Context:
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> bool: ...

class _AutoSynchronize(_Context):
    def __enter__(self) -> Stream: ...

class _Pinned(_Context):
    def __enter__(self) -> tuple[HostNDArray, ...]: ...

class _Mapped(_Context):
    def __enter__(self) -> Any:
        """The device array of one array, a list of those of several."""

class _Registered(_Context):
    def __enter__(self) -> tuple[npt.NDArray[Any], ...]: ...

class _Deferring(_Context):
    def __enter__(self) -> None: ...

class _MemoryRecording(_Context):
    def __enter__(self) -> None: ...

@final
class Stream:
    """A queue of work. If work on two streams uses one array, the library orders it."""

    @property
    def handle(self) -> int: ...
    @property
    def device(self) -> Device: ...
    def synchronize(self) -> None: ...
    def query(self) -> bool: ...
    def auto_synchronize(self) -> _AutoSynchronize: ...
    def copy_to_host(self, ary: DeviceNDArray) -> HostNDArray:
        """A page-locked copy, which is enqueued. Looking at it waits."""
    def add_callback(self, callback: Callable[[Stream, Any, Any], object], arg: Any = None) -> None:
        """Calls ``callback(stream, status, arg)`` once everything enqueued so far is done. The status is 0, or the error."""
    def async_done(self) -> Future[Stream]: ...
    def __cuda_stream__(self) -> tuple[int, int]: ...

@final
class Communicator:
    """One rank of a group of ranks that exchange arrays. Every rank calls the same operations in the same order.

    Operations return at once, unless an array is one of the host: then they wait, and the result is in it. Without a stream
    they run on a stream of the communicator."""

    @staticmethod
    def from_environment(device: _Device | None = None, *, timeout: float | None = None, check: bool | None = None) -> Communicator:
        """Joins the processes that ``mpiexec``, ``torchrun`` or ``srun`` has started, and waits for them."""
    @staticmethod
    def library(name: Literal["nccl", "rccl"] = "nccl") -> tuple[Path, str]:
        """The file of the library of collectives for GPUs, and the version of NCCL's interface. A copy that PyTorch or CuPy
        has loaded is used, and otherwise also that of the package ``nvidia-nccl``."""
    @staticmethod
    def process() -> tuple[int, int, int | None]:
        """Rank, number of processes, and rank on this machine (or ``None``), as the launcher tells them."""
    @staticmethod
    def all(devices: Sequence[_Device], *, timeout: float | None = None) -> list[Communicator]:
        """A communicator for each device, in this process."""
    @staticmethod
    def unique_id(device: _Device | None = None) -> bytes:
        """The bytes of an identity for ``join``. One rank makes it, and passes it to the others."""
    @staticmethod
    def join(
        id: bytes, rank: int, size: int, device: _Device | None = None, *, timeout: float | None = None, check: bool | None = None
    ) -> Communicator: ...
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def device(self) -> Device: ...
    @property
    def stream(self) -> Stream: ...
    def all_reduce(self, source: Any, destination: Any = None, op: str = "sum", stream: _StreamOrNone = None) -> None:
        """Reduces over all ranks, into ``destination`` or in place. ``op`` is sum, prod, min, max or avg."""
    def reduce(
        self, source: Any, destination: Any = None, op: str = "sum", root: int = 0, stream: _StreamOrNone = None
    ) -> None: ...
    def broadcast(self, array: Any, root: int = 0, stream: _StreamOrNone = None) -> None: ...
    def all_gather(self, source: Any, destination: Any, stream: _StreamOrNone = None) -> None: ...
    def all_to_all(self, source: Any, destination: Any, stream: _StreamOrNone = None) -> None: ...
    def all_to_all_v(
        self, source: Any, sent: Sequence[int], destination: Any, received: Sequence[int], stream: _StreamOrNone = None
    ) -> None:
        """As ``all_to_all``, with blocks of ``sent[i]`` and ``received[j]`` rows."""
    def reduce_scatter(self, source: Any, destination: Any, op: str = "sum", stream: _StreamOrNone = None) -> None: ...
    def gather(self, source: Any, destination: Any = None, root: int = 0, stream: _StreamOrNone = None) -> None: ...
    def scatter(self, source: Any, destination: Any, root: int = 0, stream: _StreamOrNone = None) -> None: ...
    def send(self, array: Any, to: int, stream: _StreamOrNone = None) -> None: ...
    def receive(self, array: Any, source: int, stream: _StreamOrNone = None) -> None: ...
    def barrier(self, stream: _StreamOrNone = None) -> None: ...
    def group(self, stream: _StreamOrNone = None) -> Group:
        """A context manager that collects operations, and enqueues them at its end as one piece of work."""
    @staticmethod
    def group_all(communicators: Sequence[Communicator]) -> Groups:
        """As ``group``, for several ranks that one thread drives: on GPUs it has to call their operations in this way."""
    def synchronize(self, stream: _StreamOrNone = None) -> None:
        """Waits until the operations of the stream are done."""
    def split(self, colour: int | None, key: int = 0) -> Communicator | None:
        """Forms communicators of the ranks that say the same colour. Waits for all ranks."""
    def abort(self) -> None: ...
    def destroy(self) -> None:
        """Gives the communicator up. Raises its last failure."""

@final
class Group:
    """Operations that are enqueued together at the end of a ``with`` statement. An exchange with neighbours needs that,
    because a send alone may wait for its receive."""

    def __enter__(self) -> Group: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def all_reduce(self, source: Any, destination: Any = None, op: str = "sum") -> None:
        """Reduces over all ranks, into ``destination`` or in place. ``op`` is sum, prod, min, max or avg."""
    def reduce(self, source: Any, destination: Any = None, op: str = "sum", root: int = 0) -> None: ...
    def broadcast(self, array: Any, root: int = 0) -> None: ...
    def all_gather(self, source: Any, destination: Any) -> None: ...
    def all_to_all(self, source: Any, destination: Any) -> None: ...
    def all_to_all_v(self, source: Any, sent: Sequence[int], destination: Any, received: Sequence[int]) -> None:
        """As ``all_to_all``, with blocks of ``sent[i]`` and ``received[j]`` rows."""
    def reduce_scatter(self, source: Any, destination: Any, op: str = "sum") -> None: ...
    def gather(self, source: Any, destination: Any = None, root: int = 0) -> None: ...
    def scatter(self, source: Any, destination: Any, root: int = 0) -> None: ...
    def send(self, array: Any, to: int) -> None: ...
    def receive(self, array: Any, source: int) -> None: ...
    def barrier(self) -> None: ...

@final
class Groups:
    """A group for each of several ranks. All of their operations are enqueued together at the end of a ``with`` statement."""

    def __enter__(self) -> list[Group]: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

@final
class Event:
    """A mark in a stream. It is recorded on one, and can be waited for by others and by the host."""

    def record(self, stream: _StreamOrNone = None) -> None: ...
    def wait(self, stream: _StreamOrNone = None) -> None:
        """Makes all later work of the stream wait for the recorded position."""
    def synchronize(self) -> None: ...
    def query(self) -> bool: ...
    def elapsed_time(self, evtend: Event) -> float:
        """Milliseconds from this event to another."""

@final
class IpcArrayHandle:
    """Where another process finds an array. It can be pickled, and opened there; as a context it is closed at its end."""

    def __new__(cls, data: bytes, dtype: npt.DTypeLike) -> IpcArrayHandle: ...
    def open(self, device: _Device | None = None) -> DeviceNDArray: ...
    def close(self) -> None: ...
    def __enter__(self) -> DeviceNDArray: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

class _Gpus:
    """The GPUs of every backend, by number."""

    @property
    def lst(self) -> list[Device]: ...
    @property
    def current(self) -> Device: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Device: ...
    def __iter__(self) -> Iterator[Device]: ...

gpus: _Gpus

@final
class DeviceNDArray:
    """An n-d array in memory of a device, or a view of one. Its elements are numbers, dates, records or texts; one record
    is an array without axes. It has no operators: ``copy_to_host()`` gives an array that has."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def alloc_size(self) -> int: ...
    @property
    def stream(self) -> Literal[0]: ...
    @property
    def device_ctypes_pointer(self) -> c_void_p: ...
    @property
    def gpu_data(self) -> DeviceNDArray: ...
    @property
    def device(self) -> Device: ...
    @property
    def flags(self) -> dict[str, bool]: ...
    @property
    def owner(self) -> Any | None: ...
    @property
    def T(self) -> DeviceNDArray: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def is_c_contiguous(self) -> bool: ...
    def is_f_contiguous(self) -> bool: ...
    def copy_to_host(
        self, ary: npt.NDArray[Any] | HostNDArray | None = None, stream: _StreamOrNone = None
    ) -> npt.NDArray[Any]:
        """The elements in a new array, or in ``ary``. They are there on return, except with a stream and a page-locked
        ``ary``: that copy is only enqueued."""
    def copy_to_device(self, ary: _Source, stream: _StreamOrNone = None) -> None: ...
    def reshape(self, *shape: int | Sequence[int], order: Literal["C", "F", "A"] = "C") -> DeviceNDArray: ...
    def ravel(self, order: Literal["C", "F", "A", "K"] = "C") -> DeviceNDArray: ...
    def view(self, dtype: npt.DTypeLike | None = None) -> DeviceNDArray:
        """The same bytes as elements of another type. Where the sizes differ, the last axis is cut or joined."""
    def broadcast_to(self, shape: _Shape) -> DeviceNDArray:
        """The elements repeated along new and short axes, to be read."""
    def split(self, section: int, stream: _StreamOrNone = None) -> list[DeviceNDArray]:
        """Parts of ``section`` elements along the first axis; the last may be smaller."""
    def squeeze(self, axis: int | tuple[int, ...] | None = None, stream: _StreamOrNone = None) -> DeviceNDArray:
        """The elements without axes of length one, or without those that ``axis`` names."""
    def transpose(self, *axes: int | Sequence[int] | None) -> DeviceNDArray: ...
    def bind(self, stream: _StreamOrNone = None) -> DeviceNDArray:
        """The array itself: arrays have no stream of their own."""
    def get_ipc_handle(self) -> IpcArrayHandle: ...
    def getitem(self, item: _Key, stream: _StreamOrNone = None) -> Any: ...
    def setitem(self, key: _Key, value: _Source, stream: _StreamOrNone = None) -> None: ...
    def __getitem__(self, key: _Key, /) -> Any: ...
    def __setitem__(self, key: _Key, value: _Source, /) -> None:
        """Assigns to a part, broadcast and converted: values on a device are converted there."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __bool__(self) -> bool: ...
    def __array_ufunc__(self, ufunc: Any, method: str, *_inputs: Any, **_options: Any) -> NoReturn: ...
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]: ...
    __dlpack_c_exchange_api__: ClassVar[object]
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...

@final
class HostNDArray:
    """A page-locked, mapped or managed array. ``numpy.asarray`` of it is a NumPy array over the same memory."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device_view(self) -> DeviceNDArray: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]: ...
    def __getitem__(self, key: _Key, /) -> Any: ...
    def __setitem__(self, key: _Key, value: npt.ArrayLike, /) -> None: ...
    def __len__(self) -> int: ...

@final
class MemoryReport:
    """The holders of a device's memory: text by ``str``."""

    def as_dict(self) -> dict[str, Any]:
        """The report as a dictionary; ``served`` has the bytes of each other library whose memory it is."""
    def json(self) -> str: ...

@final
class ServedMemory:
    """Memory of a device that another library uses by its address. It goes back to the pool when this is dropped."""

    @property
    def address(self) -> int:
        """The address of the first byte; 0 where there is none."""
    @property
    def nbytes(self) -> int: ...
    def free(self, stream: int | None = None) -> None:
        """Gives the memory back after the work that is on a stream now, by the handle of the driver's stream, which must be alive.
        Without one that is the stream of the allocation if its owner is known, else every stream of the device. Once more does
        nothing."""

@final
class MemoryVerdict:
    """Whether a recording fits into a pool with a limit: its truth value, and a sentence by ``str``."""

    @property
    def fits(self) -> bool: ...
    @property
    def limit(self) -> int: ...
    @property
    def failures(self) -> int: ...
    @property
    def peak_used(self) -> int: ...
    @property
    def peak_reserved(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class Kernel:
    """A kernel from a portable source, launched as ``kernel[grid, block, stream, shared_bytes](*arguments)``."""

    @property
    def name(self) -> str: ...
    def load(self, device: _Device | None = None) -> None:
        """Compiles it now, and not with its first launch."""
    def source(self, wave_size: int = 32) -> str | None:
        """The text that a device's compiler gets."""
    def __getitem__(self, key: tuple[Any, ...], /) -> Callable[..., None]: ...

@final
class FileView:
    """An array in a file, or a part of one. It reads what it needs, when it is copied to a device. As a context it is closed at its
    end; parts that were made of it keep the file open as long as they live."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type. Floats of eight bits or fewer are bytes."""
    @property
    def file_dtype(self) -> str:
        """The type as the file names it: ``F8_E4M3``, ``<f4``."""
    @property
    def ndim(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def to_device(self, stream: _StreamOrNone = None, device: _Device | None = None) -> DeviceNDArray:
        """A new array of the elements. With a stream they have been read on return, and the copy is in its order."""
    def __getitem__(self, key: _Key, /) -> FileView:
        """A part, by a key that NumPy calls basic. Nothing is read."""
    def __len__(self) -> int: ...
    def __array__(self, *_arguments: Any, **_options: Any) -> NoReturn: ...
    def __enter__(self) -> FileView: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> bool: ...

@final
class ArrayFile:
    """The arrays of an npz file, or of one or several safetensors files, by name. Nothing of them has been read. As a context they are
    closed at its end; views of arrays keep the files open as long as they live."""

    def keys(self) -> list[str]:
        """The names, file by file and in the order of their bytes."""
    def metadata(self) -> dict[str, str]:
        """The texts that safetensors files have beside their tensors."""
    def __getitem__(self, name: str, /) -> FileView:
        """An array, as a view that reads what it needs. One of an npz file is read once before, for its checksum."""
    def __contains__(self, name: object, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __enter__(self) -> ArrayFile: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> bool: ...

class _Slept(NamedTuple):
    evicted: int
    returned: int
    kept: int
    error: str | None

class _SpillReport(NamedTuple):
    device_bytes: int
    host_bytes: int
    downloaded_bytes: int
    uploaded_bytes: int

@final
class SpillManager:
    """The arrays of one device that may leave it. When an allocation on the device finds no memory, arrays that are not in use are
    copied to page-locked memory, at most ``host_bytes`` of it; the order says which ones first."""

    def __new__(
        cls,
        device: _Device | None = None,
        *,
        host_bytes: int | None = None,
        order: Literal["least_recent", "most_recent"] = "least_recent",
    ) -> SpillManager: ...
    def add(self, source: _Source | FileView) -> Spillable:
        """An array that may leave the device. One in a file is read when it is used, and read again after it has left, unless it was
        written. Others are copied to the device now."""
    def sleep(self) -> _Slept:
        """Makes all arrays leave the device that can, and gives idle memory back to the driver. Returns the bytes that have left,
        that the driver has again, and of the arrays that stay, and why the first of them could not leave, if it failed."""
    def wake(self, stream: _StreamOrNone = None) -> int:
        """Brings back what has left by ``sleep`` and has not been used since, in the order of a stream. Returns its bytes."""
    def report(self) -> _SpillReport: ...
    @property
    def device(self) -> Device: ...

@final
class Spillable:
    """An array that may leave the device. It stays as long as an array that ``get`` has returned lives."""

    def get(self, stream: _StreamOrNone = None, write: bool = False) -> DeviceNDArray:
        """The array, which is brought back in the order of a stream if it has left. It can only be read, unless ``write`` says that
        it is written. Take it late, and keep it for no longer than it is used."""
    def prefetch(self, stream: _StreamOrNone = None) -> None:
        """Brings the array back ahead of its use."""
    def evict(self) -> bool:
        """Makes the array leave the device, if it is not in use. Returns whether it has left just now."""
    def is_resident(self) -> bool: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> Device: ...

@final
class Varying:
    """A number that each launch of a graph gives, as the body of the graph sees it: an argument of kernels and of graphs."""

    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __bool__(self) -> NoReturn: ...
    def __array__(self, *_arguments: Any, **_options: Any) -> NoReturn: ...

class _GraphReport(NamedTuple):
    launches: int
    copies: int
    fills: int
    nodes: int
    edges: int
    arena_bytes: int
    temporary_bytes: int
    constant_bytes: int
    driver_graphs: int
    replayed: str | None

@final
class Graph:
    """Work that was recorded once, launched as ``graph(*arguments)`` or ``graph[stream](*arguments)``. Arguments have the types,
    shapes and strides that were recorded. A launch returns at once what the body has returned, made anew."""

    @property
    def device(self) -> Device: ...
    def report(self) -> _GraphReport:
        """What it consists of, how many graphs of the driver it keeps, and why launches enqueue all calls one by one if they do."""
    def dot(self) -> str:
        """A picture in the language of Graphviz."""
    def __call__(self, *arguments: Any) -> Any: ...
    def __getitem__(self, stream: _StreamOrNone, /) -> Callable[..., Any]: ...

def record(body: Callable[..., Any], *like: Any, device: _Device | None = None) -> Graph:
    """Runs ``body(stream, *like)`` once and records what it enqueues on its stream, to be done by each launch.

    ``like`` has device arrays, of which each launch gives others (it may write all but read-only ones), types of numbers, which are
    ``Varying`` in the body, and lists and tuples of them. The body returns arrays that it has made, from ``device_array`` and
    ``stream.copy_to_host``, ``None``, and tuples and lists of them."""

def list_devices() -> list[str]: ...
def unavailable() -> dict[str, str]:
    """The backends whose devices cannot be listed, with the reasons."""

class _Direction: ...

def In(array: Any) -> _Direction:
    """An array of the host for a launch, which is copied to the device and not back."""

def Out(array: Any) -> _Direction:
    """An array of the host for a launch, which is copied back and not to the device. The kernel writes all elements."""

def InOut(array: Any) -> _Direction: ...
def get_current_device() -> Device: ...
def select_device(name: str | int) -> Device: ...
def current_context(devnum: int | None = None) -> Device:
    """The current device, or the GPU of a number: it stands for Numba's context."""

def is_available() -> bool:
    """Whether there is a GPU that can be used."""

def synchronize() -> None: ...
def stream(device: _Device | None = None) -> Stream: ...
def default_stream(device: _Device | None = None) -> Stream: ...
def legacy_default_stream(device: _Device | None = None) -> Stream: ...
def per_thread_default_stream(device: _Device | None = None) -> Stream: ...
def event(timing: bool = True, device: _Device | None = None) -> Event: ...
def event_elapsed_time(evtstart: Event, evtend: Event) -> float: ...
def external_stream(handle: int, owner: Any = None, device: _Device | None = None) -> Stream: ...
def device_array(
    shape: _Shape,
    dtype: npt.DTypeLike | None = None,
    strides: Sequence[int] | None = None,
    order: str = "C",
    stream: _StreamOrNone = None,
    device: _Device | None = None,
) -> DeviceNDArray:
    """A new array; without a ``dtype`` of float64, as in Numba. Its elements are uninitialised."""

def device_array_like(ary: _Source, stream: _StreamOrNone = None, device: _Device | None = None) -> DeviceNDArray: ...
def to_device(
    obj: _Source | FileView,
    stream: _StreamOrNone = None,
    copy: bool = True,
    to: DeviceNDArray | None = None,
    device: _Device | None = None,
) -> DeviceNDArray: ...
def pinned_array(
    shape: _Shape,
    dtype: npt.DTypeLike | None = None,
    strides: Sequence[int] | None = None,
    order: str = "C",
    device: _Device | None = None,
) -> HostNDArray: ...
def mapped_array(
    shape: _Shape,
    dtype: npt.DTypeLike | None = None,
    strides: Sequence[int] | None = None,
    order: str = "C",
    stream: _StreamOrNone = None,
    portable: bool = False,
    wc: bool = False,
    device: _Device | None = None,
) -> HostNDArray: ...
def pinned_array_like(ary: _Source, device: _Device | None = None) -> HostNDArray: ...
def mapped_array_like(
    ary: _Source,
    stream: _StreamOrNone = None,
    portable: bool = False,
    wc: bool = False,
    device: _Device | None = None,
) -> HostNDArray: ...
def managed_array(
    shape: _Shape,
    dtype: npt.DTypeLike | None = None,
    strides: Sequence[int] | None = None,
    order: str = "C",
    stream: _StreamOrNone = None,
    attach_global: bool = True,
    device: _Device | None = None,
) -> HostNDArray:
    """A new array of zeros that migrates between host and device. Looking at it waits for the device."""

def managed_array_like(
    ary: _Source, stream: _StreamOrNone = None, attach_global: bool = True, device: _Device | None = None
) -> HostNDArray: ...
def ipc_array(
    shape: _Shape,
    dtype: npt.DTypeLike | None = None,
    strides: Sequence[int] | None = None,
    order: str = "C",
    device: _Device | None = None,
) -> DeviceNDArray:
    """A new array of zeros that other processes may open, in a separate block of memory."""

def open_ipc_array(
    handle: bytes,
    shape: _Shape,
    dtype: npt.DTypeLike,
    strides: Sequence[int] | None = None,
    offset: int = 0,
) -> IpcArrayHandle: ...
def open(path: str | PathLike[str]) -> Any:
    """Opens a file of arrays by its name's ending, and checks its header. An npy file is a ``FileView``; an npz file, a safetensors
    file, or an index of several (``model.safetensors.index.json``), is an ``ArrayFile``."""

def load(
    path: str | PathLike[str],
    device: _Device | None = None,
    stream: _StreamOrNone = None,
    only: Sequence[str] | Callable[[str], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Any:
    """Reads a file of arrays to a device: an npy file as a ``DeviceNDArray``; an npz file, a safetensors file or an index of several
    as a dictionary of them by name, tensors in one pass where they lie near each other. ``only`` chooses arrays, by a list of names or
    a function of a name. With a stream all has been read on return, and the copies are in its order. ``progress`` is called with the
    bytes read so far and those of all, on this thread; an exception of it ends the load."""

def save(
    path: str | PathLike[str], arrays: DeviceNDArray | _HasInterface | dict[str, Any], metadata: dict[str, str] | None = None,
    dtypes: dict[str, str] | None = None
) -> None:
    """Writes arrays of devices: one to an npy file, a dictionary by name to an npz file (uncompressed) or a safetensors file, the
    latter with texts as ``metadata``, and ``dtypes`` by name where bytes are something else (``F8_E4M3``). A file that is there is replaced when the new one is whole, and
    stays as it is after an error."""

def chunks(
    source: _Source | FileView, rows: int | None = None, *, nbytes: int | None = None, halo: int = 0, device: _Device | None = None
) -> Iterator[tuple[slice, DeviceNDArray]]:
    """Iterates over an array of any size in pieces along its first axis: a slice of rows, and a new array of the device with them.
    Uploads go on beside the work on the pieces before. A piece has ``rows`` rows, or at most ``nbytes`` bytes; ``halo`` adds so many
    rows before and after to its array, where there are any."""

def map_chunks(
    function: Callable[[Stream, slice, DeviceNDArray], DeviceNDArray],
    source: _Source | FileView,
    rows: int | None = None,
    *,
    nbytes: int | None = None,
    halo: int = 0,
    out: npt.NDArray[Any] | HostNDArray | None = None,
    device: _Device | None = None,
) -> Any:
    """Calls ``function(stream, rows, piece)`` for each piece of ``chunks``, and collects the arrays that it returns, each with a row
    for each of ``rows``, in ``out`` or in a new NumPy array, which is returned. Uploads, the work on the stream and downloads go on
    beside each other, and all is done on return."""

def is_cuda_array(obj: object) -> bool: ...
def as_cuda_array(obj: _HasInterface, device: _Device | None = None) -> DeviceNDArray:
    """Takes an object with the interface as an array, without a copy. An array of gpumem that comes back can only be read."""

def from_dlpack(obj: _HasDlpack, device: _Device | None = None) -> DeviceNDArray:
    """Takes an object with ``__dlpack__`` as an array, without a copy. An array of gpumem that comes back can only be read."""

def pinned(*arrays: npt.NDArray[Any], device: _Device | None = None) -> _Pinned:
    """Page-locks NumPy arrays while the context lasts, and gives them as page-locked arrays of the library's."""

def mapped(*arrays: npt.NDArray[Any], device: _Device | None = None) -> _Mapped:
    """Page-locks NumPy arrays while the context lasts, and gives device arrays over the same memory."""

def register(*arrays: npt.NDArray[Any], device: _Device | None = None) -> _Registered:
    """Page-locks NumPy arrays, until ``deregister`` or the end of the context."""

def deregister(*arrays: npt.NDArray[Any]) -> None: ...
def defer_cleanup(device: _Device | None = None) -> _Deferring:
    """A context inside which nothing is freed, and nothing waits for it."""

def memory_report(device: _Device | None = None) -> MemoryReport: ...
def serve_memory(
    nbytes: int, library: str, stream: int | None = None, owner: Any = None, device: _Device | None = None
) -> ServedMemory:
    """Allocates memory for another library, under whose name reports and recordings have it. Work on a stream, by the handle of the
    driver's stream, may use it from now on; the stream must be alive. Without a stream, work on any stream may, and the call waits
    until the memory is idle. What keeps the stream alive may be given as ``owner``: then the end of the memory is in the order of that
    stream."""

def record_memory(path: str | PathLike[str], device: _Device | None = None, *, limit_bytes: int = 64 << 20) -> _MemoryRecording:
    """Records the use of a device's memory while the context lasts, and then writes a file: for ui.perfetto.dev if its name ends in
    ``.perfetto.json``, else for ``simulate_memory``. Events take ``limit_bytes`` at most; then the oldest ones go."""

def simulate_memory(path: str | PathLike[str], limit: int) -> MemoryVerdict:
    """Whether the allocations and frees of a file of ``record_memory`` fit into a pool of at most ``limit`` bytes. No GPU takes
    part, and the memory itself is not touched."""

def compile(
    source: str,
    name: str | None = None,
    *,
    host: Callable[..., None] | None = None,
    flags: Sequence[str] | None = None,
    bounds: bool = False,
) -> Kernel:
    """A kernel of a portable source. Its parameters are those of the source; ``host`` is what a host device runs instead,
    a function of NumPy arrays and scalars."""
