"""Running the same work on one core or on all of them, with a progress bar and a clean
stop when interrupted.
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from taciturn.validate import whole_number

__all__ = ["run_all"]


def run_all[T, R](
    work: Callable[[T], R],
    tasks: Sequence[T],
    *,
    workers: int | None,
    progressbar: bool,
    title: str,
) -> Iterator[R]:
    """Results of all tasks, in the order in which they finish.

    Workers are processes with one thread each. They are stopped if this ends early, by
    Ctrl-C or by an error; only the caller receives Ctrl-C.
    """
    import joblib
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    cores = joblib.cpu_count() if workers is None else whole_number(workers, "workers", least=1)
    number = min(cores, max(len(tasks), 1))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not progressbar) as progress:
        bar = progress.add_task(title, total=len(tasks))
        for result in map(work, tasks) if number == 1 else _in_processes(work, tasks, number):
            progress.advance(bar)
            yield result


def _in_processes[T, R](work: Callable[[T], R], tasks: Sequence[T], workers: int) -> Iterator[R]:
    import joblib
    from joblib.externals.loky import get_reusable_executor

    finished = False
    with joblib.parallel_config(
        backend="loky", inner_max_num_threads=1, initializer=_leave_interrupts_to_the_parent
    ):
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
