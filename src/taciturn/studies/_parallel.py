"""The same work on one core or on all of them, with a progress bar and a clean end when interrupted."""

import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from taciturn.errors import ParameterError

__all__ = ["checked_count", "run_all", "seed_of"]


def run_all[T, R](
    work: Callable[[T], R], tasks: Sequence[T], *, workers: int | None, progressbar: bool, title: str
) -> Iterator[R]:
    """Results of all tasks, in the order they finish.

    Workers are processes with one thread each. They are gone when this ends early, by Ctrl-C or by an error; Ctrl-C
    reaches the caller alone.
    """
    import joblib
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    cores = joblib.cpu_count() if workers is None else checked_count(workers, "workers")
    number = min(cores, max(len(tasks), 1))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not progressbar) as progress:
        bar = progress.add_task(title, total=len(tasks))
        for result in map(work, tasks) if number == 1 else _in_processes(work, tasks, number):
            progress.advance(bar)
            yield result


def _in_processes[T, R](work: Callable[[T], R], tasks: Sequence[T], workers: int) -> Iterator[R]:
    import joblib
    from joblib.externals.loky import get_reusable_executor

    finished = False
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1, initializer=_leave_interrupts_to_the_parent):
        pool = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")
        results = pool(joblib.delayed(work)(task) for task in tasks)
    try:
        yield from results
        finished = True
    finally:
        if not finished:
            executor: Any = get_reusable_executor(reuse=True)
            executor.shutdown(wait=True, kill_workers=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def checked_count(value: Any, name: str) -> int:
    """Return a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ParameterError(f"{name} must be a whole number of at least 1, got {value!r}")
    return int(value)


def seed_of(random_seed: Any) -> int:
    """A whole number as a seed: the given one, one from a generator, or a new one."""
    if random_seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_seed, np.random.Generator):
        return int(random_seed.integers(2**32))
    if isinstance(random_seed, int | np.integer) and not isinstance(random_seed, bool) and random_seed >= 0:
        return int(random_seed)
    raise ParameterError(f"random_seed must be a non-negative whole number or a Generator, got {random_seed!r}")
