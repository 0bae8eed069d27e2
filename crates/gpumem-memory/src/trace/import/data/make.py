"""Writes the snapshots beside it, with the fields that PyTorch's `memory_snapshot` gives, as JSON and in each protocol.

The history is a ring that has lost its beginning: A and B are older than it. B goes at entries 2 and 3.
"""
import json
import pickle

MIB = 1 << 20
FRAMES = [{"filename": "train.py", "line": 7, "name": "forward"}]
BASE = 0x7F0000000000
A, C, D, E, F, G = (BASE + at * MIB for at in (0, 3, 4, 1, 8, 9))
B = BASE + MIB


def entry(action, addr, mib, time, **more):
    place = {"device_free": addr} if action == "oom" else {"addr": addr}
    return dict(action=action, size=mib * MIB, stream=0, time_us=1_700_000_000_000_000 + time, frames=FRAMES, **place, **more)


history = [
    entry("alloc", C, 1, 1),
    entry("alloc", D, 1, 2),
    entry("free_requested", B, 2, 3),
    entry("free_completed", B, 2, 5),
    entry("alloc", E, 2, 6),
    entry("segment_alloc", BASE + 8 * MIB, 4, 7),
    entry("alloc", F, 1, 8),
    entry("alloc", G, 1, 9),
    entry("oom", 3 * MIB, 64, 10),
    entry("free_requested", G, 1, 11),
    entry("snapshot", 0, 0, 12),
]


def block(address, mib, state):
    return {"address": address, "size": mib * MIB, "requested_size": mib * MIB - 100, "state": state, "frames": FRAMES}


def segment(address, mib, pool, blocks):
    return {
        "device": 0, "address": address, "total_size": mib * MIB, "stream": 0, "segment_type": "large",
        "segment_pool_id": pool, "is_expandable": False, "frames": FRAMES, "blocks": blocks,
    }


snapshot = {
    "segments": [
        segment(BASE, 8, (0, 0), [
            block(A, 1, "active_allocated"), block(E, 2, "active_allocated"), block(C, 1, "active_allocated"),
            block(D, 1, "active_allocated"), block(BASE + 5 * MIB, 3, "inactive"),
        ]),
        segment(BASE + 8 * MIB, 4, (0, 1), [
            block(F, 1, "active_allocated"), block(G, 1, "active_pending_free"), block(BASE + 10 * MIB, 2, "inactive"),
        ]),
    ],
    "device_traces": [history],
    "allocator_settings": {"expandable_segments": False, "garbage_collection_threshold": 0.5},
    "external_annotations": [],
}

with open("ring.json", "w") as file:
    json.dump(snapshot, file)
for protocol in (2, 4, 5):
    with open(f"ring.{protocol}.pickle", "wb") as file:
        pickle.dump(snapshot, file, protocol)
