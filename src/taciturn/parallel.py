"""Running the same work on one core, on all of them or on a cluster, with a progress
bar and a clean stop when interrupted; and compiled work on arrays in threads.
"""

import os
import signal
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import cache
from threading import Event, Lock, Thread, enumerate as all_threads, local
from time import sleep
from typing import TYPE_CHECKING, Any, Final

from threadpoolctl import ThreadpoolController

from taciturn.cluster import is_client, on_cluster
from taciturn.progress import progress_bar
from taciturn.validate import whole_number

if TYPE_CHECKING:
    from distributed import Client

__all__ = [
    "WITHOUT_THREADS",
    "Workers",
    "belong_to",
    "in_threads",
    "linear_algebra_alone",
    "run_all",
    "threads_for",
]

type Workers = "int | Client | None"

_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP")
_LOOK_EVERY: Final = 0.5  # seconds
_PATIENCE: Final = 5  # seconds, with threads that may be of others
_THREADED_FROM: Final = 2**20  # numbers; below, starting threads costs more than it saves

WITHOUT_THREADS: Final = _THREADED_FROM // 2
"""Numbers at a time that bound memory and start no threads."""


def run_all[T, R](
    work: Callable[[T], R],
    tasks: Sequence[T],
    *,
    workers: Workers,
    progressbar: bool,
    title: str,
) -> Generator[R]:
    """Results of all tasks, in the order in which they finish.

    Workers are processes with one thread each, or those of a Dask client. Processes are
    stopped if this ends early, by Ctrl-C or by an error, and within a second if this
    process is killed; only the caller receives Ctrl-C and requests to end.
    """
    results = _results(work, tasks, workers)
    with closing(results), progress_bar(title, len(tasks), shown=progressbar) as bar:
        for result in results:
            bar.advance()
            yield result


def in_threads[T, R](work: Callable[[T], R], parts: Sequence[T], *, numbers: int) -> list[R]:
    """Results for all parts, in their order, of work that mostly needs no Python;
    `numbers` is how many numbers they work on together.

    A part may itself be done in threads. If one fails, or Ctrl-C ends this, the others
    end, and with them what they do in threads, before their next part.
    """
    outer: tuple[Event, ...] = getattr(_THREAD, "ended", ())
    threads = min(threads_for(numbers), len(parts))
    if threads < 2:
        return [_unless_ended(outer, work, part) for part in parts]
    inner, left = (*outer, Event()), iter(range(len(parts)))
    found: dict[int, R] = {}
    failed: list[BaseException] = []

    def take_turns() -> None:
        try:
            with _ending_with(inner):
                for number in left:
                    found[number] = _unless_ended(inner, work, parts[number])
        except BaseException as error:
            failed.append(error)  # the others follow, and only this one says why
            inner[-1].set()
            raise

    try:
        with ThreadPoolExecutor(threads - 1) as pool:
            for _ in range(threads - 1):
                pool.submit(take_turns)
            with suppress(CancelledError):
                take_turns()
    except BaseException:  # also Ctrl-C while the others are waited for
        inner[-1].set()
        raise
    if failed:
        raise failed[0]
    return [found[number] for number in range(len(parts))]


_THREAD: Final = local()


@contextmanager
def _ending_with(ended: tuple[Event, ...]) -> Iterator[None]:
    """In which this thread knows when what it does is no longer asked for."""
    before = getattr(_THREAD, "ended", ())
    _THREAD.ended = ended
    try:
        yield
    finally:
        _THREAD.ended = before


def _unless_ended[T, R](ended: Sequence[Event], work: Callable[[T], R], part: T) -> R:
    if any(one.is_set() for one in ended):
        raise CancelledError
    return work(part)


@contextmanager
def linear_algebra_alone() -> Iterator[None]:
    """In which linear algebra takes one thread: beside others that take all cores, or
    of many small matrices, for which threads would wait. Threads may be in it together.
    """
    global _limited, _inside
    with _LIMITING:
        if _inside == 0:
            _limited = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _LIMITING:
            _inside -= 1
            if _inside == 0:
                _limited.restore_original_limits()


_LIMITING: Final = Lock()
_limited: Any = None
_inside = 0


@cache
def _controller() -> ThreadpoolController:
    """Made once, as that looks through all libraries."""
    return ThreadpoolController()


def threads_for(numbers: int) -> int:
    """How many threads share work on so many numbers: one for each core that this
    process may use, or as many as ``OMP_NUM_THREADS`` says, which is one in the
    processes of `run_all` and of Dask.
    """
    if numbers < _THREADED_FROM:
        return 1
    said = os.environ.get("OMP_NUM_THREADS", "")
    if said.isdecimal():
        return max(1, int(said))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _results[T, R](work: Callable[[T], R], tasks: Sequence[T], workers: Workers) -> Generator[R]:
    import joblib

    if is_client(workers):
        yield from on_cluster(work, tasks, workers)
        return
    cores = joblib.cpu_count() if workers is None else whole_number(workers, "workers", least=1)
    number = min(cores, max(len(tasks), 1))
    if number == 1:
        yield from map(work, tasks)
    else:
        yield from _in_processes(work, tasks, number)


def _in_processes[T, R](work: Callable[[T], R], tasks: Sequence[T], workers: int) -> Iterator[R]:
    import joblib
    from joblib.externals.loky import get_reusable_executor

    finished = False
    try:
        with joblib.parallel_config(
            backend="loky",
            inner_max_num_threads=1,
            initializer=belong_to,
            initargs=(os.getpid(),),
        ):
            pool = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")
            results = pool(joblib.delayed(work)(task) for task in tasks)
        for result in results:  # noqa: UP028 - closed below, in silence
            yield result
        finished = True
    finally:
        if not finished:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*tasks")  # left undone: as meant
                results.close()
            executor: Any = get_reusable_executor(reuse=True)
            executor.shutdown(wait=True, kill_workers=True)
            _wait_for_feeders()


def _wait_for_feeders() -> None:
    """Wait for the threads that fed the workers, which free semaphores as they end: if
    this process ended meanwhile, one would be reported as leaked.
    """
    for thread in all_threads():
        if thread.name == "QueueFeederThread":
            thread.join(timeout=_PATIENCE)


def belong_to(parent: int) -> None:
    """Leave signals to the parent process, and end when it does."""
    for name in _SIGNALS:
        if number := getattr(signal, name, None):  # Windows has fewer
            signal.signal(number, signal.SIG_IGN)
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent is another one, as the old one is gone.

    On Windows a process keeps the number of its parent, so workers end when they have
    been idle for some minutes.
    """
    while os.getppid() == parent:
        sleep(_LOOK_EVERY)
    os._exit(1)
