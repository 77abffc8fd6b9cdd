"""What is being done, and how much of it: on standard error of a terminal, or below the
cell of a notebook.

In a notebook one output is updated in place and emptied at the end, so nothing needs to
be installed and a saved notebook keeps no trace of it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from time import monotonic
from typing import Any, Final, Protocol

__all__ = ["Bar", "progress_bar", "progress_steps"]

_LETTERS: Final = 30  # of a bar in plain text
_EVERY: Final = 0.2  # seconds between updates of a notebook


class _Line(Protocol):
    """Where one title, and how much is done, is shown at a time."""

    def show(self, title: str, done: int, total: int | None) -> None: ...

    def close(self) -> None: ...


class Bar:
    """How much of the work is done."""

    def __init__(self, line: _Line, title: str, total: int) -> None:
        self._line, self._title, self._done, self._total = line, title, 0, total
        line.show(title, 0, total)

    def advance(self) -> None:
        """Count one more piece as done."""
        self.reach(self._done + 1)

    def reach(self, done: int) -> None:
        """Count so many pieces as done."""
        self._done = done
        self._line.show(self._title, done, self._total)

    def finish(self, title: str | None = None) -> None:
        """Count all pieces as done; a new title may announce the work that follows."""
        self._title = title or self._title
        self.reach(self._total)


@contextmanager
def progress_bar(title: str, total: int, *, shown: bool) -> Iterator[Bar]:
    """Show a bar for `total` pieces of work, full at the end."""
    with _line(shown=shown, kept=True) as line:
        bar = Bar(line, title, total)
        yield bar
        bar.finish()


@contextmanager
def progress_steps(title: str, *, shown: bool) -> Iterator[Callable[[str], None]]:
    """Say what is being done while it is, for work of unknown length.

    What is yielded is called with the title of the next step. Bars and steps inside
    appear in the same place.
    """
    with _line(shown=shown, kept=False) as line:
        line.show(title, 0, None)
        yield lambda step: line.show(step, 0, None)


class _Shared:
    """The line that is open, if any, and what stands there.

    It is shared with threads: a chain that runs in one reports on the line of its fit.
    """

    line: _Line | None = None
    shows: tuple[str, int, int | None] = ("", 0, None)


@contextmanager
def _line(*, shown: bool, kept: bool) -> Iterator[_Line]:
    """A line of its own, or inside another one that line, as it was when this ends."""
    if not shown:
        yield _Nowhere()
        return
    if _Shared.line is not None:
        outer, before = _Shared.line, _Shared.shows
        try:
            yield outer
        finally:
            outer.show(*before)
        return
    line: _Line = _Notebook() if _in_notebook() else _Terminal(kept=kept)
    _Shared.line, _Shared.shows = line, ("", 0, None)
    try:
        yield line
    finally:
        _Shared.line = None
        line.close()


def _in_notebook() -> bool:
    """Whether this runs in a kernel, whose output is not a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class _Nowhere:
    def show(self, title: str, done: int, total: int | None) -> None: ...

    def close(self) -> None: ...


class _Terminal:
    """A line of rich's; steps, which are not kept, are for terminals only."""

    def __init__(self, *, kept: bool) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("[progress.download]{task.fields[count]}"),
            TimeRemainingColumn(),
            console=console,
            transient=not kept,
            disable=not (kept or console.is_terminal),
        )
        self._task = self._progress.add_task("", total=None, count="")
        self._progress.start()

    def show(self, title: str, done: int, total: int | None) -> None:
        if (title, total) != _Shared.shows[::2] or done == 0:
            self._progress.remove_task(self._task)
            self._task = self._progress.add_task(title, total=total, count="")
        count = "" if total is None else f"{done}/{total}"
        self._progress.update(self._task, completed=done, count=count)
        _Shared.shows = (title, done, total)

    def close(self) -> None:
        self._progress.stop()


class _Notebook:
    """An output of the running cell, empty at the end."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._at = 0.0

    def show(self, title: str, done: int, total: int | None) -> None:
        same, now = (title, total) == _Shared.shows[::2], monotonic()
        _Shared.shows = (title, done, total)
        if not same or done == 0 or now - self._at >= _EVERY:
            self._at = now
            self._put(_texts(title, done, total))

    def close(self) -> None:
        self._put({"text/plain": "", "text/html": ""})

    def _put(self, texts: dict[str, str]) -> None:
        from IPython.display import display

        if self._handle is None:
            self._handle = display(texts, raw=True, display_id=True)
        else:
            self._handle.update(texts, raw=True)


def _texts(title: str, done: int, total: int | None) -> dict[str, str]:
    """What a notebook shows, in both forms that it may ask for."""
    if total is None:
        return {"text/plain": f"{title} ...", "text/html": f"{escape(title)} ..."}
    full = _LETTERS * done // max(total, 1)
    count = f"{done}/{total}"
    return {
        "text/plain": f"{title} [{'#' * full}{'.' * (_LETTERS - full)}] {count}",
        "text/html": f'{escape(title)} <progress value="{done}" max="{total}"></progress> {count}',
    }
