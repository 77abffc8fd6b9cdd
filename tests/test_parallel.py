"""Workers are gone when the work ends early, whatever ends it."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl

from taciturn import loading as loading_module
from taciturn.parallel import in_threads, linear_algebra_alone, run_all, threads_for
from toys import running_children

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"
)

CODE = """
import signal, sys, time
from taciturn.parallel import in_threads, run_all, threads_for
if "clean" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
for _ in run_all(time.sleep, [0.01] + [60.0] * 9, workers=2, progressbar=False, title=""):
    print("working", flush=True)
"""


GROWS = """
import time, warnings
from taciturn.parallel import run_all
def grow(number):
    time.kept = b"." * (number * 200_000_000)  # a module's, which stays
    time.sleep(1.2 * min(number, 1))  # workers look at their size every second
    return number
warnings.simplefilter("error")
for number in run_all(grow, [0, 0, 2, 2, 2, 2], workers=2, progressbar=False, title=""):
    print(number, flush=True)
"""


SLOW = pytest.mark.slow  # seconds each, and much the same as the others


@pytest.mark.parametrize(
    ("ended_by", "arguments", "status", "whole_group"),
    [
        pytest.param(signal.SIGTERM, [], -signal.SIGTERM, False, id="TERM", marks=SLOW),
        pytest.param(signal.SIGTERM, ["clean"], 3, False, id="TERM, handled", marks=SLOW),
        pytest.param(signal.SIGTERM, ["clean"], 3, True, id="TERM to all, handled"),
        pytest.param(signal.SIGKILL, [], -signal.SIGKILL, False, id="KILL"),
    ],
)
def test_no_worker_outlives_its_parent(ended_by, arguments, status, whole_group):
    command = [sys.executable, "-c", CODE, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, start_new_session=True) as parent:
        assert parent.stdout.readline() == b"working\n"
        workers = running_children(parent.pid)
        assert len(workers) >= 2
        (os.killpg if whole_group else os.kill)(parent.pid, ended_by)
        assert parent.wait(timeout=60) == status
        if "clean" in arguments:
            assert parent.stderr.read() == b""
    until = time.monotonic() + 30
    while any(is_running(worker) for worker in workers):
        assert time.monotonic() < until, "a worker is left"
        time.sleep(0.05)


def test_a_worker_that_grows_is_replaced_where_warnings_are_errors():
    pytest.importorskip("psutil")  # by which workers know their size
    done = subprocess.run(
        [sys.executable, "-c", GROWS], capture_output=True, text=True, timeout=120, check=True
    )
    assert sorted(done.stdout.split()) == ["0", "0", "2", "2", "2", "2"]
    assert done.stderr == ""


def test_queues_are_gone_before_the_work_is_left(monkeypatch):
    """Or their semaphores may be reported as leaked by a process that ends at once."""
    queues = pytest.importorskip("joblib.externals.loky.backend.queues")
    feed = queues.Queue._feed

    def feed_and_dawdle(*arguments):
        feed(*arguments)
        time.sleep(0.2)

    monkeypatch.setattr(queues.Queue, "_feed", staticmethod(feed_and_dawdle))
    results = run_all(time.sleep, [0.01] + [60.0] * 9, workers=2, progressbar=False, title="")
    next(results)
    assert "QueueFeederThread" in {thread.name for thread in threading.enumerate()}
    results.close()
    assert "QueueFeederThread" not in {thread.name for thread in threading.enumerate()}


def is_running(pid: int) -> bool:
    """Whether there is such a process, other than one that waits to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_little_work_and_workers_have_one_thread(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads_for(2**30) == len(os.sched_getaffinity(0))
    assert threads_for(1_000) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads_for(2**30) == 3
    monkeypatch.delenv("OMP_NUM_THREADS")
    found = run_all(threads_for, [2**30] * 2, workers=2, progressbar=False, title="")
    assert list(found) == [1, 1]


def test_results_of_threads_are_in_the_order_of_the_parts(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    meet = threading.Barrier(2, timeout=30)  # passed only if two parts are worked on at once

    def work(part: int) -> int:
        meet.wait()
        time.sleep(0.05 if part == 0 else 0)
        return part

    assert in_threads(work, range(4), numbers=2**30) == [0, 1, 2, 3]


def test_a_part_that_fails_says_why_and_later_ones_end(monkeypatch):
    """Also what these do in threads of their own, which would take a minute."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    at_work, done = threading.Barrier(2, timeout=30), []

    def slow(_: int) -> None:
        time.sleep(0.01)
        done.append(1)

    def work(part: str) -> None:
        at_work.wait()
        if part == "fails":
            raise ValueError("as it must")
        in_threads(slow, range(12_000), numbers=2**30)

    with pytest.raises(ValueError, match="as it must"):
        in_threads(work, ["fails", "ends"], numbers=2**30)
    assert len(done) < 6_000
    assert in_threads(str, range(2), numbers=2**30) == ["0", "1"]  # what follows is asked for


@pytest.mark.parametrize("outer", [False, True])
def test_the_error_is_that_of_the_first_part_that_fails(monkeypatch, outer):
    """Whichever fails first: as without threads."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    late = threading.Event()

    def work(part: int) -> int:
        if part == 1:
            assert late.wait(30)
            time.sleep(0.05)
            in_threads(str, range(2), numbers=2**30)  # still asked for
        if part > 1:
            late.set()
        if part > 0:
            raise ValueError(f"part {part}")
        return part

    def all_parts(_: int) -> list[int]:
        return in_threads(work, range(9), numbers=2**30)

    with pytest.raises(ValueError, match="part 1") as raised:
        in_threads(all_parts, range(2), numbers=2**30) if outer else all_parts(0)
    assert raised.value.__context__ is None


@pytest.mark.parametrize("part", range(3))
def test_a_part_that_ends_all_is_not_lost(monkeypatch, part):
    """As `sys.exit` does, in whichever thread; parts that fail meanwhile do not hide
    it.
    """
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    done, all_in = [], threading.Barrier(3, timeout=30)

    def work(number: int) -> None:
        if number < 3:
            all_in.wait()
        if number == part:
            raise SystemExit(7)
        if number < 3:
            time.sleep(0.05)
            raise ValueError
        done.append(number)

    with pytest.raises(SystemExit, match="7"):
        in_threads(work, range(500), numbers=2**30)
    assert not done


def test_without_more_threads_this_one_takes_all_parts(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    started = []

    def start(self):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(self)
        begin(self)

    begin = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    assert in_threads(str, range(9), numbers=2**30) == list("012345678")


def test_a_thread_of_the_user_outlives_the_script():
    """When the main thread has ended, executors take nothing more."""
    code = """
import os, threading, time
from taciturn.parallel import in_threads

os.environ["OMP_NUM_THREADS"] = "2"

def late():
    threading.main_thread().join()
    print(in_threads(str, range(3), numbers=2**30))

threading.Thread(target=late).start()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['0', '1', '2']", done.stderr


def test_threads_ignore_what_their_caller_ignores(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    both = threading.Barrier(3, timeout=30)

    def divide(_: int) -> float:
        both.wait()
        return float(np.float64(1) / np.float64(0))

    with np.errstate(divide="ignore"):
        assert in_threads(divide, range(3), numbers=2**30) == [np.inf] * 3


def test_what_failed_is_not_kept(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")

    class Large:
        pass

    def fail(_: int) -> None:
        kept = Large()
        seen.append(weakref.ref(kept))
        raise ValueError

    seen: list[weakref.ref[Large]] = []
    gc.disable()
    try:
        with suppress(ValueError):
            in_threads(fail, range(4), numbers=2**30)
        assert seen
        assert all(one() is None for one in seen)
    finally:
        gc.enable()


def test_limits_of_linear_algebra_end_with_the_last_thread_that_needs_them():
    """Whichever that is: OpenBLAS ignores all threads but one, if that still runs."""
    both, left = threading.Barrier(2, timeout=30), threading.Event()
    if max(threads_of_linear_algebra()) < 2:
        pytest.skip("one core")

    def first() -> None:
        with linear_algebra_alone():
            both.wait()
        left.set()
        assert stay.wait(30)

    stay, before = threading.Event(), threads_of_linear_algebra()
    thread = threading.Thread(target=first)
    thread.start()
    with linear_algebra_alone():
        both.wait()
        assert left.wait(30)
        assert set(threads_of_linear_algebra()) == {1}
    assert threads_of_linear_algebra() == before
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        assert set(threads_of_linear_algebra()) == {1}  # of this thread, while the other runs
    stay.set()
    thread.join()
    assert threads_of_linear_algebra() == before


def test_limits_hold_and_end_whatever_others_limit():
    before = threads_of_linear_algebra()
    if max(before) < 2:
        pytest.skip("one core")
    with threadpoolctl.threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:
        for _ in range(2):
            assert set(pool.submit(alone).result()) == {1}
            assert set(threads_of_linear_algebra()) == {2}
    assert threads_of_linear_algebra() == before
    theirs = threadpoolctl.threadpool_limits(1, user_api="blas")
    with linear_algebra_alone():  # and theirs ends meanwhile
        theirs.restore_original_limits()
    assert threads_of_linear_algebra() == before
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        alone()
        assert set(threads_of_linear_algebra()) == {1}
    assert threads_of_linear_algebra() == before


def alone() -> list[int]:
    with linear_algebra_alone():
        return threads_of_linear_algebra()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_no_limits_nor_locks():
    code = """
import os, threading, warnings
import numpy, scipy.linalg, threadpoolctl
from taciturn import loading, parallel

def threads():
    known = threadpoolctl.threadpool_info()
    return [one["num_threads"] for one in known if one["user_api"] == "blas"]

warnings.simplefilter("ignore")
before, inside, leave = threads(), threading.Event(), threading.Event()

def hold():
    with parallel.linear_algebra_alone(), loading._LOADING:
        inside.set()
        leave.wait()

holder = threading.Thread(target=hold)
holder.start()
inside.wait()
child = os.fork()
if child == 0:
    assert threads() == before
    assert loading.loaded("json").dumps([]) == "[]"
    with parallel.linear_algebra_alone():
        assert set(threads()) == {1}
    os._exit(0 if threads() == before else 1)
assert os.waitpid(child, 0)[1] == 0
leave.set()
holder.join()
assert threads() == before
"""
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


def threads_of_linear_algebra() -> list[int]:
    known = threadpoolctl.threadpool_info()
    return [one["num_threads"] for one in known if one["user_api"] == "blas"]


def test_threads_end_at_ctrl_c():
    """The main thread is in a part, and then waits for another one."""
    code = """
import os, threading, time
from taciturn.parallel import in_threads

os.environ["OMP_NUM_THREADS"] = "2"
both = threading.Barrier(2)

def slow(_):
    time.sleep(0.01)

def work(part):
    both.wait()
    os.write(1, b"working\\n")
    if {main_works} or threading.current_thread() is not threading.main_thread():
        in_threads(slow, range(12_000), numbers=1)

in_threads(work, range(2), numbers=2**30)
"""
    for main_works in (True, False):
        command = [sys.executable, "-c", code.format(main_works=main_works)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, **pipes, start_new_session=True) as process:
            assert [process.stdout.readline() for _ in range(2)] == [b"working\n"] * 2
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=30)
        assert b"KeyboardInterrupt" in error
        assert b"CancelledError" not in error


def test_a_library_is_loaded_by_one_thread_at_a_time(monkeypatch):
    """Two that load formulaic at the same time may find it half loaded."""
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    loading = threading.Semaphore(1)

    def load(name: str) -> str:
        assert loading.acquire(blocking=False), "another thread is loading"
        if name == "outer":  # loads another one on its way
            loading.release()
            assert loading_module.loaded("inner") == "inner"
            assert loading.acquire(blocking=False)
        time.sleep(0.02)
        loading.release()
        return name

    monkeypatch.setattr(loading_module, "import_module", load)
    names = ["a", "outer", "b", "outer", "c"]
    assert in_threads(loading_module.loaded, names, numbers=2**30) == names
