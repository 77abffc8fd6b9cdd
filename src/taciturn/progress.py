"""A progress bar on standard error for work that takes a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Bar", "progress_bar"]


class Bar:
    """How much of the work is done."""

    def __init__(self, progress: "Progress", title: str, total: int) -> None:
        self._progress, self._total = progress, total
        self._task = progress.add_task(title, total=total)

    def advance(self) -> None:
        """Count one more piece as done."""
        self._progress.advance(self._task)

    def finish(self, title: str | None = None) -> None:
        """Count all pieces as done; a new title may announce the work that follows."""
        self._progress.update(self._task, completed=self._total, description=title)


@contextmanager
def progress_bar(title: str, total: int, *, shown: bool) -> Iterator[Bar]:
    """Show a bar for `total` pieces of work, full at the end."""
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
