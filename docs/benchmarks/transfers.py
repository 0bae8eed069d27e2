#!/usr/bin/env python3
"""What PyTorch, CuPy and numba-cuda take for transfers, beside the benches of `cargo xtask bench --cuda transfer/`.

    cargo xtask bench --cuda --report ours.json transfer/
    python3 docs/benchmarks/transfers.py --ours ours.json --plot docs/src/transfers.svg

With `--program PATH` (that of tests/bench, built with feature `cuda`) both are measured in one run. Each number is the
median of repeated calls that have finished when they return, in GB/s (10^9 bytes). Libraries that are not installed are
left out, and so is what a library refuses. Memory is touched before, but for `untouched`.
"""
import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

SIDE = 8192
SIZES = [1, 256, 4 << 10, 16 << 10, 64 << 10, 256 << 10] + [1 << power for power in range(20, 31, 2)]


class Torch:
    name = "PyTorch"

    def __init__(self):
        import torch

        self.torch, self.device = torch, torch.device("cuda:0")
        torch.empty(1, device=self.device)
        self.version = torch.__version__

    def wait(self):
        self.torch.cuda.synchronize()

    def array(self, host):
        return self.torch.from_numpy(host).to(self.device)

    def pinned(self, host):
        return self.torch.from_numpy(host).pin_memory()

    def upload(self, host, device):
        source = self.torch.from_numpy(host) if isinstance(host, numpy.ndarray) else host
        return lambda: device.copy_(source)

    def download(self, device, host):
        target = self.torch.from_numpy(host) if isinstance(host, numpy.ndarray) else host
        return lambda: target.copy_(device)

    def fresh(self, device):
        return lambda: device.cpu()

    def empty(self, shape):
        return self.torch.empty(shape, dtype=self.torch.float32, device=self.device)

    def transpose(self, source, target):
        return lambda: target.copy_(source.t())


class Cupy:
    name = "CuPy"

    def __init__(self):
        import cupy

        self.cupy, self.version = cupy, cupy.__version__
        cupy.zeros(1)

    def wait(self):
        self.cupy.cuda.Device().synchronize()

    def array(self, host):
        return self.cupy.asarray(host)

    def pinned(self, host):
        import cupyx

        block = cupyx.empty_pinned(host.shape, host.dtype)
        block[...] = host
        return block

    def upload(self, host, device):
        # `set` takes nothing but contiguous arrays; a user of others calls `asarray`.
        if host.flags.c_contiguous:
            return lambda: device.set(host)
        return lambda: self.cupy.asarray(host, order="C")

    def download(self, device, host):
        if host.flags.c_contiguous:
            return lambda: device.get(out=host)

        def copy():
            host[...] = device.get()

        return copy

    def fresh(self, device):
        return lambda: device.get()

    def empty(self, shape):
        return self.cupy.empty(shape, dtype=numpy.float32)

    def transpose(self, source, target):
        def copy():
            target[...] = source.T

        return copy


class Numba:
    name = "numba-cuda"

    def __init__(self):
        from numba import cuda
        import numba

        self.cuda, self.version = cuda, getattr(numba, "__version__", "")
        cuda.device_array(1)

    def wait(self):
        self.cuda.synchronize()

    def array(self, host):
        return self.cuda.to_device(host)

    def pinned(self, host):
        block = self.cuda.pinned_array(host.shape, host.dtype)
        block[...] = host
        return block

    def upload(self, host, device):
        return lambda: device.copy_to_device(host)

    def download(self, device, host):
        return lambda: device.copy_to_host(host)

    def fresh(self, device):
        return lambda: device.copy_to_host()

    def empty(self, shape):
        return self.cuda.device_array(shape, numpy.float32)

    def transpose(self, source, target):
        return lambda: target.copy_to_device(source.T)


def measure(call, wait, budget, least=3, most=2000):
    """Seconds of one call."""
    call()
    wait()
    times, begin = [], time.perf_counter()
    while len(times) < least or (len(times) < most and time.perf_counter() - begin < budget):
        start = time.perf_counter()
        call()
        wait()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def label_of(size):
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size >> power} {unit}"
    return f"{size} B"


def bytes_of(label):
    number, unit = label.split()
    return int(number) << {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[unit]


def cases(library, largest):
    """Name, bytes and how to get ready, for each number."""

    def host(size):
        return numpy.arange(size, dtype=numpy.uint8) if size < 256 else numpy.ones(size, dtype=numpy.uint8)

    for size in (size for size in SIZES if size <= largest):
        label = label_of(size)
        yield f"h2d pageable {label}", size, lambda size=size: library.upload(host(size), library.array(host(size)))
        yield f"d2h pageable {label}", size, lambda size=size: library.download(library.array(host(size)), host(size))
        if size >= 1 << 20:
            yield f"d2h untouched {label}", size, lambda size=size: library.fresh(library.array(host(size)))
            yield f"h2d pinned {label}", size, lambda size=size: library.upload(
                library.pinned(host(size)), library.array(host(size))
            )
    matrix = numpy.ones((SIDE, SIDE), dtype=numpy.float32)
    for step in (2, 16):
        size = SIDE * SIDE // step * 4
        part = matrix[:, ::step]
        yield f"h2d one column of {step}", size, lambda part=part, step=step: library.upload(
            part, library.empty((SIDE, SIDE // step))
        )
        yield f"d2h one column of {step}", size, lambda part=part, step=step: library.download(
            library.empty((SIDE, SIDE // step)), part
        )
    yield "h2d pinned runs of 4 B in 8", SIDE * SIDE // 2 * 4, lambda: library.upload(
        library.pinned(matrix)[:, ::2], library.empty((SIDE, SIDE // 2))
    )
    yield "h2d pinned F to C order", SIDE * SIDE * 4, lambda: library.upload(
        library.pinned(matrix).T, library.empty((SIDE, SIDE))
    )
    yield "d2d C to F order", SIDE * SIDE * 4, lambda: library.transpose(
        library.empty((SIDE, SIDE)), library.empty((SIDE, SIDE))
    )


def ours(path):
    """The rows of a report of the benches: what gpumem takes, and what the driver does beside it.

    A size that is measured beside `pinned` and beside `the driver` has two rows of gpumem; the first counts, which is that beside
    `pinned`.
    """
    pattern = re.compile(r"transfer/[^/]*/(h2d|d2h|d2d)/(?:(pageable|untouched|pinned)/)?(.*), beside (.*)")
    rows = []
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    for row in report["rows"]:
        found = pattern.fullmatch(row["name"])
        if not found or row["unit"] != "GB/s":
            continue
        way, memory, what, beside = found.groups()
        size = re.fullmatch(r"(\d+)([KMG]?i?B)", what)
        if size:
            name = f"{way} {memory} {size[1]} {size[2]}"
        elif what.startswith("one column"):
            name = f"{way} {' '.join(what.split()[:4])}"
        elif what.startswith("C to F"):
            name = f"{way} C to F order"
        else:
            name = f"{way} {memory} {what.removesuffix(f' of {SIDE}x{SIDE}')}"
        driver = "driver" if beside == "the driver" else f"driver, {beside}"
        rows.append({"library": "gpumem", "name": name, "gb_per_s": row["ours"]})
        rows.append({"library": driver, "name": name, "gb_per_s": row["reference"]})
    return rows


def libraries_of(rows):
    order = ["gpumem", "driver", "driver, pinned", "driver, packed", "PyTorch", "CuPy", "numba-cuda"]
    return [name for name in order if any(row["library"] == name for row in rows)]


def table(rows):
    """One line a transfer, one column a library, in Markdown."""
    columns = libraries_of(rows)
    cells = {}
    for row in rows:
        cells.setdefault(row["name"], {}).setdefault(row["library"], row["gb_per_s"])
    print("| GB/s | " + " | ".join(columns) + " |")
    print("|---|" + "---|" * len(columns))
    for name, found in cells.items():
        numbers = (f"{found[column]:.3g}" if column in found else "" for column in columns)
        print(f"| {name} | " + " | ".join(numbers) + " |")


def plot(rows, path, title):
    """Bandwidth over size, both ways, as SVG."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "transfers"
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    for panel, way in zip(panels, ("h2d", "d2h")):
        for library in libraries_of(rows):
            if library == "driver, packed":
                continue
            points = {}
            for row in rows:
                found = re.fullmatch(rf"{way} pageable (\d+ [KMG]?i?B)", row["name"])
                if found and row["library"] == library:
                    points.setdefault(bytes_of(found[1]), row["gb_per_s"])
            if points:
                sizes = sorted(points)
                style = "--" if library.startswith("driver") else "-"
                panel.plot(sizes, [points[size] for size in sizes], style, marker="o", markersize=3, label=library)
        panel.set(xscale="log", yscale="log", xlabel="bytes", title={"h2d": "to the device", "d2h": "to the host"}[way])
        panel.set_xscale("log", base=2)
        panel.grid(True, which="major", alpha=0.3)
    panels[0].set_ylabel("GB/s")
    panels[0].legend(fontsize=8)
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("libraries", nargs="*", help="torch, cupy, numba (all by default)")
    parser.add_argument("--rows", help="a report of this program, instead of measuring")
    parser.add_argument("--report", help="write the numbers there as JSON")
    parser.add_argument("--largest", type=int, default=1024, help="MiB of the largest transfer")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds for each number, but for three calls")
    parser.add_argument("--ours", help="the report of the benches")
    parser.add_argument("--program", help="the program of the benches, to be run now")
    parser.add_argument("--plot", help="write bandwidth over size there as SVG")
    parser.add_argument("--title", default="Ordinary memory of the caller", help="of the plot")
    options = parser.parse_args()
    known = {"torch": Torch, "cupy": Cupy, "numba": Numba}
    rows = []
    if options.program:
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            command = [options.program, "--device", "cuda:0", "--report", report.name]
            subprocess.run(command + ["--limit", str(options.budget), "transfer/"], check=True)
            rows += ours(report.name)
    if options.ours:
        rows += ours(options.ours)
    if options.rows:
        with open(options.rows, encoding="utf-8") as file:
            rows += json.load(file)
    for key in [] if options.rows else options.libraries or known:
        try:
            library = known[key]()
        except Exception as error:  # not installed, or no device
            print(f"{key}: left out: {error}", file=sys.stderr)
            continue
        for name, size, prepare in cases(library, options.largest << 20):
            try:
                seconds = measure(prepare(), library.wait, options.budget)
            except Exception as error:  # what the library refuses
                print(f"{library.name}: {name}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            row = {"library": library.name, "version": library.version, "name": name, "bytes": size}
            rows.append(row | {"microseconds": seconds * 1e6, "gb_per_s": size / seconds / 1e9})
            print(f"{library.name}: {name}: {size / seconds / 1e9:.3g} GB/s", file=sys.stderr, flush=True)
    table(rows)
    if options.report:
        with open(options.report, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=2)
    if options.plot:
        plot(rows, options.plot, options.title)


if __name__ == "__main__":
    main()
