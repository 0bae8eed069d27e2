"""Writes numpy_layouts.json: what NumPy answers to layout questions, to be compared with gpumem's answers.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install numpy
    /tmp/venv/bin/python numpy_layouts.py > numpy_layouts.json

Written with NumPy 2.4.6; `reshape(copy=False)` needs 2.1. A case holds the shape, byte strides and element size of an array, and
  c, f      flags.c_contiguous, flags.f_contiguous
  like      strides of numpy.empty_like(order='K')
  reshape   [[shape, order, strides of the view, or null where NumPy copies], ..]
  view      [[element size, [shape, strides], or null where NumPy refuses], ..]
  extent    [lowest, one past the highest byte] relative to element 0 (numpy.lib.array_utils.byte_bounds)
"""
import itertools
import json
import sys

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided


def factorisations(n, rank):
    """The shapes of that rank with n elements; a few for n == 0."""
    if n == 0:
        return [s for s in itertools.product([0, 1, 3], repeat=rank) if 0 in s][:4]
    if rank == 0:
        return [()] if n == 1 else []
    return [(d, *rest) for d in range(1, n + 1) if n % d == 0 for rest in factorisations(n // d, rank - 1)]


def reshapes(a):
    for rank in range(4):
        for shape in factorisations(a.size, rank):
            if shape.count(1) > 1 and a.size > 1:
                continue  # axes of length 1 change little
            for order in "CF":
                try:
                    b = a.view()
                    b = np.reshape(b, shape, order=order, copy=False)
                    yield [shape, order, b.strides]
                except ValueError:
                    yield [shape, order, None]


def views(a):
    for item in (1, 2, 4, 8, 12, 16):
        try:
            b = a.view(f"V{item}")
            yield [item, [b.shape, b.strides]]
        except (ValueError, TypeError):
            yield [item, None]


def sources():
    base = np.zeros(4096, "V4")
    def of(shape, strides):
        # Enough room on both sides for every stride below.
        return as_strided(base[2048:], shape, strides)
    for shape in [(), (1,), (4,), (0,)]:
        for stride in {(): [()]}.get(shape, [(4,), (-4,), (8,), (-8,), (0,), (400,)]):
            yield of(shape, stride)
    for strides in itertools.product([0, 4, -4, 8, 12, 16, -16], repeat=2):
        for shape in [(3, 4), (1, 4), (4, 1)]:
            yield of(shape, strides)
    yield of((0, 4), (16, 4))
    yield of((3, 0, 2), (4, 4, 4))
    # Three axes: packed, permuted, gapped and reversed in every combination, and with axes of length 1 and 0 strides.
    for shape in [(2, 3, 4), (2, 2, 2), (3, 1, 4)]:
        for permutation in itertools.permutations(range(3)):
            packed = [0, 0, 0]
            step = 4
            for axis in permutation:
                packed[axis] = step
                step *= shape[axis]
            for signs in [(1, 1, 1), (-1, 1, 1), (1, -1, -1), (-1, -1, -1), (0, 1, 1), (1, 1, 0)]:
                yield of(shape, tuple(s * p for s, p in zip(signs, packed)))
            gapped = [s * 2 if axis == permutation[2] else s for axis, s in enumerate(packed)]
            yield of(shape, tuple(gapped))
    for shape, strides in [
        ((2, 1, 3, 1, 2, 2), (96, 0, 16, 7, 8, 4)),
        ((2, 1, 3, 1, 2, 2), (4, 7, 8, 0, 24, 48)),
        ((2, 2, 2, 2, 2, 2), (128, 64, 32, 16, 8, 4)),
        ((2, 2, 2, 2, 2, 2), (256, 128, 64, 16, 8, 4)),
        ((2, 2, 2, 2, 2, 2), (4, 8, 16, 64, 128, 256)),
        ((2, 2, 2, 2, 2, 2), (-128, -64, 32, 16, -8, -4)),
    ]:
        yield of(shape, strides)


def case(a):
    start = a.__array_interface__["data"][0]
    low, high = byte_bounds(a) if a.size else (start, start)
    return {
        "shape": a.shape,
        "strides": a.strides,
        "item": a.itemsize,
        "c": bool(a.flags.c_contiguous),
        "f": bool(a.flags.f_contiguous),
        "like": np.empty_like(a, order="K").strides,
        "extent": [low - start, high - start],
        "reshape": list(reshapes(a)),
        "view": list(views(a)),
    }


if __name__ == "__main__":
    seen = {}
    for a in sources():
        seen.setdefault((a.shape, a.strides), a)
    print("[" + ",\n".join(json.dumps(case(a), separators=(",", ":")) for a in seen.values()) + "]")
    print(f"{len(seen)} cases, NumPy {np.__version__}", file=sys.stderr)
