"""Ctrl-C, SIGTERM and SIGHUP end a command in the same way: what it began is undone."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final, Self

import click

__all__ = ["Interruptions", "continued_from"]

_NAMES: Final = ("SIGTERM", "SIGHUP")


class Interruptions:
    """Turns SIGTERM and SIGHUP into the `KeyboardInterrupt` of Ctrl-C while it is open.

    The first that comes counts, and no other disturbs what is undone then. One that
    whoever started the command had ignored, as ``nohup`` does, stays ignored.
    """

    def __init__(self) -> None:
        self.number: signal.Signals = signal.SIGINT
        self._before: dict[signal.Signals, Any] = {}

    @property
    def status(self) -> int:
        """Exit status after an interruption: 128 and the number of the signal."""
        return 128 + self.number

    def __str__(self) -> str:
        if self.number == signal.SIGINT:
            return "interrupted"
        return f"ended by {self.number.name}"

    def __enter__(self) -> Self:
        for number in (signal.Signals[name] for name in _NAMES if hasattr(signal, name)):
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        for each in self._before:
            signal.signal(each, signal.SIG_IGN)
        self.number = signal.Signals(number)
        raise KeyboardInterrupt


@contextmanager
def continued_from(store: Path | None) -> Iterator[None]:
    """Say, where work that a store keeps is interrupted, that the same command goes on
    from there.
    """
    try:
        yield
    except KeyboardInterrupt:
        if store is not None:
            click.echo(f"taciturn: the same command continues from {store}", err=True)
        raise
