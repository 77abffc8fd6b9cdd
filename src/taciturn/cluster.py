"""The same work on the workers of a Dask cluster, which may come and go."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any, Final

from taciturn.errors import ParameterError
from taciturn.validate import is_of_class, quoted

__all__ = ["is_client", "on_cluster"]

_SECONDS: Final = 10.0  # that a task on the cluster should take,
_LONGEST: Final = 500  # and the most pieces of work it has
_AHEAD: Final = 2  # tasks that wait for each thread, so that none is idle


def is_client(workers: object) -> bool:
    """Whether this is a client of Dask, without importing it."""
    return is_of_class(workers, "distributed.client.Client")


def on_cluster[T, R](work: Callable[[T], R], tasks: Sequence[T], client: Any) -> Iterator[R]:
    """Results of all pieces of work in the order in which they finish.

    Pieces are sent several at a time, as many as take about ten seconds by what the
    earlier ones took, and fewer towards the end. What a lost worker had is done again
    by another; what is waiting is taken back when this ends early.
    """
    if client.asynchronous or client.status != "running":
        raise ParameterError(
            f"workers must be a running client that is not asynchronous, got {quoted(client)}"
        )
    from distributed import as_completed

    left = deque(tasks)
    finished: Any = as_completed(loop=client.loop)  # type: ignore[no-untyped-call]
    futures: set[Any] = set()
    number, seconds = 1, 0.0

    def send() -> None:
        ahead = _AHEAD * max(sum(client.nthreads().values()), 1)
        while left and len(futures) < ahead:
            # Fewer towards the end, so that all workers end at about the same time.
            own = [left.popleft() for _ in range(min(number, -(-len(left) // ahead)))]
            future = client.submit(_several, work, own, pure=False)
            futures.add(future)
            finished.add(future)

    try:
        send()
        for future in finished:
            results, took = future.result()
            futures.discard(future)
            seconds = took / len(results) if seconds == 0.0 else (seconds + took / len(results)) / 2
            number = max(1, min(_LONGEST, int(_SECONDS / max(seconds, 1e-6))))
            send()
            yield from results
    finally:
        client.cancel(list(futures))


def _several[T, R](work: Callable[[T], R], tasks: Sequence[T]) -> tuple[list[R], float]:
    """Results of some pieces, and the seconds they took."""
    start = monotonic()
    return [work(task) for task in tasks], monotonic() - start
