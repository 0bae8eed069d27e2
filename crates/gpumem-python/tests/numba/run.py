"""Runs numba-cuda's own tests of arrays, memory, streams and events against `pygpumem.cuda`.

    python3 run.py FOLDER [WORD ..]

FOLDER is where `pip install --no-deps --target FOLDER numba-cuda==0.30.4` has put the package. With words, only the tests whose
names contain one of them run, with their tracebacks. The device is `GPUMEM_TEST_DEVICE`, by default the host; some tests are about
two (`GPUMEM_HOST_DEVICES=2`). Of the package only the tests are used: it need not work.

`listed.txt` names the tests that fail, with the reasons. Another test that fails is an error, and so is one of these that passes."""

import pathlib
import sys
import unittest

import shim

LISTED = pathlib.Path(__file__).with_name("listed.txt")
MODULES = [
    *(
        f"cudadrv.test_{name}"
        for name in """array_attr context_stack cuda_array_slicing cuda_auto_context cuda_devicerecord cuda_memory cuda_ndarray
        deallocations events host_alloc managed_alloc pinned profiler reset_device select_device streams""".split()
    ),
    *(
        f"cudapy.test_{name}"
        for name in """array cuda_array_interface ipc multigpu multithreads slicing stream_api transpose""".split()
    ),
]

# Processes that a test starts import this file, too.
shim.install(sys.argv[1])


class Outcomes(unittest.TestResult):
    """How each test has ended."""

    def __init__(self, verbose):
        super().__init__()
        self.verbose = verbose
        self.passed, self.failed, self.skipped = set(), {}, {}

    def failure(self, test, error):
        name = name_of(test)
        self.failed[name] = f"{error[0].__name__}: {error[1]}".splitlines()[0]
        if self.verbose:
            print(f"{name}\n{self._exc_info_to_string(error, test)}")

    addError = addFailure = failure

    def addSuccess(self, test):
        self.passed.add(name_of(test))

    def addSkip(self, test, reason):
        self.skipped[name_of(test)] = reason

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.failure(test, error)


def name_of(test):
    return test.id().removeprefix(shim.TESTS + ".")


def listed():
    """The tests that fail on the device, and those that fail on another one alone. Each is below its reason, a line of `#`."""
    elsewhere = "(on a GPU)." if shim.DEVICE == "host" else "(on the host)."
    here, others = set(), set()
    names = here
    for line in LISTED.read_text().splitlines():
        if line.startswith("#"):
            names = others if line.endswith(elsewhere) else here
        elif line:
            names.add(line)
    return here, others


def every_test(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from every_test(each)
        else:
            yield each


def main(words):
    names = [f"{shim.TESTS}.{module}" for module in MODULES]
    tests = list(every_test(unittest.defaultTestLoader.loadTestsFromNames(names)))
    chosen = [test for test in tests if not words or any(word in test.id() for word in words)]
    outcomes = Outcomes(bool(words))
    unittest.TestSuite(chosen).run(outcomes)
    (known, others), ran = listed(), {name_of(test) for test in chosen}
    wrong = [f"{name} fails: {why}" for name, why in sorted(outcomes.failed.items()) if name not in known]
    wrong += [f"{name} passes, and is in {LISTED.name}" for name in sorted(outcomes.passed - set(outcomes.failed)) if name in known]
    if not words:
        wrong += [f"{name} is in {LISTED.name} and is no test" for name in sorted((known | others) - ran)]
    for line in wrong:
        print(line)
    failed = len(outcomes.failed)
    print(f"{len(ran)} tests: {len(ran) - failed - len(outcomes.skipped)} passed, {len(outcomes.skipped)} skipped, {failed} failed")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:]))
