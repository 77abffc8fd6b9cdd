"""Running the same work on one core, on all of them or on a cluster, with a progress
bar and a clean stop when interrupted; and compiled work on arrays in threads.
"""

import os
import signal
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager, suppress
from contextvars import copy_context
from functools import cache
from threading import Lock, Thread, enumerate as all_threads, local
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

    A part may itself be done in threads. If one fails, those before it are finished,
    and the others end, with what they do in threads before their next part, so that the
    error is that of the first part that fails. At Ctrl-C all end. Parts must not change
    what all threads share, such as the filters of warnings.
    """
    threads = min(threads_for(numbers), len(parts))
    if threads < 2:
        return [_if_asked_for(work, part) for part in parts]
    return _Turns(work, parts).taken_by(threads)


class _Turns[T, R]:
    """Parts that threads take in turns."""

    def __init__(self, work: Callable[[T], R], parts: Sequence[T]) -> None:
        self._work, self._parts = work, parts
        self._left = iter(range(len(parts)))
        self._found: dict[int, R] = {}
        self._failed: dict[int, Exception] = {}
        self._failing = Lock()
        self._interrupt: BaseException | None = None  # ends all parts
        self._outer: tuple[tuple[_Turns[Any, Any], int], ...] = getattr(_THREAD, "turns", ())
        self._last = float("inf")  # part that is asked for

    def taken_by(self, threads: int) -> list[R]:
        """Results of all parts, by this thread and others."""
        others = [Thread(target=copy_context().run, args=(self._take,)) for _ in range(threads - 1)]
        try:
            with suppress(RuntimeError):  # no more threads can start: those that run take all
                for other in others:
                    other.start()
            self._take()
            _wait_for(others)
        except BaseException as interrupt:  # Ctrl-C between parts
            self._interrupt = interrupt
            _wait_for(others)
        try:
            if self._interrupt is not None:
                raise self._interrupt
            if self._failed:
                raise self._failed[min(self._failed)]
        finally:  # or errors would hold this, and this would hold them
            self._interrupt = None
            self._failed.clear()
        return [self._found[number] for number in range(len(self._parts))]

    def asks_for(self, number: int) -> bool:
        """Whether this part is still to be done."""
        return number <= self._last and self._interrupt is None

    def _take(self) -> None:
        before = getattr(_THREAD, "turns", ())
        try:
            for number in self._left:
                _THREAD.turns = (*self._outer, (self, number))
                try:
                    self._found[number] = _if_asked_for(self._work, self._parts[number])
                except Exception as error:
                    with self._failing:
                        self._failed[number] = error
                        self._last = min(self._last, number)
                    return
                except BaseException as interrupt:
                    self._interrupt = interrupt
                    return
        finally:
            _THREAD.turns = before


def _wait_for(threads: Sequence[Thread]) -> None:
    for thread in threads:
        if thread.ident is not None:
            thread.join()


_THREAD: Final = local()
"""The turns that it is in, and the number of its part in each: the outer ones first."""


def _if_asked_for[T, R](work: Callable[[T], R], part: T) -> R:
    """The result, unless a part that this is a part of is no longer asked for."""
    if not all(turns.asks_for(number) for turns, number in getattr(_THREAD, "turns", ())):
        raise CancelledError
    return work(part)


@contextmanager
def linear_algebra_alone() -> Iterator[None]:
    """In which linear algebra takes one thread: beside others that take all cores, or
    of many small matrices, for which threads would wait. Threads may be in it together.
    """
    me = object()
    try:
        with _LIMITING:
            _INSIDE.add(me)
            _limit()
        yield
    finally:
        with _LIMITING:
            _INSIDE.discard(me)
            if not _INSIDE:
                _restore()


_LIMITING = Lock()
_INSIDE: Final[set[object]] = set()
_BEFORE: Final[dict[str, int]] = {}
"""Threads of each library that is limited."""


def _limit() -> None:
    _free_limits()
    for library in _libraries():
        if (library.num_threads or 1) > 1:  # noted first, in case of Ctrl-C
            _BEFORE[library.filepath] = library.num_threads
            library.set_num_threads(1)


def _restore() -> None:
    """Unless somebody else has set another limit since."""
    _free_limits()
    for library in _libraries():
        if library.filepath in _BEFORE and library.num_threads == 1:
            library.set_num_threads(_BEFORE[library.filepath])
    _BEFORE.clear()
    _free_limits()


def _free_limits() -> None:
    """Let any thread set limits: otherwise only that which did so first can, and what
    others ask for is ignored without a word.
    """
    for library in _libraries():
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@cache
def _libraries() -> list[Any]:
    """Of linear algebra; looked for once, as that looks through all libraries."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _begin_anew() -> None:
    """In a forked process, which has none of the threads."""
    global _LIMITING
    _LIMITING = Lock()
    if _INSIDE:
        _INSIDE.clear()
        _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


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
    # Of a worker that has grown and is replaced. As an error it would end the thread
    # that hears from workers, and this process would wait for ever. It stays, as that
    # thread does.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
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
