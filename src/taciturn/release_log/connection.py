"""Connections to the file of a log, by one process at a time."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import RLock
from time import monotonic, sleep
from typing import Any, Final

from taciturn.errors import FileFormatError, MissingDependencyError
from taciturn.interrupts import interruptible_queries

__all__ = ["ALONE", "connection_to", "duckdb_module", "one_line", "settled"]

_PATIENCE: Final = 10.0  # seconds to wait for another process
_PAUSE: Final = 0.02
_HELD: Final = ("Could not set lock on file", "used by another process")
"""What DuckDB says of a file that another process has open."""
_LOCK: Final = RLock()  # of this process: it must not open a file in two ways at once
ALONE: Final[dict[str, Any]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
"""So that nothing in a file makes it read another file or the network."""


@contextmanager
def settled(path: Path) -> Iterator[None]:
    """Hold a log that is there, with all that was committed to it in its own file. What
    stands beside it would get into a file that takes its place, and without it be lost
    if none does.

    Raises
    ------
    FileFormatError
        It cannot be opened, or not be written.
    """
    beside = path.with_name(f"{path.name}.wal")
    if not _is_database(path):
        beside.unlink(missing_ok=True)
        yield
        return
    with ExitStack() as opened:
        try:
            connection = opened.enter_context(connection_to(path, writing=True))
        except FileFormatError as error:
            raise FileFormatError(
                f"{error}: it is not replaced, as {beside.name} may hold what was committed to it;"
                " give another name, or remove both first"
            ) from None
        connection.execute("CHECKPOINT")
        if sys.platform == "win32":  # which does not replace an open file
            opened.close()
        yield


def _is_database(path: Path) -> bool:
    """Whether a file is there that begins as those of DuckDB do."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(12)[8:] == b"DUCK"


@contextmanager
def connection_to(path: Path, *, writing: bool) -> Iterator[Any]:
    """A connection, as soon as no other process has the file."""
    duckdb = duckdb_module()
    if not path.is_file():
        raise FileFormatError(f"{path}: there is no such file")
    with _LOCK:
        connection = _connected(duckdb, path, writing)
        try:
            with interruptible_queries():
                yield connection
        except duckdb.Error as error:
            raise FileFormatError(f"{path}: {one_line(error)}") from None
        finally:
            with suppress(duckdb.Error):
                connection.close()


def _connected(duckdb: Any, path: Path, writing: bool) -> Any:
    until = monotonic() + _PATIENCE
    while True:
        try:
            return duckdb.connect(str(path), read_only=not writing, config=ALONE)
        except duckdb.Error as error:
            if not any(held in str(error) for held in _HELD):
                raise FileFormatError(f"{path}: {one_line(error)}") from None
            if monotonic() > until:
                raise FileFormatError(
                    f"{path}: another process has had it open for {_PATIENCE:.0f} seconds"
                ) from None
        sleep(_PAUSE)


def one_line(error: object) -> str:
    """What it says, for a message."""
    return " ".join(str(error).split())[:200]


def duckdb_module() -> Any:
    """DuckDB, which only a release log needs."""
    try:
        import duckdb
    except ImportError:
        raise MissingDependencyError(
            "a release log needs DuckDB: install 'taciturn[release-log]'"
        ) from None
    return duckdb
