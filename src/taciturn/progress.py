"""A bar on standard error for work that takes a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Bar", "progress_bar"]


class Bar:
    """What is done so far; `advance` by one piece, `finish` all of them."""

    def __init__(self, progress: "Progress", title: str, total: int) -> None:
        self._progress, self._total = progress, total
        self._task = progress.add_task(title, total=total)

    def advance(self) -> None:
        """One piece more is done."""
        self._progress.advance(self._task)

    def finish(self, title: str | None = None) -> None:
        """All pieces are done; what goes on may have another title."""
        self._progress.update(self._task, completed=self._total, description=title)


@contextmanager
def progress_bar(title: str, total: int, *, shown: bool) -> Iterator[Bar]:
    """A bar of so many pieces."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as progress:
        bar = Bar(progress, title, total)
        yield bar
        bar.finish()
