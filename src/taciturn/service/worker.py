"""Processes that work out answers: one that takes too long can be ended, and one that
ends takes nothing with it.
"""

import multiprocessing
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from taciturn.errors import FileFormatError, TaciturnError
from taciturn.parallel import belong_to
from taciturn.service.answers import NO_LOG, Answer, Kind, answer

__all__ = ["Worker"]

_START: Final = 120.0  # seconds, to load libraries
_END: Final = 2.0
_READY: Final = "ready"
_ENDED: Final = (
    "the process that worked on this ended: ask again; a release that was added is not added again"
)


class Worker:
    """A process that has the log, and answers one request after the other.

    Parameters
    ----------
    path : Path
        The file of the log.
    seconds : float
        How long an answer may take.
    """

    def __init__(self, path: Path, seconds: float) -> None:
        self._path, self._seconds = path, seconds
        self._start()

    def wait(self) -> None:
        """Wait until it is ready, as libraries take long to load.

        Raises
        ------
        FileFormatError
            The file is no log.
        """
        try:
            said = self._pipe.recv() if self._pipe.poll(_START) else "it does not start"
        except EOFError:
            said = "it ended"
        if said != _READY:
            self.end()
            raise FileFormatError(said)

    def ask(self, kind: Kind, asked: Mapping[str, Any]) -> Answer:
        """The answer, or that there was none in time."""
        try:
            if not self._process.is_alive():
                self._start()
                self.wait()
            self._pipe.send((kind, asked))
            if self._pipe.poll(self._seconds):
                return Answer(*self._pipe.recv())
        except FileFormatError:  # of a process that is started again
            return NO_LOG
        except (EOFError, OSError):
            self.end()
            return Answer(503, {"error": _ENDED})
        self.end()
        return Answer(
            504,
            {
                "error": f"not worked out within {self._seconds:g} seconds, and given up; a smaller"
                " table, or advise false, takes less"
            },
        )

    def end(self) -> None:
        """End the process, whatever it does: what it adds to the log is added whole or
        not at all.
        """
        self._pipe.close()
        self._process.kill()
        self._process.join()

    def close(self) -> None:
        """End the process once it has answered."""
        self._pipe.close()
        self._process.join(_END)
        self.end()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # threads of the solver do not survive fork
        self._pipe, there = context.Pipe()
        given = (there, self._path, os.getpid())
        self._process = context.Process(target=_work, args=given, daemon=True)
        self._process.start()
        there.close()


def _work(pipe: Connection, path: Path, parent: int) -> None:
    """Answer until nobody asks any more."""
    from taciturn.release_log import ReleaseLog

    belong_to(parent)
    # Until the pipe is closed, and nobody asks, or listens, any more.
    with suppress(EOFError, ConnectionError):
        try:
            log = ReleaseLog(path)
        except TaciturnError as error:
            pipe.send(str(error))
            return
        pipe.send(_READY)
        while True:
            kind, asked = pipe.recv()
            try:
                found = answer(log, kind, asked)
            except Exception as error:  # the last resort of a service
                found = Answer(500, {"error": "internal error"})
                _report(error)
            pipe.send(tuple(found))


def _report(error: Exception) -> None:
    """Say where an error is, and not what it says: that may hold counts."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    print(
        f"taciturn: internal error, please report it: {type(error).__name__} at {where}",
        file=sys.stderr,
        flush=True,
    )
