#!/usr/bin/env python3
"""What PyTorch and CuPy take to launch a graph, beside the benches of `cargo xtask bench --cuda cuda/graph/chain`.

    python3 docs/benchmarks/graphs.py --program PATH

PATH is the program of tests/bench, built with feature `cuda`: all is measured in one run. Each number is what one launch takes on the
host, in microseconds: the median of batches of launches between two waits, 512 kernels each. A graph is a chain of small kernels (256
floats) of which each needs the one before. Libraries that are not installed are left out.
"""
import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time

LEN = 256
KERNELS = 512
CHAINS = [1, 4, 16, 64, 256]
COLUMNS = ["gpumem", "cuGraphLaunch", "cudarc", "PyTorch", "CuPy"]


def torch_graph(kernels):
    import torch

    x = torch.zeros(LEN, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x.mul_(0.5)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(kernels):
            x.mul_(0.5)
    return graph.replay, torch.cuda.synchronize, (x, stream)


def cupy_graph(kernels):
    import cupy

    x = cupy.zeros(LEN, dtype=cupy.float32)
    half = cupy.float32(0.5)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        cupy.multiply(x, half, out=x)
        stream.synchronize()
        stream.begin_capture()
        for _ in range(kernels):
            cupy.multiply(x, half, out=x)
        graph = stream.end_capture()
    return (lambda: graph.launch(stream)), stream.synchronize, (x, stream)


def measure(launch, wait, batch, budget):
    """Microseconds of one launch on the host."""
    launch()
    wait()
    times, begin = [], time.perf_counter()
    while len(times) < 20 or time.perf_counter() - begin < budget:
        start = time.perf_counter()
        for _ in range(batch):
            launch()
        times.append((time.perf_counter() - start) / batch)
        wait()
    return statistics.median(times) * 1e6


def ours(program, chains, budget):
    """What gpumem, the driver and cudarc take, from the benches."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [program, "--device", "cuda:0", "--report", report.name, "--limit", str(budget)]
        command += [f"cuda/graph/chain/{kernels}" for kernels in chains] + ["cuda/graph/cudarc"]
        subprocess.run(command, check=True, stdout=sys.stderr)
        with open(report.name, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
    cells = {}
    for row in rows:
        kind, kernels = re.match(r"cuda/graph/(\w+)/(\d+)", row["name"]).groups()
        beside = "cudarc" if kind == "cudarc" else "cuGraphLaunch"
        scale = {"ns": 1e-3, "us": 1.0, "µs": 1.0}[row["unit"]]
        cells.setdefault(("gpumem", int(kernels)), row["ours"] * scale)
        cells[beside, int(kernels)] = row["reference"] * scale
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", help="the program of the benches, to be run now")
    parser.add_argument("--kernels", type=int, nargs="+", default=CHAINS, help="lengths of the chains")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for each number")
    options = parser.parse_args()
    cells = ours(options.program, options.kernels, options.budget) if options.program else {}
    for name, make in (("PyTorch", torch_graph), ("CuPy", cupy_graph)):
        for kernels in options.kernels:
            try:
                launch, wait, kept = make(kernels)
            except Exception as error:  # not installed, or no device
                print(f"{name}: left out: {error}", file=sys.stderr)
                break
            cells[name, kernels] = measure(launch, wait, KERNELS // kernels, options.budget)
            del kept
    columns = [name for name in COLUMNS if any(name == column for column, _ in cells)]
    print("| kernels | " + " | ".join(columns) + " |")
    print("|--:|" + "--:|" * len(columns))
    for kernels in options.kernels:
        found = (f"{cells[name, kernels]:.2f}" if (name, kernels) in cells else "" for name in columns)
        print(f"| {kernels} | " + " | ".join(found) + " |")


if __name__ == "__main__":
    main()
