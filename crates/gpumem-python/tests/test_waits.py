"""Waits where nothing may wait: in the body of a kernel and in a callback, whose thread does what is waited for."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

# What waits, in the words of a program. `other` is a stream with nothing on it, `kept` an array, `c` a rank that has called
# nothing, `s` the stream of the body or callback.
WAITS = [
    "s.synchronize()",
    "other.synchronize()",
    "leave(s.auto_synchronize())",
    "gpumem.synchronize()",
    "device.synchronize()",
    "event.synchronize()",
    "recorded.synchronize()",
    "kept.copy_to_host(stream=s)",
    "kept.copy_to_host(stream=other)",
    "kept.getitem(0, stream=other)",
    "kernel[1, 1, other](np.zeros(4, 'f4'))",
    "gpumem.Communicator.all([device])",
    "gpumem.Communicator.from_environment(device)",
    "gpumem.Communicator.join(identity, 0, 1, device)",
    "c.split(0)",
    "c.synchronize()",
    "c.barrier()",
    "c.all_reduce(kept)",
    "c.all_reduce(np.zeros(4, 'f4'))",
    "leave(c.group())",
    "leave(gpumem.Communicator.group_all([c]))",
    "gpumem.load(folder + '/x.npy')",
    "gpumem.load(folder + '/x.safetensors')",
    "gpumem.open(folder + '/x.npy')[1:].to_device()",
    "gpumem.save(folder + '/y.npy', kept)",
    "gpumem.save(folder + '/y.safetensors', {'x': kept})",
    "gpumem.record(lambda s: s.copy_to_host(gpumem.to_device(np.zeros(4), stream=s)))",
]

PROGRAM = textwrap.dedent("""
    import sys, tempfile
    import numpy as np, pygpumem as gpumem
    device = gpumem.select_device("host")
    files = tempfile.TemporaryDirectory()
    folder = files.name
    gpumem.save(folder + "/x.npy", gpumem.to_device(np.zeros(4)))
    gpumem.save(folder + "/x.safetensors", {"x": gpumem.to_device(np.zeros(4))})
    s, other = gpumem.stream(), gpumem.stream()
    kernel = gpumem.compile("GPUMEM_KERNEL k(slice<float> y) { }", host=lambda y: None)
    kept, event, recorded = gpumem.to_device(np.zeros(4, "f4")), gpumem.event(), gpumem.event()
    recorded.record(other)
    identity = gpumem.Communicator.unique_id(device)
    gpumem.synchronize()

    def leave(context):
        with context:
            pass

    for wait in sys.argv[2:]:
        c, = gpumem.Communicator.all([device])

        def call(*_):
            try:
                eval(wait)
                print(wait, "has waited", flush=True)
            except gpumem.GpuMemError as error:
                print(wait, error, flush=True)

        if sys.argv[1] == "body":
            body = gpumem.compile("GPUMEM_KERNEL waits(slice<float> y) { }", host=call)
            body[1, 1, s](gpumem.to_device(np.zeros(16, "f4")))
        else:
            s.add_callback(call)
        s.synchronize()
        c.all_reduce(kept)
        c.synchronize()
    kernel[1, 1, s](kept)
    assert kept.copy_to_host().tolist() == [0] * 4
    print("ends")
""")


@pytest.mark.parametrize("place", ["body", "callback"])
def test_a_wait_is_refused_where_it_would_never_end(place):
    # In a process of its own, which is ended if it waits for ever.
    command = [sys.executable, "-c", PROGRAM, place, *WAITS]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    except subprocess.TimeoutExpired as late:
        pytest.fail(f"it waits for ever after {late.output}")
    refused = [line for line in done.stdout.splitlines() if "a callback or a kernel's body may not wait" in line]
    assert len(refused) == len(WAITS) and "ends" in done.stdout, done.stdout


HELD = textwrap.dedent("""
    import time
    import numpy as np, pygpumem as gpumem
    device = gpumem.select_device("host")
    s, kept = gpumem.stream(), gpumem.mapped_array(4, "f4")
    other = gpumem.pinned_array(4, "f4")

    def body(y):
        time.sleep(0.2)  # until the other thread waits for the array, and has it
        for use in "kept[0]", "kept.device_view", "gpumem.to_device(kept, stream=s)":
            try:
                eval(use)
                print(use, "has waited", flush=True)
            except gpumem.GpuMemError as error:
                print(use, error, flush=True)
        gpumem.to_device(other, stream=s)  # free

    kernel = gpumem.compile("GPUMEM_KERNEL uses(slice<float> y) { }", host=body)
    kernel[1, 1, s](kept.device_view)
    np.asarray(kept)
    print("ends")
""")


def test_a_body_does_not_wait_for_a_thread_that_waits_for_it():
    try:
        done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired as late:
        pytest.fail(f"it waits for ever after {late.output}")
    refused = [line for line in done.stdout.splitlines() if "a callback or a kernel's body may not wait" in line]
    assert len(refused) == 3 and "ends" in done.stdout, done.stdout + done.stderr


def test_a_destructor_does_not_wait_for_the_call_that_runs_it():
    """The call that uses a page-locked array runs deleters, and so destructors of Python, which use that array or one that another
    thread uses in the same way."""
    program(
        """
        import time, threading, weakref
        import pygpumem as gpumem, numpy as np

        gpumem.select_device("host")
        hosts, told = [gpumem.pinned_array(4, "f4") for _ in range(2)], []
        slow = gpumem.compile("GPUMEM_KERNEL k(slice<float> x) { }", host=lambda x: time.sleep(0.2))

        def looks(at):
            try:
                hosts[at][0]
            except gpumem.GpuMemError as error:
                told.append(str(error))
            except NotImplementedError as error:
                told.append(str(error))

        stream = gpumem.stream()
        into = [gpumem.device_array(1000, "f4") for _ in range(24)]
        slow[1, 1, stream](gpumem.to_device(np.zeros(4, "f4")))
        with gpumem.defer_cleanup():
            # More than the queue of what waits to be freed keeps before it is looked at.
            for at, to in enumerate(into):
                array = np.zeros(1000, "f4")
                weakref.finalize(array, looks, at % 2)
                given = gpumem.from_dlpack(array)
                to.copy_to_device(given, stream=stream)
                del array, given
            stream.synchronize()
        threads = [threading.Thread(target=gpumem.to_device, args=[host, gpumem.stream()]) for host in hosts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert told and all("destructor" in text for text in told), told
        """
    )


def test_every_wait_asks_first():
    """One module waits and starts threads; it gives nothing to wait with to those who have not asked."""
    source = pathlib.Path(__file__).parents[1] / "src"
    waits = re.compile(r"\.synchronize\(\)|thread::|\.recv|\.join\(\)|park|query\(\)\? *\{")
    found = {path.name for path in source.rglob("*.rs") if waits.search(path.read_text())}
    assert found == {"wait.rs"}


def program(text):
    """The output of a program, which ends well."""
    command = [sys.executable, "-c", textwrap.dedent(text)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_end_of_python_waits_for_its_code_on_other_threads():
    for _ in range(4):
        out = program("""
            import time
            import pygpumem as gpumem, numpy as np
            gpumem.select_device("host")
            kernel = gpumem.compile("GPUMEM_KERNEL k(slice<float> x) { }", host=lambda x: time.sleep(0.3))
            stream, array = gpumem.stream(), gpumem.to_device(np.zeros(4, "f4"))
            kernel[1, 1, stream](array)
            stream.add_callback(lambda *_: print("called"))
            """)
        assert out in ("", "called\n")


def test_the_end_of_python_waits_for_deleters_of_tensors_on_other_threads():
    folder = str(pathlib.Path(__file__).parent)
    for versioned in (True, False):
        out = program(f"""
            import sys, threading, time
            sys.path.insert(0, {folder!r})
            import pygpumem as gpumem, numpy as np
            from test_malformed import LEN, Producer

            class Slow(Producer):
                def delete(self, _):
                    begun.set()
                    time.sleep(0.3)
                    print("deleted", end="")

            def frees():
                # The tensor is still used when it is dropped, and left to a later call.
                kernel[1, 1, stream](gpumem.to_device(np.zeros(4, "f4")))
                with gpumem.defer_cleanup():
                    into.copy_to_device(gpumem.from_dlpack(producer), stream=stream)
                    stream.synchronize()
                gpumem.get_current_device().flush()

            gpumem.select_device("host")
            kernel = gpumem.compile("GPUMEM_KERNEL k(slice<float> x) {{ }}", host=lambda x: time.sleep(0.1))
            begun, stream, into = threading.Event(), gpumem.stream(), gpumem.device_array(LEN, "f4")
            producer = Slow(versioned={versioned})
            threading.Thread(target=frees, daemon=True).start()
            begun.wait()
            """)
        assert out == "deleted"


# What goes on for ever when the program ends.
ENDLESS = [
    "kernel(goes_on)[1, 1](array)",
    "kernel(is_busy)[1, 1](array)",
    "gpumem.stream().add_callback(goes_on)",
    "threading.Thread(target=gpumem.record, args=[goes_on], daemon=True).start()",
    "threading.Thread(target=gpumem.record, args=[is_busy], daemon=True).start()",
]
# A signal that raises an exception, as Ctrl-C does, while the end waits.
INTERRUPTED = "kernel(sleeps)[1, 1](array); atexit.register(interrupt)"


def test_python_never_ends_while_its_code_runs():
    program = """
        import atexit, os, signal, threading, time
        import pygpumem as gpumem, numpy as np

        def goes_on(*_):
            begun.set()
            while True:
                time.sleep(0.01)

        def is_busy(*_):
            begun.set()
            while True:
                pass

        def sleeps(*_):
            begun.set()
            ends.wait()
            time.sleep(1)

        def interrupt():
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            ends.set()

        def kernel(function):
            return gpumem.compile("GPUMEM_KERNEL k(slice<float> x) { }", host=function)

        gpumem.select_device("host")
        begun, ends, array = threading.Event(), threading.Event(), gpumem.to_device(np.zeros(4, "f4"))
        %s
        begun.wait()
        print("ends", end="")
        """
    started = []
    for line in (*ENDLESS, INTERRUPTED):
        command = [sys.executable, "-c", textwrap.dedent(program % line)]
        started.append((line, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)))
    for line, process in started:
        out, error = process.communicate(timeout=120)
        assert out == "ends" and ("still runs for the library" in error) == (line != INTERRUPTED), (line, error)
        assert process.returncode == 1 if line != INTERRUPTED else process.returncode >= 0, (line, error)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize(
    "call",
    [
        "kernel[1, 1](array); gpumem.synchronize()",
        "kernel[1, 1](array)",
        "gpumem.stream().add_callback(forks)",
        "gpumem.record(forks)",
    ],
)
def test_a_child_that_is_forked_in_code_that_the_library_calls_ends(call):
    out = program(f"""
        import os, sys, time
        import pygpumem as gpumem, numpy as np
        children = []

        def forks(*_):
            sys.stdout.flush()
            child = os.fork()
            if child:
                children.append(child)
            else:
                print("child", end=" ")

        gpumem.select_device("host")
        kernel, array = gpumem.compile("GPUMEM_KERNEL k(slice<float> x) {{ }}", host=forks), gpumem.to_device(np.zeros(4, "f4"))
        try:
            {call}
        except gpumem.GpuMemError:
            assert not children
        while not children:
            if os.getppid() != {os.getpid()}:
                sys.exit()
            time.sleep(0.01)
        print("ended" if os.waitpid(children[0], 0)[1] == 0 else "failed")
        """)
    assert out == "child ended\n"


def test_two_threads_may_open_one_handle():
    program("""
        import sys, threading
        import pygpumem as gpumem, numpy as np
        gpumem.select_device("host")
        sys.setswitchinterval(1e-6)
        handle = gpumem.open_ipc_array(bytes(64), 4, np.float32)

        def opens():
            for _ in range(3000):
                try:
                    handle.open()
                except (gpumem.GpuMemError, NotImplementedError, ValueError):
                    pass

        threads = [threading.Thread(target=opens) for _ in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        """)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_does_not_wait_for_a_thread_of_its_parent():
    out = program("""
        import os, signal, threading, time
        import pygpumem as gpumem, numpy as np
        gpumem.select_device("host")
        begun, ends = threading.Event(), threading.Event()

        def body(x):
            begun.set()
            ends.wait()

        stream = gpumem.stream()
        array = gpumem.to_device(np.zeros(4, "f4"), stream=stream)
        gpumem.compile("GPUMEM_KERNEL k(slice<float> x) { }", host=body)[1, 1, stream](array)
        host = stream.copy_to_host(array)
        waits = threading.Thread(target=np.asarray, args=[host])
        waits.start()
        begun.wait()
        time.sleep(0.2)  # until the thread waits for the array, and has it
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            try:
                np.asarray(host)
            except gpumem.GpuMemError as error:
                print(error, flush=True)
            os._exit(0)
        print(os.waitpid(child, 0)[1], flush=True)
        ends.set()
        waits.join()
        """)
    said, status = out.splitlines()
    assert "was forked" in said and status == "0"
