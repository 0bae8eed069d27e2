"""The same cases under pytest, one test for each: with ``GPUMEM_TEST_DEVICE`` (default ``cuda:0``), skipped without it."""

import os

import pygpumem as gpumem
import pytest

from cases import Refused, cases
from peers import PEERS

DEVICE = os.environ.get("GPUMEM_TEST_DEVICE", "cuda:0")


def parameters():
    try:
        gpumem.Device(DEVICE)
    except (RuntimeError, ValueError) as error:
        return [pytest.param(None, id=DEVICE, marks=pytest.mark.skip(f"{error}"))]
    found = []
    for name, make in PEERS.items():
        try:
            of_peer = cases(make(DEVICE), DEVICE)
        except ImportError as error:
            found.append(pytest.param(None, id=name, marks=pytest.mark.skip(f"{error}")))
            continue
        found += [pytest.param(run, id=f"{name}: {case}") for case, run in of_peer]
    return found


@pytest.mark.parametrize("run", parameters())
def test_peers(run):
    gpumem.select_device(DEVICE)
    try:
        run()
    except Refused as why:
        pytest.skip(f"refused, as announced: {why}")
