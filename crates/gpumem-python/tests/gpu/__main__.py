"""``python3 tests/gpu``: every peer in a separate process, and a table at the end. Needs neither pytest nor a network.

    python3 tests/gpu [--device cuda:0] [--only torch,cupy] [--timeout 75]

Ends with status 1 if anything failed that is not an announced refusal.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
MARK = "@gpumem "


# numba compiles a kernel for each type and layout: in so many processes.
SHARDS = {"numba": 6}


def child(name, device, seconds, start):
    """Runs the cases of one peer from a number on; says a line for each. `numba/2` is its third part."""
    name, part = (name.split("/") + ["0"])[:2]

    def say(*line):
        print(MARK + json.dumps(line), flush=True)

    end = time.monotonic() + seconds
    try:
        import pygpumem as gpumem

        gpumem.select_device(device)
        if name == "times":
            import times

            cases = times.cases(device, say)
        elif name == "scripts":
            import scripts

            cases = scripts.cases(device, say)
        else:
            from peers import PEERS

            peer = PEERS[name](device)
            say("note", f"{name} {peer.version}")
            from cases import cases as of

            cases = of(peer, device)
    except Exception as error:
        say("absent", f"{type(error).__name__}: {error}".splitlines()[0][:200])
        return
    from cases import Refused

    for number, (case, function) in list(enumerate(cases))[start:]:
        if number % SHARDS.get(name, 1) != int(part):
            continue
        if time.monotonic() > end:
            say("failed", f"{len(cases) - number} cases", "out of time")
            break
        say("begin", number, case)
        try:
            function()
            say("passed", case)
        except Refused as why:
            say("refused", case, str(why))
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error} [{pathlib.Path(where.filename).name}:{where.lineno}]"
            say("failed", case, " ".join(text.split())[:400])


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--device", default=os.environ.get("GPUMEM_TEST_DEVICE", "cuda:0"))
    options.add_argument("--only", default="torch,cupy,numba,jax,scripts,times")
    options.add_argument("--timeout", type=float, default=75)
    options.add_argument("--child")
    options.add_argument("--start", type=int, default=0)
    given = options.parse_args()
    sys.path.insert(0, str(HERE))
    if given.child:
        return child(given.child, given.device, given.timeout, given.start)
    # More queues than streams: on a shared queue one stream waits for another, and hides a wait that is missing.
    environment = dict(
        os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false", TF_CPP_MIN_LOG_LEVEL="3", CUDA_DEVICE_MAX_CONNECTIONS="32"
    )
    names, running, end = given.only.split(","), {}, time.monotonic() + given.timeout
    counts, failures, absent = collections.defaultdict(collections.Counter), [], {}
    refusals, notes = collections.Counter(), []

    parts = [f"{name}/{part}" for name in names for part in range(SHARDS.get(name, 1))]

    def start(name, number=0):
        command = [sys.executable, str(HERE), "--child", name, "--device", given.device, "--start", str(number)]
        command += ["--timeout", str(max(end - time.monotonic(), 5))]
        running[name] = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
        )

    def finish(name):
        try:
            return running[name].communicate(timeout=max(end - time.monotonic(), 5) + 5)[0]
        except subprocess.TimeoutExpired:
            running[name].kill()
            return running[name].communicate()[0]

    def read(name, output):
        """Counts what a child has said; the number of the case in which it died, if it did."""
        child, name, last = running[name], name.split("/")[0], None
        for line in output.splitlines():
            if not line.startswith(MARK):
                continue
            kind, *rest = json.loads(line[len(MARK):])
            if kind == "note":
                notes.append(rest[0])
            elif kind == "absent":
                absent[name] = rest[0]
            elif kind == "begin":
                last = rest
            else:
                last = None
                counts[name][kind] += 1
                if kind == "failed":
                    failures.append((name, *rest))
                if kind == "refused":
                    refusals[name, rest[0].split(":")[0], rest[1]] += 1
        status = child.returncode
        if last or status:
            said = [line for line in output.splitlines() if not line.startswith(MARK) and line.strip()]
            what = [line for line in said if "what()" in line or "Error" in line] or said[-3:]
            counts[name]["failed"] += 1
            failures.append((name, last[1] if last else "the process", f"ended with {status}: {' | '.join(what[:3])}"[:400]))
        return last[0] + 1 if last else None

    # Side by side, but for what is timed.
    for name in parts:
        if name != "times/0":
            start(name)
    for name in parts:
        number = 0
        while number is not None and (not number or time.monotonic() < end):
            if name == "times/0" or number:
                start(name, number)
            number = read(name, finish(name))
    print("".join(f"  {note}\n" for note in dict.fromkeys(notes)), end="")
    print(f"\n{'on ' + given.device:<12}{'passed':>8}{'refused':>9}{'failed':>8}")
    for name in names:
        row = counts[name]
        text = f"   skipped: {absent[name]}" if name in absent else ""
        print(f"{name:<12}{row['passed']:>8}{row['refused']:>9}{row['failed']:>8}{text}")
    if refusals:
        print("\nrefused, as announced:")
        for (name, what, why), count in sorted(refusals.items()):
            print(f"  {name}: {what}: {why} ({count})")
    if failures:
        print("\nfailed:")
        alike = collections.defaultdict(list)
        for name, case, why in failures:
            alike[name, why].append(case)
        for (name, why), cases in list(alike.items())[:60]:
            more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
            print(f"  {name}: {cases[0]}{more}: {why}")
        if len(alike) > 60:
            print(f"  and {len(alike) - 60} more kinds")
    total = sum((row for row in counts.values()), collections.Counter())
    print(f"\ngpumem and its peers: {total['passed']} passed, {total['refused']} refused, {total['failed']} failed, "
          f"{len(absent)} peers skipped")
    return 1 if total["failed"] or (len(absent) == len(names)) else 0


if __name__ == "__main__":
    sys.exit(main())
